/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of collectives of an endpoint: allocated when the program or a peer first uses one,
 * and from then on the receive context of group messages. The caller holds the domain.
 */
#include "coll.h"
#include "recv.h"
#include "tasks.h"

struct engine_coll *engine_coll_get(struct engine_ep *ep)
{
	struct engine_coll *coll = ep->coll;

	if (coll)
		return coll;
	coll = platform_alloc(sizeof(*coll));
	if (!coll)
		return NULL;
	if (engine_rxq_init(&coll->rx.own, false)) {
		platform_free(coll);
		return NULL;
	}
	coll->ep = ep;
	coll->rx.q = &coll->rx.own;
	coll->rx.ep = ep;
	coll->ctx.domain = ep->domain;
	coll->ctx.ep = ep;
	coll->ctx.tx = &coll->tx;
	coll->ctx.rx = &coll->rx;
	coll->ctx.trx_flags = PACKET_TAGGED | PACKET_GROUP;
	coll->ctx.directed_recv = true;
	list_init(&coll->groups);
	list_init(&coll->ready);
	list_init(&coll->task.link);
	coll->task.run = coll_run;
	ep->coll = coll;
	ep->group_rx = &coll->rx;
	return coll;
}

void engine_coll_free(struct engine_ep *ep)
{
	struct engine_coll *coll = ep->coll;
	struct engine_group *group;
	struct list *onode;

	if (!coll)
		return;
	list_for_each_entry(group, &coll->groups, link) {
		while ((onode = list_pop(&group->ops))) {
			struct coll_op *op = container_of(onode, struct coll_op, link);

			list_remove(&op->ready);
			coll_op_free(op);
		}
		engine_group_free(group);
	}
	engine_task_drop(&coll->task);
	engine_rxq_fini(ep->domain, &coll->rx.own);
	platform_free(coll);
	ep->coll = NULL;
	ep->group_rx = NULL;
}

bool engine_coll_busy(const struct engine_ep *ep)
{
	struct engine_group *group;

	if (!ep->coll)
		return false;
	list_for_each_entry(group, &ep->coll->groups, link)
		if (!group->closed)
			return true;
	return false;
}

struct engine_group *engine_group_at(const struct engine_coll *coll, uint32_t id)
{
	struct engine_group *group;

	list_for_each_entry(group, &coll->groups, link) {
		if (group->id == id)
			return group;
	}
	return NULL;
}

struct engine_group *engine_group_of(const struct engine_ep *ep, fi_addr_t addr)
{
	struct engine_group *group = NULL;

	if (ep->coll && (addr & ~(fi_addr_t)COLL_ID_MAX) == COLL_ADDR)
		group = engine_group_at(ep->coll, (uint32_t)addr & COLL_ID_MAX);
	return group && !group->closed ? group : NULL;
}

/* struct engine_group_ops.rx */
static struct engine_rx_ctx *coll_rx(struct engine_ep *ep)
{
	struct engine_coll *coll = engine_coll_get(ep);

	return coll ? &coll->rx : NULL;
}

const struct engine_group_ops engine_groups = {
	.rx = coll_rx,
	.stray = coll_stray,
	.received = coll_received,
	.sent = coll_sent,
	.peer_lost = coll_peer_lost,
};
