/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Looking up the allocator behind this library. The look-up may itself allocate: that memory is taken from
 * a small buffer, which is never given back.
 */
#define _GNU_SOURCE
#include "next.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define EARLY_LEN   16384u
#define EARLY_ALIGN 16u

/* The functions, and the same for a program that has memory of the look-up. */
static struct next found, found_late;
/* R:next.found */
static _Atomic bool is_found;
/* Volatile: dlsym() is declared as one that does not call back, and what is set before it would be dropped. */
static __thread volatile bool looking __attribute__((tls_model("initial-exec")));

static _Alignas(EARLY_ALIGN) char early[EARLY_LEN];
static _Atomic size_t early_used;

/* Each block is preceded by its length. */
static void *early_malloc(size_t len)
{
	size_t room = EARLY_ALIGN + ((len + EARLY_ALIGN - 1) & ~(size_t)(EARLY_ALIGN - 1)), at;

	if (len <= EARLY_LEN - EARLY_ALIGN) {
		at = atomic_fetch_add_explicit(&early_used, room, memory_order_relaxed);
		if (at <= EARLY_LEN - room) {
			memcpy(early + at, &len, sizeof(len));
			return early + at + EARLY_ALIGN;
		}
	}
	errno = ENOMEM;
	return NULL;
}

static bool is_early(const void *ptr)
{
	return (uintptr_t)ptr - (uintptr_t)early < EARLY_LEN;
}

static size_t early_usable_size(void *ptr)
{
	size_t len = 0;

	if (ptr)
		memcpy(&len, (char *)ptr - EARLY_ALIGN, sizeof(len));
	return len;
}

static void *early_calloc(size_t cnt, size_t len)
{
	/* The buffer is zero, and each of its bytes is given out once. */
	return len && cnt > EARLY_LEN / len ? NULL : early_malloc(cnt * len);
}

static void *early_realloc(void *ptr, size_t len)
{
	size_t old = early_usable_size(ptr);
	void *grown = early_malloc(len);

	if (grown && ptr)
		memcpy(grown, ptr, old < len ? old : len);
	return grown;
}

static void early_free(void *ptr)
{
}

static void *early_none(size_t align, size_t len)
{
	errno = ENOMEM;
	return NULL;
}

static int early_posix_memalign(void **ptr, size_t align, size_t len)
{
	return ENOMEM;
}

static void *early_page(size_t len)
{
	return early_none(0, len);
}

static const struct next early_next = {
	.malloc = early_malloc,
	.calloc = early_calloc,
	.realloc = early_realloc,
	.free = early_free,
	.memalign = early_none,
	.posix_memalign = early_posix_memalign,
	.aligned_alloc = early_none,
	.valloc = early_page,
	.pvalloc = early_page,
	.malloc_usable_size = early_usable_size,
	.tells_size = true,
};

/* What was taken during the look-up may come back later. */
static void free_late(void *ptr)
{
	if (!is_early(ptr))
		found.free(ptr);
}

static void *realloc_late(void *ptr, size_t len)
{
	size_t old;
	void *grown;

	if (!is_early(ptr))
		return found.realloc(ptr, len);
	old = early_usable_size(ptr);
	grown = found.malloc(len);
	if (grown)
		memcpy(grown, ptr, old < len ? old : len);
	return grown;
}

static size_t size_late(void *ptr)
{
	return is_early(ptr) ? early_usable_size(ptr) : found.malloc_usable_size(ptr);
}

static bool is_of_one_object(const void *a, const void *b)
{
	Dl_info at, bt;

	return dladdr(a, &at) && dladdr(b, &bt) && at.dli_fbase == bt.dli_fbase;
}

static void look_up(void)
{
	struct next n;

	*(void **)&n.malloc = dlsym(RTLD_NEXT, "malloc");
	*(void **)&n.calloc = dlsym(RTLD_NEXT, "calloc");
	*(void **)&n.realloc = dlsym(RTLD_NEXT, "realloc");
	*(void **)&n.free = dlsym(RTLD_NEXT, "free");
	*(void **)&n.memalign = dlsym(RTLD_NEXT, "memalign");
	*(void **)&n.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
	*(void **)&n.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
	*(void **)&n.valloc = dlsym(RTLD_NEXT, "valloc");
	*(void **)&n.pvalloc = dlsym(RTLD_NEXT, "pvalloc");
	*(void **)&n.malloc_usable_size = dlsym(RTLD_NEXT, "malloc_usable_size");
	n.tells_size = is_of_one_object(*(void **)&n.realloc, *(void **)&n.malloc_usable_size);
	*(void **)&n.first_realloc = dlsym(RTLD_DEFAULT, "realloc");
	*(void **)&n.first_free = dlsym(RTLD_DEFAULT, "free");
	found = n;
	found_late = n;
	found_late.free = free_late;
	found_late.realloc = realloc_late;
	found_late.malloc_usable_size = size_late;
}

const struct next *next(void)
{
	/* A:next.found  pairs R:next.found */
	if (atomic_load_explicit(&is_found, memory_order_acquire))
		return atomic_load_explicit(&early_used, memory_order_relaxed) ? &found_late
									       : &found;
	if (looking)
		return &early_next;
	looking = true;
	look_up();
	looking = false;
	/* R:next.found  the functions before the flag; pairs A:next.found */
	atomic_store_explicit(&is_found, true, memory_order_release);
	return next();
}
