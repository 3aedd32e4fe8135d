/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading /proc/self/maps without stdio, which allocates, and asking for one mapping where the kernel can be
 * asked. Called on any thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "fault.h"
#include "maps.h"

/*
 * Little, since malloc(), free() and fork() of threads with small stacks come here. A line whose file has a long path
 * does not fit: what is asked for is at the beginning of it.
 */
#define TEXT_LEN 1024u
/* DEFAULT_MAX_MAP_COUNT of Linux */
#define MAPS_DEFAULT 65530u

struct walk {
	uintptr_t base, end;
	int (*each)(const struct sys_map *mapping, void *arg);
	void *arg;
	/* what ended the walk */
	int ended;
};

/* Memory without a file has no name, one in brackets of its own, or one that the program gave it. */
static bool anonymous_name(const char *name)
{
	return !*name || !strcmp(name, "[heap]") || !strncmp(name, "[stack", 6) ||
	       !strncmp(name, "[anon:", 6);
}

/* Takes the number at *@at, and the character behind it, which must be @behind. */
static bool take_number(const char **at, int base, char behind, uint64_t *number)
{
	char *end;

	*number = strtoull(*at, &end, base);
	if (end == *at || *end != behind)
		return false;
	*at = end + 1;
	return true;
}

/* "55d0-55f0 rw-s 00001000 00:01 1234   /path" */
static bool parse(const char *at, struct sys_map *mapping)
{
	uint64_t base, end, major, minor;
	const char *mode;
	char *name;

	if (!take_number(&at, 16, '-', &base) || !take_number(&at, 16, ' ', &end) ||
	    end < base || strnlen(at, 5) < 5)
		return false;
	mode = at;
	at += 5;
	if (!take_number(&at, 16, ' ', &mapping->offset) ||
	    !take_number(&at, 16, ':', &major) || !take_number(&at, 16, ' ', &minor))
		return false;
	mapping->inode = strtoull(at, &name, 10);
	mapping->device = makedev((unsigned int)major, (unsigned int)minor);
	mapping->addr = (void *)(uintptr_t)base;
	mapping->len = end - base;
	mapping->prot = (mode[0] == 'r' ? PROT_READ : 0) | (mode[1] == 'w' ? PROT_WRITE : 0) |
			(mode[2] == 'x' ? PROT_EXEC : 0);
	mapping->shared = mode[3] == 's';
	mapping->private_anonymous = !mapping->shared && !mapping->inode && !major && !minor &&
				     anonymous_name(name + strspn(name, " "));
	return true;
}

