/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the sockets of the process (connect/socket.h) keep in endpoints and connections.
 */
#ifndef WEFT_SHM_SOCKET_STATE_H
#define WEFT_SHM_SOCKET_STATE_H

#include "list.h"
#include "region.h"

struct pshm_process;

/* Whether an endpoint sleeps. */
enum pshm_sleep_state {
	PSHM_AWAKE,
	/* for a short time, and reads the sockets then */
	PSHM_NAPPING,
	/* until it is woken */
	PSHM_ASLEEP,
};

/* What socket.c keeps in each endpoint, under its lock. */
struct pshm_socket_state {
	struct list link;
	/* struct pshm_request, that wait for poll() */
	struct list requests;
	/* between pshm_sockets_join() and pshm_sockets_leave() */
	bool joined;
	/* The rest is watcher.c's. */
	/* its pipe, or -1 */
	int bell;
	/* what its domain sleeps on, which holds that pipe too, or -1 */
	int poll_set;
	enum pshm_sleep_state state;
	/* in the list of endpoints that are PSHM_ASLEEP */
	struct list asleep;
	/* time at which it last went to sleep */
	uint64_t sleep_ns;
	/* it has slept for longer than a nap since then */
	bool slept_long;
};

/* State of a connection's request over a socket; protected by the lock of socket.c. */
struct pshm_ask {
	/* in the list of the requests of this process */
	struct list link;
	/* nonces of the endpoint that the request is for, and of the pair that it offers */
	uint8_t to[PSHM_NONCE], pair[PSHM_NONCE];
	/* process of that endpoint, held; NULL: no request is under way */
	struct pshm_process *process;
	/* inbox of the peer, once the answer has arrived */
	struct pshm_region inbox;
	/* why there is none, -FI_E*, or 0 */
	int err;
	/* neither has arrived: the descriptors may still be on their way */
	bool under_way;
};

#endif
