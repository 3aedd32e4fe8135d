/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Work of a domain that goes on at the end of a round of progress (tasks.h), of whatever room.
 */
#ifndef WEFT_ENGINE_TASK_H
#define WEFT_ENGINE_TASK_H

#include "list.h"

/* The owner's memory; initialized with list_init(&task->link). */
struct engine_task {
	/* domain->tasks, from when it may go on until it is run. */
	struct list link;
	/*
	 * run - go on as far as possible. Called with the domain held, from no send, packet or
	 * failure; @task is linked nowhere, and is not freed meanwhile. What it begins may make it
	 * due again.
	 * Returns false when something found no room: it is run again in the next round.
	 */
	bool (*run)(struct engine_task *task);
};

#endif
