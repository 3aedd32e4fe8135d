/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Control groups for tests; group.h has the contract. */
#define _GNU_SOURCE
#include "group.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "limit.h"

#define ROOT	   "/sys/fs/cgroup"
#define DEADLINE_S 10

static bool write_file(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];
	bool written;
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return false;
	file = fopen(path, "r+");
	if (!file)
		return false;
	written = fputs(text, file) >= 0;
	return !fclose(file) && written;
}

/* Makes a group below @parent. Returns false if it can't be limited. */
static bool make(const char *parent, const char *name, const char *limit, char *dir, size_t room)
{
	if (snprintf(dir, room, "%s/weft-test-%d", parent, (int)getpid()) >= (int)room ||
	    mkdir(dir, 0700))
		return false;
	if (write_file(dir, name, limit))
		return true;
	rmdir(dir);
	return false;
}

/* The group of this process in the first version's hierarchy of memory. */
static bool first_version(char *path, size_t room)
{
	char line[PATH_MAX], *at;
	FILE *file = fopen("/proc/self/cgroup", "r");
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		at = strstr(line, ":memory:");
		if (!at)
			continue;
		line[strcspn(line, "\n")] = '\0';
		found = snprintf(path, room, ROOT "/memory%s", at + strlen(":memory:")) <
			(int)room;
	}
	if (file)
		fclose(file);
	return found;
}

static bool make_any(const char *limit, char *dir, size_t room)
{
	char parent[PATH_MAX];

	if (first_version(parent, sizeof(parent)))
		return make(parent, "memory.limit_in_bytes", limit, dir, room);
	/* A group of the second version that has processes has no limited groups below it. */
	return !limit_group_file("/proc/self/cgroup", ROOT, "..", parent, sizeof(parent)) &&
	       make(parent, "memory.max", limit, dir, room);
}

static int run(const char *dir, char *const *argv)
{
	char text[32];
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		snprintf(text, sizeof(text), "%d", (int)getpid());
		if (!write_file(dir, "cgroup.procs", text))
			_exit(99);
		execv(argv[0], argv);
		_exit(98);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

int group_run(const char *limit, char *const *argv)
{
	time_t end = time(NULL) + DEADLINE_S;
	char dir[PATH_MAX];
	int status;

	if (!make_any(limit, dir, sizeof(dir))) {
		printf("no control group with a limit of memory: %s\n", strerror(errno));
		return -1;
	}
	status = run(dir, argv);
	while (rmdir(dir) && errno == EBUSY && time(NULL) < end)
		sched_yield();
	return status;
}
