/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The holder of a domain (engine/domain/guard.h, guard.c) in all executions that C11 allows: data
 * calls without a lock, control calls, and the domain's thread hold it one after the other, also if
 * membarrier(2) is forbidden at some time. The barrier is weak_barrier(); time and the lock are
 * those of holder.h.
 */
#include "holder.h"
#include "views.h"
#include "weak.h"

#include <rdma/fi_errno.h>

static struct engine_domain domain;
static uint32_t visits;		 /* belongs to the domain */
static uint32_t idle_visits;	 /* by the domain's thread */
static uint32_t expected_visits; /* by the others */

/* The system */

int platform_membarrier(void)
{
	if (holder_forbidden)
		return -FI_EPERM;
	weak_fence_name("engine_enter");
	weak_barrier();
	return 0;
}

static void set_up(uint32_t expected)
{
	holder_init(&domain);
	visits = 0;
	idle_visits = 0;
	expected_visits = expected;
}

static void set_up_two(void)
{
	set_up(2);
}

static void set_up_three(void)
{
	set_up(3);
}

static void set_up_forbidden(void)
{
	set_up(3);
	holder_forbidden = true;
}

static void set_up_forbidden_idle(void)
{
	set_up(2);
	holder_forbidden = true;
}

/* Bytes are accessed together with the atomic access before them; a barrier may stand in between. */
static void visit(void)
{
	weak_step(VIEWS_LOAD, &visits, false);
	visits++;
}

/* By the op table of a domain without a lock. */
static void data_call(void)
{
	engine_guard_enter(&domain);
	visit();
	engine_guard_leave(&domain);
}

static void two_data_calls(void)
{
	data_call();
	data_call();
}

/* The second one by the op table of whatever the domain is by then. */
static void data_calls(void)
{
	data_call();
	engine_use(&domain);
	visit();
	engine_unuse(&domain);
}

static void control_call(void)
{
	engine_enter(&domain);
	visit();
	engine_leave(&domain);
}

static void idle_thread(void)
{
	if (!engine_enter_idle(&domain))
		return;
	visit();
	idle_visits = 1;
	engine_leave(&domain);
}

static void all_were_in(void)
{
	weak_require(visits == expected_visits + idle_visits);
}

static const struct weak_test control = { "a control call is in alone",
					  set_up_three,
					  { control_call, two_data_calls },
					  all_were_in };

static const struct weak_test idle = {
	"so is the domain's thread", set_up_two, { idle_thread, two_data_calls }, all_were_in
};

static const struct weak_test three = {
	"so are both", set_up_two, { idle_thread, control_call, data_call }, all_were_in
};

static const struct weak_test late = { "so is a control call after which the domain has a lock",
				       set_up_forbidden,
				       { control_call, data_calls },
				       all_were_in };

static const struct weak_test late_idle = { "so is the domain's thread then",
					    set_up_forbidden_idle,
					    { idle_thread, data_calls },
					    all_were_in };

int main(void)
{
	static const struct weak_test *const tests[] = { &control, &idle,      &three,
							 &late,	   &late_idle, NULL };
	static const struct weak_ordering orderings[] = {
		{ "F:engine_enter", &control },
		{ "R:domain.inside", &control },
		{ "A:domain.inside", &control },
		{ "R:domain.claimed", &control },
		{ "A:domain.claimed", &control },
		{ "F:engine_enter", &idle },
		{ "R:domain.inside", &idle },
		{ "A:domain.inside", &idle },
		{ "R:domain.claimed", &idle },
		{ "A:domain.claimed", &idle },
		{ "R:domain.lock", &three },
		{ "A:domain.lock", &three },
		{ "F:engine_guard_settle", &late },
		{ "R:domain.inside", &late },
		{ "A:domain.inside", &late },
		{ "R:domain.lock", &late },
		{ "A:domain.lock", &late },
		{ "F:engine_guard_settle", &late_idle },
		{ NULL, NULL },
	};

	return weak_main(tests, orderings);
}
