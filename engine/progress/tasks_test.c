/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tasks of a domain: when a task is run, when it is run again, and when not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tasks.h"

struct work {
	struct engine_task task;
	struct engine_domain *domain;
	/* Work that the next run makes due, which may be this one; NULL: none */
	struct work *makes_due;
	/* Each run calls engine_tasks_run() */
	bool runs_all;
	/* Runs left that find no room */
	uint32_t no_room;
	uint32_t runs;
};

static bool work_run(struct engine_task *task)
{
	struct work *work = container_of(task, struct work, task);
	struct work *next = work->makes_due;

	assert_true(list_empty(&task->link));
	work->runs++;
	work->makes_due = NULL;
	if (next)
		engine_task_due(work->domain, &next->task);
	if (work->runs_all)
		engine_tasks_run(work->domain);
	if (!work->no_room)
		return true;
	work->no_room--;
	return false;
}

static void setup(struct engine_domain *domain, struct work *works, size_t cnt)
{
	*domain = (struct engine_domain){ 0 };
	list_init(&domain->tasks);
	for (size_t i = 0; i < cnt; i++) {
		works[i] = (struct work){ .task.run = work_run, .domain = domain };
		list_init(&works[i].task.link);
	}
}

static void a_task_is_run_once_however_often_it_is_made_due(void **state)
{
	struct engine_domain domain;
	struct work works[2];

	setup(&domain, works, 2);
	for (uint32_t i = 0; i < 3; i++)
		engine_task_due(&domain, &works[0].task);
	engine_tasks_run(&domain);
	engine_tasks_run(&domain);
	assert_int_equal(works[0].runs, 1);
	assert_int_equal(works[1].runs, 0);
}

static void a_task_without_room_waits_for_the_next_round(void **state)
{
	struct engine_domain domain;
	struct work works[2];

	setup(&domain, works, 2);
	works[0].no_room = 2;
	engine_task_due(&domain, &works[0].task);
	engine_task_due(&domain, &works[1].task);
	engine_tasks_run(&domain);
	assert_int_equal(works[0].runs, 1);
	assert_int_equal(works[1].runs, 1);
	assert_false(list_empty(&domain.tasks));
	engine_tasks_run(&domain);
	engine_tasks_run(&domain);
	engine_tasks_run(&domain);
	assert_int_equal(works[0].runs, 3);
	assert_true(list_empty(&domain.tasks));
}

static void what_a_task_makes_due_is_run_in_the_same_round(void **state)
{
	struct engine_domain domain;
	struct work works[2];

	setup(&domain, works, 2);
	works[0].makes_due = &works[1];
	works[1].makes_due = &works[1];
	engine_task_due(&domain, &works[0].task);
	engine_tasks_run(&domain);
	assert_int_equal(works[0].runs, 1);
	assert_int_equal(works[1].runs, 2);
	assert_true(list_empty(&domain.tasks));
}

static void a_task_made_due_again_needs_no_other_round_for_want_of_room(void **state)
{
	struct engine_domain domain;
	struct work work;

	setup(&domain, &work, 1);
	work.makes_due = &work;
	work.no_room = 1;
	engine_task_due(&domain, &work.task);
	engine_tasks_run(&domain);
	assert_int_equal(work.runs, 2);
	assert_true(list_empty(&domain.tasks));
}

static void tasks_are_not_run_within_a_task(void **state)
{
	struct engine_domain domain;
	struct work works[2];

	setup(&domain, works, 2);
	works[0].runs_all = true;
	works[0].makes_due = &works[0];
	works[1].runs_all = true;
	engine_task_due(&domain, &works[0].task);
	engine_task_due(&domain, &works[1].task);
	engine_tasks_run(&domain);
	assert_int_equal(works[0].runs, 2);
	assert_int_equal(works[1].runs, 1);
}

static void a_task_that_is_dropped_is_not_run(void **state)
{
	struct engine_domain domain;
	struct work works[2];

	setup(&domain, works, 2);
	engine_task_due(&domain, &works[0].task);
	engine_task_due(&domain, &works[1].task);
	engine_task_drop(&works[0].task);
	engine_task_drop(&works[0].task);
	engine_tasks_run(&domain);
	assert_int_equal(works[0].runs, 0);
	assert_int_equal(works[1].runs, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_is_run_once_however_often_it_is_made_due),
		cmocka_unit_test(a_task_without_room_waits_for_the_next_round),
		cmocka_unit_test(what_a_task_makes_due_is_run_in_the_same_round),
		cmocka_unit_test(a_task_made_due_again_needs_no_other_round_for_want_of_room),
		cmocka_unit_test(tasks_are_not_run_within_a_task),
		cmocka_unit_test(a_task_that_is_dropped_is_not_run),
	};

	return cmocka_run_group_tests_name("tasks", tests, NULL, NULL);
}
