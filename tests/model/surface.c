/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the tests of the surface share: see surface.h. */
#include <sched.h>
#include "surface.h"

#define NAME_MAX_LEN 128

const char *surface_provider;

/* Offers */

struct fi_info *surface_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup(surface_provider);
	hints->ep_attr->type = FI_EP_RDM;
	return hints;
}

struct fi_info *surface_info(uint64_t caps, enum fi_threading threading)
{
	struct fi_info *hints = surface_hints(), *info = NULL;

	hints->caps = caps;
	hints->domain_attr->threading = threading;
	if (fi_getinfo(SURFACE_VERSION, NULL, NULL, 0, hints, &info))
		info = NULL;
	fi_freeinfo(hints);
	return info;
}

uint64_t surface_all(void)
{
	uint64_t all = 0;

	for (int bit = 0; bit < 64; bit++) {
		struct fi_info *info = surface_info(1ull << bit, FI_THREAD_UNSPEC);

		if (info)
			all |= 1ull << bit;
		fi_freeinfo(info);
	}
	return all;
}

/* Parties */

void party_open(struct surface *s, struct party *p, struct fi_info *info)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };

	assert_int_equal(fi_cq_open(s->domain, &cq_attr, &p->cq, NULL), 0);
	assert_int_equal(fi_endpoint(s->domain, info, &p->ep, p), 0);
	assert_int_equal(fi_ep_bind(p->ep, &s->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(p->ep, &s->eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV), 0);
}

static fi_addr_t name_insert(struct surface *s, struct fid *fid)
{
	char name[NAME_MAX_LEN];
	size_t len = sizeof(name);
	fi_addr_t addr;

	assert_int_equal(fi_getname(fid, name, &len), 0);
	assert_int_equal(fi_av_insert(s->av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

void party_enable(struct surface *s, struct party *p)
{
	assert_int_equal(fi_enable(p->ep), 0);
	p->addr = name_insert(s, &p->ep->fid);
}

void party_close(struct party *p)
{
	assert_int_equal(fi_close(&p->ep->fid), 0);
	assert_int_equal(fi_close(&p->cq->fid), 0);
	p->ep = NULL;
}

void surface_open_with(struct surface *s, struct fi_info *info)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .rx_ctx_bits = SURFACE_BITS };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *whole;

	assert_non_null(info);
	*s = (struct surface){ .info = info };
	whole = surface_info(surface_all(), info->domain_attr->threading);
	assert_non_null(whole);
	assert_int_equal(fi_fabric(info->fabric_attr, &s->fabric, NULL), 0);
	assert_int_equal(fi_domain(s->fabric, info, &s->domain, NULL), 0);
	assert_int_equal(fi_eq_open(s->fabric, &eq_attr, &s->eq, NULL), 0);
	assert_int_equal(fi_av_open(s->domain, &av_attr, &s->av, NULL), 0);
	assert_int_equal(fi_mr_reg(s->domain, s->words, sizeof(s->words),
				   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, SURFACE_KEY, 0, &s->mr,
				   NULL),
			 0);
	party_open(s, &s->near, info);
	party_enable(s, &s->near);
	party_open(s, &s->far, whole);
	party_enable(s, &s->far);
	fi_freeinfo(whole);
}

void surface_open(struct surface *s, uint64_t caps, enum fi_threading threading)
{
	surface_open_with(s, surface_info(caps, threading));
}

void surface_close(struct surface *s)
{
	if (s->near.ep)
		party_close(&s->near);
	if (s->far.ep)
		party_close(&s->far);
	assert_int_equal(fi_close(&s->mr->fid), 0);
	assert_int_equal(fi_close(&s->av->fid), 0);
	assert_int_equal(fi_close(&s->domain->fid), 0);
	assert_int_equal(fi_close(&s->eq->fid), 0);
	assert_int_equal(fi_close(&s->fabric->fid), 0);
	fi_freeinfo(s->info);
}

struct fi_cq_tagged_entry surface_done(struct fid_cq *cq, void *context)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	END_UNTIL((ret = fi_cq_read(cq, &entry, 1)) != -FI_EAGAIN, );
	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &err, 0) == 1)
		print_error("completed with error %d\n", err.err);
	assert_int_equal(ret, 1);
	assert_ptr_equal(entry.op_context, context);
	return entry;
}

void surface_wait_words(struct subject *u, const void *bytes, size_t len)
{
	static const uint8_t zeros[sizeof(u->s->words)];

	END_UNTIL(end_holds(u->s->words, bytes, len),
		  u->rests ? (void)sched_yield() : (void)fi_cq_read(u->peer->cq, NULL, 0));
	end_put(u->s->words, zeros, len);
}

/* Groups */

