/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limits of memory, read from /proc and /sys/fs/cgroup when an arena and a heap start, and by the keeper's
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
#include "reserve.h"

/* A line of /proc/self/cgroup is shorter, and what is read of a file of numbers is at its beginning. */
#define TEXT_LEN 8192u

/*
 * What is read, and what from. It is mapped for each look, since malloc() may have called, on a thread whose stack has no
 * room for it.
 */
struct scratch {
	char groups[TEXT_LEN];
	char mount[PATH_MAX];
	char dir[PATH_MAX];
	char path[PATH_MAX + 64];
	char text[TEXT_LEN];
};

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

/* Reads the beginning of a file of the group s->dir. Returns 0 or -1. */
static int read_file(struct scratch *s, const char *name, char *text, size_t room)
{
	snprintf(s->path, sizeof(s->path), "%s/%s", s->dir, name);
	return read_text(s->path, text, room);
}

/* Returns the number that a file of the group has, SIZE_MAX for none: "max" is no number. */
static size_t number(struct scratch *s, const char *name)
{
	char text[32], *end;
	size_t bytes;

	if (read_file(s, name, text, sizeof(text)))
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
static size_t room_of(struct scratch *s, const struct files *files, size_t most)
{
	size_t used = number(s, files->used), cached = 0;

	if (used == SIZE_MAX)
		return SIZE_MAX;
	s->text[0] = '\n';
	if (!read_file(s, "memory.stat", s->text + 1, sizeof(s->text) - 1))
		cached = named(s->text, files->cached[0]) + named(s->text, files->cached[1]);
	return less(most, less(used, cached));
}

/* Takes the limits of one group into account. */
static void add_group(struct scratch *s, const struct files *files, struct limit *limit)
{
	size_t most = SIZE_MAX, room;

	for (int i = 0; i < 2 && files->limits[i]; i++) {
		size_t bytes = number(s, files->limits[i]);

		most = bytes < most ? bytes : most;
	}
	if (most == SIZE_MAX)
		return;
	limit->most = most < limit->most ? most : limit->most;
	room = room_of(s, files, most);
	limit->room = room < limit->room ? room : limit->room;
}

/* Takes the group @path below @root, and those above it, into account. */
static void add_groups(struct scratch *s, const char *root, const char *path,
		       const struct files *files, struct limit *limit)
{
	char *end;

	if (snprintf(s->dir, sizeof(s->dir), "%s%s", root, path) >= (int)sizeof(s->dir))
		return;
	for (;;) {
		add_group(s, files, limit);
		end = strrchr(s->dir, '/');
		if (!end || strlen(s->dir) <= strlen(root))
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

static void read_groups(struct scratch *s, const char *groups, const char *root,
			struct limit *limit)
{
	char *line, *rest, *path, *kinds;

	*limit = (struct limit){ .most = SIZE_MAX, .room = SIZE_MAX };
	if (read_text(groups, s->groups, sizeof(s->groups)))
		return;
	for (line = strtok_r(s->groups, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (!divide(line, &kinds, &path))
			continue;
		if (!*kinds)
			add_groups(s, root, path, &second, limit);
		else if (!strcmp(kinds, "memory") &&
			 snprintf(s->mount, sizeof(s->mount), "%s/memory", root) <
				 (int)sizeof(s->mount))
			add_groups(s, s->mount, path, &first, limit);
	}
}

void limit_groups(const char *groups, const char *root, struct limit *limit)
{
	struct scratch *s = sys_reserve_zero(sizeof(*s));

	*limit = (struct limit){ 0 };
	if (s)
		read_groups(s, groups, root, limit);
	sys_reserve_end(s, sizeof(*s));
}

int limit_group_file(const char *groups, const char *root, const char *name, char *path,
		     size_t room)
{
	struct scratch *s = sys_reserve_zero(sizeof(*s));
	char *line, *rest, *group, *kinds;
	size_t len = SIZE_MAX;

	if (!s)
		return -1;
	if (read_text(groups, s->groups, sizeof(s->groups)))
		s->groups[0] = '\0';
	for (line = strtok_r(s->groups, "\n", &rest); line && len == SIZE_MAX;
	     line = strtok_r(NULL, "\n", &rest))
		if (divide(line, &kinds, &group) && !*kinds)
			len = (size_t)snprintf(path, room, "%s%s/%s", root, group, name);
	sys_reserve_end(s, sizeof(*s));
	return len < room ? 0 : -1;
}

void limit_process(struct limit *limit)
{
	/* what is looked for is in the third line */
	char text[256] = "\n";
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
