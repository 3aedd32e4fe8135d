/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Groups that break: lost members, collectives that fail at every member, and the notices of both;
 * groups that are closed. Packets that arrive and peers that end only record what happened
 * (engine_group_ops): notices are sent, and collectives end, when the endpoint's task runs. The
 * caller holds the domain.
 */
#include "coll.h"
#include "peer.h"
#include "recv.h"
#include "tasks.h"

#define COLL_ERROR_MAX 511u /* largest FI_E* that is accepted from a member */

void engine_group_free(struct engine_group *group)
{
	struct list *node;

	while ((node = list_pop(&group->notices))) {
		group->coll->notice_cnt--;
		platform_free(container_of(node, struct coll_notice, link));
	}
	list_remove(&group->link);
	platform_free(group->addrs);
	platform_free(group);
}

/* Drops messages for collectives that will not take place. */
static void coll_purge(struct engine_group *group)
{
	struct match *m = group->coll->rx.own.tagged;
	struct match_msg *msg, *after;

	for (msg = match_next_msg(m, NULL); msg; msg = after) {
		after = match_next_msg(m, msg);
		if (coll_tag_kind(msg->tag) != COLL_STEP || coll_tag_id(msg->tag) != group->id)
			continue;
		if (!group->closed && coll_before(coll_tag_seq(msg->tag), group->broken_seq))
			continue;
		match_take(m, msg);
		engine_held_drop(group->coll->ep, container_of(msg, struct engine_held, match));
	}
}

/* Breaks the group at @seq. Returns false when it is broken there, or before, already. */
static bool coll_broken(struct engine_group *group, uint16_t seq, int err)
{
	struct coll_op *op;

	if (group->broken && !coll_before(seq, group->broken_seq))
		return false;
	group->broken = err;
	group->broken_seq = seq;
	list_for_each_entry(op, &group->ops, link) {
		if (!op->join && !coll_before(op->seq, seq))
			coll_fail(op, err);
	}
	coll_purge(group);
	return true;
}

static void coll_notify(struct engine_group *group, enum coll_kind kind, uint16_t seq,
			uint64_t data)
{
	struct coll_notice *notice = group->named ? platform_alloc(sizeof(*notice)) : NULL;

	if (!notice)
		return;
	notice->kind = kind;
	notice->seq = seq;
	notice->data = data;
	list_add_tail(&group->notices, &notice->link);
	group->coll->notice_cnt++;
	engine_task_due(group->coll->ep->domain, &group->coll->task);
}

void engine_group_break(struct engine_group *group, uint16_t seq, int err)
{
	if (coll_broken(group, seq, err))
		coll_notify(group, COLL_BREAK, seq, (uint64_t)-err);
}

void engine_group_joined(struct engine_group *group)
{
	group->joined = true;
	for (uint32_t i = 0; i < group->cnt; i++)
		if (group->lost[i])
			coll_notify(group, COLL_LOST, 0, i);
}

void coll_group_settle(struct engine_group *group)
{
	if (!group->closed || !list_empty(&group->ops) || !list_empty(&group->notices))
		return;
	coll_purge(group);
	engine_group_free(group);
}

void engine_group_close(struct engine_group *group)
{
	struct engine_domain *domain = group->coll->ep->domain;
	struct coll_op *op;

	group->closed = true;
	list_for_each_entry(op, &group->ops, link)
		coll_fail(op, -FI_ECANCELED);
	coll_group_settle(group);
	engine_tasks_run(domain);
}

/* Notices to members */

/* Sends a notice. Returns false when there was no room. */
static bool coll_notice_send(struct engine_group *group, struct coll_notice *notice)
{
	for (; notice->next < group->cnt; notice->next++) {
		uint32_t rank = notice->next;
		struct engine_msg msg = { .data = notice->data };

		if (rank == group->rank || group->lost[rank])
			continue;
		msg.tag = coll_tag(notice->kind, group->ids[rank], notice->seq, 0);
		if (coll_send_to(group, rank, &msg) == -FI_EAGAIN)
			return false;
	}
	return true;
}

bool coll_notices_send(struct engine_coll *coll)
{
	struct engine_group *group;

	if (!coll->notice_cnt)
		return true;
	list_for_each_entry(group, &coll->groups, link) {
		while (!list_empty(&group->notices)) {
			struct coll_notice *notice = container_of(group->notices.next,
								  struct coll_notice, link);

			if (!coll_notice_send(group, notice))
				return false;
			list_remove(&notice->link);
			platform_free(notice);
			coll->notice_cnt--;
		}
		coll_group_settle(group);
	}
	return true;
}

/* Notices of other members */

/* Returns true if the peer is a member. */
static bool coll_has(const struct engine_group *group, const struct engine_peer *peer)
{
	for (uint32_t i = 0; i < group->cnt; i++)
		if (coll_peer(group, i) == peer)
			return true;
	return false;
}

/*
 * Another member has seen this one die. If this member has a conn to it, the conn reports that
 * itself.
 */
static void coll_rank_lost(struct engine_group *group, uint64_t rank)
{
	const struct engine_rx *rx;
	struct engine_peer *peer;
	struct coll_op *op;

	if (rank >= group->cnt || rank == group->rank || group->lost[rank])
		return;
	peer = coll_peer(group, (uint32_t)rank);
	if (peer && peer->up_cnt)
		return;
	group->lost[rank] = 1;
	for (rx = engine_rxq_next(&group->coll->rx.own, NULL); rx;
	     rx = engine_rxq_next(&group->coll->rx.own, rx)) {
		const struct coll_step *step = rx->context;

		if (step->op->group == group && step->rank == rank && !step->op->join)
			coll_fail(step->op, -FI_ECONNRESET);
	}
	list_for_each_entry(op, &group->ops, link) {
		if (!op->join && coll_unsent(op, (uint32_t)rank, false))
			coll_fail(op, -FI_ECONNRESET);
	}
}

/* Returns true for a message of a collective that has ended here, or will not take place. */
static bool coll_stale(const struct engine_group *group, uint16_t seq)
{
	if (group->closed)
		return true;
	if (group->broken && !coll_before(seq, group->broken_seq))
		return true;
	return coll_before(seq, group->seq) && !coll_op_at(group, seq);
}

bool coll_stray(struct engine_peer *peer, const struct packet *packet)
{
	struct engine_group *group;
	enum coll_kind kind = coll_tag_kind(packet->tag);
	uint16_t seq = coll_tag_seq(packet->tag);

	if (kind == COLL_JOIN)
		return engine_join_begins(packet->tag);
	group = engine_group_at(peer->ep->coll, coll_tag_id(packet->tag));
	if (!group)
		return true;
	if (kind == COLL_STEP)
		return coll_stale(group, seq);
	if (!coll_has(group, peer))
		return true;
	if (kind == COLL_LOST)
		coll_rank_lost(group, packet->data);
	else
		coll_broken(group, seq,
			    packet->data && packet->data <= COLL_ERROR_MAX ? -(int)packet->data
									   : -FI_EIO);
	return true;
}

void coll_peer_lost(struct engine_peer *peer, bool died)
{
	struct engine_group *group;

	list_for_each_entry(group, &peer->ep->coll->groups, link) {
		for (uint32_t i = 0; i < group->cnt; i++) {
			if (group->lost[i] || i == group->rank || coll_peer(group, i) != peer)
				continue;
			group->lost[i] = 1;
			if (died)
				coll_notify(group, COLL_LOST, 0, i);
		}
	}
}
