/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parts of an endpoint. Each call holds the domain's lock where nothing else is said. */
#ifndef WEFT_UDP_ENDPOINT_H
#define WEFT_UDP_ENDPOINT_H

#include "objects.h"

/*
 * udp_ep_arm - have the waits' epolls look for what the endpoint waits for
 * A datagram without a receive is none of it: it would end every sleep at once.
 */
void udp_ep_arm(struct udp_ep *ep);

/*
 * udp_ep_watch, udp_ep_unwatch - have the waits' epolls hold a socket of the endpoint, or no more
 * udp_ep_watch_all - have the epoll of that link of the endpoint hold all that are open
 */
int udp_ep_watch(struct udp_ep *ep, int fd);
int udp_ep_watch_all(struct udp_ep *ep, const struct udp_link *link, int epoll);
void udp_ep_unwatch(struct udp_ep *ep, int fd);

/*
 * udp_ep_close_socket - close a socket of the endpoint, and log what the kernel dropped there
 * @at:   its address
 * @here: false in the child of a fork, which leaves the epolls alone: they are the parent's too
 */
void udp_ep_close_socket(struct udp_ep *ep, int fd, const union ip_sockaddr *at, bool here);

/* udp_ep_bind - open its socket, if that is not open yet. Returns 0 or -FI_E*, which is logged */
int udp_ep_bind(struct udp_ep *ep);

/* One datagram to send. */
struct udp_send {
	const struct iovec *iov;
	size_t iov_cnt;
	fi_addr_t to;
	void *context;
	/* of the call: FI_INJECT, FI_MORE, FI_MULTICAST, FI_COMPLETION */
	uint64_t flags;
	/* fi_inject: no completion, whatever the flags */
	bool silent;
};

/*
 * udp_iov_check - check the vectors of a message, and add up their bytes
 * @len: out
 * Returns 0, -FI_EINVAL: too many, or NULL for bytes, or -FI_EMSGSIZE: more than memory has.
 */
int udp_iov_check(const struct iovec *iov, size_t cnt, size_t *len);

/*
 * udp_send - send a datagram, or hold it back with FI_MORE
 * Returns 0, -FI_EAGAIN when the kernel has no room now, or another -FI_E*: nothing happened.
 */
ssize_t udp_send(struct udp_ep *ep, const struct udp_send *send);
/*
 * udp_send_flush - send what is held back; what the kernel has no room for stays, and room for it
 * ends a sleep
 */
void udp_send_flush(struct udp_ep *ep);
/*
 * udp_send_room - returns true, once, if a send was refused for want of room and there is room now
 */
bool udp_send_room(struct udp_ep *ep);
/* udp_send_held - returns how many are held back */
uint32_t udp_send_held(const struct udp_ep *ep);
/*
 * udp_send_close - send what is held back
 * What the kernel has no room for ends with -FI_ECANCELED.
 */
void udp_send_close(struct udp_ep *ep);
/*
 * udp_send_free - free the memory for what is held back; nothing is sent any more. Without the lock
 * in the child of a fork, where what is held back is the parent's to send
 */
void udp_send_free(struct udp_ep *ep);

/*
 * udp_recv - post a receive. Returns 0, -FI_EAGAIN: as many as rx_attr.size are posted, or another
 * -FI_E*
 */
ssize_t udp_recv(struct udp_ep *ep, const struct iovec *iov, size_t cnt, void *context,
		 uint64_t flags);
/* udp_recv_progress - take datagrams into the receives that are posted */
void udp_recv_progress(struct udp_ep *ep);
/* udp_recv_cancel - remove the receive with that context. Returns 0 or -FI_ENOENT */
int udp_recv_cancel(struct udp_ep *ep, const void *context);

/*
 * udp_ep_default - find the address that peers reach the endpoint at, if it has to choose one: the
 * best one of the domain's interface. Returns 0 or -FI_E*, and why
 */
int udp_ep_default(const struct udp_ep *ep, union ip_sockaddr *out, char *why, size_t why_len);

/*
 * udp_name_copy - give a program an address: as much as it has room for
 * @len: in: the room; out: the address's bytes
 * Returns 0, or -FI_ETOOSMALL if that is less.
 */
int udp_name_copy(const union ip_sockaddr *name, void *addr, size_t *len);

/* udp_group_find - the group of that number, or NULL */
struct udp_group *udp_group_find(const struct udp_ep *ep, fi_addr_t addr);

#endif
