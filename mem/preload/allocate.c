/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The allocation functions that a program finds before those of the C library. Large allocations come from
 * the heap as long as it has memory; every other call goes to the allocator that would
 * have served it, and memory goes back to where it came from. Any thread.
 */
#define _GNU_SOURCE
#include "heap.h"
#include "next.h"
#include "preload.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

void free_sized(void *ptr, size_t len);
void free_aligned_sized(void *ptr, size_t align, size_t len);

size_t preload_min = PRELOAD_MIN_DEFAULT;

/* Returns large memory, or NULL: the next allocator has to serve. */
static inline void *large(size_t len, size_t align, bool zero)
{
	if (len < preload_min || len > PTRDIFF_MAX || (align & (align - 1)))
		return NULL;
	return heap_alloc(len, align, zero);
}

SHOWN void *malloc(size_t len)
{
	void *ptr = large(len, 0, false);

	return ptr ? ptr : next()->malloc(len);
}

SHOWN void *calloc(size_t cnt, size_t len)
{
	size_t all;
	void *ptr = __builtin_mul_overflow(cnt, len, &all) ? NULL : large(all, 0, true);

	return ptr ? ptr : next()->calloc(cnt, len);
}

SHOWN void free(void *ptr)
{
	if (heap_has(ptr))
		heap_free(ptr);
	else
		next()->free(ptr);
}

SHOWN size_t malloc_usable_size(void *ptr)
{
	return heap_has(ptr) ? heap_size(ptr) : next()->malloc_usable_size(ptr);
}

/* Copies @ptr to @to, which is not NULL, and frees it. */
static void *moved(void *ptr, size_t old, void *to, size_t len)
{
	int error = errno;

	if (heap_has(ptr))
		heap_make_even(ptr, old);
	memcpy(to, ptr, old < len ? old : len);
	free(ptr);
	errno = error;
	return to;
}

/* Heap memory is resized: into the heap, or out of it. */
static void *resize_large(void *ptr, size_t len)
{
	void *to = NULL;

	if (!len) {
		free(ptr);
		return NULL;
	}
	if (len >= preload_min && len <= PTRDIFF_MAX)
		to = heap_resize(ptr, len);
	if (to)
		return to;
	to = next()->malloc(len);
	return to ? moved(ptr, heap_size(ptr), to, len) : NULL;
}

SHOWN void *realloc(void *ptr, size_t len)
{
	size_t old;
	void *to;

	if (!ptr)
		return malloc(len);
	if (heap_has(ptr))
		return resize_large(ptr, len);
	if (len < preload_min || !next()->tells_size)
		return next()->realloc(ptr, len);
	/* What was large before stays where it is: that allocator may resize it without a copy. */
	old = next()->malloc_usable_size(ptr);
	to = old < preload_min ? large(len, 0, false) : NULL;
	return to ? moved(ptr, old, to, len) : next()->realloc(ptr, len);
}

/* An allocator before this one may lack a name: what it gave is its own all the same. */
SHOWN void *reallocarray(void *ptr, size_t cnt, size_t len)
{
	const struct next *first = next();
	size_t all;

	if (__builtin_mul_overflow(cnt, len, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return first->first_realloc ? first->first_realloc(ptr, all) : realloc(ptr, all);
}

SHOWN int posix_memalign(void **ptr, size_t align, size_t len)
{
	void *got = align < sizeof(void *) ? NULL : large(len, align, false);

	if (!got)
		return next()->posix_memalign(ptr, align, len);
	*ptr = got;
	return 0;
}

SHOWN void *memalign(size_t align, size_t len)
{
	void *ptr = align ? large(len, align, false) : NULL;

	return ptr ? ptr : next()->memalign(align, len);
}

SHOWN void *aligned_alloc(size_t align, size_t len)
{
	void *ptr = align ? large(len, align, false) : NULL;

	return ptr ? ptr : next()->aligned_alloc(align, len);
}

SHOWN void *valloc(size_t len)
{
	void *ptr = large(len, (size_t)getpagesize(), false);

	return ptr ? ptr : next()->valloc(len);
}

SHOWN void *pvalloc(size_t len)
{
	size_t page = (size_t)getpagesize();
	void *ptr = NULL;

	if (len < PTRDIFF_MAX)
		ptr = large((len + page - 1) & ~(page - 1), page, false);
	return ptr ? ptr : next()->pvalloc(len);
}

SHOWN void free_sized(void *ptr, size_t len)
{
	const struct next *first = next();

	if (first->first_free)
		first->first_free(ptr);
	else
		free(ptr);
}

SHOWN void free_aligned_sized(void *ptr, size_t align, size_t len)
{
	free_sized(ptr, len);
}
