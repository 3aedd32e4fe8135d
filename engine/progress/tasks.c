/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Running the tasks of a domain. Called with the domain held, at the end of a round of progress and
 * by calls that have begun work of a task.
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

		/* A task that is linked again has become due again in its run. */
		if (!task->run(task) && list_empty(node))
			list_add_tail(&later, node);
	}
	while ((node = list_pop(&later)))
		list_add_tail(&domain->tasks, node);
	domain->tasks_running = false;
}
