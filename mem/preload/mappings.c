/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls that change mappings, as a program finds them before those of the C library. Memory of the arena is
 * a shared file to the kernel; to the program it is what malloc() returns elsewhere: private memory without
 * a file. So what it does to such memory is done as to that, and a chunk in which something
 * else is mapped afterwards is no longer shown to peers (arena_retire()). Any thread.
 *
 * mprotect(2) means the same for both, but what is freed has to be writable again (heap_free()). Calls that come by other ways than these functions are
 * not seen; around a fork the kernel is asked what is mapped.
 */
#define _GNU_SOURCE
/* mmap() and mmap64() are two names here, of the same function: off_t has 64 bits. */
#undef _FILE_OFFSET_BITS
#include "arena.h"
#include "heap.h"
#include "raw.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
/* Linux 5.18 */
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

static size_t page_len(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t len)
{
	return (len + page_len() - 1) & ~(page_len() - 1);
}

/* Returns whether a range has addresses of the arena. */
static bool meets(const void *addr, size_t len)
{
	uintptr_t base = (uintptr_t)addr;

	return len && base < heap_end() && (base >= heap_base || len > heap_base - base);
}

static bool is_within(const void *addr, size_t len)
{
	return heap_has(addr) && len <= heap_end() - (uintptr_t)addr;
}

/* Returns the part of a range, from its beginning, that is in one chunk, or in a slot without one. */
static size_t part_of(const struct arena *arena, uintptr_t base, size_t len, bool *has)
{
	uint64_t word = arena_slot_at(arena, base);
	size_t room = ARENA_SLOT - (base & (ARENA_SLOT - 1));

	*has = word != 0;
	if (word)
		room = arena_slot_room(word, base);
	return len < room ? len : room;
}

/* Calls @each for every chunk that has a part of a range. */
static void chunks_each(const void *addr, size_t len,
			void (*each)(struct arena *arena, const void *at))
{
	struct arena *arena = heap_memory();
	uintptr_t base = (uintptr_t)addr, end = base + len;
	size_t part;
	bool has;

	if (base < heap_base)
		base = heap_base;
	if (end > heap_end() || end < base)
		end = heap_end();
	for (; base < end; base += part) {
		part = part_of(arena, base, end - base, &has);
		if (has)
			each(arena, (void *)base);
	}
}

/* Something else will be mapped in a range. */
static void retire(const void *addr, size_t len)
{
	chunks_each(addr, len, arena_retire);
}

SHOWN int mprotect(void *addr, size_t len, int prot)
{
	if (meets(addr, len) && prot != (PROT_READ | PROT_WRITE))
		chunks_each(addr, len, arena_protect);
	return raw_mprotect(addr, len, prot);
}

SHOWN int munmap(void *addr, size_t len)
{
	if (!meets(addr, len))
		return raw_munmap(addr, len);
	if ((uintptr_t)addr % page_len()) {
		errno = EINVAL;
		return -1;
	}
	retire(addr, len);
	if (!is_within(addr, len))
		return raw_munmap(addr, len);
	/* The addresses stay reserved: nothing of others is ever taken for the arena's. */
	return raw_mmap(addr, whole_pages(len), PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			0) == MAP_FAILED
		       ? -1
		       : 0;
}

SHOWN void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if ((flags & MAP_FIXED) && meets(addr, len))
		retire(addr, len);
	return raw_mmap(addr, len, prot, flags, fd, offset);
}

SHOWN void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t offset)
{
	return mmap(addr, len, prot, flags, fd, offset);
}

/* Gives zeros to the program. */
static int take_away(void *addr, size_t len)
{
	struct arena *arena = heap_memory();
	uintptr_t base = (uintptr_t)addr, end = base + whole_pages(len);
	size_t part;
	bool has;
	int err = 0;

	if (base % page_len()) {
		errno = EINVAL;
		return -1;
	}
	for (; !err && base < end; base += part) {
		part = part_of(arena, base, end - base, &has);
		if (has)
			err = arena_discard(arena, (void *)base, part);
	}
	errno = err ? -err : errno;
	return err ? -1 : 0;
}