void surface_groups(struct surface *s, struct fid_ep *near, fi_addr_t addr, struct groups *g)
{
	struct fi_av_set_attr attr = { .count = 2,
				       .start_addr = FI_ADDR_NOTAVAIL,
				       .end_addr = FI_ADDR_NOTAVAIL };
	int joined = 0;

	assert_int_equal(fi_av_set(s->av, &attr, &g->set, NULL), 0);
	assert_int_equal(fi_av_set_insert(g->set, addr), 0);
	assert_int_equal(fi_av_set_insert(g->set, s->far.addr), 0);
	assert_int_equal(fi_join_collective(near, FI_ADDR_NOTAVAIL, g->set, 0, &g->near, NULL),
			 0);
	assert_int_equal(
		fi_join_collective(s->far.ep, FI_ADDR_NOTAVAIL, g->set, 0, &g->far, NULL), 0);
	for (double end = end_now() + 20; joined < 2;) {
		struct fi_eq_entry event;
		uint32_t what;
		ssize_t ret = fi_eq_read(s->eq, &what, &event, sizeof(event), 0);

		if (ret == -FI_EAGAIN)
			assert_int_equal(
				fi_cq_read(s->far.cq, &(struct fi_cq_tagged_entry){ 0 }, 1),
				-FI_EAGAIN);
		else
			assert_int_equal(ret, sizeof(event));
		joined += ret > 0 && what == FI_JOIN_COMPLETE;
		assert_true(end_now() < end);
	}
}

void surface_groups_close(struct groups *g)
{
	assert_int_equal(fi_close(&g->near->fid), 0);
	assert_int_equal(fi_close(&g->far->fid), 0);
	assert_int_equal(fi_close(&g->set->fid), 0);
}

/* Walking */

void surface_table(const char *of, const void *ops, size_t size)
{
	const void *const *slot;
	size_t has;

	if (!ops)
		fail_msg("%s: no table", of);
	memcpy(&has, ops, sizeof(has));
	if (has < size)
		fail_msg("%s: has %zu bytes of %zu", of, has, size);
	slot = (const void *const *)((const char *)ops + sizeof(size_t));
	for (size_t i = 0; i < (has - sizeof(size_t)) / sizeof(void *); i++)
		if (!slot[i])
			fail_msg("%s: slot %zu is NULL", of, i);
}

void surface_walk(struct subject *u, const char *table, const void *ops,
		  const struct slot *slots, size_t cnt)
{
	surface_table(table, ops, sizeof(size_t) + cnt * sizeof(void *));
	for (size_t i = 0; i < cnt; i++) {
		const struct slot *slot = &slots[i];
		bool works = (u->does & slot->needs) == slot->needs;
		ssize_t ret;

		assert_int_equal(slot->offset, sizeof(size_t) + i * sizeof(void *));
		memset(u->in, 0, sizeof(u->in));
		memset(u->result, 0, sizeof(u->result));
		END_UNTIL((ret = slot->call(u)) != -FI_EAGAIN, fi_cq_read(u->cq, NULL, 0));
		if (ret != (works ? 0 : -FI_ENOSYS))
			fail_msg("%s: %s.%s answers %zd (%s), and is to %s", u->name, table,
				 slot->name, ret, fi_strerror((int)-ret),
				 works ? "work" : "be refused with -FI_ENOSYS");
		if (works && slot->effect)
			slot->effect(u, slot);
	}
}

ssize_t surface_opened(struct subject *u, ssize_t ret, struct fid *fid, size_t fclass)
{
	if (ret)
		return ret;
	assert_non_null(fid);
	assert_int_equal(fid->fclass, fclass);
	surface_table(u->name, fid->ops, sizeof(struct fi_ops));
	assert_int_equal(fi_close(fid), 0);
	return 0;
}

void surface_walk_data(struct subject *u)
{
	surface_walk(u, "fi_ops_msg", u->ep->msg, msg_slots, MSG_SLOTS);
	surface_walk(u, "fi_ops_tagged", u->ep->tagged, tagged_slots, TAGGED_SLOTS);
	surface_walk(u, "fi_ops_rma", u->ep->rma, rma_slots, RMA_SLOTS);
	surface_walk(u, "fi_ops_atomic", u->ep->atomic, atomic_slots, ATOMIC_SLOTS);
	surface_walk(u, "fi_ops_collective", u->ep->collective, collective_slots,
		     COLLECTIVE_SLOTS);
}

void surface_subject(struct subject *u, struct surface *s, const char *name, struct fid_ep *ep,
		     uint64_t does)
{
	*u = (struct subject){ .name = name,
			       .s = s,
			       .ep = ep,
			       .whole = ep,
			       .does = does,
			       .cq = s->near.cq,
			       .at = s->near.addr,
			       .root = s->near.addr,
			       .peer = &s->far };
	for (size_t i = 0; i < SURFACE_LEN; i++)
		u->out[i] = (uint8_t)(i + 1);
}
