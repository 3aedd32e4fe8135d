/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of work that waits for a counter. One thread, a domain without endpoints. */
#include <setjmp.h>
#include <stdarg.h>
#include "cntr.h"
#include "progress.h"
#include "waiting.h"
#include <cmocka.h>

struct note {
	struct cntr_work work;
	/* Counter that it increments when it runs, or NULL */
	struct engine_cntr *again;
	/* Work that starts to wait for @again when it runs, or NULL */
	struct note *awaits;
	/* Number of runs that find no room */
	int refuse;
	int id;
};

static struct engine_domain domain;
static struct engine_cntr cntrs[2];
static int order[64], ran;
static bool deep;
static int woken;

/* The domain has no endpoints: a round of progress is only its work that is due. */
bool engine_domain_round(struct engine_domain *of)
{
	if (!list_empty(&of->due))
		engine_due_run(of);
	return false;
}

void engine_wait_wake(struct engine_wait *wait)
{
	woken++;
}

void engine_wake_all(struct engine_domain *d)
{
}

void engine_domain_idle(struct engine_domain *d)
{
}

static bool note_run(struct cntr_work *work)
{
	struct note *n = container_of(work, struct note, work);

	assert_false(deep);
	if (n->refuse) {
		n->refuse--;
		return false;
	}
	deep = true;
	order[ran++] = n->id;
	if (n->again)
		engine_count(n->again, 0, 8);
	if (n->awaits)
		engine_cntr_await(n->again, &n->awaits->work);
	engine_due_run(&domain); /* has no effect while work runs */
	deep = false;
	return true;
}

static struct note note(int id, uint64_t threshold)
{
	return (struct note){ .work = { .threshold = threshold, .run = note_run }, .id = id };
}

static int setup(void **state)
{
	domain = (struct engine_domain){ 0 };
	list_init(&domain.eps);
	list_init(&domain.due);
	list_init(&domain.armed);
	for (int i = 0; i < 2; i++) {
		cntrs[i] = (struct engine_cntr){ .domain = &domain };
		list_init(&cntrs[i].waiting);
		list_init(&cntrs[i].due);
		list_init(&cntrs[i].watch.link);
	}
	ran = 0;
	return 0;
}

static void work_runs_when_its_value_is_reached(void **state)
{
	struct note a = note(1, 3);

	engine_cntr_await(&cntrs[0], &a.work);
	engine_domain_progress(&domain);
	engine_count(&cntrs[0], 0, 8);
	engine_count(&cntrs[0], 0, 8);
	engine_domain_progress(&domain);
	assert_int_equal(ran, 0);
	engine_count(&cntrs[0], -FI_EIO, 8); /* failed operations count too */
	assert_int_equal(ran, 0);	     /* not within engine_count() */
	engine_domain_progress(&domain);
	assert_int_equal(ran, 1);
	engine_domain_progress(&domain);
	assert_int_equal(ran, 1);
	assert_true(list_empty(&cntrs[0].waiting));
}