/* Shows the part of a line's mapping that is in the range, if any. */
static int take_line(struct walk *walk, const char *line)
{
	struct sys_map mapping;
	uintptr_t base, end;

	if (!parse(line, &mapping))
		return -FI_EINVAL;
	base = (uintptr_t)mapping.addr;
	end = base + mapping.len;
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

/* Drops what belongs to a line whose beginning was taken. Returns what is left of a text. */
static size_t skip_line(char *text, size_t len, bool *skip)
{
	char *newline = *skip ? memchr(text, '\n', len) : text - 1;

	if (!newline)
		return 0;
	*skip = false;
	len -= (size_t)(newline + 1 - text);
	memmove(text, newline + 1, len);
	return len;
}

static int take_file(struct walk *walk, int fd)
{
	char text[TEXT_LEN];
	ssize_t left = 0, got;
	bool skip = false;

	for (;;) {
		got = sys_descriptor_read(fd, text + left, sizeof(text) - (size_t)left);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : 0;
		left = take_lines(walk, text, skip_line(text, (size_t)(left + got), &skip));
		if (left < 0)
			return (int)left;
		if (left < (ssize_t)sizeof(text))
			continue;
		text[sizeof(text) - 1] = '\0';
		got = take_line(walk, text);
		if (got)
			return (int)got;
		skip = true;
		left = 0;
	}
}

/* Returns a descriptor, or -FI_E*. */
static int open_maps(void)
{
	int err = sys_fault(SYS_CALL_OPEN_MAPS), fd;

	if (err)
		return -err;
	fd = sys_descriptor_open("/proc/self/maps", O_RDONLY);
	return fd < 0 ? -errno : fd;
}

int sys_maps_each(const void *addr, size_t len,
		  int (*each)(const struct sys_map *mapping, void *arg), void *arg)
{
	struct walk walk = { .base = (uintptr_t)addr, .each = each, .arg = arg };
	int fd = open_maps(), err;

	if (fd < 0)
		return fd;
	walk.end = len < UINTPTR_MAX - walk.base ? walk.base + len : UINTPTR_MAX;
	err = take_file(&walk, fd);
	sys_descriptor_close(fd);
	return walk.ended ? walk.ended : err;
}

/* The argument of PROCMAP_QUERY, for headers older than it. */
struct query {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start;
	uint64_t vma_end;
	uint64_t vma_flags;
	uint64_t vma_page_size;
	uint64_t vma_offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t vma_name_size;
	uint32_t build_id_size;
	uint64_t vma_name_addr;
	uint64_t build_id_addr;
};

_Static_assert(sizeof(struct query) == 104, "layout");

#define QUERY		 _IOWR('f', 17, struct query)
#define QUERY_READABLE	 0x01u
#define QUERY_WRITABLE	 0x02u
#define QUERY_EXECUTABLE 0x04u
#define QUERY_SHARED	 0x08u

static int ask(int fd, uintptr_t addr, struct sys_map *mapping)
{
	char name[256] = "";
	struct query query = {
		.size = sizeof(query),
		.query_addr = addr,
		.vma_name_addr = (uintptr_t)name,
		.vma_name_size = sizeof(name),
	};

	if (ioctl(fd, QUERY, &query))
		return -errno;
	name[sizeof(name) - 1] = 0;
	*mapping = (struct sys_map){
		.addr = (void *)(uintptr_t)query.vma_start,
		.len = query.vma_end - query.vma_start,
		.prot = (query.vma_flags & QUERY_READABLE ? PROT_READ : 0) |
			(query.vma_flags & QUERY_WRITABLE ? PROT_WRITE : 0) |
			(query.vma_flags & QUERY_EXECUTABLE ? PROT_EXEC : 0),
		.shared = query.vma_flags & QUERY_SHARED,
		.offset = query.vma_offset,
		.device = makedev(query.dev_major, query.dev_minor),
		.inode = query.inode,
		.private_anonymous = !(query.vma_flags & QUERY_SHARED) && !query.inode &&
				     !query.dev_major && !query.dev_minor &&
				     anonymous_name(name),
	};
	return 0;
}

struct search {
	uintptr_t addr;
	struct sys_map *mapping;
};

/* Ends the walk at the first mapping that does not end before the address. */
static int see(const struct sys_map *mapping, void *arg)
{
	const struct search *search = arg;

	if (search->addr - (uintptr_t)mapping->addr < mapping->len) {
		*search->mapping = *mapping;
		return 1;
	}
	return (uintptr_t)mapping->addr > search->addr ? -FI_ENOENT : 0;
}

int sys_maps_find(const void *addr, struct sys_map *mapping)
{
	struct search search = { .addr = (uintptr_t)addr, .mapping = mapping };
	int fd = open_maps(), ret;

	if (fd < 0)
		return fd;
	ret = sys_fault(SYS_CALL_ASK_MAPS) ? -ENOTTY : ask(fd, search.addr, mapping);
	sys_descriptor_close(fd);
	if (!ret || ret == -FI_ENOENT)
		return ret;
	ret = sys_maps_each(NULL, SIZE_MAX, see, &search);
	return ret > 0 ? 0 : ret ? ret : -FI_ENOENT;
}

uint64_t sys_maps_max(void)
{
	int fd = sys_fault(SYS_CALL_OPEN_MAPS)
			 ? -1
			 : sys_descriptor_open("/proc/sys/vm/max_map_count", O_RDONLY);
	char text[32];
	uint64_t cnt = 0;
	ssize_t n;

	if (fd < 0)
		return MAPS_DEFAULT;
	n = sys_descriptor_read(fd, text, sizeof(text) - 1);
	sys_descriptor_close(fd);
	if (n > 0) {
		text[n] = '\0';
		cnt = strtoull(text, NULL, 10);
	}
	return cnt ? cnt : MAPS_DEFAULT;
}

struct allowance {
	/* What is left to be looked at */
	uintptr_t at, end;
	int prot;
};

/* Goes on behind a mapping if it has the next address and allows the access. Returns 0 or -FI_EFAULT. */
static int pass(const struct sys_map *mapping, void *arg)
{
	struct allowance *a = arg;
	uintptr_t base = (uintptr_t)mapping->addr;

	if (a->at - base >= mapping->len || (mapping->prot & a->prot) != a->prot)
		return -FI_EFAULT;
	a->at = base + mapping->len;
	return 0;
}

/* Asks for one mapping after the other. Returns 0, -FI_EFAULT, or what else ask() returns. */
static int ask_all(int fd, struct allowance *a)
{
	struct sys_map mapping;
	int ret = 0;

	while (!ret && a->at < a->end) {
		ret = ask(fd, a->at, &mapping);
		if (ret == -FI_ENOENT)
			return -FI_EFAULT;
		if (!ret)
			ret = pass(&mapping, a);
	}
	return ret;
}

int sys_maps_allow(const void *addr, size_t len, int prot)
{
	uintptr_t base = (uintptr_t)addr;
	struct allowance a = { .at = base, .prot = prot };
	int fd, ret;

	if (__builtin_add_overflow(base, len, &a.end))
		return -FI_EFAULT;
	fd = open_maps();
	if (fd < 0)
		return fd;
	ret = sys_fault(SYS_CALL_ASK_MAPS) ? -ENOTTY : ask_all(fd, &a);
	sys_descriptor_close(fd);
	if (!ret || ret == -FI_EFAULT)
		return ret;
	a.at = base;
	ret = sys_maps_each(addr, len, pass, &a);
	if (ret)
		return ret;
	return a.at < a.end ? -FI_EFAULT : 0;
}
