/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Search for the hints to leave out, see nearest.h: leaves out each hint in turn from a copy of
 * the query and asks again. Runs on the thread that calls fi_getinfo, without locks; the
 * application's hints are not changed.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "names.h"
#include "nearest.h"

/* A copy of the query from which hints can be left out. */
struct trial {
	struct question q;
	struct fi_info info;
	struct fi_tx_attr tx;
	struct fi_rx_attr rx;
	struct fi_ep_attr ep;
	struct fi_domain_attr domain;
	struct fi_fabric_attr fabric;
};

/* A hint: its place, and the value that asks for nothing. */
struct field {
	const char *name;
	size_t offset;
	size_t size;
	/* 0; all bits for modes, which the program grants */
	uint64_t nothing;
};

#define FIELD_VALUE(name, at, nothing)                                                     \
	{                                                                                  \
		name, offsetof(struct trial, at), sizeof(((struct trial *)0)->at), nothing \
	}
#define FIELD(name, at) FIELD_VALUE(name, at, 0)
#define GRANT(name, at) FIELD_VALUE(name, at, UINT64_MAX)

/*
 * In the order in which a program is likely to do without them, after the bits of the
 * capabilities.
 */
static const struct field fields[] = {
	FIELD("ep_attr->protocol", ep.protocol),
	FIELD("ep_attr->protocol_version", ep.protocol_version),
	FIELD("fabric_attr->prov_version", fabric.prov_version),
	FIELD("fabric_attr->name", fabric.name),
	FIELD("domain_attr->name", domain.name),
	FIELD("addr_format", info.addr_format),
	FIELD("src_addr", info.src_addr),
	FIELD("dest_addr", info.dest_addr),
	GRANT("mode", info.mode),
	GRANT("domain_attr->mode", domain.mode),
	FIELD_VALUE("domain_attr->mr_mode", domain.mr_mode,
		    ~(uint64_t)(FI_MR_BASIC | FI_MR_SCALABLE)),
	FIELD("domain_attr->threading", domain.threading),
	FIELD("domain_attr->data_progress", domain.data_progress),
	FIELD("domain_attr->control_progress", domain.control_progress),
	FIELD("domain_attr->resource_mgmt", domain.resource_mgmt),
	FIELD("domain_attr->av_type", domain.av_type),
	FIELD("domain_attr->caps", domain.caps),
	FIELD("domain_attr->cq_data_size", domain.cq_data_size),
	FIELD("domain_attr->mr_key_size", domain.mr_key_size),
	FIELD("domain_attr->mr_iov_limit", domain.mr_iov_limit),
	FIELD("domain_attr->max_ep_tx_ctx", domain.max_ep_tx_ctx),
	FIELD("domain_attr->max_ep_rx_ctx", domain.max_ep_rx_ctx),
	FIELD("domain_attr->auth_key_size", domain.auth_key_size),
	FIELD("domain_attr->max_ep_auth_key", domain.max_ep_auth_key),
	FIELD("domain_attr->max_group_id", domain.max_group_id),
	FIELD("domain_attr->max_cntr_value", domain.max_cntr_value),
	FIELD("domain_attr->max_err_cntr_value", domain.max_err_cntr_value),
	FIELD("tx_attr->caps", tx.caps),
	GRANT("tx_attr->mode", tx.mode),
	FIELD("tx_attr->op_flags", tx.op_flags),
	FIELD("tx_attr->msg_order", tx.msg_order),
	FIELD("tx_attr->comp_order", tx.comp_order),
	FIELD("tx_attr->inject_size", tx.inject_size),
	FIELD("tx_attr->size", tx.size),
	FIELD("tx_attr->iov_limit", tx.iov_limit),
	FIELD("tx_attr->rma_iov_limit", tx.rma_iov_limit),
	FIELD("rx_attr->caps", rx.caps),
	GRANT("rx_attr->mode", rx.mode),
	FIELD("rx_attr->op_flags", rx.op_flags),
	FIELD("rx_attr->msg_order", rx.msg_order),
	FIELD("rx_attr->comp_order", rx.comp_order),
	FIELD("rx_attr->size", rx.size),
	FIELD("rx_attr->iov_limit", rx.iov_limit),
	FIELD("ep_attr->max_msg_size", ep.max_msg_size),
	FIELD("ep_attr->max_order_raw_size", ep.max_order_raw_size),
	FIELD("ep_attr->max_order_war_size", ep.max_order_war_size),
	FIELD("ep_attr->max_order_waw_size", ep.max_order_waw_size),
	FIELD("ep_attr->mem_tag_format", ep.mem_tag_format),
	FIELD("ep_attr->tx_ctx_cnt", ep.tx_ctx_cnt),
	FIELD("ep_attr->rx_ctx_cnt", ep.rx_ctx_cnt),
	FIELD("ep_attr->auth_key_size", ep.auth_key_size),
	FIELD("ep_attr->type", ep.type),
	FIELD("service", q.service),
	FIELD("node", q.node),
	/* last: a program that names a provider gets that provider's reasons */
	FIELD("fabric_attr->prov_name", fabric.prov_name),
};

