/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The heap's share of memory. Called once, when the heap starts. */
#define _GNU_SOURCE
#include "limit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define SHARE 2u

/* Reads the beginning of a file. Returns 0 or -1. */
static int read_text(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -1;
	len = read(fd, text, room - 1);
	close(fd);
	if (len < 0)
		return -1;
	text[len] = '\0';
	return 0;
}

/* The least number that a file of this name has, in @path below @root or above it. "max" is no number. */
static size_t least(const char *root, const char *path, const char *name)
{
	char dir[PATH_MAX], file[PATH_MAX + 64], text[32], *end;
	size_t most = SIZE_MAX, bytes;

	if (snprintf(dir, sizeof(dir), "%s%s", root, path) >= (int)sizeof(dir))
		return most;
	for (;;) {
		snprintf(file, sizeof(file), "%s/%s", dir, name);
		if (!read_text(file, text, sizeof(text))) {
			bytes = strtoull(text, &end, 10);
			if (end != text && bytes < most)
				most = bytes;
		}
		end = strrchr(dir, '/');
		if (!end || strlen(dir) <= strlen(root))
			return most;
		*end = '\0';
	}
}

size_t limit_cgroup(const char *groups, const char *root)
{
	char text[8192], first[PATH_MAX], *line, *rest, *path, *kinds;
	size_t most = SIZE_MAX, bytes;

	if (read_text(groups, text, sizeof(text)))
		return most;
	/* "0::/path" or "4:memory:/path" */
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		kinds = strchr(line, ':');
		path = kinds ? strchr(kinds + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		bytes = SIZE_MAX;
		if (!kinds[1])
			bytes = least(root, path, "memory.max");
		else if (!strcmp(kinds + 1, "memory") &&
			 snprintf(first, sizeof(first), "%s/memory", root) < (int)sizeof(first))
			bytes = least(first, path, "memory.limit_in_bytes");
		most = bytes < most ? bytes : most;
	}
	return most;
}

size_t limit_bytes(void)
{
	size_t group = limit_cgroup("/proc/self/cgroup", "/sys/fs/cgroup"), all = SIZE_MAX;
	struct sysinfo info;

	if (!sysinfo(&info))
		all = (size_t)info.totalram * info.mem_unit;
	return (group < all ? group : all) / SHARE;
}
