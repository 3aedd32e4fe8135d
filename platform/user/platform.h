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

#include "relax.h"

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

/* platform_mapped - is there memory in the whole range; a system call: not for the fast path */
bool platform_mapped(const void *addr, size_t len);

/* platform_yield - let another thread or process run on this core */
void platform_yield(void);

/*
 * platform_membarrier_open - 0 when there is platform_membarrier(), else -FI_E*
 * platform_membarrier - a full memory barrier on every core that may run who pairs with it
 * Returns 0, or -FI_E*: there was none. It worked when it was opened, and may be forbidden since.
 */
int platform_membarrier_open(void);
int platform_membarrier(void);

/* platform_fence - a full memory barrier */
#ifdef __SANITIZE_THREAD__
/* It knows no fences; this is one to the processor. */
static inline void platform_fence(void)
{
	static _Atomic int word;

	atomic_fetch_add_explicit(&word, 0, memory_order_seq_cst);
}
#else
static inline void platform_fence(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}
#endif

/* platform_relax - hint of a spinning loop */
static inline void platform_relax(void)
{
	processor_relax();
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

/* platform_trylock - take it if it is free; says whether */
static inline bool platform_trylock(struct platform_lock *l)
{
	return !pthread_mutex_trylock(&l->mutex);
}

static inline void platform_unlock(struct platform_lock *l)
{
	pthread_mutex_unlock(&l->mutex);
}

/* What a part of the library does around fork(): in the parent before it, after it, in the child. */
struct platform_fork {
	void (*prepare)(void);
	void (*parent)(void);
	void (*child)(void);
	struct platform_fork *next;
	bool watched;
};

/*
 * platform_fork_watch - call these from now on; no round of a thread (below) runs between them
 * @watcher: static, as the caller fills it; once it is watched it stays, and a further call does nothing
 * Not from a round of a thread: a fork that waits for the end of the round would never begin.
 */
void platform_fork_watch(struct platform_fork *watcher);

/* platform_forks - how many forks this process is away from the one that loaded the library */
uint32_t platform_forks(void);

/* What a thread does again and again. */
struct platform_work {
	const char *name; /* for lists of threads; 15 letters count */
	/*
	 * round - do it. Returns the ns to nap before the next. A lock that others hold while they start,
	 * wake or stop threads it takes by platform_trylock() alone.
	 */
	uint64_t (*round)(void *arg);
	/*
	 * bed - NULL, or what ends the nap too, by being readable: called after each round. Returns how
	 * many descriptors, as of platform_sleep(), it has written to @on; 0: none this time.
	 */
	int (*bed)(void *arg, int *on);
	/* rouse - with bed: make one of those readable, for whom wakes or stops the thread */
	void (*rouse)(void *arg);
	void *arg;
};

/* Something that is told, in the child of a fork, that it is a copy there. Zeroed: it is not. */
struct platform_copy {
	void (*copied)(struct platform_copy *copy);
	struct platform_copy *next, **at; /* at: what leads here; NULL: not watched */
};

/*
 * platform_copy_watch - call @copy->copied in the child of each fork, before fork() returns there
 * There is one thread then, other threads' locks may be held for ever, and no round of a thread
 * (below) was under way. platform_copy_unwatch - no more; nothing for one that is not watched.
 */
void platform_copy_watch(struct platform_copy *copy);
void platform_copy_unwatch(struct platform_copy *copy);

/* A thread that does a piece of work again and again. Zeroed: it does not run. */
struct platform_thread {
	pthread_t id;
	/* Held during a round. Protects stop and woken. */
	pthread_mutex_t round_lock;
	pthread_cond_t wake;
	struct platform_work work;
	bool stop, woken;
	char name[16];
	_Atomic bool running; /* in this process: not in the child of a fork */
	struct platform_thread *next;
};

/*
 * platform_thread_start - call @work->round again and again on a thread of its own
 *
 * The thread takes no signals. In the child of a fork it is not there, may be started anew, and no
 * lock that rounds take was held by it. Returns 0 or -FI_E*.
 */
int platform_thread_start(struct platform_thread *t, const struct platform_work *work);
/* platform_thread_runs - was it started in this process, and not stopped? Any thread */
static inline bool platform_thread_runs(const struct platform_thread *t)
{
	/* A:thread.running  before what it is started with; pairs R:thread.running */
	return atomic_load_explicit(&t->running, memory_order_acquire);
}

/* platform_thread_wake - the next round comes at once; waits for one that runs. Not from a round */
void platform_thread_wake(struct platform_thread *t);
/* platform_thread_stop - end it, after the round that runs; nothing for one that does not run */
void platform_thread_stop(struct platform_thread *t);

/* A bell is a descriptor that a program can sleep on: readable from ring to clear. */

/* platform_bell_open - 0 and a bell, owned, or -FI_E* */
int platform_bell_open(int *bell);
void platform_bell_ring(int bell);
void platform_bell_clear(int bell);
/* platform_bell_close - takes the bell */
void platform_bell_close(int bell);

/*
 * A nest is a descriptor that holds others, nests too: readable while one of them is. One that was
 * opened with a bell can be rung as well, without that bell being rung or any other nest of it.
 */

/* platform_nest_open - @bell: borrowed while there is the nest; -1: it is never rung. 0 and a nest, owned, or -FI_E* */
int platform_nest_open(int bell, int *nest);
/* platform_nest_add - put @fd in; 0, also for one that is in there, or -FI_E* */
int platform_nest_add(int nest, int fd);
/* platform_nest_remove - take it out; nothing for one that is not in there */
void platform_nest_remove(int nest, int fd);
/* platform_nest_ring, platform_nest_clear - readable from the one to the other; @bell: as it was opened */
void platform_nest_ring(int nest, int bell);
void platform_nest_clear(int nest, int bell);
void platform_nest_close(int nest);

/* A timer is a descriptor that is readable from a time on. */

/* platform_timer_open - 0 and a timer that does not run, owned, or -FI_E* */
int platform_timer_open(int *timer);
/* platform_timer_set - not readable until so many ns have passed; 0: for ever */
void platform_timer_set(int timer, uint64_t ns);
void platform_timer_close(int timer);

/* platform_descriptor_renew - let @old, whose number others know, be what @fresh is; takes @fresh. 0 or -FI_E* */
int platform_descriptor_renew(int old, int fresh);

/*
 * platform_sleep - until one of these descriptors is readable, or something else wakes the thread
 * @cnt: at most 2; 0: for all of the time
 * @ns:  at most so long; UINT64_MAX: for ever
 */
void platform_sleep(const int *on, int cnt, uint64_t ns);

/*
 * Memory that processes of one user find by a name: sys/shared_name.h says what becomes of it.
 * Any thread; handles are owned by whom they are returned to.
 */
struct platform_shared;

/*
 * platform_shared_create - @len zeroed bytes that have no name yet
 * @name: that they shall have; any text
 * Returns 0, -FI_EINVAL, -FI_ENOMEM or another -FI_E*.
 */
int platform_shared_create(const char *name, size_t len, struct platform_shared **out);
/* platform_shared_publish - others find them from now on. Returns 0, -FI_EADDRINUSE or another -FI_E* */
int platform_shared_publish(struct platform_shared *shared);
/*
 * platform_shared_attach - what another has published under that name
 * Returns 0, -FI_ENOENT for none, -FI_EACCES, -FI_EAGAIN when it is just going, or another -FI_E*.
 */
int platform_shared_attach(const char *name, bool writable, struct platform_shared **out);
/* platform_shared_map - the memory; @len: out */
void *platform_shared_map(struct platform_shared *shared, size_t *len);
/* platform_shared_lock - exclude other processes that write; waits. Returns 0 or -FI_E* */
int platform_shared_lock(struct platform_shared *shared);
/* platform_shared_unlock - give it back */
void platform_shared_unlock(struct platform_shared *shared);
/* platform_shared_close - takes a handle, or NULL */
void platform_shared_close(struct platform_shared *shared);

#endif
