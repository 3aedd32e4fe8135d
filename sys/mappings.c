/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Mappings of this process: one is asked for, or looked for in the text where the kernel can't be asked. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "mappings.h"

#define LINE_MAX_LEN 4352 /* bytes of a line, which ends with a path */

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

#define QUERY	     _IOWR('f', 17, struct query)
#define QUERY_SHARED 0x08u

/* Memory without a file has no name, one in brackets of its own, or one that the program gave it. */
static bool anonymous_name(const char *name)
{
	return !*name || !strcmp(name, "[heap]") || !strncmp(name, "[stack", 6) ||
	       !strncmp(name, "[anon:", 6);
}

static int ask(int fd, uintptr_t addr, struct sys_mapping *mapping)
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
	*mapping = (struct sys_mapping){
		.start = (uintptr_t)query.vma_start,
		.end = (uintptr_t)query.vma_end,
		.private_anonymous = !(query.vma_flags & QUERY_SHARED) && !query.inode &&
				     !query.dev_major && !query.dev_minor &&
				     anonymous_name(name),
	};
	return 0;
}

/* A line: start-end permissions offset major:minor inode name. Returns true if @addr is before its end. */
static bool parse(const char *line, uintptr_t addr, struct sys_mapping *mapping)
{
	unsigned int major, minor;
	uintptr_t start, end;
	uint64_t inode;
	char permissions[5];
	int name = 0;

	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %x:%x %" SCNu64 " %n", &start, &end,
		   permissions, &major, &minor, &inode, &name) < 6 ||
	    addr >= end)
		return false;
	*mapping = (struct sys_mapping){
		.start = start,
		.end = end,
		.private_anonymous = permissions[3] == 'p' && !inode && !major && !minor &&
				     name && anonymous_name(line + name),
	};
	return true;
}

/* Parses the whole lines of @text, and leaves what is behind them there. Returns true where one decided. */
static bool parse_lines(char *text, size_t *len, uintptr_t addr, struct sys_mapping *mapping)
{
	char *line = text, *end;

	text[*len] = 0;
	while ((end = strchr(line, '\n'))) {
		*end = 0;
		if (parse(line, addr, mapping))
			return true;
		line = end + 1;
	}
	*len -= (size_t)(line - text);
	memmove(text, line, *len);
	return false;
}

static int search(int fd, uintptr_t addr, struct sys_mapping *mapping)
{
	char text[2 * LINE_MAX_LEN];
	struct sys_mapping found;
	size_t len = 0;

	for (;;) {
		ssize_t got = read(fd, text + len, sizeof(text) - 1 - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		len += (size_t)got;
		if (parse_lines(text, &len, addr, &found)) {
			if (addr < found.start)
				return -FI_ENOENT;
			*mapping = found;
			return 0;
		}
		if (!got || len == sizeof(text) - 1)
			return -FI_ENOENT;
	}
}

int sys_mapping_find(const void *addr, struct sys_mapping *mapping)
{
	int err = sys_fault(SYS_CALL_OPEN_MAPS);
	int fd, ret;

	if (err)
		return -err;
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = sys_fault(SYS_CALL_ASK_MAPS) ? -ENOTTY : ask(fd, (uintptr_t)addr, mapping);
	if (ret && ret != -FI_ENOENT)
		ret = search(fd, (uintptr_t)addr, mapping);
	close(fd);
	return ret;
}