#define FIELD_CNT (sizeof(fields) / sizeof(fields[0]))
#define CAP_CNT	  64
#define HINT_CNT  (FIELD_CNT + CAP_CNT)

static void trial_open(struct trial *t, const struct question *q)
{
	*t = (struct trial){ .q = *q };
	if (!q->hints)
		return;
	t->info = *q->hints;
	t->q.hints = &t->info;
	if (t->info.tx_attr) {
		t->tx = *t->info.tx_attr;
		t->info.tx_attr = &t->tx;
	}
	if (t->info.rx_attr) {
		t->rx = *t->info.rx_attr;
		t->info.rx_attr = &t->rx;
	}
	if (t->info.ep_attr) {
		t->ep = *t->info.ep_attr;
		t->info.ep_attr = &t->ep;
	}
	if (t->info.domain_attr) {
		t->domain = *t->info.domain_attr;
		t->info.domain_attr = &t->domain;
	}
	if (t->info.fabric_attr) {
		t->fabric = *t->info.fabric_attr;
		t->info.fabric_attr = &t->fabric;
	}
}

/* Hints have numbers: first the bits of the capabilities, then the entries of the table. */
static const struct field *field_of(size_t hint)
{
	return hint < CAP_CNT ? NULL : &fields[hint - CAP_CNT];
}

static bool hint_is_there(const struct trial *t, size_t hint)
{
	const struct field *field = field_of(hint);

	if (!field)
		return t->info.caps & 1ULL << hint;
	return memcmp((const char *)t + field->offset, &field->nothing, field->size) != 0;
}

static void hint_leave_out(struct trial *t, size_t hint)
{
	const struct field *field = field_of(hint);

	if (field) {
		memcpy((char *)t + field->offset, &field->nothing, field->size);
	} else {
		t->info.caps &= ~(1ULL << hint);
		t->tx.caps &= ~(1ULL << hint);
		t->rx.caps &= ~(1ULL << hint);
		t->domain.caps &= ~(1ULL << hint);
	}
	if (!t->info.src_addr)
		t->info.src_addrlen = 0;
	if (!t->info.dest_addr)
		t->info.dest_addrlen = 0;
}

static void hint_text(size_t hint, char *text, size_t len)
{
	const struct field *field = field_of(hint);
	size_t used = strlen(text);
	const char *name = field ? field->name : info_name_of(info_names_caps, 1ULL << hint);

	snprintf(text + used, len - used,
		 field && field->nothing ? "%swith every bit of %s granted" : "%swithout %s",
		 used ? " and " : "", name);
}

/* The arguments of nearest_find(). */
struct search {
	const struct question *q;
	bool (*answered)(const struct question *q, void *arg);
	void *arg;
};

/* Returns true if the query is answered without these hints. */
static bool answered_without(const struct search *s, const bool *out)
{
	struct trial t;

	trial_open(&t, s->q);
	for (size_t hint = 0; hint < HINT_CNT; hint++)
		if (out[hint])
			hint_leave_out(&t, hint);
	return s->answered(&t.q, s->arg);
}

/*
 * Returns the first hint without which the query is answered, or HINT_CNT. @there: the hints that
 * are set
 */
static size_t find_one(const struct search *s, const bool *there)
{
	for (size_t hint = 0; hint < HINT_CNT; hint++) {
		bool out[HINT_CNT] = { [0] = false };

		out[hint] = there[hint];
		if (there[hint] && answered_without(s, out))
			return hint;
	}
	return HINT_CNT;
}

/*
 * Reduces @out, all hints that are set, to a minimal set without which the query is answered.
 * Returns false if it is not answered without any hints.
 */
static bool find_several(const struct search *s, bool *out)
{
	if (!answered_without(s, out))
		return false;
	for (size_t hint = HINT_CNT; hint-- > 0;) {
		if (!out[hint])
			continue;
		out[hint] = false;
		out[hint] = !answered_without(s, out);
	}
	return true;
}

bool nearest_find(const struct question *q,
		  bool (*answered)(const struct question *q, void *arg), void *arg, char *text,
		  size_t len)
{
	const struct search s = { q, answered, arg };
	bool out[HINT_CNT];
	struct trial t;
	size_t one;

	text[0] = '\0';
	trial_open(&t, q);
	for (size_t hint = 0; hint < HINT_CNT; hint++)
		out[hint] = hint_is_there(&t, hint);
	one = find_one(&s, out);
	if (one < HINT_CNT)
		hint_text(one, text, len);
	else if (find_several(&s, out))
		for (size_t hint = 0; hint < HINT_CNT; hint++)
			if (out[hint])
				hint_text(hint, text, len);
	return text[0];
}
