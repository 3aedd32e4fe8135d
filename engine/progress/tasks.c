/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs the tasks of a domain. Called with the domain held, at the end of a round of progress and
 * of calls that begin what tasks go on with.
 */
#include "tasks.h"

void engine_tasks_run(struct engine_domain *domain)
{
	struct list later, *node;

	if (domain->tasks_running)
		return;
	domain->tasks_running = true;
	list_init(&later);
	while ((node = list_pop(&domain->tasks))) {
		struct engine_task *task = container_of(node, struct engine_task, link);

		/* One that is linked again is due again: more of it has ended meanwhile. */
		if (!task->run(task) && list_empty(node))
			list_push(&later, node);
	}
	while ((node = list_pop(&later)))
		list_push(&domain->tasks, node);
	domain->tasks_running = false;
}
