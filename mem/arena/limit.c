/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limits of memory, read from /proc and /sys/fs/cgroup. Called when the heap starts, and by the keeper's
 * thread (keeper.h).
 */
#define _GNU_SOURCE
#include "limit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include "descriptor.h"

/* A line of /proc/self/cgroup is shorter, and what is read of a file of numbers is at its beginning. */
#define TEXT_LEN 8192u

/* The files of a control group, by version. */
struct files {
	/* of each the least holds; NULL: there is no second one */
	const char *limits[2];
	const char *used;
	/* in memory.stat: file pages that the kernel can drop */
	const char *cached[2];
};

static const struct files first = {
	.limits = { "memory.limit_in_bytes" },
	.used = "memory.usage_in_bytes",
	.cached = { "\ntotal_inactive_file ", "\ntotal_active_file " },
};
static const struct files second = {
	.limits = { "memory.max", "memory.high" },
	.used = "memory.current",
	.cached = { "\ninactive_file ", "\nactive_file " },
};

/* Reads the beginning of a file. Returns 0 or -1. */
static int read_text(const char *path, char *text, size_t room)
{
	int fd = sys_descriptor_open(path, O_RDONLY);
	ssize_t len;

	if (fd < 0)
		return -1;
	len = sys_descriptor_read(fd, text, room - 1);
	sys_descriptor_close(fd);
	if (len < 0)
		return -1;
	text[len] = '\0';
	return 0;
}

/* Returns the number that a file of @dir has, SIZE_MAX for none: "max" is no number. */
static size_t number(const char *dir, const char *name)
{
	char path[PATH_MAX + 64], text[32], *end;
	size_t bytes;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (read_text(path, text, sizeof(text)))
		return SIZE_MAX;
	bytes = strtoull(text, &end, 10);
	return end == text ? SIZE_MAX : bytes;
}

/* Returns the number behind a name, or 0. */
static size_t named(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static size_t less(size_t bytes, size_t taken)
{
	return bytes > taken ? bytes - taken : 0;
}

/* Returns what a group has left of its limit. */
static size_t room_of(const char *dir, const struct files *files, size_t most)
{
	size_t used = number(dir, files->used), cached = 0;
	char path[PATH_MAX + 64], text[TEXT_LEN] = "\n";

	if (used == SIZE_MAX)
		return SIZE_MAX;
	snprintf(path, sizeof(path), "%s/memory.stat", dir);
	if (!read_text(path, text + 1, sizeof(text) - 1))
		cached = named(text, files->cached[0]) + named(text, files->cached[1]);
	return less(most, less(used, cached));
}

/* Takes the limits of one group into account. */
static void add_group(const char *dir, const struct files *files, struct limit *limit)
{
	size_t most = SIZE_MAX, room;

	for (int i = 0; i < 2 && files->limits[i]; i++) {
		size_t bytes = number(dir, files->limits[i]);

		most = bytes < most ? bytes : most;
	}
	if (most == SIZE_MAX)
		return;
	limit->most = most < limit->most ? most : limit->most;
	room = room_of(dir, files, most);
	limit->room = room < limit->room ? room : limit->room;
}

/* Takes the group @path below @root, and those above it, into account. */
static void add_groups(const char *root, const char *path, const struct files *files,
		       struct limit *limit)
{
	char dir[PATH_MAX], *end;

	if (snprintf(dir, sizeof(dir), "%s%s", root, path) >= (int)sizeof(dir))
		return;
	for (;;) {
		add_group(dir, files, limit);
		end = strrchr(dir, '/');
		if (!end || strlen(dir) <= strlen(root))
			return;
		*end = '\0';
	}
}

/* Divides "0::/path" or "4:memory:/path". Returns false for what is no such line. */
static bool divide(char *line, char **kinds, char **path)
{
	*kinds = strchr(line, ':');
	*path = *kinds ? strchr(*kinds + 1, ':') : NULL;
	if (!*path)
		return false;
	*(*path)++ = '\0';
	++*kinds;
	return true;
}

void limit_groups(const char *groups, const char *root, struct limit *limit)
{
	char text[TEXT_LEN], mount[PATH_MAX], *line, *rest, *path, *kinds;

	*limit = (struct limit){ .most = SIZE_MAX, .room = SIZE_MAX };
	if (read_text(groups, text, sizeof(text)))
		return;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (!divide(line, &kinds, &path))
			continue;
		if (!*kinds)
			add_groups(root, path, &second, limit);
		else if (!strcmp(kinds, "memory") &&
			 snprintf(mount, sizeof(mount), "%s/memory", root) < (int)sizeof(mount))
			add_groups(mount, path, &first, limit);
	}
}

int limit_group_file(const char *groups, const char *root, const char *name, char *path,
		     size_t room)
{
	char text[TEXT_LEN], *line, *rest, *group, *kinds;

	if (read_text(groups, text, sizeof(text)))
		return -1;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (divide(line, &kinds, &group) && !*kinds)
			return (size_t)snprintf(path, room, "%s%s/%s", root, group, name) < room
				       ? 0
				       : -1;
	return -1;
}

void limit_process(struct limit *limit)
{
	char text[TEXT_LEN] = "\n";
	struct sysinfo info;
	size_t bytes;

	limit_groups("/proc/self/cgroup", "/sys/fs/cgroup", limit);
	if (!sysinfo(&info)) {
		bytes = (size_t)info.totalram * info.mem_unit;
		limit->most = bytes < limit->most ? bytes : limit->most;
	}
	if (!read_text("/proc/meminfo", text + 1, sizeof(text) - 1) &&
	    strstr(text, "\nMemAvailable:")) {
		bytes = named(text, "\nMemAvailable:") << 10;
		limit->room = bytes < limit->room ? bytes : limit->room;
	}
}
