/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What goes with a process; uses.h has the contract.
 */
#define _GNU_SOURCE
#include "uses.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void uses_add(struct use **uses, const struct use *use)
{
	struct use *one = malloc(sizeof(*one));

	if (!one)
		return;
	*one = *use;
	one->next = *uses;
	*uses = one;
}

static bool is_same(const struct use *a, const struct use *b)
{
	return a->kind == b->kind && a->at == b->at && a->lent == b->lent &&
	       a->lease.lease == b->lease.lease && a->lease.generation == b->lease.generation;
}

void uses_remove(struct use **uses, const struct use *use)
{
	struct use *found;

	while (*uses && !is_same(*uses, use))
		uses = &(*uses)->next;
	found = *uses;
	if (!found)
		return;
	*uses = found->next;
	free(found);
}

/* A lease that has ended has nothing open: what is left is of those that run. */
static void forget_ended(struct use **uses)
{
	struct use *one;

	while ((one = *uses)) {
		struct lent_state state = { .lease = one->lease };

		if (lent_state(one->lent, &state) != -ESTALE) {
			uses = &one->next;
			continue;
		}
		*uses = one->next;
		free(one);
	}
}

static bool has_ended(int process, int ms)
{
	struct pollfd p = { .fd = process, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, ms);
	while (n < 0 && errno == EINTR);
	return n > 0;
}

/*
 * Whether a process that has not ended has no memory any more: it gives it up before its files. Its number is its own as
 * long as it has not ended.
 */
static bool is_ending(pid_t pid)
{
	char path[32], first = '0';
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	/* What can't be seen is waited for. */
	if (fd < 0)
		return true;
	if (read(fd, &first, 1) != 1)
		first = '0';
	close(fd);
	return first == '0';
}

static bool ends(pid_t pid, int process)
{
	return process >= 0 && (has_ended(process, 0) ||
				(is_ending(pid) && has_ended(process, USES_LINGER_MS)));
}

/* What was opened last is closed first: queue pairs before the windows that their queues are in. */
void uses_end(struct use **uses, pid_t pid, int process)
{
	struct use *one;
	bool close_all;

	forget_ended(uses);
	close_all = *uses && ends(pid, process);
	while ((one = *uses)) {
		if (close_all && one->kind == USE_PAIR)
			lent_unqueue_pair(one->lent, &one->lease, (uint16_t)one->at);
		else if (close_all)
			lent_unwindow(one->lent, &one->lease, one->at, one->len);
		*uses = one->next;
		free(one);
	}
}
