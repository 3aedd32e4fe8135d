/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which processes are looked at: some by their numbers, all with a name, all that show something, or a command
 * with all that it has started. One thread.
 */
#ifndef WEFT_TOOLS_PROCESSES_H
#define WEFT_TOOLS_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What is wanted. Names and numbers are found anew each time. */
struct wanted {
	/* numbers or names, NULL-terminated; NULL: all */
	char **which;
	/* not 0: this process, and those that it has started, and those that they have started */
	pid_t root;
};

struct processes {
	pid_t *pids;
	size_t cnt;
	size_t room;
	/* pids[i] was named by its number, so that an error is told */
	bool *exact;
};

/* processes_is_number - returns true if a text is digits, and so no name; @pid: out: 0 where no process has that number */
bool processes_is_number(const char *text, pid_t *pid);

/*
 * processes_find - the processes that are wanted; whether they show anything is not known yet
 * Returns 0 or -errno: -ENOMEM, or there is no /proc.
 */
int processes_find(const struct wanted *wanted, struct processes *found);

/* processes_fini - frees what it has */
void processes_fini(struct processes *found);

#endif
