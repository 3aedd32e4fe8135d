/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress for a completion queue or counter, and sleeping until it has something. Each call holds
 * the domain's lock but for udp_wait_sleep().
 *
 * No wake-up is lost: who is about to sleep arms the wait while it holds the lock and has found
 * nothing. From then on a datagram makes a socket in the epoll descriptor readable, and what
 * another thread reports rings the bell.
 */
#ifndef WEFT_UDP_WAIT_H
#define WEFT_UDP_WAIT_H

#include "eventfd.h"
#include "objects.h"

/*
 * udp_wait_type - check the kind of wait object that a program asks for
 * Returns 0, or -FI_ENOSYS for one that is not supported.
 */
int udp_wait_type(enum fi_wait_obj type);

/* udp_wait_open - a wait without endpoints. Returns 0 or -FI_E* */
int udp_wait_open(struct udp_wait *wait, struct udp_domain *domain, enum fi_wait_obj type);
/* udp_wait_close - the wait has no endpoint any more */
void udp_wait_close(struct udp_wait *wait);

/* udp_wait_link - have an endpoint report to the wait; does nothing for one that does already */
void udp_wait_link(struct udp_wait *wait, struct udp_ep *ep, struct udp_link *link);
void udp_wait_unlink(struct udp_link *link);

/*
 * udp_wait_progress - take what has arrived for the wait's endpoints, and send what was held back
 */
void udp_wait_progress(struct udp_wait *wait);

/* udp_wait_notify - something was reported */
static inline void udp_wait_notify(struct udp_wait *wait)
{
	if (likely(!wait->armed))
		return;
	wait->armed = false;
	wait->rung = true;
	sys_eventfd_ring(wait->bell);
}

/*
 * udp_wait_arm - what is reported, or arrives, from now on ends a sleep. Only for waits with a wait
 * object
 */
void udp_wait_arm(struct udp_wait *wait);

/*
 * udp_wait_sleep - sleep until the descriptor is readable or @end, in ns of platform_now_ns();
 * without the lock
 */
void udp_wait_sleep(const struct udp_wait *wait, uint64_t end);

/* udp_wait_end - when a call with this timeout in ms ends; negative: UINT64_MAX, never */
uint64_t udp_wait_end(int timeout);

/* udp_wait_control - FI_GETWAIT, FI_GETWAITOBJ. Returns 0, -FI_ENOSYS or -FI_EINVAL */
int udp_wait_control(const struct udp_wait *wait, int command, void *arg);

/*
 * udp_wait_of - the wait of a completion queue or counter
 * udp_wait_there - returns true if the program has something to read there
 */
struct udp_wait *udp_wait_of(struct fid *fid);
bool udp_wait_there(struct fid *fid);

/* udp_trywait - the slot of a fabric. Source: fi_poll(3), fi_trywait */
int udp_trywait(struct fid_fabric *fabric, struct fid **fids, int cnt);

#endif
