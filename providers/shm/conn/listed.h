/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the sockets of the process (connect/socket.h) keep in endpoints and connections.
 */
#ifndef WEFT_SHM_LISTED_H
#define WEFT_SHM_LISTED_H

#include "list.h"
#include "region.h"

struct pshm_process;

/* How an endpoint sleeps. */
enum pshm_rest {
	PSHM_AWAKE,
	PSHM_NAPS,  /* and looks at the sockets then */
	PSHM_SOUND, /* until it is woken */
};

/* What socket.c keeps in each endpoint: its lock's. */
struct pshm_listed {
	struct list link;
	struct list requests; /* struct pshm_request, that wait for poll() */
	bool joined;
	/* porter.c's: */
	int bell; /* its pipe, or -1 */
	int poll_set; /* what its domain sleeps on, which holds that pipe too, or -1 */
	enum pshm_rest rest;
	struct list asleep; /* with others that are PSHM_SOUND */
	uint64_t since_ns;  /* it sleeps, or slept last */
	bool quiet;	    /* ... for longer than a nap */
};

/* What it keeps in each connection that asks: its lock's. */
struct pshm_ask {
	struct list link;
	uint8_t to[PSHM_NONCE], pair[PSHM_NONCE];
	struct pshm_process *process; /* that was asked */
	struct pshm_region inbox;     /* came with the answer */
	int err;		      /* or this did */
};

#endif