/*
 * What is behind guard pages is zero once they are removed, as of private memory; of a file's it would be
 * what it was. Where the program gets other pages they are guarded anew.
 */
static int guard(void *addr, size_t len)
{
	if (raw_madvise(addr, len, MADV_GUARD_INSTALL) || take_away(addr, len))
		return -1;
	chunks_each(addr, len, arena_protect);
	return raw_madvise(addr, len, MADV_GUARD_INSTALL);
}

/* What the kernel wipes is private memory without a file: the program gets such, with what was there. */
static int wipe_on_fork(void *addr, size_t len)
{
	void *copy;

	len = whole_pages(len);
	if ((uintptr_t)addr % page_len() || !is_within(addr, len)) {
		errno = EINVAL;
		return -1;
	}
	copy = raw_mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return -1;
	retire(addr, len);
	memcpy(copy, addr, len);
	if (raw_mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, addr) == MAP_FAILED) {
		raw_munmap(copy, len);
		return -1;
	}
	return raw_madvise(addr, len, MADV_WIPEONFORK);
}

SHOWN int madvise(void *addr, size_t len, int advice)
{
	if (!is_within(addr, len) || !len)
		return raw_madvise(addr, len, advice);
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_FREE:
	case MADV_REMOVE:
		return take_away(addr, len);
	case MADV_GUARD_INSTALL:
		return guard(addr, len);
	case MADV_WIPEONFORK:
		return wipe_on_fork(addr, len);
	case MADV_DOFORK:
		/* The child of a fork has it; that of a raw clone would store to our pages. */
		return 0;
	default:
		return raw_madvise(addr, len, advice);
	}
}

/* Moves a range of the arena to memory of its own. */
static void *move(void *addr, size_t len, size_t new_len, int flags, void *to)
{
	int fixed = flags & MREMAP_FIXED ? MAP_FIXED : 0, err;
	void *moved;

	moved = mmap(fixed ? to : NULL, new_len, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
	if (moved == MAP_FAILED)
		return moved;
	memcpy(moved, addr, len < new_len ? len : new_len);
	err = flags & MREMAP_DONTUNMAP ? take_away(addr, len) : munmap(addr, len);
	return err ? MAP_FAILED : moved;
}

static void *refuse(int error)
{
	errno = error;
	return MAP_FAILED;
}

static bool overlap(const void *a, size_t a_len, const void *b, size_t b_len)
{
	return (uintptr_t)a - (uintptr_t)b < b_len || (uintptr_t)b - (uintptr_t)a < a_len;
}

static void *remap(void *addr, size_t len, size_t new_len, int flags, void *to)
{
	const int moves = MREMAP_FIXED | MREMAP_DONTUNMAP;

	len = whole_pages(len);
	new_len = whole_pages(new_len);
	if (!len || !new_len || (uintptr_t)addr % page_len() ||
	    ((flags & moves) && !(flags & MREMAP_MAYMOVE)) ||
	    flags & ~(moves | MREMAP_MAYMOVE) ||
	    ((flags & MREMAP_DONTUNMAP) && len != new_len) ||
	    ((flags & MREMAP_FIXED) &&
	     ((uintptr_t)to % page_len() || overlap(addr, len, to, new_len))))
		return refuse(EINVAL);
	if (!is_within(addr, len))
		return refuse(EFAULT);
	if (flags & moves)
		return move(addr, len, new_len, flags, to);
	if (new_len > len)
		return flags & MREMAP_MAYMOVE ? move(addr, len, new_len, flags, to)
					      : refuse(ENOMEM);
	if (new_len < len && munmap((char *)addr + new_len, len - new_len))
		return MAP_FAILED;
	return addr;
}

SHOWN void *mremap(void *addr, size_t len, size_t new_len, int flags, ...)
{
	va_list args;
	void *to = NULL;

	va_start(args, flags);
	if (flags & MREMAP_FIXED)
		to = va_arg(args, void *);
	va_end(args);
	if (heap_has(addr))
		return remap(addr, len, new_len, flags, to);
	if (to && meets(to, new_len))
		retire(to, new_len);
	return raw_mremap(addr, len, new_len, flags, to);
}
