/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many endpoints of one domain, and the one message that two crowds in two processes exchange
 * between each pair of theirs, so that the pairs are connected. One thread; every wait has a
 * deadline.
 */
#ifndef WEFT_TOOLS_CROWD_H
#define WEFT_TOOLS_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel.h"

struct crowd_end {
	struct fid_ep *ep;
	/* may be that of all */
	struct fid_cq *cq;
};

struct crowd {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct crowd_end *end;
	size_t cnt;
	bool own_queues;
};

/*
 * crowd_query - which provider to use
 * @plan:  names it, if that matters
 *
 * Complains itself. Returns it owned (fabric_info_destroy), or NULL.
 */
struct fi_info *crowd_query(const struct plan *plan, const struct channel_options *opt);

/*
 * crowd_open - open and enable @cnt endpoints, of at least 1
 * @own_queues:  a completion queue for each, rather than one for all
 *
 * Complains itself. Returns 0 or a negative fi_errno, with nothing left open.
 */
int crowd_open(struct crowd *crowd, struct fi_info *info, size_t cnt, bool own_queues);

/* crowd_close - close all; a crowd of zeros is allowed */
void crowd_close(struct crowd *crowd);

/* One side of a pair; it must live until its crowd is closed. */
struct crowd_link {
	struct crowd *crowd;
	struct side *side;
	/* of our endpoint */
	size_t idx;
	/* of the pair: the same on both sides, and what is sent */
	uint64_t number;
	unsigned timeout_s;
	/* in our address vector */
	fi_addr_t peer;
	uint64_t out;
	uint64_t in;
	struct fi_context2 send;
	struct fi_context2 receive;
};

/*
 * crowd_meet - learn the address of the other side's endpoint, and tell it ours
 * @link:  its peer is set
 *
 * Both sides call it. Complains itself. Returns 0 or a negative fi_errno.
 */
int crowd_meet(struct crowd_link *link);

/*
 * crowd_exchange - 8 bytes each way; side 0 begins
 *
 * Both sides call it. Complains itself. Returns 0 or a negative fi_errno; -FI_EIO for bytes
 * that differ.
 */
int crowd_exchange(struct crowd_link *link);

/*
 * crowd_read_idle - read an endpoint's queue, in which nothing is and nothing comes
 * @reads:  how often
 *
 * Complains itself. Returns 0, or a negative fi_errno where there was something.
 */
int crowd_read_idle(const struct crowd *crowd, size_t idx, unsigned reads);

#endif
