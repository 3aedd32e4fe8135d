/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arming the wires of a domain, and the longest time to sleep on them; removing the objects whose
 * sleepers were woken at the end of a round. Called with the domain held: by blocking calls, by
 * fi_trywait, by the domain's thread, and by rounds.
 */
#include <rdma/fi_errno.h>
#include "access.h"
#include "arm.h"
#include "auto.h"
#include "guard.h"
#include "peer.h"
#include "progress.h"
#include "recv.h"
#include "round.h"
#include "waiting.h"

/* Rounds of fi_trywait before it returns -FI_EAGAIN */
#define TRY_ROUNDS 64
/* Longest sleep while something has to be polled that rings no bell */
#define NAP_NS 1000000u
/* Longest sleep while only the death of a peer, which rings no bell, may end an operation */
#define PENDING_NS 50000000u
/* Longest sleep otherwise */
#define IDLE_NS 1000000000u
/* Peers and receives of an endpoint that are examined to choose between the last two */
#define LOOKED_MAX 64u

static uint64_t engine_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Arm one wire. Returns the longest time until its next poll, ns; 0: it has something now. */
static uint64_t engine_wire_arm(struct engine_ep *ep, uint32_t wire_idx)
{
	const struct engine_wire *w = &ep->wires[wire_idx];
	uint64_t ns;

	engine_expect(ep, wire_idx);
	/* What has come on the first wire is not heard until the program has read: its arm() would say that there is something. */
	if (!w->ops->arm || (!wire_idx && engine_ep_deaf(ep)))
		return NAP_NS;
	ns = w->ops->arm(w->wire);
	return w->bell_polled || !w->ops->bell ? ns : engine_least(ns, NAP_NS);
}

/* Arm all wires. Returns the shortest of their times, ns; 0: a wire has something now. */
static uint64_t engine_each_wire_arm(struct engine_domain *domain)
{
	uint64_t limit = UINT64_MAX;
	struct engine_ep *ep;

	list_for_each_entry(ep, &domain->eps, domain_link) {
		for (uint32_t i = 0; i < ep->wire_cnt && limit; i++)
			if (ep->wires[i].wire)
				limit = engine_least(limit, engine_wire_arm(ep, i));
	}
	return limit;
}

/*
 * Returns true if a posted receive names its source, or once *left is used up. Each receive that is
 * examined counts in *left.
 */
static bool engine_waits_directed(const struct engine_rxq *q, uint32_t *left)
{
	const struct engine_rx *rx;

	for (rx = engine_rxq_next(q, NULL); rx; rx = engine_rxq_next(q, rx))
		if (!*left || !--*left || rx->match.source != MATCH_ANY_SOURCE)
			return true;
	return false;
}

/* Returns true if receives of a context may name their source. */
static bool engine_names_sources(const struct engine_ep *ep, const struct engine_rx_ctx *rx)
{
	return ep->caps & FI_DIRECTED_RECV || ep->ctx.directed_recv || rx->q->shared;
}

/*
 * Returns true if an operation of the endpoint may end only by the death of a peer. That is assumed
 * if the first LOOKED_MAX peers and receives do not decide it.
 */
static bool engine_ep_pending(const struct engine_ep *ep)
{
	uint32_t left = LOOKED_MAX;
	struct engine_peer *peer;

	list_for_each_entry(peer, &ep->all, all)
		if (!--left || engine_work_pending(peer))
			return true;
	if (list_empty(&ep->all))
		return false;
	for (uint32_t i = 0; i < ep->rx_cnt; i++)
		if (ep->rxs[i] && engine_names_sources(ep, ep->rxs[i]) &&
		    engine_waits_directed(ep->rxs[i]->q, &left))
			return true;
	return ep->group_rx && engine_waits_directed(ep->group_rx->q, &left);
}

/* Returns the longest time until the next round, ns, for events that ring no bell. */
static uint64_t engine_domain_limit(const struct engine_domain *domain)
{
	uint64_t limit = IDLE_NS;
	struct engine_ep *ep;

	if (!list_empty(&domain->due) || !list_empty(&domain->tasks))
		return NAP_NS;
	list_for_each_entry(ep, &domain->eps, domain_link) {
		if (!list_empty(&ep->blocked) || !list_empty(&ep->acks))
			return NAP_NS;
		if (limit == IDLE_NS && engine_ep_pending(ep))
			limit = PENDING_NS;
	}
	return limit;
}

/* Returns the longest time until the next round, ns, for ACKs that are not urgent. */
static uint64_t engine_domain_acks(struct engine_domain *domain)
{
	uint64_t limit = UINT64_MAX;
	struct engine_ep *ep;

	list_for_each_entry(ep, &domain->eps, domain_link) {
		if (!list_empty(&ep->acks_later))
			limit = engine_least(limit, engine_acks_wait(ep, platform_now_ns()));
	}
	return limit;
}

uint64_t engine_wires_arm(struct engine_domain *domain)
{
	uint64_t acks = engine_domain_acks(domain), limit = NAP_NS;

	if (engine_domain_channel(domain))
		return limit; /* nothing is armed: no bell could wake a thread */
	domain->wires_armed = true;
	engine_channel_rearm(&domain->channel);
	limit = engine_each_wire_arm(domain);
	if (!limit) {
		engine_wake(domain);
		engine_waits_round(domain);
		return 0;
	}
	return engine_least(engine_least(limit, acks), engine_domain_limit(domain));
}

int engine_wait_arm(struct engine_wait *wait, bool (*look)(struct engine_wait *wait))
{
	struct engine_domain *domain = wait->domain;
	bool thread = engine_auto_needed(domain);
	uint64_t ns = 0;

	for (int i = 0; i < TRY_ROUNDS && !ns; i++) {
		if (look(wait))
			return -FI_EAGAIN;
		ns = thread ? UINT64_MAX : engine_wires_arm(domain);
	}
	if (!ns)
		return -FI_EAGAIN;
	engine_wait_add(wait, false);
	if (!thread)
		engine_domain_timer(domain, ns);
	return 0;
}

int engine_channel_hold(struct engine_channel *channel, struct engine_domain *domain)
{
	int ret;

	if (!engine_channel_is_local(channel) || engine_auto_needed(domain))
		return 0;
	engine_enter(domain);
	ret = engine_channel_add(channel, domain);
	engine_leave(domain);
	return ret;
}

void engine_waits_round(struct engine_domain *domain)
{
	struct engine_wait *wait;

	list_for_each_entry(wait, &domain->armed, link) {
		if (wait->woken)
			engine_wait_remove(wait);
	}
	/* The thread is not listed while it makes rounds: this round is the program's. */
	if (domain->progress.listed)
		engine_auto_detach(domain);
	engine_wires_disarm(domain);
}
