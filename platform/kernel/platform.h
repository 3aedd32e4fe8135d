/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The interface of platform/user in the kernel: what the engine and its parts need of the
 * place they run in, without a header of the C library or of Linux. The module supplies the
 * functions, in sources of its own that include Linux' headers and not this one. All are
 * called in process context, where sleeping is allowed, but for platform_bell_ring() and
 * platform_forks(), which are called in any context.
 *
 * Compiles with -ffreestanding -nostdinc -mgeneral-regs-only, by gcc and clang.
 */
#ifndef WEFT_PLATFORM_H
#define WEFT_PLATFORM_H

#include <rdma/fi_types.h>

#include "cache_line.h"
#include "sizes.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* sparse knows _Atomic as a qualifier alone. */
#ifdef __CHECKER__
#define _Atomic(type) type
#endif

#define static_assert _Static_assert
#define alignas _Alignas
#define alignof _Alignof

/* platform_bug - an assertion does not hold: says so; the caller stops its thread for good */
void platform_bug(const char *what, const char *file, int line);

#ifdef NDEBUG
#define assert(holds) ((void)0)
#else
/* The trap is an instruction that the kernel's tools know the end of a path by, as its own BUG() is. */
#define assert(holds)                                             \
	do {                                                      \
		if (unlikely(!(holds))) {                         \
			platform_bug(#holds, __FILE__, __LINE__); \
			__builtin_trap();                         \
		}                                                 \
	} while (0)
#endif

/*
 * Atomics: the part of <stdatomic.h> that names its orderings, over the compiler's built-ins.
 * clang wants built-ins of their own for _Atomic objects.
 */
typedef enum {
	memory_order_relaxed = __ATOMIC_RELAXED,
	memory_order_consume = __ATOMIC_CONSUME,
	memory_order_acquire = __ATOMIC_ACQUIRE,
	memory_order_release = __ATOMIC_RELEASE,
	memory_order_acq_rel = __ATOMIC_ACQ_REL,
	memory_order_seq_cst = __ATOMIC_SEQ_CST,
} memory_order;

#define atomic_thread_fence(order) __atomic_thread_fence(order)
#define atomic_signal_fence(order) __atomic_signal_fence(order)

#ifdef __clang__

#define atomic_init(obj, value)			     __c11_atomic_init(obj, value)
#define atomic_load_explicit(obj, order)	     __c11_atomic_load(obj, order)
#define atomic_store_explicit(obj, value, order)     __c11_atomic_store(obj, value, order)
#define atomic_exchange_explicit(obj, value, order)  __c11_atomic_exchange(obj, value, order)
#define atomic_fetch_add_explicit(obj, value, order) __c11_atomic_fetch_add(obj, value, order)
#define atomic_fetch_sub_explicit(obj, value, order) __c11_atomic_fetch_sub(obj, value, order)
#define atomic_fetch_and_explicit(obj, value, order) __c11_atomic_fetch_and(obj, value, order)
#define atomic_fetch_or_explicit(obj, value, order)  __c11_atomic_fetch_or(obj, value, order)
#define atomic_fetch_xor_explicit(obj, value, order) __c11_atomic_fetch_xor(obj, value, order)
#define atomic_compare_exchange_strong_explicit(obj, expected, value, done, failed) \
	__c11_atomic_compare_exchange_strong(obj, expected, value, done, failed)
#define atomic_compare_exchange_weak_explicit(obj, expected, value, done, failed) \
	__c11_atomic_compare_exchange_weak(obj, expected, value, done, failed)

#else

#define atomic_init(obj, value)			     atomic_store_explicit(obj, value, memory_order_relaxed)
#define atomic_load_explicit(obj, order)	     __atomic_load_n(obj, order)
#define atomic_store_explicit(obj, value, order)     __atomic_store_n(obj, value, order)
#define atomic_exchange_explicit(obj, value, order)  __atomic_exchange_n(obj, value, order)
#define atomic_fetch_add_explicit(obj, value, order) __atomic_fetch_add(obj, value, order)
#define atomic_fetch_sub_explicit(obj, value, order) __atomic_fetch_sub(obj, value, order)
#define atomic_fetch_and_explicit(obj, value, order) __atomic_fetch_and(obj, value, order)
#define atomic_fetch_or_explicit(obj, value, order)  __atomic_fetch_or(obj, value, order)
#define atomic_fetch_xor_explicit(obj, value, order) __atomic_fetch_xor(obj, value, order)
#define atomic_compare_exchange_strong_explicit(obj, expected, value, done, failed) \
	__atomic_compare_exchange_n(obj, expected, value, 0, done, failed)
#define atomic_compare_exchange_weak_explicit(obj, expected, value, done, failed) \
	__atomic_compare_exchange_n(obj, expected, value, 1, done, failed)

#endif

/* platform_alloc - @len zeroed bytes on a cache line boundary, or NULL */
void *platform_alloc(size_t len);
/* platform_free - takes what platform_alloc() returned, or NULL */
void platform_free(void *ptr);

/* platform_now_ns - monotonic time; not for the fast path */
uint64_t platform_now_ns(void);

/* platform_random - fill @len bytes that can't be guessed. Returns 0 or -FI_EIO */
int platform_random(void *buf, size_t len);

/* platform_descriptor_max - returns how many descriptors there may be: connections take none */
static inline uint32_t platform_descriptor_max(void)
{
	return UINT32_MAX;
}

/* A range of addresses: its first one, and the one behind its last */
struct platform_range {
	uintptr_t from, end;
};

/*
 * platform_accessible - returns true if an access to a range causes no fault that is not handled
 * platform_mapped - returns true if that is known of a range, whose pages are not touched
 * As in user space.
 */
bool platform_accessible(const void *addr, size_t len, bool write, struct platform_range *found);
bool platform_mapped(const void *addr, size_t len, bool write);

/* platform_yield - let another thread run on this core */
void platform_yield(void);

/*
 * platform_membarrier_open - returns 0 if platform_membarrier() is available, else -FI_E*
 * platform_membarrier - a full memory barrier on every core that may run the other side
 * Returns 0, or -FI_E*: there was none. It worked when it was opened, and may be forbidden since.
 */
int platform_membarrier_open(void);
int platform_membarrier(void);

/* PLATFORM_BARRIER_BROADCASTS - a barrier interrupts every processor, also those that run something else */
#define PLATFORM_BARRIER_BROADCASTS 1

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

/* platform_thread_self - returns 0: threads are not told apart */
static inline uintptr_t platform_thread_self(void)
{
	return 0;
}

/*
 * PLATFORM_SPIN_NS - for how long a thread spins at most before it sleeps: it does not. Sleeping takes no system call here,
 * and a processor is wanted by others
 */
#define PLATFORM_SPIN_NS 0u

/*
 * PLATFORM_HELD_MAX - messages of an endpoint that are here and have no receive, at most: each takes up to 512 bytes,
 * which nobody swaps out. Who sends more than is his part loses his connection. Completions in its queue that nobody
 * has read, of what peers do: while there are as many, peers are not heard
 */
#define PLATFORM_HELD_MAX 131072u

/* platform_relax - hint of a spinning loop */
void platform_relax(void);

/* A lock that sleeps when it has to wait. Not recursive. The module asserts that its own fits. */
struct platform_lock {
	_Alignas(8) unsigned char opaque[PLATFORM_LOCK_BYTES];
};

/* What the checks of a debugging kernel know of locks that are taken in the same order. All zero, and static */
struct platform_lock_class {
	_Alignas(8) unsigned char opaque[PLATFORM_LOCK_CLASS_BYTES];
};

/* platform_lock_init - a lock that is free; those that one line of the sources makes are one class */
void platform_lock_init_class(struct platform_lock *l, struct platform_lock_class *lock_class,
			      const char *name);
#define platform_lock_init(l)                                        \
	do {                                                         \
		static struct platform_lock_class lock_class_here;   \
		platform_lock_init_class((l), &lock_class_here, #l); \
	} while (0)
void platform_lock_fini(struct platform_lock *l);
void platform_lock(struct platform_lock *l);
/* platform_trylock - take it if it is free. Returns true if it was */
bool platform_trylock(struct platform_lock *l);
void platform_unlock(struct platform_lock *l);

/* platform_forks - returns 0: nothing forks here */
uint32_t platform_forks(void);

/*
 * A bell wakes the threads that sleep on it, from ring to clear. It may be rung from any context,
 * also an interrupt's, whatever locks are held there. A clear sees what came before the rings that
 * it takes back. It is a wait queue, not a descriptor, and may be copied as a descriptor may: one that is
 * open refers to memory of its own.
 */
struct platform_bell {
	_Alignas(8) unsigned char opaque[PLATFORM_BELL_BYTES];
};

/* What ends a sleep. */
struct platform_wakers {
	/* NULL: none */
	const struct platform_bell *bell;
	/* -1: there are no descriptors here */
	int descriptor;
	/* never called: nobody cancels a thread of the kernel */
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

/* What a part of the library does around fork(): nothing forks here. */
struct platform_fork {
	void (*prepare)(void);
	void (*parent)(void);
	void (*child)(void);
};

static inline void platform_fork_watch(struct platform_fork *watcher)
{
}

/* An object that is held during a fork: here there is none. */
#define PLATFORM_HOLD_INNER 16u
struct platform_hold {
	uint32_t rank;
	void (*hold)(struct platform_hold *hold);
	void (*release)(struct platform_hold *hold, bool child);
	struct platform_hold *next, **at;
};

void platform_hold_watch(struct platform_hold *hold);
void platform_hold_unwatch(struct platform_hold *hold);

/* An object with a function that is called in the child of a fork: here that never happens. */
struct platform_copy {
	void (*copied)(struct platform_copy *copy);
	struct platform_copy *next, **at;
};

void platform_copy_watch(struct platform_copy *copy);
void platform_copy_unwatch(struct platform_copy *copy);

/* A thread that works in rounds. Zeroed: it does not run. */
struct platform_thread {
	_Alignas(8) unsigned char opaque[PLATFORM_THREAD_BYTES];
};

/*
 * platform_thread_start - call @work->round repeatedly on a thread of its own
 * The thread takes no signals. Returns 0 or -FI_E*.
 */
int platform_thread_start(struct platform_thread *t, const struct platform_work *work);
/* platform_thread_runs - returns true if it was started and not stopped */
bool platform_thread_runs(const struct platform_thread *t);
/* platform_thread_wake - have the next round begin at once; waits for one that runs. Not from a round */
void platform_thread_wake(struct platform_thread *t);
/* platform_thread_stop - end it after the round that runs; does nothing for one that does not run */
void platform_thread_stop(struct platform_thread *t);

/* platform_bell_open - a bell that is not rung. Returns 0 or -FI_ENOMEM */
int platform_bell_open(struct platform_bell *bell);
void platform_bell_ring(const struct platform_bell *bell);
void platform_bell_clear(const struct platform_bell *bell);
void platform_bell_close(struct platform_bell *bell);
/* platform_bell_descriptor - returns -1: a bell is no descriptor here */
int platform_bell_descriptor(const struct platform_bell *bell);
/*
 * platform_bell_calls - from now on each ring of an open bell calls @wait too, in the thread that rings
 * @wait: the fid of a struct kofi_wait (kernel/kofi.h), which outlives the bell
 * Before anything else refers to the bell, which is rung in process context alone.
 */
struct fid_wait;
void platform_bell_calls(const struct platform_bell *bell, struct fid_wait *wait);

/* Poll sets and timers: there are none here. Opening returns -FI_ENOSYS, and nothing else is called. */
int platform_poll_set_open(const struct platform_bell *bell, int *poll_set);
int platform_poll_set_add(int poll_set, int fd);
void platform_poll_set_remove(int poll_set, int fd);
void platform_poll_set_ring(int poll_set, const struct platform_bell *bell);
void platform_poll_set_clear(int poll_set, const struct platform_bell *bell);
void platform_poll_set_close(int poll_set);
int platform_timer_open(int *timer);
void platform_timer_set(int timer, uint64_t ns);
void platform_timer_close(int timer);
int platform_descriptor_renew(int old, int fresh);

/*
 * platform_sleep - sleep until the bell is rung, but for @ns at most; @on: NULL: for all of it
 * Returns 0: signals do not end waits in the kernel.
 */
int platform_sleep(const struct platform_wakers *on, uint64_t ns);

/* Memory with a name: processes share it, the kernel has no part in it. The module answers -FI_ENOSYS. */
struct platform_shared;

int platform_shared_create(const char *name, size_t len, struct platform_shared **out);
int platform_shared_publish(struct platform_shared *shared);
int platform_shared_attach(const char *name, bool writable, struct platform_shared **out);
void *platform_shared_map(struct platform_shared *shared, size_t *len);
int platform_shared_lock(struct platform_shared *shared);
void platform_shared_unlock(struct platform_shared *shared);
void platform_shared_close(struct platform_shared *shared);

#endif
