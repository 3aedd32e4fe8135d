/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parts of a round of progress (round.h) that most rounds do not need: other wires than the
 * first, the clock, work that is pending, and yields of the core. Called with the domain held.
 */
#include "guard.h"
#include "liveness.h"
#include "round.h"
#include "yield.h"

/* Rounds between looks at the clock */
#define CLOCK_ROUNDS 16u
/* Rounds for which the other wires are left out while the first one is busy */
#define BUSY_ROUNDS 4096u
/* Consecutive polls that move nothing after which a wire is left out of some rounds */
#define IDLE_MIN 32u
/* Most rounds for which an idle wire is left out */
#define WAIT_MAX 256u
/* Time between looks at the clock above which rounds are far apart (struct engine_ep.slow) */
#define SLOW_NS \
	(CLOCK_ROUNDS * 20000u) /* then each round can afford to poll all of the other wires */
/* Time between liveness checks */
#define CHECK_NS 1000000u

/* Poll a wire other than the first. Returns true if that moved something. */
static bool engine_poll_other(struct engine_wire *w)
{
	if (w->ops->poll(w->wire)) {
		w->idle = w->wait = 0;
		return true;
	}
	if (w->idle < WAIT_MAX)
		w->idle++;
	w->wait = w->idle < IDLE_MIN ? 0 : w->idle;
	return false;
}

/*
 * Poll the other wires that are due. Returns true if a poll moved something.
 *
 * The first wire is polled in every round. A poll of another wire costs a system call: a wire that
 * moves nothing is polled ever more rarely, and in every round again once it moves something or is
 * used. ep->others_wait counts the rounds until the first of them is due; before, none is examined.
 */
static bool engine_poll_others(struct engine_ep *ep)
{
	uint32_t waited = ep->others_full - ep->others_wait, next = WAIT_MAX;
	bool moved = false;

	for (uint32_t i = 1; i < ep->wire_cnt; i++) {
		struct engine_wire *w = &ep->wires[i];

		if (!w->wire)
			continue;
		if (w->wait > waited && !ep->slow)
			w->wait -= waited;
		else
			moved |= engine_poll_other(w);
		if (w->wait < next)
			next = w->wait;
	}
	ep->others_wait = ep->others_full = next;
	return moved;
}

/* Read the clock, and do the work of the endpoint that is due by time. */
static void engine_clock(struct engine_ep *ep)
{
	uint64_t now = platform_now_ns(), since = now - ep->check_ns;

	ep->slow = now - ep->clock_ns > SLOW_NS;
	ep->clock_ns = now;
	engine_acks_wait(ep, now);
	if (since < CHECK_NS)
		return;
	ep->check_ns = now;
	engine_peers_check(ep, since / CHECK_NS);
}

void engine_domain_clock(struct engine_domain *domain)
{
	struct engine_ep *ep;

	list_for_each_entry(ep, &domain->eps, domain_link) {
		engine_clock(ep);
		if (ep->slow)
			engine_ep_look_next(ep);
	}
}

/*
 * Returns true if the other wires are due. While the first wire is busy, they are left out for
 * BUSY_ROUNDS more. If rounds are far apart in time (ep->slow), they are due in each.
 * @rounds: number of rounds since the last call
 */
static bool engine_others_due(struct engine_ep *ep, uint32_t rounds)
{
	bool due = rounds > ep->others_wait || ep->slow, busy = ep->busy;

	ep->busy = false;
	if (ep->others_wait && !ep->slow && busy && ep->busy_rounds < BUSY_ROUNDS) {
		ep->busy_rounds += rounds;
		ep->others_wait = ep->others_full;
		return false;
	}
	ep->others_wait -= rounds < ep->others_wait ? rounds : ep->others_wait;
	return due;
}

bool engine_ep_look(struct engine_ep *ep)
{
	uint32_t rounds = ep->look_full, next;
	bool moved = false;

	if (ep->clock_wait > rounds) {
		ep->clock_wait -= rounds;
	} else {
		engine_clock(ep);
		ep->clock_wait = CLOCK_ROUNDS;
	}
	if (engine_others_due(ep, rounds)) {
		ep->busy_rounds = 0;
		moved = engine_poll_others(ep);
	}
	next = ep->slow ? 1 : ep->others_wait + 1;
	ep->look_wait = ep->look_full = next < ep->clock_wait ? next : ep->clock_wait;
	return moved;
}

