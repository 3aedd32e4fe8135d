/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sets of endpoints of one domain, and pairs: an endpoint of a set in this process and one of a set in
 * the other process, which exchange one message and so are connected. One thread; every wait has a
 * deadline.
 */
#ifndef WEFT_TOOLS_EP_SET_H
#define WEFT_TOOLS_EP_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel.h"

struct ep_set_member {
	struct fid_ep *ep;
	/* its own queue, or the queue of the whole set */
	struct fid_cq *cq;
};

struct ep_set {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct ep_set_member *end;
	size_t cnt;
	bool own_queues;
};

/*
 * ep_set_query - fi_getinfo for the endpoints of a set
 * @plan:  names the provider; "" for the first that answers
 *
 * Prints the reason of a failure. Returns it owned (fabric_info_destroy), or NULL.
 */
struct fi_info *ep_set_query(const struct plan *plan, const struct channel_options *opt);

/*
 * ep_set_open - open and enable @cnt endpoints, of at least 1
 * @own_queues:  a completion queue for each, instead of one for all
 *
 * Prints the reason of a failure. Returns 0 or a negative fi_errno, with nothing left open.
 */
int ep_set_open(struct ep_set *set, struct fi_info *info, size_t cnt, bool own_queues);

/* ep_set_close - close all objects of a set; a zeroed set is allowed */
void ep_set_close(struct ep_set *set);

/* This side of a pair; lives until its set is closed. */
struct ep_pair {
	struct ep_set *set;
	struct side *side;
	/* index of this side's endpoint in the set */
	size_t idx;
	/* number of the pair, the same on both sides; it is the payload of its messages */
	uint64_t number;
	unsigned timeout_s;
	/* the other side's endpoint in the set's address vector */
	fi_addr_t peer;
	uint64_t out;
	uint64_t in;
	struct fi_context2 send;
	struct fi_context2 receive;
};

/*
 * ep_pair_connect - exchange the addresses of the two endpoints
 * @link:  its member peer is set
 *
 * Both sides call it. Prints the reason of a failure. Returns 0 or a negative fi_errno.
 */
int ep_pair_connect(struct ep_pair *link);

/*
 * ep_pair_exchange - 8 bytes each way; side 0 begins
 *
 * Both sides call it. Prints the reason of a failure. Returns 0 or a negative fi_errno; -FI_EIO for bytes
 * that differ.
 */
int ep_pair_exchange(struct ep_pair *link);

/*
 * ep_set_read_idle - call fi_cq_read on an endpoint's queue that stays empty
 * @reads:  number of calls
 *
 * Prints the reason of a failure. Returns 0, or a negative fi_errno if a read returned an entry.
 */
int ep_set_read_idle(const struct ep_set *set, size_t idx, unsigned reads);

#endif
