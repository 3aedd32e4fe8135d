/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The slow paths of the registrar: appointing and dismissing it. Any thread, with the domain held.
 */
#include "registrar.h"

#define NOBODY UINTPTR_MAX
/*
 * Registrations of one thread in a row after which it becomes the next registrar: the dismissal of
 * one costs as much as about a hundred of them gain.
 */
#define STREAK 1000u

void engine_registrar_open(struct engine_mrs *mrs, bool barriers)
{
	struct engine_registrar *r = &mrs->registrar;

	atomic_init(&r->who, NOBODY);
	/* Threads that can't be told apart have none. */
	r->turns = barriers && platform_thread_self() ? 0 : ENGINE_REGISTRARS;
	r->streak = STREAK;
}

/* Has the registrar, another thread, out for good. */
static void engine_registrar_dismiss(struct engine_domain *domain)
{
	struct engine_registrar *r = &domain->mr->registrar;
	uint32_t turn = r->turns - 1;

	atomic_store_explicit(&r->who, NOBODY, memory_order_relaxed);
	/* F:registrar.out  it sees who, or we see its inside; pairs F:registrar.inside */
	if (engine_guard_barrier(domain))
		r->turns = ENGINE_REGISTRARS;
	/* A:registrar.inside  before what it has registered; pairs R:registrar.inside */
	while (atomic_load_explicit(&r->inside[turn], memory_order_acquire))
		platform_yield();
	r->streak = 0;
}

bool engine_registrar_pause(struct engine_domain *domain, uint64_t end_ns)
{
	struct engine_registrar *r = &domain->mr->registrar;
	uintptr_t who = atomic_load_explicit(&r->who, memory_order_relaxed);
	uint32_t turn = r->turns - 1;
	int err;

	r->paused = NOBODY;
	if (who == NOBODY || who - platform_thread_self() < ENGINE_REGISTRARS)
		return true;
	atomic_store_explicit(&r->who, NOBODY, memory_order_relaxed);
	/* F:registrar.out  it sees who, or we see its inside; pairs F:registrar.inside */
	err = engine_guard_barrier(domain);
	/* A:registrar.inside  before what it has registered; pairs R:registrar.inside */
	while (atomic_load_explicit(&r->inside[turn], memory_order_acquire)) {
		if (platform_now_ns() >= end_ns) {
			/* Its turn is the last one still: who dismisses it waits for that word. */
			atomic_store_explicit(&r->who, who, memory_order_relaxed);
			return false;
		}
		platform_yield();
	}
	if (err)
		r->turns = ENGINE_REGISTRARS;
	else
		r->paused = who;
	return true;
}

void engine_registrar_go_on(struct engine_domain *domain)
{
	struct engine_registrar *r = &domain->mr->registrar;

	/* It is the same thread in the same turn, and what @looked says is as it was. */
	if (r->paused != NOBODY)
		atomic_store_explicit(&r->who, r->paused, memory_order_relaxed);
}

void engine_registrar_look(struct engine_domain *domain)
{
	struct engine_registrar *r = &domain->mr->registrar;
	uintptr_t self = platform_thread_self();
	uintptr_t who = atomic_load_explicit(&r->who, memory_order_relaxed);

	if (who != NOBODY && who - self >= ENGINE_REGISTRARS)
		engine_registrar_dismiss(domain);
	r->looked = self;
}

void engine_conns_change(struct wire *wire)
{
	engine_registrar_out(wire->ep->domain);
}

void engine_regions_hold(struct engine_domain *domain)
{
	engine_enter(domain);
	engine_registrar_out(domain);
}

void engine_regions_appoint(struct engine_domain *domain)
{
	struct engine_registrar *r = &domain->mr->registrar;
	uintptr_t self = platform_thread_self();

	engine_regions_hold(domain);
	if (r->turns == ENGINE_REGISTRARS)
		return;
	/* It is the registrar: a fork had it out when it began (engine_registrar_pause()). */
	if (atomic_load_explicit(&r->who, memory_order_relaxed) - self < ENGINE_REGISTRARS)
		return;
	if (r->candidate != self) {
		r->candidate = self;
		r->streak = r->turns ? 0 : STREAK;
	}
	if (r->streak++ < STREAK)
		return;
	/* It is inside the domain too, for this time. */
	atomic_store_explicit(&r->who, self + r->turns++, memory_order_relaxed);
}