/* Returns true if a round has more to do than to poll. */
static bool engine_domain_pending(const struct engine_domain *domain)
{
	const struct engine_ep *ep;

	if (!list_empty(&domain->tasks) || !list_empty(&domain->due) ||
	    !list_empty(&domain->armed))
		return true;
	list_for_each_entry(ep, &domain->eps, domain_link) {
		if (!list_empty(&ep->acks) || !list_empty(&ep->blocked))
			return true;
	}
	return false;
}

void engine_round_rest(struct engine_domain *domain)
{
	struct engine_ep *ep;

	list_for_each_entry(ep, &domain->eps, domain_link) {
		if (!list_empty(&ep->acks))
			engine_acks_send(ep);
		if (!list_empty(&ep->blocked))
			engine_peers_service(ep);
	}
	if (!list_empty(&domain->tasks))
		engine_tasks_run(domain);
	if (!list_empty(&domain->due))
		engine_due_run(domain);
	if (!list_empty(&domain->armed))
		engine_waits_round(domain);
	domain->pending = engine_domain_pending(domain);
}

/* Yield the core, without the lock of a safe domain. Returns the time that it took, ns. */
static uint64_t engine_domain_yield(struct engine_domain *domain)
{
	enum engine_lock_use use = engine_lock_use(domain);
	bool locked = engine_has_lock(domain);
	uint64_t start = platform_now_ns(), ns;

	if (locked)
		engine_unlock(domain);
	platform_yield();
	ns = platform_now_ns() - start;
	if (locked) {
		engine_lock(domain);
		atomic_store_explicit(&domain->lock_use, (uint8_t)use, memory_order_relaxed);
	}
	return ns;
}

void engine_single_more(struct engine_domain *domain)
{
	struct engine_ep *ep = domain->single;

	if (!ep->look_wait && engine_ep_look(ep))
		domain->idle = 0;
	if (domain->pending)
		engine_round_rest(domain);
}

/*
 * Returns true if a peer has stored to this domain's memory by itself since the last call: a program
 * that waits for that, by polling its memory, has a peer that runs, though no packet arrives.
 */
static bool engine_domain_stored(struct engine_domain *domain)
{
	struct engine_ep *ep;
	bool stored = false;

	list_for_each_entry(ep, &domain->eps, domain_link) {
		for (uint32_t i = 0; i < ep->wire_cnt; i++) {
			const struct engine_wire *w = &ep->wires[i];

			if (w->wire && w->ops->stored)
				stored |= w->ops->stored(w->wire);
		}
	}
	return stored;
}

void engine_domain_idle(struct engine_domain *domain)
{
	uint32_t over = domain->idle - domain->yield_after - 1;
	bool moved = false;
	uint64_t ns;

	if (over % ENGINE_YIELD_EVERY && over % domain->yield_after)
		return;
	if (engine_domain_stored(domain)) {
		domain->idle = 1;
		return;
	}
	ns = engine_domain_yield(domain);
	if (ns >= ENGINE_YIELD_SOME_NS) {
		bool stored = engine_domain_stored(domain);

		moved = engine_domain_round(domain) || stored;
	}
	domain->yield_after = engine_yield_after(domain->yield_after, ns, moved);
	/*
	 * A peer on another core sends while a yield takes its time too, and each message would wait for
	 * the end of a yield from then on. If the next one comes in a longer wait, no more yields follow.
	 */
	if (moved && domain->yield_after == ENGINE_YIELD_MIN &&
	    !(++domain->yield_cnt % ENGINE_YIELD_DOUBT))
		domain->yield_after = ENGINE_YIELD_WAIT;
	if (moved)
		domain->idle = 0;
	else if (ns < ENGINE_YIELD_SOME_NS)
		domain->idle = 1; /* no thread wants this core: counting begins anew */
	else
		domain->idle = domain->yield_after + 1;
}

static void engine_domain_relinked(struct engine_domain *domain)
{
	struct list *first = domain->eps.next;
	bool single = first != &domain->eps && first->next == &domain->eps;

	domain->single = single ? container_of(first, struct engine_ep, domain_link) : NULL;
}

void engine_domain_link(struct engine_ep *ep)
{
	list_add_tail(&ep->domain->eps, &ep->domain_link);
	engine_domain_relinked(ep->domain);
}

void engine_domain_unlink(struct engine_ep *ep)
{
	list_remove(&ep->domain_link);
	engine_domain_relinked(ep->domain);
}

bool engine_domain_round(struct engine_domain *domain)
{
	return engine_round(domain);
}
