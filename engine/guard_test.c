/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the guard of a domain: one thread, which looks at the lock. */
#include <setjmp.h>
#include <stdarg.h>
#include "guard.h"
#include <cmocka.h>

static void open_domain(struct engine_domain *domain, bool safe)
{
	memset(domain, 0, sizeof(*domain));
	platform_lock_init(&domain->lock);
	atomic_store(&domain->safe, safe);
}

static bool is_locked(struct engine_domain *domain)
{
	if (!platform_trylock(&domain->lock))
		return true;
	platform_unlock(&domain->lock);
	return false;
}

static void a_data_call_takes_no_lock_where_there_is_none(void **state)
{
	struct engine_domain domain;

	open_domain(&domain, false);
	engine_guard_enter(&domain);
	assert_false(is_locked(&domain));
	engine_guard_leave(&domain);
	engine_use(&domain);
	assert_false(is_locked(&domain));
	engine_unuse(&domain);
	platform_lock_fini(&domain.lock);
}

static void a_control_call_excludes_others(void **state)
{
	struct engine_domain domain;

	for (int safe = 0; safe < 2; safe++) {
		open_domain(&domain, safe);
		engine_enter(&domain);
		assert_true(is_locked(&domain));
		engine_leave(&domain);
		assert_false(is_locked(&domain));
		platform_lock_fini(&domain.lock);
	}
}

/* As auto.c does it. */
static void gets_a_lock(struct engine_domain *domain)
{
	engine_enter(domain);
	atomic_store(&domain->safe, true);
	engine_leave(domain);
}

static void a_call_that_came_before_the_lock_takes_it(void **state)
{
	struct engine_domain domain;

	open_domain(&domain, false);
	gets_a_lock(&domain);
	for (int i = 0; i < 2; i++) {
		engine_guard_enter(&domain);
		assert_true(is_locked(&domain));
		engine_guard_leave(&domain);
		assert_false(is_locked(&domain));
	}
	/* In a call that has looked whether there is a lock before there was one. */
	engine_guard_enter(&domain);
	engine_unuse(&domain);
	assert_false(is_locked(&domain));
	platform_lock_fini(&domain.lock);
}

static void a_call_that_has_the_lock_may_enter(void **state)
{
	struct engine_domain domain;

	for (int late = 0; late < 2; late++) {
		open_domain(&domain, !late);
		if (late)
			gets_a_lock(&domain);
		engine_use(&domain);
		engine_guard_enter(&domain);
		engine_guard_leave(&domain);
		assert_true(is_locked(&domain));
		engine_unuse(&domain);
		assert_false(is_locked(&domain));
		engine_enter(&domain);
		engine_leave(&domain);
		assert_false(is_locked(&domain));
		platform_lock_fini(&domain.lock);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_data_call_takes_no_lock_where_there_is_none),
		cmocka_unit_test(a_control_call_excludes_others),
		cmocka_unit_test(a_call_that_came_before_the_lock_takes_it),
		cmocka_unit_test(a_call_that_has_the_lock_may_enter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
