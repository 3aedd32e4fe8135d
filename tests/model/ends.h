/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints of one process over the real library, for tests of objects around an endpoint:
 * counters, ways to wait, progress, threads. Called by the test's threads, each for its own
 * endpoint unless a test says otherwise.
 */
#ifndef WEFT_ENDS_H
#define WEFT_ENDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <cmocka.h>

/* What a domain is opened with, and the queues of its endpoint. */
struct end_attr {
	const char *provider;
	enum fi_threading threading; /* 0: unspecified */
	enum fi_progress progress;   /* 0: manual, so that a test says when anything moves */
	enum fi_wait_obj cq_wait, cntr_wait;
	enum fi_cq_wait_cond cond;
	struct fid_wait *wait_set; /* of FI_WAIT_SET */
	uint64_t caps;		   /* beside messages */
	bool any_progress;	   /* none is asked for: as the provider of that name has it */
	bool no_cq;		   /* counters alone */
	bool no_cntr;		   /* a queue alone */
};

/* An endpoint with a domain of its own. */
struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;	  /* both directions, FI_CQ_FORMAT_TAGGED */
	struct fid_cntr *tx, *rx; /* sends and receives */
	struct fid_ep *ep;
	struct fid_ep *rma; /* the same: operations complete at the target; NULL without caps for them */
};

/* end_info - what the provider answers for these attributes, or NULL */
struct fi_info *end_info(const struct end_attr *attr);

/* end_open - open all and enable; a failure fails the test. end_close - close all */
void end_open(struct end *end, const struct end_attr *attr);
/* end_open_in - the same in a fabric that another end has opened */
void end_open_in(struct end *end, const struct end_attr *attr, struct fid_fabric *fabric);
void end_close(struct end *end);

/* end_knows - the address of @other in the vector of @end */
fi_addr_t end_knows(struct end *end, struct end *other);

/* end_now - seconds of the monotonic clock */
double end_now(void);

/*
 * end_holds - returns true if the @len bytes at @at are those at @bytes
 * end_put - writes them there
 * For memory that peers read and write. With automatic progress the domain's thread carries that out
 * while the program looks. Nothing orders the two before the operation has completed, which a
 * sanitizer of threads would report: each byte is accessed atomically, and unseen by it.
 */
bool end_holds(const void *at, const void *bytes, size_t len);
void end_put(void *at, const void *bytes, size_t len);

/* END_UNTIL - run @step until @cond holds; fails the test after 20 s */
#define END_UNTIL(cond, step)                          \
	do {                                           \
		double end_ = end_now() + 20;          \
                                                       \
		while (!(cond)) {                      \
			step;                          \
			assert_true(end_now() < end_); \
		}                                      \
	} while (0)

/*
 * END_TAKEN - call what injects until it is taken: with manual progress its peer is connected then
 * @step: progress of the peer, where the call makes none of it
 */
#define END_TAKEN(call, step)                                   \
	do {                                                    \
		ssize_t ret_;                                   \
                                                                \
		END_UNTIL((ret_ = (call)) != -FI_EAGAIN, step); \
		assert_int_equal(ret_, 0);                      \
	} while (0)

#endif
