/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies around a fork, with the arena's lock held: mappings are changed by the numbers of system calls (raw.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "fault.h"
#include "maps.h"
#include "raw.h"
#include "snapshot.h"

/* Of an entry of /proc/self/pagemap, proc(5): since guard pages are possible in memory of files (Linux 6.15). */
#define PAGE_IS_GUARD (1ull << 58)

/* At the beginning of its mapping, in pages of its own; the copy is behind it. */
struct sys_snapshot_part {
	struct sys_snapshot_part *next;
	void *addr;
	size_t len;
	int prot;
};

static size_t head_len(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static char *copy_of(struct sys_snapshot_part *part)
{
	return (char *)part + head_len();
}

static int memory_open(struct sys_snapshot *s)
{
	int err = s->open ? 0 : sys_fault(SYS_CALL_OPEN_MAPS);

	if (s->open || err)
		return -err;
	/* It is read whatever protects the memory, and without an access that a sanitizer would see. */
	s->memory = sys_descriptor_open("/proc/self/mem", O_RDONLY);
	s->open = s->memory >= 0;
	return s->open ? 0 : -errno;
}

void sys_snapshot_shut(struct sys_snapshot *s)
{
	if (s->open)
		sys_descriptor_close(s->memory);
	s->open = false;
}

struct adding {
	struct sys_snapshot *snapshot;
	const struct sys_memfd_id *id;
};

static int add_part(const struct sys_map *m, void *arg)
{
	const struct adding *adding = arg;
	struct sys_snapshot_part *part;
	int err;

	if (!m->shared || m->inode != adding->id->inode || m->device != adding->id->device)
		return 0;
	err = sys_fault(SYS_CALL_MMAP);
	if (err)
		return -err;
	part = raw_mmap(NULL, head_len() + m->len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (part == MAP_FAILED)
		return -errno;
	*part = (struct sys_snapshot_part){ adding->snapshot->parts, m->addr, m->len, m->prot };
	adding->snapshot->parts = part;
	return 0;
}

int sys_snapshot_add(struct sys_snapshot *s, void *addr, size_t len,
		     const struct sys_memfd_id *id)
{
	struct adding adding = { s, id };
	int err = memory_open(s);

	return err ? err : sys_maps_each(addr, len, add_part, &adding);
}

/* Returns whether the page of an address is a guard page, of which the kernel reads nothing. */
static bool is_guard(uintptr_t at)
{
	uint64_t page = 0, idx = at / getauxval(AT_PAGESZ);
	int fd = sys_descriptor_open("/proc/self/pagemap", O_RDONLY);

	if (fd < 0)
		return false;
	if (sys_descriptor_read_at(fd, &page, sizeof(page), (off_t)(idx * sizeof(page))) !=
	    (ssize_t)sizeof(page))
		page = 0;
	sys_descriptor_close(fd);
	return page & PAGE_IS_GUARD;
}

/* Returns the bytes that were read, at least one, or -FI_E*. A guard page has zeros, as it has once it is removed. */
static ssize_t read_some(int memory, char *to, uintptr_t from, size_t len)
{
	size_t left = head_len() - (from & (head_len() - 1));
	int err = sys_fault(SYS_CALL_PREAD);
	ssize_t n;

	if (err)
		return -err;
	do
		n = sys_descriptor_read_at(memory, to, len, (off_t)from);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		return n;
	err = n ? errno : FI_EIO;
	if (err != EIO || !is_guard(from))
		return -err;
	left = left < len ? left : len;
	memset(to, 0, left);
	return (ssize_t)left;
}

static int read_all(int memory, char *to, uintptr_t from, size_t len)
{
	while (len) {
		ssize_t n = read_some(memory, to, from, len);

		if (n < 0)
			return (int)n;
		to += n;
		from += (size_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int sys_snapshot_copy(struct sys_snapshot *s, void *addr, size_t len)
{
	uintptr_t base = (uintptr_t)addr, end = base + len;
	int err = 0;

	for (struct sys_snapshot_part *part = s->parts; part && !err; part = part->next) {
		uintptr_t at = (uintptr_t)part->addr;
		uintptr_t from = base > at ? base : at;
		uintptr_t to = end < at + part->len ? end : at + part->len;

		if (from < to)
			err = read_all(s->memory, copy_of(part) + (from - at), from, to - from);
	}
	return err;
}

static int put_part(struct sys_snapshot_part *part)
{
	void *addr = part->addr;
	size_t len = part->len;
	int prot = part->prot, err = 0;

	if (raw_mremap(copy_of(part), len, len, MREMAP_MAYMOVE | MREMAP_FIXED, addr) ==
	    MAP_FAILED)
		err = -errno;
	else if (prot != (PROT_READ | PROT_WRITE) && raw_mprotect(addr, len, prot))
		err = -errno;
	/* its copy has been moved away */
	raw_munmap(part, head_len());
	return err;
}

int sys_snapshot_put(struct sys_snapshot *s)
{
	struct sys_snapshot_part *part;
	int err = 0, ret;

	while ((part = s->parts)) {
		s->parts = part->next;
		ret = put_part(part);
		err = err ? err : ret;
	}
	return err;
}

void sys_snapshot_drop(struct sys_snapshot *s)
{
	struct sys_snapshot_part *part;

	while ((part = s->parts)) {
		s->parts = part->next;
		raw_munmap(part, head_len() + part->len);
	}
}