static void work_runs_by_threshold_then_in_order(void **state)
{
	struct note n[] = { note(3, 5), note(1, 1), note(4, 5), note(2, 1), note(5, 7) };

	for (int i = 0; i < 5; i++)
		engine_cntr_await(&cntrs[0], &n[i].work);
	engine_cntr_add(&cntrs[0], 6);
	engine_due_run(&domain);
	assert_int_equal(ran, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(order[i], i + 1);
	assert_false(list_empty(&cntrs[0].waiting));
	engine_cntr_forget(&n[4].work);
	engine_cntr_add(&cntrs[0], 6);
	engine_due_run(&domain);
	assert_int_equal(ran, 4);
}

static void a_value_that_is_there_is_not_waited_for(void **state)
{
	struct note a = note(1, 3);

	engine_cntr_add(&cntrs[0], 3);
	engine_cntr_await(&cntrs[0], &a.work);
	assert_int_equal(ran, 0);
	engine_due_run(&domain);
	assert_int_equal(ran, 1);
}

static void work_sets_off_work_without_depth(void **state)
{
	struct note a = note(1, 1), b = note(2, 1), c = note(3, 1);

	a.again = b.again = &cntrs[1];
	engine_cntr_await(&cntrs[0], &a.work);
	engine_cntr_await(&cntrs[1], &b.work);
	a.awaits = &c; /* its threshold is reached already */
	engine_count(&cntrs[0], 0, 8);
	engine_due_run(&domain);
	assert_int_equal(ran, 3);
	assert_int_equal(atomic_load(&cntrs[1].value), 2);
	assert_true(list_empty(&domain.due));
}

static void forgotten_work_that_is_due_does_not_run(void **state)
{
	struct note a = note(1, 1), b = note(2, 1);

	engine_cntr_await(&cntrs[0], &a.work);
	engine_cntr_await(&cntrs[0], &b.work);
	engine_count(&cntrs[0], 0, 8);
	engine_cntr_forget(&a.work);
	engine_cntr_forget(&b.work);
	engine_due_run(&domain);
	assert_int_equal(ran, 0);
}

static void work_without_room_is_run_again_in_its_place(void **state)
{
	struct note n[] = { note(1, 1), note(2, 1), note(3, 2), note(4, 5) };

	n[0].refuse = 2;
	n[2].refuse = 1;
	for (int i = 0; i < 4; i++)
		engine_cntr_await(&cntrs[0], &n[i].work);
	engine_cntr_add(&cntrs[0], 2);
	engine_due_run(&domain);
	assert_int_equal(ran, 1);
	assert_int_equal(order[0], 2);
	/* Work that was due stays due when the sum wraps. */
	engine_cntr_add(&cntrs[0], (uint64_t)-2);
	assert_false(list_empty(&domain.due));
	engine_domain_progress(&domain);
	assert_int_equal(ran, 2);
	assert_int_equal(order[1], 3);
	engine_domain_progress(&domain);
	assert_int_equal(ran, 3);
	assert_int_equal(order[2], 1);
	assert_true(list_empty(&domain.due));
	engine_cntr_add(&cntrs[0], 5);
	engine_domain_progress(&domain);
	assert_int_equal(ran, 4);
}

static void sleepers_are_woken_once_by_a_change(void **state)
{
	struct note a = note(1, 5);

	woken = 0;
	engine_cntr_await(&cntrs[0], &a.work);
	engine_cntr_watch(&cntrs[0], true);
	engine_cntr_watch(&cntrs[0], true);
	engine_due_run(&domain);
	assert_int_equal(woken, 0);
	engine_count(&cntrs[0], 0, 8);
	assert_int_equal(woken, 1);
	engine_count(&cntrs[0], -FI_EIO, 8);
	assert_int_equal(woken, 1);
	engine_cntr_watch(&cntrs[0], true);
	engine_count(&cntrs[0], -FI_EIO, 8);
	assert_int_equal(woken, 2);
	engine_cntr_watch(&cntrs[0], true);
	engine_cntr_watch(&cntrs[0], false);
	engine_count(&cntrs[0], 0, 8);
	assert_int_equal(woken, 2);
	/* Watching changes neither the work that waits nor work that runs again. */
	assert_int_equal(ran, 0);
	a.refuse = 1;
	engine_count(&cntrs[0], 0, 8);
	engine_due_run(&domain);
	engine_cntr_watch(&cntrs[0], true);
	engine_due_run(&domain);
	assert_int_equal(ran, 1);
}

static void all_that_has_ended_is_more_than_a_counter_holds(void **state)
{
	struct note a = note(1, 7);

	engine_cntr_add(&cntrs[0], UINT64_MAX);
	engine_count(&cntrs[0], -FI_EIO, 8);
	engine_cntr_await(&cntrs[0], &a.work);
	engine_due_run(&domain);
	assert_int_equal(ran, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(work_runs_when_its_value_is_reached, setup),
		cmocka_unit_test_setup(work_runs_by_threshold_then_in_order, setup),
		cmocka_unit_test_setup(a_value_that_is_there_is_not_waited_for, setup),
		cmocka_unit_test_setup(work_sets_off_work_without_depth, setup),
		cmocka_unit_test_setup(forgotten_work_that_is_due_does_not_run, setup),
		cmocka_unit_test_setup(work_without_room_is_run_again_in_its_place, setup),
		cmocka_unit_test_setup(sleepers_are_woken_once_by_a_change, setup),
		cmocka_unit_test_setup(all_that_has_ended_is_more_than_a_counter_holds, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
