/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What goes with a process; uses.h has the contract.
 */
#define _GNU_SOURCE
#include "uses.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static_assert(!offsetof(struct use, of), "an entry is what it begins with");

static struct use *use_of(struct leased *one)
{
	return (struct use *)one;
}

void uses_add(struct leased_list *uses, const struct use *use)
{
	struct use *one = malloc(sizeof(*one));

	if (!one)
		return;
	*one = *use;
	leased_add(uses, &one->of);
}

static bool is_same(const struct use *a, const struct use *b)
{
	return a->kind == b->kind && a->at == b->at &&
	       leased_is(&a->of, b->of.lent, &b->of.lease);
}

bool uses_remove(struct leased_list *uses, const struct use *use)
{
	struct leased **at = &uses->first;

	while (*at && !is_same(use_of(*at), use))
		at = &(*at)->next;
	if (!*at)
		return false;
	leased_drop(uses, at);
	return true;
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

static int close_one(const struct use *one)
{
	if (one->kind == USE_PAIR)
		return lent_unqueue_pair(one->of.lent, &one->of.lease, (uint16_t)one->at,
					 LENT_WAIT_MS);
	return lent_unwindow(one->of.lent, &one->of.lease, one->at, one->len, LENT_WAIT_MS);
}

/* What was opened last is closed first: queue pairs before the windows that their queues are in. */
void uses_end(struct leased_list *uses, pid_t pid, int process)
{
	bool close_all;

	leased_forget_ended(uses);
	close_all = uses->first && ends(pid, process);
	while (uses->first) {
		while (close_all && close_one(use_of(uses->first)) == -EINPROGRESS)
			;
		leased_drop(uses, &uses->first);
	}
}
