/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The tasks of a domain (types/task.h). The owner makes its task due when its work may go on. Tasks
 * are run by rounds of progress, and by calls that have begun such work before they return.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_TASKS_H
#define WEFT_TASKS_H

#include "domain.h"

/*
 * engine_task_due - have the next engine_tasks_run() run @task: at the end of this round, or before
 * Has no effect on a task that is due already.
 */
static inline void engine_task_due(struct engine_domain *domain, struct engine_task *task)
{
	if (list_empty(&task->link))
		list_add_tail(&domain->tasks, &task->link);
	domain->pending = true;
}

/* engine_task_drop - @task is no longer due; called when its owner ends */
static inline void engine_task_drop(struct engine_task *task)
{
	list_remove(&task->link);
}

/*
 * engine_tasks_run - run all tasks that are due, and those that become due meanwhile
 * A task that found no room stays due for the next call. Has no effect when a task calls it.
 */
void engine_tasks_run(struct engine_domain *domain);

#endif
