/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queues of a receive context: created and freed with it, emptied when an endpoint is closed,
 * moved to a shared context, and renamed when a peer's address changes.
 *
 * The caller holds the domain.
 */
#include <rdma/fi_errno.h>
#include "recv.h"

int engine_rxq_init(struct engine_rxq *q, bool shared)
{
	q->tagged = match_create();
	q->msg = match_create();
	if (!q->tagged || !q->msg) {
		match_destroy(q->tagged);
		match_destroy(q->msg);
		q->tagged = q->msg = NULL;
		return -FI_ENOMEM;
	}
	list_init(&q->claimed);
	q->shared = shared;
	return 0;
}

struct engine_rx *engine_rxq_next(const struct engine_rxq *q, const struct engine_rx *rx)
{
	struct match_recv *next = NULL;

	if (!rx || rx->flags & PACKET_TAGGED)
		next = match_next_recv(q->tagged, rx ? &rx->match : NULL);
	if (!next)
		next = match_next_recv(q->msg,
				       rx && !(rx->flags & PACKET_TAGGED) ? &rx->match : NULL);
	return next ? container_of(next, struct engine_rx, match) : NULL;
}

void engine_rxq_unpost(struct engine_domain *domain, struct engine_rxq *q)
{
	struct engine_rx *rx;

	while ((rx = engine_rxq_next(q, NULL))) {
		match_unpost(engine_matcher(q, rx->flags), &rx->match);
		if (rx->flags & ENGINE_MULTI && rx->parts_cnt)
			rx->spent = true; /* freed with its last part */
		else
			engine_rx_free(domain, rx);
	}
}

void engine_rxq_fini(struct engine_domain *domain, struct engine_rxq *q)
{
	if (!q->tagged)
		return;
	engine_rxq_unpost(domain, q);
	match_destroy(q->tagged);
	match_destroy(q->msg);
	q->tagged = q->msg = NULL;
}

static void engine_matcher_drop(struct engine_ep *ep, struct match *m)
{
	struct match_msg *msg, *after;

	for (msg = match_next_msg(m, NULL); msg; msg = after) {
		struct engine_held *held = container_of(msg, struct engine_held, match);

		after = match_next_msg(m, msg);
		if (held->peer->ep != ep)
			continue;
		match_take(m, msg);
		engine_held_free(ep, held);
	}
}

void engine_rxq_drop(struct engine_ep *ep, struct engine_rxq *q)
{
	struct engine_held *held;

	if (!q->tagged)
		return;
	engine_matcher_drop(ep, q->tagged);
	engine_matcher_drop(ep, q->msg);
	list_for_each_entry(held, &q->claimed, link) {
		if (held->peer->ep != ep)
			continue;
		list_remove(&held->link);
		engine_held_free(ep, held);
	}
}

/*
 * Take the receive that a held message matches out of the matcher. Returns NULL if there is none,
 * or without memory.
 */
static struct engine_rx *engine_held_matched(struct engine_rxq *q, struct match *m,
					     const struct engine_held *held)
{
	struct match_recv *recv = match_arrive(m, held->match.source, held->packet.tag);

	return recv ? engine_recv_matched(held->peer->ep->domain, q, recv, engine_held_len(held))
		    : NULL;
}

/* Give a stored message the present source of its peer, and match it with the receives. */
static void engine_held_renamed(struct engine_rxq *q, struct match *m, struct engine_held *held)
{
	struct engine_rx *rx;

	match_rename(m, &held->match, engine_source_id(q, held->peer));
	rx = engine_held_matched(q, m, held);
	if (!rx)
		return;
	match_take(m, &held->match);
	engine_held_receive(held, rx);
}

void engine_rxq_hand(struct engine_rxq *from, struct engine_rxq *to)
{
	struct match *out[] = { from->tagged, from->msg }, *in[] = { to->tagged, to->msg };
	struct match_msg *msg;
	struct engine_rx *rx;

	for (int i = 0; i < 2; i++) {
		while ((msg = match_next_msg(out[i], NULL))) {
			struct engine_held *held = container_of(msg, struct engine_held, match);

			match_take(out[i], msg);
			msg->source = engine_source_id(to, held->peer);
			rx = engine_held_matched(to, in[i], held);
			if (rx)
				engine_held_receive(held, rx);
			else
				match_store(in[i], msg);
		}
	}
}

void engine_rxq_rename(struct engine_rxq *q, struct engine_peer *peer)
{
	struct match *matchers[] = { q->tagged, q->msg };
	struct match_msg *msg, *after;

	for (int i = 0; i < 2; i++) {
		for (msg = match_next_msg(matchers[i], NULL); msg; msg = after) {
			struct engine_held *held = container_of(msg, struct engine_held, match);

			after = match_next_msg(matchers[i], msg);
			if (held->peer == peer)
				engine_held_renamed(q, matchers[i], held);
		}
	}
}
