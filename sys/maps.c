/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reading /proc/self/maps without stdio, which allocates. Called on any thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "maps.h"

/* The kernel gives whole lines, as many as fit; one with the longest path fits. */
#define TEXT_LEN 8192u

struct walk {
	uintptr_t base, end;
	int (*each)(const struct sys_map *mapping, void *arg);
	void *arg;
	/* what ended the walk */
	int ended;
};

/* "55d0-55f0 rw-s 00001000 00:01 1234   /path": the part of it that is in the range, if any */
static int take_line(struct walk *walk, const char *line)
{
	struct sys_map mapping = { .prot = 0 };
	char *at;
	uintptr_t base = strtoull(line, &at, 16), end;

	if (*at++ != '-')
		return -FI_EINVAL;
	end = strtoull(at, &at, 16);
	if (*at++ != ' ' || strnlen(at, 5) < 5)
		return -FI_EINVAL;
	mapping.prot = (at[0] == 'r' ? PROT_READ : 0) | (at[1] == 'w' ? PROT_WRITE : 0) |
		       (at[2] == 'x' ? PROT_EXEC : 0);
	mapping.shared = at[3] == 's';
	mapping.offset = strtoull(at + 4, &at, 16);
	at = *at == ' ' ? strchr(at + 1, ' ') : NULL;
	if (!at)
		return -FI_EINVAL;
	mapping.inode = strtoull(at, NULL, 10);
	if (base < walk->base) {
		mapping.offset += mapping.inode ? walk->base - base : 0;
		base = walk->base;
	}
	if (end > walk->end)
		end = walk->end;
	if (base >= end)
		return 0;
	mapping.addr = (void *)base;
	mapping.len = end - base;
	walk->ended = walk->each(&mapping, walk->arg);
	return walk->ended ? -FI_EINTR : 0;
}

/* Takes the whole lines of a text. Returns what is left of it, or an error. */
static ssize_t take_lines(struct walk *walk, char *text, size_t len)
{
	char *line = text, *newline;
	int err;

	while ((newline = memchr(line, '\n', len))) {
		*newline = '\0';
		err = take_line(walk, line);
		if (err)
			return err;
		len -= (size_t)(newline + 1 - line);
		line = newline + 1;
	}
	memmove(text, line, len);
	return (ssize_t)len;
}

static ssize_t take_file(struct walk *walk, int fd)
{
	char text[TEXT_LEN];
	ssize_t left = 0, got;

	do {
		got = read(fd, text + left, sizeof(text) - (size_t)left);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : 0;
		left = take_lines(walk, text, (size_t)(left + got));
	} while (left >= 0 && left < (ssize_t)sizeof(text));
	return left < 0 ? left : -FI_EINVAL;
}

int sys_maps_each(const void *addr, size_t len,
		  int (*each)(const struct sys_map *mapping, void *arg), void *arg)
{
	struct walk walk = { .base = (uintptr_t)addr, .each = each, .arg = arg };
	int err = sys_fault(SYS_CALL_OPEN_MAPS), fd;

	if (err)
		return -err;
	walk.end = len < UINTPTR_MAX - walk.base ? walk.base + len : UINTPTR_MAX;
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = (int)take_file(&walk, fd);
	close(fd);
	return walk.ended ? walk.ended : err;
}
