/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The fid of a group: fi_join_collective opens it, and fi_close leaves the group. Each call holds
 * the domain.
 *
 * Source: fi_collective(3).
 */
#include <rdma/fi_errno.h>
#include "av_set.h"
#include "coll.h"
#include "events.h"
#include "forked.h"
#include "guard.h"
#include "no_call.h"
#include "peer.h"
#include "refuse.h"

static int coll_mc_close(struct fid *fid)
{
	struct engine_group *group = container_of(fid, struct engine_group, mc.fid);
	struct engine_domain *domain = group->coll->ep->domain;
	int ret = engine_left(domain, FI_LOG_EP_CTRL, "fi_close of a collective group");

	if (ret)
		return ret;
	engine_enter(domain);
	engine_group_close(group);
	engine_leave(domain);
	return 0;
}

static struct fi_ops coll_mc_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = coll_mc_close,
	.bind = engine_no_bind,
	.control = engine_no_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

/* Returns true if all members of @set are in the group, or set, that has this address. */
static bool coll_within(const struct engine_ep *ep, const struct engine_av_set *set,
			fi_addr_t addr)
{
	const struct engine_av_set *outer;
	const struct engine_group *group;
	uint32_t at;

	if (addr == FI_ADDR_NOTAVAIL)
		return true;
	outer = engine_av_set_at(ep->av, addr);
	group = outer ? NULL : engine_group_of(ep, addr);
	if (!outer && (!group || !group->joined))
		return false;
	for (size_t i = 0; i < set->cnt; i++) {
		if (outer && engine_av_set_rank(outer, set->addrs[i]) == SIZE_MAX)
			return false;
		for (at = 0; group && at < group->cnt && group->addrs[at] != set->addrs[i]; at++)
			;
		if (group && at == group->cnt)
			return false;
	}
	return true;
}

/*
 * @rank: out: rank of this member. -FI_EINVAL: no address of the set, or several, are of this
 * endpoint.
 */
static int coll_find_self(struct engine_ep *ep, const struct engine_av_set *set, uint32_t *rank)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < set->cnt; i++) {
		struct engine_peer *peer = engine_peer_at(ep, set->addrs[i]);

		if (!peer)
			return (int)engine_peer_refused(ep, set->addrs[i]);
		if (!peer->self)
			continue;
		if (found != SIZE_MAX)
			return -FI_EINVAL;
		found = i;
	}
	*rank = (uint32_t)found;
	return found == SIZE_MAX ? -FI_EINVAL : 0;
}

static uint32_t coll_new_id(struct engine_coll *coll)
{
	do {
		coll->next_id = (coll->next_id + 1) & COLL_ID_MAX;
	} while (!coll->next_id || engine_group_at(coll, coll->next_id));
	return coll->next_id;
}

static struct engine_group *coll_group_new(struct engine_coll *coll,
					   const struct engine_av_set *set, uint32_t rank,
					   void *context)
{
	struct engine_group *group = platform_alloc(sizeof(*group));
	size_t cnt = set->cnt;

	if (!group)
		return NULL;
	group->addrs = platform_alloc(
		cnt * (sizeof(*group->addrs) + sizeof(*group->ids) + sizeof(*group->lost)));
	if (!group->addrs) {
		platform_free(group);
		return NULL;
	}
	group->ids = (uint32_t *)(group->addrs + cnt);
	group->lost = (uint8_t *)(group->ids + cnt);
	memcpy(group->addrs, set->addrs, cnt * sizeof(*group->addrs));
	group->coll = coll;
	group->cnt = (uint32_t)cnt;
	group->rank = rank;
	group->collectives = set->collectives;
	group->id = coll_new_id(coll);
	list_init(&group->ops);
	list_init(&group->notices);
	list_add_tail(&coll->groups, &group->link);
	group->mc.fid.fclass = FI_CLASS_MC;
	group->mc.fid.context = context;
	group->mc.fid.ops = &coll_mc_fi_ops;
	group->mc.fi_addr = COLL_ADDR | group->id;
	return group;
}

/* struct coll_op.report of a join: posts the event. */
static void coll_join_report(struct coll_op *op)
{
	struct engine_group *group = op->group;
	struct engine_eq *eq = group->coll->ep->eq;
	struct fi_eq_entry entry = { .fid = &group->mc.fid, .context = op->context };
	struct fi_eq_err_entry err = { .fid = &group->mc.fid,
				       .context = op->context,
				       .err = -op->error,
				       .prov_errno = -op->error };

	if (group->closed)
		return;
	if (op->error) {
		engine_eq_push_error(eq, &err);
		return;
	}
	eq_event_fill(op->event, &entry, sizeof(entry));
	engine_eq_post(eq, op->event);
	op->event = NULL;
}

static int coll_join(struct engine_ep *ep, const struct fi_collective_addr *want,
		     struct fid_mc **out, void *context)
{
	const struct engine_av_set *set = engine_av_set_of(ep->av, want->set);
	struct engine_coll *coll = engine_coll_get(ep);
	struct engine_group *group;
	struct coll_op *op;
	uint32_t rank = 0;
	int ret;

	if (!set || set->cnt > COLL_MEMBERS_MAX || !coll_within(ep, set, want->coll_addr))
		return -FI_EINVAL;
	ret = coll_find_self(ep, set, &rank);
	if (ret)
		return ret;
	op = coll ? coll_op_new(context) : NULL;
	if (!op)
		return -FI_ENOMEM;
	group = coll_group_new(coll, set, rank, context);
	op->group = group;
	op->event = eq_event_new(FI_JOIN_COMPLETE, NULL, sizeof(struct fi_eq_entry));
	if (!group || !op->event || engine_join_setup(op)) {
		coll_op_free(op);
		if (group)
			engine_group_free(group);
		return -FI_ENOMEM;
	}
	op->report = coll_join_report;
	*out = &group->mc;
	engine_coll_begin(group, op);
	return 0;
}

static int coll_join_refuse(const struct engine_ctx *ctx, int err)
{
	return engine_refuse(
		ctx->domain->family, FI_LOG_EP_CTRL, err, "fi_join_collective",
		"an enabled endpoint with an event queue, whose own address is once in a "
		"set of its address vector, and no flag of one direction");
}

int engine_coll_join(struct fid_ep *fid, const void *addr, uint64_t flags, struct fid_mc **mc,
		     void *context)
{
	struct engine_ctx *ctx = engine_ctx_of(fid);
	struct engine_ep *ep = ctx->ep;
	uint64_t parts = flags & (FI_SEND | FI_RECV);
	int ret;

	/*
	 * Without FI_COLLECTIVE it would be a multicast group; a member of a group both sends and
	 * receives.
	 */
	if (!(flags & FI_COLLECTIVE) || !ep || !(ep->caps & FI_COLLECTIVE) ||
	    (ctx->rx && !ctx->tx))
		return -FI_ENOSYS;
	if (flags & ~(FI_COLLECTIVE | FI_SEND | FI_RECV) ||
	    (parts && parts != (FI_SEND | FI_RECV)))
		return coll_join_refuse(ctx, -FI_EBADFLAGS);
	if (!addr || !mc)
		return coll_join_refuse(ctx, -FI_EINVAL);
	engine_enter(ctx->domain);
	if (!ep->enabled)
		ret = -FI_EOPBADSTATE;
	else if (!ep->eq)
		ret = -FI_ENOEQ;
	else
		ret = coll_join(ep, addr, mc, context);
	engine_leave(ctx->domain);
	return ret ? coll_join_refuse(ctx, ret) : 0;
}
