/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finding processes in /proc; processes.h has the contract. */
#define _GNU_SOURCE
#include "processes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 16 /* of a process, in the kernel */

bool processes_is_number(const char *text, pid_t *pid)
{
	unsigned long value;
	char *end;

	*pid = 0;
	if (!isdigit((unsigned char)*text))
		return false;
	value = strtoul(text, &end, 10);
	if (*end)
		return false;
	if (value <= INT32_MAX)
		*pid = (pid_t)value;
	return true;
}

/* Returns the number that a text is, or 0. */
static pid_t number_of(const char *text)
{
	pid_t pid;

	processes_is_number(text, &pid);
	return pid;
}

static int append(struct processes *found, pid_t pid, bool exact)
{
	size_t room = found->room ? found->room * 2 : 64;
	pid_t *pids;
	bool *exacts;

	if (found->cnt == found->room) {
		pids = realloc(found->pids, room * sizeof(*pids));
		if (!pids)
			return -ENOMEM;
		found->pids = pids;
		exacts = realloc(found->exact, room * sizeof(*exacts));
		if (!exacts)
			return -ENOMEM;
		found->exact = exacts;
		found->room = room;
	}
	found->pids[found->cnt] = pid;
	found->exact[found->cnt++] = exact;
	return 0;
}

/* Reads a process's name and its parent's number. Returns false if it has ended. */
static bool stat_read(pid_t pid, char name[NAME_MAX_LEN], pid_t *parent)
{
	char path[32], line[512], *open, *close;
	FILE *from;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	from = fopen(path, "re");
	if (!from)
		return false;
	ok = fgets(line, sizeof(line), from);
	fclose(from);
	/* the name is in parentheses and may have some */
	open = ok ? strchr(line, '(') : NULL;
	close = open ? strrchr(open, ')') : NULL;
	if (!close || sscanf(close + 1, " %*c %d", parent) != 1)
		return false;
	snprintf(name, NAME_MAX_LEN, "%.*s", (int)(close - open - 1), open + 1);
	return true;
}

/* The kernel cuts names off. */
static bool is_named(char **names, const char *name)
{
	for (; *names; names++)
		if (!number_of(*names) && !strncmp(*names, name, NAME_MAX_LEN - 1))
			return true;
	return false;
}

/* Returns true if a process was started by the root, or by one that was. */
static bool descends(pid_t pid, pid_t root)
{
	char name[NAME_MAX_LEN];

	/* a process that is its own ancestor would be one whose number was used again meanwhile */
	for (int depth = 0; pid > 1 && depth < 256; depth++) {
		if (pid == root)
			return true;
		if (!stat_read(pid, name, &pid))
			return false;
	}
	return false;
}

static bool is_wanted(const struct wanted *wanted, pid_t pid)
{
	char name[NAME_MAX_LEN];
	pid_t parent;

	if (wanted->root)
		return descends(pid, wanted->root);
	if (!wanted->which)
		return true;
	return stat_read(pid, name, &parent) && is_named(wanted->which, name);
}

static int scan(const struct wanted *wanted, struct processes *found)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	int rc = 0;
	pid_t pid;

	if (!dir)
		return -errno;
	while (!rc && (entry = readdir(dir))) {
		pid = number_of(entry->d_name);
		if (pid && is_wanted(wanted, pid))
			rc = append(found, pid, false);
	}
	closedir(dir);
	return rc;
}

static int by_number(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int processes_find(const struct wanted *wanted, struct processes *found)
{
	bool names = !wanted->which;
	int rc = 0;

	*found = (struct processes){ 0 };
	for (char **which = wanted->which; !rc && which && *which; which++) {
		if (number_of(*which))
			rc = append(found, number_of(*which), true);
		else
			names = true;
	}
	if (!rc && names) {
		size_t exact = found->cnt;

		rc = scan(wanted, found);
		if (!rc && found->cnt > exact)
			qsort(found->pids + exact, found->cnt - exact, sizeof(*found->pids),
			      by_number);
	}
	if (rc)
		processes_fini(found);
	return rc;
}

void processes_fini(struct processes *found)
{
	free(found->pids);
	free(found->exact);
	*found = (struct processes){ 0 };
}
