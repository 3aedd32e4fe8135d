/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Eight processes with an endpoint each of a real provider, all of which reach into the memory
 * of all; and the elements that atomic operations work on there, with what has to become of
 * them. For storm_test.c; through the public interface of libfabric.so.1 alone.
 */
#ifndef WEFT_STORM_H
#define WEFT_STORM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <weft/routes.h>

#define STORM_MEMBERS  8
#define STORM_MEETINGS 2048
#define STORM_KEY      5
#define STORM_SECS     100 /* a member that runs longer counts as hung */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STORM_SANITIZED true
#else
#define STORM_SANITIZED false
#endif

/* How the members are run. */
struct storm_attr {
	const char *provider;
	bool hosts;		   /* the second half of them numbers processes apart */
	enum fi_progress progress; /* FI_PROGRESS_AUTO: calls of several threads, too */
	size_t region;		   /* bytes of each one's memory */
	size_t shared;		   /* bytes that a test shares beside the fabric */
	int victim;		   /* rank of the member that requests to be killed, or -1 */
	uint64_t seed;
	int rounds; /* of all operations, with other targets in each */
};

/* What the members share beside the fabric. */
struct storm_shared {
	char names[STORM_MEMBERS][128];
	_Atomic int arrived[STORM_MEETINGS];
	_Atomic int dead, failed;
	struct weft_route routes[STORM_MEMBERS][WEFT_ROUTES_MAX];
	size_t route_cnt[STORM_MEMBERS];
	_Alignas(64) uint8_t room[]; /* attr.shared bytes */
};

/* One operation with a completion: its context. */
struct storm_op {
	struct fi_context2 context;
	int to;	       /* rank of the target */
	uint64_t kind; /* FI_RMA or FI_ATOMIC, and FI_READ or FI_WRITE */
	int err;       /* FI_E* */
	bool done;
};

/* One process. */
struct member {
	const struct storm_attr *attr;
	struct storm_shared *shared;
	int rank;
	int met; /* meetings so far */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cntr *wrote, *read;	       /* of our operations */
	struct fid_cntr *written, *was_read;   /* of our memory, by whomever */
	struct fid_cntr *ep_written, *ep_read; /* the same, of the endpoint */
	struct fid_ep *ep;
	struct fid_ep *rma; /* the same: operations complete at the target */
	struct fid_mr *mr;
	uint8_t *region;
	fi_addr_t addrs[STORM_MEMBERS];
	uint64_t under_way;	       /* operations without a completion yet */
	uint64_t writes, reads;	       /* posted so far */
	uint64_t heard[STORM_MEMBERS]; /* remote CQ data taken, by source */
	uint64_t last_data[STORM_MEMBERS];
	uint64_t failed; /* operations to the victim that did */
	double deadline; /* by when a wait has to be over; 0: the alarm's */
	int kill_fd;
};

typedef void (*storm_role)(struct member *m);

/* CHECK - end this member, and with it all, with a line when something is not so */
#define CHECK(m, cond)                                                                 \
	do {                                                                           \
		if (!(cond)) {                                                         \
			fprintf(stderr, "member %d: %s:%d: %s\n", (m)->rank, __FILE__, \
				__LINE__, #cond);                                      \
			atomic_store(&(m)->shared->failed, 1);                         \
			exit(1);                                                       \
		}                                                                      \
	} while (0)

/* STORM_POST - call again while there is no room; @ret: what it returned in the end */
#define STORM_POST(m, ret, call)                       \
	do {                                           \
		while (((ret) = (call)) == -FI_EAGAIN) \
			storm_turn(m);                 \
	} while (0)

/*
 * storm_hosts_refused - returns true if this user can't make a second host of processes
 * @why: out: the reason
 */
bool storm_hosts_refused(char *why, size_t len);

/*
 * storm_run - run all eight of them in processes of their own
 * @check: looks at what they shared, or NULL
 * Returns how many ended otherwise than they should have.
 */
int storm_run(const struct storm_attr *attr, storm_role role,
	      void (*check)(const struct storm_attr *attr, const struct storm_shared *shared));

/* storm_turn - let the endpoint work, take a completion if there is one; returns whether */
bool storm_turn(struct member *m);

/* storm_meet - wait for all members that live; the endpoint works meanwhile, unless by itself */
void storm_meet(struct member *m);

/* storm_finish - until no operation is under way */
void storm_finish(struct member *m);

/* storm_begin - an operation is about to be posted; @kind as in struct storm_op */
void storm_begin(struct member *m, struct storm_op *op, int to, uint64_t kind);

/*
 * storm_counted - so many operations were on my memory, by all counters, and none of mine failed
 * @fetched: of those that were reads to the endpoint, how many have modified the region. Source: fi_mr(3)
 */
void storm_counted(struct member *m, uint64_t written, uint64_t was_read, uint64_t fetched);

/* storm_die - for the victim: request SIGKILL, which arrives whatever this process does then */
void storm_die(struct member *m);

/* storm_now - seconds of the monotonic clock */
double storm_now(void);

/* What members do: roles, and what these want of struct storm_attr */

#define STORM_STRIPE (1u << 20)

extern const size_t storm_words_shared, storm_death_shared, storm_death_region;

/* storm_all_words - every operation of every type; storm_some_words - one of seven */
void storm_all_words(struct member *m);
void storm_some_words(struct member *m);

/* storm_swaps_in_turn - each adds by FI_CSWAP, and again when another one was first */
void storm_swaps_in_turn(struct member *m);

/* storm_each_to_each - stripes of a region of STORM_MEMBERS * STORM_STRIPE */
void storm_each_to_each(struct member *m);

/* storm_all_sizes - writes of all sizes between messages, as many as find room; the same region */
void storm_all_sizes(struct member *m);

/* storm_one_dies - in the middle; storm_one_was_dead - before any member has connected to it */
void storm_one_dies(struct member *m);
void storm_one_was_dead(struct member *m);

/* Elements */

#define ELEMENT_MAX 32

/* element_size - bytes of an element; 0 for what C has no type for */
size_t element_size(enum fi_datatype type);

/* element_is_int, element_is_complex - its class; neither: real */
bool element_is_int(enum fi_datatype type);
bool element_is_complex(enum fi_datatype type);

/*
 * element_next - what an operation makes of a location
 * Straightforward C; @next may be one of the others. What is written is canonical.
 * Source: fi_atomic(3).
 */
void element_next(enum fi_datatype type, enum fi_op op, const void *old, const void *operand,
		  const void *compare, void *next);

/* element_canonical - equal values have equal bytes then: no negative zero, no padding */
void element_canonical(enum fi_datatype type, void *at);

/*
 * element_small - a number that fills all parts of the element: a torn one shows
 * 128-bit integers have it in both halves, complex ones in both parts, the second doubled.
 */
void element_small(enum fi_datatype type, uint64_t number, void *at);

/* element_is_small - is it one of those, and which; integers of 64 bits and less always are */
bool element_is_small(enum fi_datatype type, const void *at, uint64_t *number);

/* element_draw - some operand; results of as many as a storm has are exact in any order */
void element_draw(enum fi_datatype type, enum fi_op op, uint64_t random, void *at);

#endif
