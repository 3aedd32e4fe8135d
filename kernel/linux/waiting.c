/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Locks, bells, and threads that work in rounds. All of it in process context, but for ringing, which
 * is allowed in any, interrupts included.
 */
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include <rdma/fi_errno.h>

#include "kofi.h"
#include "platform.h"

/* The longest sleep that has an end, ns: a year */
#define SLEEP_MAX_NS (365ull * 24 * 3600 * NSEC_PER_SEC)

void platform_lock_init_class(struct platform_lock *l, struct platform_lock_class *lock_class,
			      const char *name)
{
	__mutex_init(&l->mutex, name, &lock_class->key);
}

void platform_lock_fini(struct platform_lock *l)
{
	mutex_destroy(&l->mutex);
}

void platform_lock(struct platform_lock *l)
{
	mutex_lock(&l->mutex);
}

bool platform_trylock(struct platform_lock *l)
{
	/* A caller that does not get the lock may go on to wait for it. */
	might_sleep();
	return mutex_trylock(&l->mutex);
}

void platform_unlock(struct platform_lock *l)
{
	mutex_unlock(&l->mutex);
}

int platform_bell_open(struct platform_bell *bell)
{
	bell->open = platform_alloc(sizeof(*bell->open));
	if (!bell->open)
		return -FI_ENOMEM;
	init_waitqueue_head(&bell->open->sleepers);
	atomic_set(&bell->open->rung, 0);
	bell->open->wait = NULL;
	return 0;
}

void platform_bell_ring(const struct platform_bell *bell)
{
	struct kofi_wait *wait = bell->open->wait;

	/* A full barrier: what was stored before is seen by who takes the ring back. */
	if (atomic_xchg(&bell->open->rung, 1))
		return;
	/* All of them, as none is exclusive; on this processor, as a socket wakes who reads it: what has come is in its cache. */
	__wake_up_sync(&bell->open->sleepers, TASK_NORMAL);
	if (wait)
		wait->wake(wait);
}

void platform_bell_calls(const struct platform_bell *bell, struct fid_wait *wait)
{
	bell->open->wait = container_of(wait, struct kofi_wait, fid);
}

void platform_bell_clear(const struct platform_bell *bell)
{
	atomic_xchg(&bell->open->rung, 0);
}

void platform_bell_close(struct platform_bell *bell)
{
	platform_free(bell->open);
}

int platform_bell_descriptor(const struct platform_bell *bell)
{
	return -1;
}

/* A signal that comes during a sleep ends it. While it is pending it would end each later one at once. */
static int sleep_state(void)
{
	return signal_pending(current) ? TASK_IDLE : TASK_INTERRUPTIBLE;
}

static void sleep_once(u64 ns)
{
	ktime_t left = ns_to_ktime(min_t(u64, ns, SLEEP_MAX_NS));

	schedule_hrtimeout(ns == U64_MAX ? NULL : &left, HRTIMER_MODE_REL);
}

int platform_sleep(const struct platform_wakers *on, u64 ns)
{
	struct kofi_bell *bell = on && on->bell ? on->bell->open : NULL;
	DEFINE_WAIT(entry);

	might_sleep();
	if (!bell) {
		set_current_state(sleep_state());
		sleep_once(ns);
		return 0;
	}
	prepare_to_wait(&bell->sleepers, &entry, sleep_state());
	if (!atomic_read(&bell->rung))
		sleep_once(ns);
	finish_wait(&bell->sleepers, &entry);
	return 0;
}

/* Until @t is woken, but for @ns at most. Called without its round_lock. */
static void thread_nap(struct platform_thread *t, u64 ns)
{
	DEFINE_WAIT(entry);

	prepare_to_wait(&t->nap, &entry, TASK_IDLE);
	if (!READ_ONCE(t->woken) && !READ_ONCE(t->stop))
		sleep_once(ns);
	finish_wait(&t->nap, &entry);
}

static int thread_main(void *arg)
{
	struct platform_thread *t = arg;
	/* It holds what consumers wait for that write memory back: what it allocates must not wait for them. */
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&t->round_lock);
	while (!t->stop) {
		u64 ns = t->work.round(t->work.arg);
		struct platform_wakers on;
		bool sleeps = t->work.sleep_on && t->work.sleep_on(t->work.arg, &on);
		bool again = t->stop || t->woken;

		mutex_unlock(&t->round_lock);
		if (again)
			cond_resched();
		else if (sleeps)
			platform_sleep(&on, ns);
		else
			thread_nap(t, ns);
		mutex_lock(&t->round_lock);
		t->woken = false;
	}
	mutex_unlock(&t->round_lock);
	memalloc_noio_restore(noio);
	while (!kthread_should_stop())
		schedule_timeout_idle(1);
	return 0;
}

int platform_thread_start(struct platform_thread *t, const struct platform_work *work)
{
	memset(t, 0, sizeof(*t));
	t->work = *work;
	mutex_init(&t->round_lock);
	init_waitqueue_head(&t->nap);
	t->task = kthread_create(thread_main, t, "%s", work->name);
	if (IS_ERR(t->task))
		return PTR_ERR(t->task) == -ENOMEM ? -FI_ENOMEM : -FI_EAGAIN;
	/* R:thread.running  all of it; pairs A:thread.running */
	smp_store_release(&t->running, true);
	wake_up_process(t->task);
	return 0;
}

bool platform_thread_runs(const struct platform_thread *t)
{
	/* A:thread.running  before what it is started with; pairs R:thread.running */
	return smp_load_acquire(&t->running);
}

/* Sets a word that the thread looks at before it sleeps, between two rounds. */
static void thread_tell(struct platform_thread *t, bool *word)
{
	mutex_lock(&t->round_lock);
	WRITE_ONCE(*word, true);
	mutex_unlock(&t->round_lock);
	wake_up_all(&t->nap);
	if (t->work.wake)
		t->work.wake(t->work.arg);
}

void platform_thread_wake(struct platform_thread *t)
{
	if (platform_thread_runs(t))
		thread_tell(t, &t->woken);
}

void platform_thread_stop(struct platform_thread *t)
{
	if (!platform_thread_runs(t))
		return;
	thread_tell(t, &t->stop);
	kthread_stop(t->task);
	mutex_destroy(&t->round_lock);
	WRITE_ONCE(t->running, false);
}
