/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What two ends do with each other, of which one listens at an address and the other one calls
 * there: the same source in the module kofi_talk and in the program of that name, so that each may
 * be either end. One thread; each wait ends after 60 s.
 */
#ifndef KOFI_EXCHANGE_H
#define KOFI_EXCHANGE_H

#include <rdma/fabric.h>

/* How it ends, for this end */
enum exchange_end {
	EXCHANGE_CLOSES,
	/* The process is killed */
	EXCHANGE_DIES,
	/* The other end dies, and this one is told */
	EXCHANGE_OUTLIVES,
	/* No connection is made: this end calls, and is told that the secrets differ */
	EXCHANGE_IS_STRANGE,
};

struct exchange_how {
	bool listens;
	/* Endpoints of FI_EP_MSG; the listener rejects the first request */
	bool connected;
	enum exchange_end end;
	/* Numbers */
	const char *host, *port;
};

/* exchange_run - returns 0 if all went as it should, or -FI_E* */
int exchange_run(const struct exchange_how *how);

/*
 * exchange_read - fill @how, but host and port, from words: listen or call, rdm or msg, an end.
 * Returns 0 or -FI_EINVAL
 */
int exchange_read(struct exchange_how *how, const char *role, const char *type, const char *end);

#endif
