/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The registrar of a domain: the one thread that registers memory, and closes regions, without
 * holding the domain, and without a lock, a fence or a system call. Any thread becomes it that
 * registers, if no other one is; most programs register on one thread.
 *
 * What belongs to the regions of a domain (struct engine_mrs, its key table, struct engine_mr but
 * for what is said below) is accessed
 *
 *  - by the registrar, between engine_regions_begin() and engine_regions_leave(), or
 *  - by the holder of the domain, once engine_registrar_out() has returned: no other thread is
 *    registrar from then on until the domain is given up.
 *
 * The registrar enters by two plain stores to a word of its own, as a data call enters a domain
 * without a lock (guard.h). A holder that finds another registrar dismisses it: it clears @who, has
 * every core of the process execute a barrier (membarrier(2)), and waits until the one dismissed is
 * not inside. That is rare: another thread registers, carries out an access of a peer to a region,
 * or changes the conns that closing a region looks at. So it is what pays.
 *
 * Each registrar has a turn, whose word @inside is its own for ever: one that was dismissed may
 * still set and clear its word when the next one is inside. When the turns are used up, the holder
 * of the domain alone registers.
 *
 * Source: biased locks; Kawachiya, Koseki and Onodera, 'Lock Reservation', 2002.
 */
#ifndef WEFT_REGISTRAR_H
#define WEFT_REGISTRAR_H

#include "guard.h"
#include "regions.h"

/* What engine_regions_begin() returns where the domain has to be held */
#define ENGINE_REGIONS_HELD ENGINE_REGISTRARS

/* engine_registrar_open - there is none yet; @barriers: platform_membarrier() works */
void engine_registrar_open(struct engine_mrs *mrs, bool barriers);

/*
 * engine_regions_begin - have the regions of a domain to this thread, until engine_regions_leave()
 * Returns its turn, or ENGINE_REGIONS_HELD: this thread is not the registrar, and calls
 * engine_regions_appoint() or engine_regions_hold() next.
 */
static inline uint32_t engine_regions_begin(struct engine_domain *domain)
{
	struct engine_registrar *r = &domain->mr->registrar;
	uintptr_t who = atomic_load_explicit(&r->who, memory_order_relaxed);
	uintptr_t turn = who - platform_thread_self();

	if (unlikely(turn >= ENGINE_REGISTRARS))
		return ENGINE_REGIONS_HELD;
	atomic_store_explicit(&r->inside[turn], true, memory_order_relaxed);
	/* F:registrar.inside  compiler only: store before the load of who; pairs F:registrar.out */
	atomic_signal_fence(memory_order_seq_cst);
	if (likely(atomic_load_explicit(&r->who, memory_order_relaxed) == who))
		return (uint32_t)turn;
	atomic_store_explicit(&r->inside[turn], false, memory_order_relaxed);
	return ENGINE_REGIONS_HELD;
}

/*
 * engine_regions_appoint - hold the domain to register: engine_regions_hold(), and this thread may
 * become the registrar
 */
void engine_regions_appoint(struct engine_domain *domain);

/* engine_regions_leave - @turn: what engine_regions_begin() has returned */
static inline void engine_regions_leave(struct engine_domain *domain, uint32_t turn)
{
	if (likely(turn != ENGINE_REGIONS_HELD))
		/* R:registrar.inside  what was registered; pairs A:registrar.inside */
		atomic_store_explicit(&domain->mr->registrar.inside[turn], false,
				      memory_order_release);
	else
		engine_leave(domain);
}

/*
 * engine_regions_hold - hold the domain and its regions in a control call, until engine_leave()
 * Not by the registrar between begin and leave.
 */
void engine_regions_hold(struct engine_domain *domain);

/*
 * engine_registrar_pause - have another registrar out for a while, unless it stays inside until then; the
 *	caller holds the domain. Returns true if it is out
 * engine_registrar_go_on - it may register again; without, it is dismissed
 */
bool engine_registrar_pause(struct engine_domain *domain, uint64_t end_ns);
void engine_registrar_go_on(struct engine_domain *domain);

/* engine_registrar_look - engine_registrar_out() where another thread looked last */
void engine_registrar_look(struct engine_domain *domain);

/* engine_registrar_is_out - returns true if engine_registrar_out() has nothing to do */
static inline bool engine_registrar_is_out(const struct engine_domain *domain)
{
	return domain->mr->registrar.looked == platform_thread_self();
}

/*
 * engine_registrar_out - have the regions to the holder of the domain, until it gives the domain up
 * The caller holds the domain. May wait for a registration that is under way.
 */
static inline void engine_registrar_out(struct engine_domain *domain)
{
	if (unlikely(!engine_registrar_is_out(domain)))
		engine_registrar_look(domain);
}

#endif
