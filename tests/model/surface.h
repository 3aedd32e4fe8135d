/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The whole surface of the library, slot by slot: each call of each op table works, or is refused
 * with -FI_ENOSYS. A table of slots names all slots of one op table; subjects are the objects that
 * have such tables. Over the real library, in one process and thread, with two endpoints of one
 * domain: near is under test, far is its peer.
 */
#ifndef WEFT_SURFACE_H
#define WEFT_SURFACE_H

#include <stddef.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_rma.h>
#include "ends.h"

#define SURFACE_VERSION FI_VERSION(2, 6)
#define SURFACE_KEY	7u
#define SURFACE_LEN	24u
#define SURFACE_DATA	0x1234567u
#define SURFACE_TAG	0x77u
#define SURFACE_BITS	2 /* of an address: which receive context */

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct party {
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t addr;
};

struct surface {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_av *av;
	struct fid_mr *mr; /* of words, under SURFACE_KEY */
	struct party near, far;
	fi_addr_t nobody;  /* in the vector, and no endpoint's */
	uint64_t words[8]; /* what peers read and write */
};

/* What a subject can do beside its capabilities, in bits that are no capability's. */
#define DOES_SETTINGS (1ull << 32) /* has options, and operations to cancel */
#define DOES_NAME     (1ull << 33) /* has an address */
#define DOES_CONTEXTS (1ull << 34) /* is a scalable endpoint */
#define DOES_JOIN     (1ull << 37) /* has groups */
#define DOES_TRANSMIT (1ull << 38) /* has a transmit queue */
#define DOES_NOT      (1ull << 39) /* nothing does: refused everywhere */
#define DOES_CONNECT  (1ull << 40) /* has connected endpoints */

/* What is called: an endpoint, an alias, a context. */
struct subject {
	const char *name;
	struct surface *s;
	struct fid_ep *ep;
	struct fid_ep *whole; /* the endpoint that it is a part of */
	struct fid *fid;      /* what is no endpoint */
	uint64_t does;
	struct fid_cq *cq; /* where its operations end */
	fi_addr_t at;	   /* what leads to its receives */
	fi_addr_t root;	   /* first member of the group */
	fi_addr_t coll;	   /* group of near and far, near first */
	struct party *peer;
	fi_addr_t peer_coll;
	uint8_t out[SURFACE_LEN], in[SURFACE_LEN];
	uint64_t operand[2], compare[2], result[2];
	size_t cnt;
	struct fi_context2 context, peer_context;
	struct fid *opened; /* by the call */
	bool rests; /* makes no calls while a peer accesses memory: the domain's thread works */
	void *arg;
};

struct slot {
	const char *name;
	size_t offset;
	uint64_t needs; /* of a subject's does; without all of them: -FI_ENOSYS */
	ssize_t (*call)(struct subject *u);
	/* effect - of a call that returned 0; or NULL, where the call itself has looked */
	void (*effect)(struct subject *u, const struct slot *slot);
};

#define SLOT(table, field, bits, post, check)                                           \
	{                                                                               \
		.name = #field, .offset = offsetof(struct table, field), .needs = bits, \
		.call = post, .effect = check                                           \
	}
#define SLOTS_OF(table) ((sizeof(struct table) - sizeof(size_t)) / sizeof(void *))
/* A new slot of a table is a slot that a test has to name. */
#define ALL_SLOTS(table, slots)                            \
	_Static_assert(COUNT_OF(slots) == SLOTS_OF(table), \
		       #table " has slots that " #slots " does not name")

#define MSG_SLOTS	 9
#define TAGGED_SLOTS	 9
#define RMA_SLOTS	 9
#define ATOMIC_SLOTS	 13
#define COLLECTIVE_SLOTS 11
#define EP_SLOTS	 8
#define CM_SLOTS	 9
extern const struct slot msg_slots[MSG_SLOTS], tagged_slots[TAGGED_SLOTS], rma_slots[RMA_SLOTS],
	atomic_slots[ATOMIC_SLOTS], collective_slots[COLLECTIVE_SLOTS], ep_slots[EP_SLOTS],
	cm_slots[CM_SLOTS];

/* surface_hints - hints for an RDM endpoint of the provider under test; the caller's */
struct fi_info *surface_hints(void);
/* surface_provider - its name, an argument of the test */
extern const char *surface_provider;

/*
 * surface_open - the objects, with the two endpoints enabled; a failure fails the test
 * @caps: of near and the domain's info; far has all
 */
void surface_open(struct surface *s, uint64_t caps, enum fi_threading threading);
/* surface_open_with - the same for this offer, which it takes */
void surface_open_with(struct surface *s, struct fi_info *info);
/* surface_close - near and far may be closed before: then their ep is NULL */
void surface_close(struct surface *s);

/* surface_info - the offer for these capabilities, or NULL */
struct fi_info *surface_info(uint64_t caps, enum fi_threading threading);
/* surface_all - all capabilities that there are */
uint64_t surface_all(void);

/* party_open - an endpoint of @info, bound and not enabled */
void party_open(struct surface *s, struct party *p, struct fi_info *info);
/* party_enable - now it is, and its address is known */
void party_enable(struct surface *s, struct party *p);
/* party_close - closes it, and its queue */
void party_close(struct party *p);

/* surface_done - the next completion of @cq; its context has to be this one */
struct fi_cq_tagged_entry surface_done(struct fid_cq *cq, void *context);
/* surface_wait_words - waits until @len bytes in the words of the surface are those, and clears them */
void surface_wait_words(struct subject *u, const void *bytes, size_t len);
/* A group of two: an endpoint with near's queues, and far. */
struct groups {
	struct fid_av_set *set;
	struct fid_mc *near, *far;
};

/* surface_groups - make one; @addr leads to @near. surface_groups_close - close all of it */
void surface_groups(struct surface *s, struct fid_ep *near, fi_addr_t addr, struct groups *g);
void surface_groups_close(struct groups *g);

/*
 * surface_table - check that @ops is a table without holes, of at least @size, the size in our
 * headers
 */
void surface_table(const char *of, const void *ops, size_t size);

/* surface_walk - call every slot of a subject's table: it works, or is refused */
void surface_walk(struct subject *u, const char *table, const void *ops,
		  const struct slot *slots, size_t cnt);
/* surface_walk_data - the same for all tables of data transfers */
void surface_walk_data(struct subject *u);

/*
 * surface_opened - check an object that a call returned: its class is this one, and it closes.
 * @ret, or 0
 */
ssize_t surface_opened(struct subject *u, ssize_t ret, struct fid *fid, size_t fclass);
#define OPENED(u, ret, object, fclass) \
	surface_opened(u, ret, (object) ? &(object)->fid : NULL, fclass)

/* surface_subject - @ep, which ends its operations and is found as near does and is */
void surface_subject(struct subject *u, struct surface *s, const char *name, struct fid_ep *ep,
		     uint64_t does);

#endif
