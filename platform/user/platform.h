/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the engine and its parts need of their environment: here, a Linux process. platform/kernel has the
 * same interface for the kernel module; code that includes nothing but this and include/ compiles in both.
 * Any thread, where nothing else is said.
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

#include "cache_line.h"
#include "relax.h"
#include "thread_self.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* platform_alloc - returns @len zeroed bytes, aligned to a cache line, owned, or NULL */
void *platform_alloc(size_t len);
/* platform_free - takes what platform_alloc() returned, or NULL */
void platform_free(void *ptr);

/* platform_now_ns - returns monotonic time; it takes about 20 ns: not for the fast path */
static inline uint64_t platform_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* platform_random - fill @buf with @len bytes that can't be guessed. Returns 0 or -FI_EIO */
int platform_random(void *buf, size_t len);

/* platform_descriptor_max - returns how many descriptors the process may have open */
uint32_t platform_descriptor_max(void);

/* A range of addresses: its first one, and the one behind its last */
struct platform_range {
	uintptr_t from, end;
};

/*
 * platform_accessible - returns true if no access to a range would end the process
 * @len:   bytes, not 0
 * @write: by stores; else by loads
 * @found: out, if so: a range for which that holds too, the one that was asked for among it
 *
 * Up to PLATFORM_TOUCH_MAX bytes have their pages afterwards, as after the access. Of longer ranges it is
 * asked what they are mapped as, which takes less from there on where the pages are present. System calls:
 * not for the fast path.
 */
#define PLATFORM_TOUCH_MAX (128u << 10)
bool platform_accessible(const void *addr, size_t len, bool write, struct platform_range *found);

/*
 * platform_mapped - returns true if a range is known to be mapped for loads, and with @write for stores too
 * Touches nothing, and does not see what platform_accessible() sees by touching: guard pages, the end of a
 * file that is shorter than its mapping. System calls.
 */
bool platform_mapped(const void *addr, size_t len, bool write);

/* platform_yield - let another thread or process run on this core: sched_yield(2) */
void platform_yield(void);

/*
 * platform_membarrier_open - register for platform_membarrier(). Returns 0 or -FI_E*: there is none
 * platform_membarrier - a full memory barrier on every core that runs a thread of this process
 * Returns 0, or -FI_E*: no barrier was made. That happens where a filter has forbidden it since it was opened.
 * Source: membarrier(2).
 */
int platform_membarrier_open(void);
int platform_membarrier(void);

/* PLATFORM_BARRIER_BROADCASTS - a barrier interrupts every processor: it interrupts those of this process alone */
#define PLATFORM_BARRIER_BROADCASTS 0

/*
 * platform_settle - wait until what others have stored so far is visible here, and what was stored here to them
 * In the place of a barrier on their cores where that is forbidden: a thousand times what a core takes to
 * write out what it has stored.
 */
#define PLATFORM_SETTLE_NS 10000000u

static inline void platform_settle(void)
{
	uint64_t end = platform_now_ns() + PLATFORM_SETTLE_NS;

	while (platform_now_ns() < end)
		platform_yield();
}

/*
 * platform_fence - a full memory barrier
 * platform_fence_acquire - loads before it are made before loads and stores behind it
 * platform_fence_release - loads and stores before it are made before stores behind it
 */
#ifdef __SANITIZE_THREAD__
/* The sanitizer does not support fences; a read-modify-write operation is one to the processor. */
static inline void platform_fence(void)
{
	static _Atomic int word;

	atomic_fetch_add_explicit(&word, 0, memory_order_seq_cst);
}

static inline void platform_fence_acquire(void)
{
	platform_fence();
}

