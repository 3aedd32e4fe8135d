/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions of platform/kernel/platform.h on Linux' own types, for the sources that carry them out. That header
 * says what they do. The two are never included together.
 */
#ifndef KOFI_LINUX_PLATFORM_H
#define KOFI_LINUX_PLATFORM_H

#include <linux/build_bug.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/wait.h>

#include <rdma/fabric.h>

#include "sizes.h"

struct platform_range {
	uintptr_t from, end;
};

struct platform_lock {
	struct mutex mutex;
};

struct platform_lock_class {
	struct lock_class_key key;
};

/* What a bell refers to while it is open. Copies of the bell refer to the same. */
struct kofi_bell {
	wait_queue_head_t sleepers;
	/* 1 from ring to clear */
	atomic_t rung;
	/* What a ring calls, or NULL */
	struct kofi_wait *wait;
};

struct platform_bell {
	struct kofi_bell *open;
};

struct platform_wakers {
	const struct platform_bell *bell;
	int descriptor;
};

struct platform_work {
	const char *name;
	u64 (*round)(void *arg);
	bool (*sleep_on)(void *arg, struct platform_wakers *on);
	void (*wake)(void *arg);
	void *arg;
};

struct platform_thread {
	struct task_struct *task;
	/* Held during a round */
	struct mutex round_lock;
	wait_queue_head_t nap;
	struct platform_work work;
	/* The thread is to look again, or to end: set before @nap is woken */
	bool stop, woken;
	/* Last, so that what is read without a lock is not among the rest */
	bool running;
};

static_assert(sizeof(struct platform_lock) <= PLATFORM_LOCK_BYTES);
static_assert(sizeof(struct platform_lock_class) <= PLATFORM_LOCK_CLASS_BYTES);
static_assert(sizeof(struct platform_bell) <= PLATFORM_BELL_BYTES);
static_assert(sizeof(struct platform_thread) <= PLATFORM_THREAD_BYTES);

struct platform_hold;
struct platform_copy;

/* memory.c */
void *platform_alloc(size_t len);
void platform_free(void *ptr);
bool platform_accessible(const void *addr, size_t len, bool write, struct platform_range *found);
bool platform_mapped(const void *addr, size_t len, bool write);
/* kofi_memory_held - how many allocations of the module have not been freed */
long kofi_memory_held(void);
/* kofi_memory_failed - how many allocations there was no memory for */
long kofi_memory_failed(void);

/* waiting.c */
void platform_lock_init_class(struct platform_lock *l, struct platform_lock_class *lock_class,
			      const char *name);
void platform_lock_fini(struct platform_lock *l);
void platform_lock(struct platform_lock *l);
bool platform_trylock(struct platform_lock *l);
void platform_unlock(struct platform_lock *l);
int platform_bell_open(struct platform_bell *bell);
void platform_bell_ring(const struct platform_bell *bell);
void platform_bell_clear(const struct platform_bell *bell);
void platform_bell_close(struct platform_bell *bell);
int platform_bell_descriptor(const struct platform_bell *bell);
void platform_bell_calls(const struct platform_bell *bell, struct fid_wait *wait);
int platform_sleep(const struct platform_wakers *on, u64 ns);
int platform_thread_start(struct platform_thread *t, const struct platform_work *work);
bool platform_thread_runs(const struct platform_thread *t);
void platform_thread_wake(struct platform_thread *t);
void platform_thread_stop(struct platform_thread *t);

/* place.c */
void platform_bug(const char *what, const char *file, int line);
u64 platform_now_ns(void);
int platform_random(void *buf, size_t len);
void platform_yield(void);
void platform_relax(void);
int platform_membarrier_open(void);
int platform_membarrier(void);
u32 platform_forks(void);
void platform_hold_watch(struct platform_hold *hold);
void platform_hold_unwatch(struct platform_hold *hold);
void platform_copy_watch(struct platform_copy *copy);
void platform_copy_unwatch(struct platform_copy *copy);
int platform_poll_set_open(const struct platform_bell *bell, int *poll_set);
int platform_poll_set_add(int poll_set, int fd);
void platform_poll_set_remove(int poll_set, int fd);
void platform_poll_set_ring(int poll_set, const struct platform_bell *bell);
void platform_poll_set_clear(int poll_set, const struct platform_bell *bell);
void platform_poll_set_close(int poll_set);
int platform_timer_open(int *timer);
void platform_timer_set(int timer, u64 ns);
void platform_timer_close(int timer);
int platform_descriptor_renew(int old, int fresh);

#endif
