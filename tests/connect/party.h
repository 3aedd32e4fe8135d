/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ends of connections, for tests: listeners and connected endpoints of provider tcp at
 * loopback, any number in one process. Each has a fabric, an event queue and, if connected, a
 * domain and a completion queue of its own. What fails in setting them up fails the test.
 *
 * Waiting drives all parties of the process, for tests with both ends in one thread. A party is a
 * static variable: a test that fails returns at once, and leaves those that it has opened.
 */
#ifndef WEFT_CONNECT_PARTY_H
#define WEFT_CONNECT_PARTY_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <string.h>

#define PARTY_DATA_MAX 256 /* of a call of connection management, bytes */

struct party {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	/* eq is that of a listener */
	bool borrows_eq;
	/* A listener */
	struct fid_pep *pep;
	/* Where it listens */
	unsigned char name[64];
	size_t name_len;
	/* A connected endpoint */
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_ep *ep;
	/* Link among those that waiting drives */
	struct party *next;
};

/* The last event that party_expect() has read. */
struct heard {
	/* struct fi_eq_cm_entry without its data */
	struct {
		fid_t fid;
		struct fi_info *info;
	} cm;
	unsigned char data[PARTY_DATA_MAX];
	size_t data_len;
	/* of an error */
	int err;
};

/*
 * What endpoints are asked for, besides FI_MSG; caps of fi_getinfo. Manual progress unless
 * @automatic
 */
struct wishes {
	uint64_t caps;
	bool automatic;
};

extern struct wishes wishes;

/* party_listen - open a listener at loopback, at a port of the kernel's choice, and listen */
void party_listen(struct party *p);
/* party_silent - the same without fi_listen */
void party_silent(struct party *p);

/*
 * party_open - open an endpoint that has not connected; @info: NULL, or that of an FI_CONNREQ,
 * taken
 */
void party_open(struct party *p, struct fi_info *info);
/* party_open_in - the same in the fabric of a listener, whose requests it may accept */
void party_open_in(struct party *p, struct party *listener, struct fi_info *info);
/* party_open_beside - the same, which reports to the listener's event queue */
void party_open_beside(struct party *p, struct party *listener, struct fi_info *info);
/* party_close - close what it has, in any state */
void party_close(struct party *p);
/* party_close_all - the same of all that are open, the last one first: what a failed test has left */
void party_close_all(void);

/*
 * party_expect - wait for an event of the party; the test fails if another one comes
 * @event: FI_CONNREQ and so on; PARTY_ERROR for an error, in heard->err
 */
#define PARTY_ERROR UINT32_MAX
void party_expect(struct party *p, uint32_t event, struct heard *heard);

/* party_ends - wait for a completion; returns 0 and @context, or its FI_E* */
int party_ends(struct party *p, void **context);

/* party_quiet - drive all for a while; returns true if @p has no event */
bool party_quiet(struct party *p);

/* party_pair - connect @caller to @listener, which opens @callee for it */
void party_pair(struct party *listener, struct party *caller, struct party *callee);

#endif
