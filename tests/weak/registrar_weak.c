/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The registrar of a domain (engine/domain/registrar.h, registrar.c) in all executions that C11
 * allows: it registers without holding the domain, while data calls without a lock and control calls
 * access the regions too, and another thread becomes registrar. Each has the regions alone. The
 * barrier is weak_barrier(); time, where membarrier(2) is forbidden, and the lock are those of holder.h.
 */
#include "registrar.h"
#include "holder.h"
#include "views.h"
#include "weak.h"

#include <rdma/fi_errno.h>

static struct engine_domain domain;
static struct engine_mrs mrs;
static uint32_t visits; /* belongs to the regions */
static uint32_t expected_visits;

/* The system */

uintptr_t weak_self(void)
{
	return 4096u + 64u * (uintptr_t)weak_running();
}

/* engine_enter() makes one too, when @who is as it was. */
int platform_membarrier(void)
{
	bool out = atomic_load_explicit(&mrs.registrar.who, memory_order_relaxed) == UINTPTR_MAX;

	if (holder_forbidden)
		return -FI_EPERM;
	weak_fence_name(out ? "registrar.out" : "engine_enter");
	weak_barrier();
	return 0;
}

/* The first thread is the registrar, in its first turn. */
static void set_up(uint32_t expected)
{
	holder_init(&domain);
	memset(&mrs, 0, sizeof(mrs));
	visits = 0;
	expected_visits = expected;
	domain.mr = &mrs;
	mrs.registrar.turns = 1;
	mrs.registrar.looked = 4096;
	atomic_init(&mrs.registrar.who, 4096);
	weak_name("registrar.who", &mrs.registrar.who, sizeof(mrs.registrar.who));
	weak_name("registrar.inside", &mrs.registrar.inside, sizeof(mrs.registrar.inside));
}

static void set_up_two(void)
{
	set_up(2);
}

static void set_up_three(void)
{
	set_up(3);
}

static void set_up_safe(void)
{
	set_up(3);
	atomic_init(&domain.safe, true);
}

/* The next thread that registers becomes the registrar. */
static void set_up_next(void)
{
	set_up_safe();
	mrs.registrar.candidate = 4096 + 64;
	mrs.registrar.streak = UINT32_MAX / 2;
	mrs.registrar.looked = 4096 + 64;
	atomic_init(&mrs.registrar.who, UINTPTR_MAX);
}

static void set_up_forbidden(void)
{
	set_up_safe();
	holder_forbidden = true;
}

/* Bytes are accessed together with the atomic access before them; a barrier may stand in between. */
static void visit(void)
{
	weak_step(VIEWS_LOAD, &visits, false);
	visits++;
}

static void registration(void)
{
	uint32_t turn = engine_regions_begin(&domain);

	if (turn == ENGINE_REGIONS_HELD)
		engine_regions_appoint(&domain);
	visit();
	engine_regions_leave(&domain, turn);
}

static void two_registrations(void)
{
	registration();
	registration();
}

/* An access of a peer, or a conn that comes, in a data call. */
static void data_call(void)
{
	engine_use(&domain);
	engine_registrar_out(&domain);
	visit();
	engine_unuse(&domain);
}

static void control_call(void)
{
	engine_regions_hold(&domain);
	visit();
	engine_leave(&domain);
}

/* A fork has the registrar out meanwhile, or does not wait for it; it accesses nothing. */
static void fork_and_control_call(void)
{
	engine_enter(&domain);
	if (engine_registrar_pause(&domain, 0))
		engine_registrar_go_on(&domain);
	engine_leave(&domain);
	control_call();
}

static void all_were_in(void)
{
	weak_require(visits == expected_visits);
}

static const struct weak_test data = { "a data call has the regions alone",
				       set_up_three,
				       { two_registrations, data_call },
				       all_were_in };

static const struct weak_test locked = {
	"so has one with a lock", set_up_safe, { two_registrations, data_call }, all_were_in
};

static const struct weak_test control = {
	"so has a control call", set_up_two, { registration, control_call }, all_were_in
};

static const struct weak_test next = {
	"so has the next registrar", set_up_next, { data_call, two_registrations }, all_were_in
};

static const struct weak_test late = { "so has one where barriers are forbidden",
				       set_up_forbidden,
				       { two_registrations, data_call },
				       all_were_in };

static const struct weak_test paused = { "so has a control call after a fork",
					 set_up_safe,
					 { two_registrations, fork_and_control_call },
					 all_were_in };

static const struct weak_test paused_late = { "and after one where barriers are forbidden",
					      set_up_forbidden,
					      { two_registrations, fork_and_control_call },
					      all_were_in };

int main(void)
{
	static const struct weak_test *const tests[] = { &data, &locked, &control,     &next,
							 &late, &paused, &paused_late, NULL };
	static const struct weak_ordering orderings[] = {
		{ "F:registrar.out", &data },
		{ "R:registrar.inside", &data },
		{ "A:registrar.inside", &data },
		{ "F:registrar.out", &locked },
		{ "R:registrar.inside", &locked },
		{ "A:registrar.inside", &locked },
		{ "R:domain.lock", &locked },
		{ "A:domain.lock", &locked },
		{ "F:registrar.out", &control },
		{ "R:registrar.inside", &control },
		{ "A:registrar.inside", &control },
		{ "F:registrar.out", &next },
		{ "R:registrar.inside", &next },
		{ "F:engine_guard_settle", &late },
		{ "F:registrar.out", &paused },
		{ "A:registrar.inside", &paused },
		{ NULL, NULL },
	};

	return weak_main(tests, orderings);
}
