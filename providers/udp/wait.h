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

/*
 * udp_wait_room - returns true, once, if a send that reports there was refused for want of room,
 * and there is room now: the program may sleep to be told so
 */
bool udp_wait_room(struct udp_wait *wait);

/* udp_wait_notify - something was reported */
static inline void udp_wait_notify(struct udp_wait *wait)
{
	if (likely(!wait->armed))
		return;
	wait->armed = false;
	wait->rung = true;
	wait->rings++;
	wait->woken = wait->sleepers;
	sys_eventfd_ring(wait->bell);
}

/*
 * udp_wait_arm - what is reported, or arrives, from now on ends a sleep. Only for waits with a wait
 * object
 */
void udp_wait_arm(struct udp_wait *wait);

/* What a blocking call knows of its sleep; zeroed at its begin */
struct udp_sleeper {
	/* of the wait, when it fell asleep */
	uint32_t rings;
	bool asleep;
	/* the bell rings for others that have not looked yet */
	bool early;
	/* it is one of the wait's readers */
	bool reads;
};

/*
 * udp_wait_look - begins each look of a blocking call, after it slept or not
 * udp_wait_doze - udp_wait_arm() for a blocking call, which then sleeps
 * udp_wait_rest - the sleep, until @end; without the lock. Returns as udp_wait_sleep(). A thread
 *		   that is cancelled in it is no sleeper and no reader any more
 * A call that finds too little and sleeps on leaves the bell to the others that were woken too.
 */
void udp_wait_look(struct udp_wait *wait, struct udp_sleeper *sleeper);
void udp_wait_doze(struct udp_wait *wait, struct udp_sleeper *sleeper);
int udp_wait_rest(struct udp_wait *wait, struct udp_sleeper *sleeper, uint64_t end);

/*
 * udp_wait_sleep - sleep until a descriptor is readable or @end, in ns of platform_now_ns(); without
 * the lock. FI_WAIT_YIELD only yields. Returns 0, or -FI_EINTR if a signal handler has run
 */
int udp_wait_sleep(enum fi_wait_obj type, int descriptor, uint64_t end);

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

/*
 * udp_wait_try - fi_trywait of a queue or counter; without the lock
 * Returns 0 if a program may sleep: nothing is there, and what comes makes the descriptor readable.
 * -FI_EAGAIN: something is there; another -FI_E*: it is nothing to sleep on.
 */
int udp_wait_try(struct fid *fid);

/* udp_trywait - the slot of a fabric. Source: fi_poll(3), fi_trywait */
int udp_trywait(struct fid_fabric *fabric, struct fid **fids, int cnt);

#endif
