/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints over the fake wires, opened as a program opens them: fabric, domain, address
 * vector, queues, endpoint. The provider is a struct engine_family and a struct fi_provider
 * of the tests' own. One thread; failures of what must work end the test (cmocka).
 */
#ifndef WEFT_FAKE_ENDS_H
#define WEFT_FAKE_ENDS_H

#include "fake_wire.h"

#define FAKE_ENDS_MAX 4

/* Which wires a family has. */
enum fake_family {
	FAKE_FAMILY_A,
	FAKE_FAMILY_B,
	FAKE_FAMILY_AB,
	FAKE_FAMILIES,
};

struct fake_end_attr {
	enum fake_family family;
	enum fi_threading threading;
	enum fi_cq_format format;
	uint64_t caps;	     /* 0: everything */
	uint64_t bind_flags; /* FI_SELECTIVE_COMPLETION */
	uint64_t tx_op_flags, rx_op_flags;
	size_t tx_size;		   /* 0: default */
	size_t budget;		   /* eager payload, bytes */
	enum fi_wait_obj wait;	   /* of the queues; FI_WAIT_NONE: FI_WAIT_UNSPEC */
	enum fi_progress progress; /* 0: manual */
	bool one_cq;		   /* for both directions */
	bool count;		   /* with counters */
};

/* What the counters of an end count. */
enum fake_cntr {
	FAKE_CNTR_READ,
	FAKE_CNTR_WRITE,
	FAKE_CNTR_REMOTE_READ,
	FAKE_CNTR_REMOTE_WRITE,
	FAKE_CNTRS,
};

struct fake_end {
	struct fid_fabric *fabric;
	struct fid_domain *domain;	    /* may be another end's */
	struct fid_av *av;		    /* likewise */
	struct fid_cq *tx_cq, *rx_cq;	    /* likewise; the same with one_cq */
	struct fid_wait *set;		    /* of the queues, with FI_WAIT_SET */
	struct fid_cntr *cntrs[FAKE_CNTRS]; /* with count */
	struct fid_ep *ep;
	struct fid_ep *rma;    /* the same: operations complete at the target */
	bool shares;	       /* domain, av and queues are those of another end */
	struct weft_addr name; /* from fi_getname */
};

/* fake_ends_begin - forget what an earlier test left behind; @seed decides the wires and the clock */
void fake_ends_begin(uint64_t seed);

/*
 * fake_end_open - @with: NULL, or the end whose domain, address vector and queues it shares; at
 * most FAKE_ENDS_MAX at a time
 */
void fake_end_open(struct fake_end *end, const struct fake_end_attr *attr,
		   struct fake_end *with);

/* fake_end_stop - close the endpoint and its counters alone */
void fake_end_stop(struct fake_end *end);

/* fake_end_close - close what it has; those that share come before the one they share with */
void fake_end_close(struct fake_end *end);

/* fake_end_insert - put an address into the end's vector */
fi_addr_t fake_end_insert(struct fake_end *end, const struct weft_addr *name);

/* fake_end_engine - what is behind the endpoint */
static inline struct engine_ep *fake_end_engine(const struct fake_end *end)
{
	return container_of(end->ep, struct engine_ep, ctx.fid);
}

/* fake_end_peer - returns the peer of @end with that address, or NULL */
struct engine_peer *fake_end_peer(const struct fake_end *end, const struct weft_addr *name);

/* fake_end_progress - one round, without reading completions */
void fake_end_progress(struct fake_end *end);

/* fake_ends_go - make so many rounds of each end whose endpoint is open */
void fake_ends_go(uint32_t rounds);

/* FAKE_UNTIL_TAKEN - call what injects until it is taken: with manual progress its peer is connected then */
#define FAKE_UNTIL_TAKEN(call)                                   \
	do {                                                     \
		uint32_t left_ = 200000;                         \
		ssize_t ret_;                                    \
                                                                 \
		while ((ret_ = (call)) == -FI_EAGAIN && left_--) \
			fake_ends_go(1);                         \
		assert_int_equal(ret_, 0);                       \
	} while (0)

/*
 * fake_ends_next - read the next completion of a queue, after up to @rounds rounds of all ends
 * @source: or NULL
 * @error:  out: the error entry, read with -FI_EAVAIL
 * Returns what the read returned; -FI_EAGAIN: there is none.
 */
ssize_t fake_ends_next(struct fid_cq *cq, uint32_t rounds, struct fi_cq_tagged_entry *entry,
		       fi_addr_t *source, struct fi_cq_err_entry *error);

/* fake_end_rests - asserts that its endpoint has no operation under way or queued */
void fake_end_rests(const struct fake_end *end);

/* fake_ends_close - for a test's teardown: close all ends that are open, after which no connection is left */
void fake_ends_close(void);

#endif
