/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two endpoints of a real provider that talk to each other, through the public interface of
 * libfabric.so.1 alone: in two threads of one process, or in two processes. The test names what
 * each of them does; both run in children of the test, so that a crash or a hang is a failed
 * test and nothing more.
 */
#ifndef WEFT_PAIR_RUN_H
#define WEFT_PAIR_RUN_H

#include <stdbool.h>
#include <stddef.h>
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

enum pair_mode {
	PAIR_THREADS,
	PAIR_PROCESSES,
};

/* What an endpoint is opened with. */
struct pair_attr {
	const char *provider;
	enum pair_mode mode;
	size_t tx_size; /* 0: default */
	uint64_t caps;	/* beside those of messages */
	int mr_mode;
	uint64_t msg_order;    /* beside FI_ORDER_SAS */
	const char *rx_budget; /* value of FI_<PROVIDER>_RX_BUDGET; NULL: default */
};

/* One of the two, opened, with the other one's address in its vector. */
struct pair_side {
	const char *name;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq; /* both directions, FI_CQ_FORMAT_TAGGED */
	struct fid_ep *ep;
	struct fid_ep *rma; /* the same: operations complete at the target */
	fi_addr_t peer;
	int channel;			 /* to the other side, beside the fabric */
	struct fi_cq_tagged_entry entry; /* last completion that pair_next() took */
	struct fi_cq_err_entry error;	 /* last error */
	fi_addr_t source;		 /* of either */
};

typedef void (*pair_role)(struct pair_side *side);

/* pair_exists - is that provider there and does it offer what the pair needs */
bool pair_exists(const char *provider);

/* pair_run - run both; fails the test (cmocka) when one of them fails, crashes or takes a minute */
void pair_run(const struct pair_attr *attr, pair_role first, pair_role second);

/* PAIR_CHECK - end this side with a line when something is not so */
#define PAIR_CHECK(side, cond)                                                               \
	do {                                                                                 \
		if (!(cond)) {                                                               \
			fprintf(stderr, "%s: %s:%d: %s\n", (side)->name, __FILE__, __LINE__, \
				#cond);                                                      \
			exit(1);                                                             \
		}                                                                            \
	} while (0)

/* pair_open, pair_close - the endpoint of one side, for tests that need no other */
void pair_open(struct pair_side *side, const struct pair_attr *attr);
void pair_close(struct pair_side *side);

/* pair_stop - close the endpoint alone, before the role ends */
void pair_stop(struct pair_side *side);

/* pair_say - tell the other side something, without touching the fabric */
void pair_say(struct pair_side *side, char what);

/* pair_hear - wait for that; with @progress the endpoint works meanwhile */
void pair_hear(struct pair_side *side, char what, bool progress);

/*
 * pair_next - wait for a completion or an error
 * Returns 1 with side->entry, or -FI_EAVAIL with side->error; ends the side after 30 s.
 */
ssize_t pair_next(struct pair_side *side);

/* pair_none - is there no completion, although the endpoint works for a while */
bool pair_none(struct pair_side *side);

/* pair_done - the next completion is a good one of @context */
void pair_done(struct pair_side *side, void *context);

/* pair_failed - the next completion is an error of @context */
void pair_failed(struct pair_side *side, void *context, int err);

#endif
