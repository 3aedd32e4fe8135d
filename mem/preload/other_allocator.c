/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A second allocator to preload: it counts up in memory of its own, and never takes any back. A test locks it, as
 * fork handlers of an allocator do: who allocates or frees then waits.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))
#define ROOM  ((size_t)1 << 30)
#define ALIGN 64u

SHOWN void *malloc(size_t len);
SHOWN void *calloc(size_t cnt, size_t len);
SHOWN void *realloc(void *ptr, size_t len);
SHOWN void free(void *ptr);
SHOWN void *memalign(size_t align, size_t len);
SHOWN void *aligned_alloc(size_t align, size_t len);
SHOWN int posix_memalign(void **ptr, size_t align, size_t len);
SHOWN size_t malloc_usable_size(void *ptr);
SHOWN bool other_has(const void *ptr);
SHOWN void other_lock(bool lock);

static _Alignas(4096) char room[ROOM];
static _Atomic size_t used;
static _Atomic bool locked;

void other_lock(bool lock)
{
	atomic_store(&locked, lock);
}

static void wait_for_lock(void)
{
	while (atomic_load(&locked))
		sched_yield();
}

bool other_has(const void *ptr)
{
	return (uintptr_t)ptr - (uintptr_t)room < ROOM;
}

/* The length is in front of a block. */
void *memalign(size_t align, size_t len)
{
	size_t need, at;

	wait_for_lock();
	if (align < ALIGN)
		align = ALIGN;
	errno = ENOMEM;
	if (len > ROOM / 2)
		return NULL;
	need = (len + 2 * align - 1) & ~(align - 1);
	at = (atomic_fetch_add(&used, need + align) + 2 * align - 1) & ~(align - 1);
	if (at + len > ROOM)
		return NULL;
	memcpy(room + at - sizeof(len), &len, sizeof(len));
	return room + at;
}

void *malloc(size_t len)
{
	return memalign(ALIGN, len);
}

void *aligned_alloc(size_t align, size_t len)
{
	return memalign(align, len);
}

int posix_memalign(void **ptr, size_t align, size_t len)
{
	if (align % sizeof(void *) || align & (align - 1))
		return 22;
	*ptr = memalign(align, len);
	return *ptr ? 0 : 12;
}

size_t malloc_usable_size(void *ptr)
{
	size_t len = 0;

	if (ptr)
		memcpy(&len, (char *)ptr - sizeof(len), sizeof(len));
	return len;
}

void *calloc(size_t cnt, size_t len)
{
	return malloc(len && cnt > ROOM / len ? ROOM : cnt * len);
}

void *realloc(void *ptr, size_t len)
{
	size_t old = malloc_usable_size(ptr);
	void *grown = malloc(len);

	if (grown && ptr)
		memcpy(grown, ptr, old < len ? old : len);
	return grown;
}

void free(void *ptr)
{
	wait_for_lock();
}
