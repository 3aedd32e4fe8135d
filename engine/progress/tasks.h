/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The tasks of a domain (types/task.h): who has something that may go on makes its task due, and a
 * round of progress runs it, or a call that has begun something and is about to return.
 */
#ifndef WEFT_TASKS_H
#define WEFT_TASKS_H

#include "domain.h"

/* engine_task_due - have @task run at the end of this round; one that is due already stays so */
static inline void engine_task_due(struct engine_domain *domain, struct engine_task *task)
{
	if (list_empty(&task->link))
		list_push(&domain->tasks, &task->link);
	domain->pending = true;
}

/* engine_task_drop - its owner ends: it is not run any more */
static inline void engine_task_drop(struct engine_task *task)
{
	list_remove(&task->link);
}

/*
 * engine_tasks_run - run all that are due, with those that become due meanwhile
 * Within a task it does nothing. The caller holds the domain.
 */
void engine_tasks_run(struct engine_domain *domain);

#endif
