/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the engine and its parts need of the place they run in: here, a Linux process.
 * platform/kernel has the same interface for the kernel module; code that includes
 * nothing but this and include/ compiles in both.
 */
#ifndef WEFT_PLATFORM_H
#define WEFT_PLATFORM_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define CACHE_LINE  64

/* platform_alloc - @len zeroed bytes on a cache line boundary, or NULL */
void *platform_alloc(size_t len);
/* platform_free - takes what platform_alloc() returned, or NULL */
void platform_free(void *ptr);

/* platform_now_ns - monotonic time; about 20 ns: not for the fast path */
static inline uint64_t platform_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* platform_random - @len bytes nobody can guess. Returns 0 or -FI_EIO */
int platform_random(void *buf, size_t len);

/* platform_yield - let another thread or process run on this core */
void platform_yield(void);

/* platform_relax - hint of a spinning loop */
static inline void platform_relax(void)
{
	__builtin_ia32_pause();
}

/* A lock that sleeps when it has to wait. Not recursive. */
struct platform_lock {
	pthread_mutex_t mutex;
};

static inline void platform_lock_init(struct platform_lock *l)
{
	pthread_mutex_init(&l->mutex, NULL);
}

static inline void platform_lock_fini(struct platform_lock *l)
{
	pthread_mutex_destroy(&l->mutex);
}

static inline void platform_lock(struct platform_lock *l)
{
	pthread_mutex_lock(&l->mutex);
}

static inline void platform_unlock(struct platform_lock *l)
{
	pthread_mutex_unlock(&l->mutex);
}

#endif