static inline void platform_fence_release(void)
{
	platform_fence();
}
#else
static inline void platform_fence(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

static inline void platform_fence_acquire(void)
{
	atomic_thread_fence(memory_order_acquire);
}

static inline void platform_fence_release(void)
{
	atomic_thread_fence(memory_order_release);
}
#endif

/*
 * platform_thread_self - returns what no other thread that exists has, a multiple of 8; 0: threads can't be
 * told apart
 */
static inline uintptr_t platform_thread_self(void)
{
	return processor_thread_self();
}

/* PLATFORM_SPIN_NS - for how long a thread spins at most before it sleeps: sleeping and waking take as long */
#define PLATFORM_SPIN_NS 50000u

/* PLATFORM_HELD_MAX - messages of an endpoint without a receive, and unread completions, at most: memory bounds them */
#define PLATFORM_HELD_MAX UINT32_MAX

/* platform_relax - hint to the processor that this is a spinning loop */
static inline void platform_relax(void)
{
	processor_relax();
}

/* A lock whose waiters sleep. Not recursive. */
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

/* platform_trylock - take it if it is free. Returns true if it was */
static inline bool platform_trylock(struct platform_lock *l)
{
	return !pthread_mutex_trylock(&l->mutex);
}

static inline void platform_unlock(struct platform_lock *l)
{
	pthread_mutex_unlock(&l->mutex);
}

/* What a part of the library does around fork(): in the parent before and after it, and in the child. */
struct platform_fork {
	void (*prepare)(void);
	void (*parent)(void);
	void (*child)(void);
	struct platform_fork *next;
	bool watched;
};

/*
 * platform_fork_watch - call the functions of @watcher around each later fork
 * @watcher: static, filled by the caller; it is never removed, and a further call does nothing
 *
 * They run inside the handlers that the program has installed after this library was loaded.
 * No round of a thread (below) runs from prepare to parent or child. Not to be called from a round: a fork
 * that waits for the end of the round would never begin.
 */
void platform_fork_watch(struct platform_fork *watcher);

/* platform_forks - returns how many forks lie between this process and the one that loaded the library */
uint32_t platform_forks(void);

/*
 * A bell wakes the threads that sleep on it, from ring to clear. It may be rung from any context,
 * whatever locks are held there: by another thread, in a signal handler. A clear sees what came
 * before the rings that it takes back. Here it is a descriptor too (an eventfd).
 */
struct platform_bell {
	int descriptor;
};

/* What ends a sleep. */
struct platform_wakers {
	/* NULL: none */
	const struct platform_bell *bell;
	/* a poll set, or another that becomes readable; -1: none */
	int descriptor;
	/* called if the thread is cancelled in its sleep, instead of what follows that; NULL: nothing */
	void (*cancelled)(void *arg);
	void *arg;
};

/* The work of a thread that does it in rounds. */
struct platform_work {
	/* shown in lists of threads; 15 letters count */
	const char *name;
	/*
	 * round - one round. Returns the ns to sleep before the next one. Locks that are held by callers of
	 * platform_thread_start(), wake and stop it takes by platform_trylock() alone.
	 */
	uint64_t (*round)(void *arg);
	/*
	 * sleep_on - what ends the sleep too; may be NULL. Called after each round. Returns true if there is
	 * such this time, written to @on.
	 */
	bool (*sleep_on)(void *arg, struct platform_wakers *on);
	/* wake - has that end it; called by platform_thread_wake() and stop. NULL without sleep_on */
	void (*wake)(void *arg);
	void *arg;
};

#define PLATFORM_HOLD_INNER 16u

/*
 * An object that no other thread may be in while the process is copied. Zeroed: it is not watched.
 *
 * hold - keep other threads out, before any other part of the library makes ready for a fork: no lock of the
 *	library is held but that of the list and what lower ranks hold. It may wait for calls of other
 *	threads, but not for ever
 * release - after the fork, once the other parts are done; in the parent, and in the child
 */
struct platform_hold {
	/*
	 * Lower ones are held first. From PLATFORM_HOLD_INNER on no round of a thread (above) runs any more:
	 * what a round waits for
	 */
	uint32_t rank;
	void (*hold)(struct platform_hold *hold);
	void (*release)(struct platform_hold *hold, bool child);
	struct platform_hold *next;
	/* the pointer that leads here; NULL: not watched */
	struct platform_hold **at;
};

/*
 * platform_hold_watch - hold the object during each later fork
 * platform_hold_unwatch - stop that; does nothing for one that is not watched
 * The caller has no lock that who holds the object may want.
 */
void platform_hold_watch(struct platform_hold *hold);
void platform_hold_unwatch(struct platform_hold *hold);

/* An object with a function that is called in the child of a fork. Zeroed: it is not watched. */
struct platform_copy {
	void (*copied)(struct platform_copy *copy);
	struct platform_copy *next;
	/* the pointer that leads here; NULL: not watched */
	struct platform_copy **at;
};

/*
 * platform_copy_watch - call @copy->copied in the child of each fork, before fork() returns there
 * platform_copy_unwatch - stop that; does nothing for one that is not watched
 *
 * The child has one thread then. Locks that other threads of the parent held are never released there; no
 * round of a thread (below) was under way.
 */
void platform_copy_watch(struct platform_copy *copy);
void platform_copy_unwatch(struct platform_copy *copy);

/* A thread that works in rounds. Zeroed: it does not run. */
struct platform_thread {
	pthread_t id;
	/* Held during a round. Protects stop and woken. */
	pthread_mutex_t round_lock;
	pthread_cond_t wake;
	struct platform_work work;
	bool stop, woken;
	char name[16];
	/* false in the child of a fork */
	_Atomic bool running;
	struct platform_thread *next;
};

/*
 * platform_thread_start - call @work->round repeatedly on a thread of its own
 *
 * The thread takes no signals. It does not run in the child of a fork, where it may be started anew and holds
 * none of the locks that rounds take. Returns 0, -FI_EAGAIN or -FI_ENOMEM.
 */
int platform_thread_start(struct platform_thread *t, const struct platform_work *work);
/* platform_thread_runs - returns true if it was started in this process and not stopped */
static inline bool platform_thread_runs(const struct platform_thread *t)
{
	/* A:thread.running  before what it is started with; pairs R:thread.running */
	return atomic_load_explicit(&t->running, memory_order_acquire);
}

/* platform_thread_wake - have the next round begin at once; waits for one that runs. Not from a round */
void platform_thread_wake(struct platform_thread *t);
/* platform_thread_stop - end it after the round that runs; does nothing for one that does not run */
void platform_thread_stop(struct platform_thread *t);

/* platform_bell_open - a bell that is not rung. Returns 0 or -FI_E* */
int platform_bell_open(struct platform_bell *bell);
void platform_bell_ring(const struct platform_bell *bell);
void platform_bell_clear(const struct platform_bell *bell);
void platform_bell_close(struct platform_bell *bell);
/* platform_bell_descriptor - returns what is readable from ring to clear; -1 where a bell is no descriptor */
static inline int platform_bell_descriptor(const struct platform_bell *bell)
{
	return bell->descriptor;
}

/*
 * A poll set is a descriptor that holds others, poll sets among them: readable while one of them is (an
 * epoll descriptor). One that was opened with a bell can be rung by itself too: neither the bell nor another
 * poll set of that bell is readable for that.
 */

/*
 * platform_poll_set_open - a poll set that holds nothing
 * @bell: borrowed until the poll set is closed; NULL: it is never rung
 * Returns 0 and the poll set, owned, or -FI_E*; -FI_ENOSYS: there are none here.
 */
int platform_poll_set_open(const struct platform_bell *bell, int *poll_set);
/* platform_poll_set_add - have it hold @fd. Returns 0, also when it does already, or -FI_E* */
int platform_poll_set_add(int poll_set, int fd);
/* platform_poll_set_remove - have it hold @fd no more; does nothing for one that it does not hold */
void platform_poll_set_remove(int poll_set, int fd);
/*
 * platform_poll_set_ring, platform_poll_set_clear - readable from the one to the other; @bell: as in open
 * From any context, and ordered, as for a bell.
 */
void platform_poll_set_ring(int poll_set, const struct platform_bell *bell);
void platform_poll_set_clear(int poll_set, const struct platform_bell *bell);
void platform_poll_set_close(int poll_set);

/* A timer is a descriptor that is readable from some time on (a timerfd). */

/* platform_timer_open - returns 0 and a timer, owned, that does not run, or -FI_E* */
int platform_timer_open(int *timer);
/* platform_timer_set - make it readable in @ns from now, and not before; 0: never */
void platform_timer_set(int timer, uint64_t ns);
void platform_timer_close(int timer);

/* platform_descriptor_renew - have the number @old mean what @fresh does: dup3(2). Takes @fresh. Returns 0 or -FI_E* */
int platform_descriptor_renew(int old, int fresh);

/*
 * platform_sleep - sleep until the bell is rung or the descriptor readable
 * @on: NULL, or neither in it: sleep for all of @ns
 * @ns: at most so long; UINT64_MAX: without a limit
 * Returns 0, or -FI_EINTR if a signal handler has run and ended it before. It is a cancellation point.
 */
int platform_sleep(const struct platform_wakers *on, uint64_t ns);

/*
 * Memory that processes of one user find by a name: sys/shared_name.h defines its lifetime. Any
 * thread; handles are owned by the caller that they are returned to.
 */
struct platform_shared;

/*
 * platform_shared_create - make @len zeroed bytes, which have no name yet
 * @name: that platform_shared_publish() gives them; any text
 * Returns 0, -FI_EINVAL, -FI_ENOMEM or another -FI_E*.
 */
int platform_shared_create(const char *name, size_t len, struct platform_shared **out);
/* platform_shared_publish - let other processes find them. Returns 0, -FI_EADDRINUSE or another -FI_E* */
int platform_shared_publish(struct platform_shared *shared);
/*
 * platform_shared_attach - map what a process has published under that name
 * Returns 0, -FI_ENOENT for none, -FI_EACCES, -FI_EAGAIN while that process ends, or another -FI_E*.
 */
int platform_shared_attach(const char *name, bool writable, struct platform_shared **out);
/* platform_shared_map - returns the memory; @len: out: its bytes */
void *platform_shared_map(struct platform_shared *shared, size_t *len);
/*
 * platform_shared_lock - exclude other writers, of any process; waits
 * Returns 0; -FI_EOPBADSTATE in the child of a fork, which has neither the lock nor the name of its parent; or -FI_E*.
 */
int platform_shared_lock(struct platform_shared *shared);
/* platform_shared_unlock - release that lock */
void platform_shared_unlock(struct platform_shared *shared);
/* platform_shared_close - release a handle, or NULL */
void platform_shared_close(struct platform_shared *shared);

#endif
