/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hints that are numbers: at most what is offered, or limited only by memory. See query.h.
 *
 * Runs inside a provider's getinfo, on the application's thread, without locks.
 */
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "query.h"

enum part { PART_TX, PART_RX, PART_EP, PART_DOMAIN };

enum limit_kind {
	LIMIT_HARD,
	LIMIT_IF_STATED, /* an offer of 0 states no limit */
	LIMIT_MEMORY,	 /* of objects: there are as many as are asked for */
};

/* A hint that is a number. It may not exceed the offer's, unless only memory limits it. */
struct limit {
	const char *name;
	enum part part;
	size_t offset;
	size_t size;
	enum limit_kind kind;
	/* API version that knows the hint */
	uint32_t since;
};

#define TX(field)                                                                \
	{                                                                        \
		"tx_attr->" #field, PART_TX, offsetof(struct fi_tx_attr, field), \
			sizeof(((struct fi_tx_attr *)0)->field), LIMIT_HARD, 0   \
	}
#define RX(field)                                                                \
	{                                                                        \
		"rx_attr->" #field, PART_RX, offsetof(struct fi_rx_attr, field), \
			sizeof(((struct fi_rx_attr *)0)->field), LIMIT_HARD, 0   \
	}
#define EP(field, kind)                                                          \
	{                                                                        \
		"ep_attr->" #field, PART_EP, offsetof(struct fi_ep_attr, field), \
			sizeof(((struct fi_ep_attr *)0)->field), kind, 0         \
	}
#define DOMAIN(field, kind, since)                                                           \
	{                                                                                    \
		"domain_attr->" #field, PART_DOMAIN, offsetof(struct fi_domain_attr, field), \
			sizeof(((struct fi_domain_attr *)0)->field), kind, since             \
	}

/*
 * Not in this table: the sizes of contexts and the max_order sizes, which are answered as asked for; the numbers
 * of contexts of an endpoint, which answer.c limits; and mr_key_size and max_err_data, for which no provider of
 * libfabric refuses hints.
 */
static const struct limit limits[] = {
	TX(inject_size),
	TX(iov_limit),
	TX(rma_iov_limit),
	RX(iov_limit),
	EP(protocol_version, LIMIT_HARD),
	EP(max_msg_size, LIMIT_HARD),
	DOMAIN(cq_data_size, LIMIT_HARD, 0),
	DOMAIN(cq_cnt, LIMIT_MEMORY, 0),
	DOMAIN(ep_cnt, LIMIT_MEMORY, 0),
	DOMAIN(tx_ctx_cnt, LIMIT_MEMORY, 0),
	DOMAIN(rx_ctx_cnt, LIMIT_MEMORY, 0),
	DOMAIN(max_ep_stx_ctx, LIMIT_MEMORY, 0),
	DOMAIN(max_ep_srx_ctx, LIMIT_MEMORY, 0),
	DOMAIN(cntr_cnt, LIMIT_MEMORY, FI_VERSION(1, 5)),
	DOMAIN(mr_iov_limit, LIMIT_HARD, FI_VERSION(1, 5)),
	DOMAIN(mr_cnt, LIMIT_MEMORY, FI_VERSION(1, 5)),
	DOMAIN(max_ep_auth_key, LIMIT_HARD, FI_VERSION(1, 20)),
	DOMAIN(max_group_id, LIMIT_HARD, FI_VERSION(2, 0)),
	DOMAIN(max_cntr_value, LIMIT_IF_STATED, FI_VERSION(2, 5)),
	DOMAIN(max_err_cntr_value, LIMIT_IF_STATED, FI_VERSION(2, 5)),
	DOMAIN(max_xpu_ctx_cnt, LIMIT_HARD, FI_VERSION(2, 7)),
};

static const void *part_of(const struct fi_info *info, enum part part)
{
	switch (part) {
	case PART_TX:
		return info->tx_attr;
	case PART_RX:
		return info->rx_attr;
	case PART_EP:
		return info->ep_attr;
	case PART_DOMAIN:
		return info->domain_attr;
	}
	return NULL;
}

static size_t part_len(const struct info_layout *layout, enum part part)
{
	switch (part) {
	case PART_TX:
		return layout->tx_attr;
	case PART_RX:
		return layout->rx_attr;
	case PART_EP:
		return layout->ep_attr;
	case PART_DOMAIN:
		return layout->domain_attr;
	}
	return 0;
}

static uint64_t number_at(const void *part, const struct limit *limit)
{
	const char *at = (const char *)part + limit->offset;
	uint32_t small;
	uint64_t big;

	if (limit->size == sizeof(small)) {
		memcpy(&small, at, sizeof(small));
		return small;
	}
	memcpy(&big, at, sizeof(big));
	return big;
}

/* The structure of the hints that has this number; NULL if the hints lack it. */
static const void *asked_in(const struct info_query *q, const struct limit *limit)
{
	if (q->api_version < limit->since ||
	    part_len(q->layout, limit->part) < limit->offset + limit->size)
		return NULL;
	return part_of(q->hints, limit->part);
}

int query_limits(const struct info_query *q)
{
	uint64_t want, have;
	size_t i;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const struct limit *limit = &limits[i];
		const void *asked = asked_in(q, limit);
		const void *offered = part_of(q->offer, limit->part);

		if (!asked || limit->kind == LIMIT_MEMORY)
			continue;
		want = number_at(asked, limit);
		have = number_at(offered, limit);
		if (want <= have || (limit->kind == LIMIT_IF_STATED && !have))
			continue;
		return query_refuse(q, "the hints ask for %s %llu, and %s offers at most %llu",
				    limit->name, (unsigned long long)want, q->prov->name,
				    (unsigned long long)have);
	}
	return 0;
}

void query_counts(const struct info_query *q, struct fi_info *info)
{
	size_t i, want, have;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const struct limit *limit = &limits[i];
		const void *asked = asked_in(q, limit);
		char *answered = (char *)part_of(info, limit->part);

		if (!asked || limit->kind != LIMIT_MEMORY)
			continue;
		want = number_at(asked, limit);
		have = number_at(answered, limit);
		if (have && want > have) /* 0: there are none, or nothing is said */
			memcpy(answered + limit->offset, &want,
			       sizeof(want)); /* each is a size_t */
	}
}
