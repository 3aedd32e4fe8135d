/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads that do a piece of work again and again. A thread holds its round_lock during each round, and
 * not while it sleeps. fork() takes all round_locks first, before any other part of the library prepares
 * for it, but for what is held first (platform_hold_watch()): no such thread is in a round then, and the child,
 * where they are gone, finds no lock held by one.
 *
 * A caller that takes a round_lock may hold a lock that the round wants: so rounds only try for such
 * locks (platform_trylock()).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include "platform.h"

/* Protects the list of holds, and is held through a fork: two of them never wait for each other. Rank 0. */
static pthread_mutex_t holds_lock = PTHREAD_MUTEX_INITIALIZER;
/* by rank */
static struct platform_hold *holds;
/* Protects the lists below, of the whole process. Taken before any round_lock. */
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static struct platform_thread *threads;
static struct platform_fork *watchers;
static _Atomic uint32_t forks;
static struct platform_copy *copies;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* Holds those from @h on that have a rank below that. Returns the first of the others. */
static struct platform_hold *hold_below(struct platform_hold *h, uint32_t rank)
{
	for (; h && h->rank < rank; h = h->next)
		h->hold(h);
	return h;
}

static void fork_prepare(void)
{
	struct platform_hold *inner;

	pthread_mutex_lock(&holds_lock);
	inner = hold_below(holds, PLATFORM_HOLD_INNER);
	pthread_mutex_lock(&threads_lock);
	for (struct platform_thread *t = threads; t; t = t->next)
		pthread_mutex_lock(&t->round_lock);
	hold_below(inner, UINT32_MAX);
	for (struct platform_fork *f = watchers; f; f = f->next)
		f->prepare();
}

static void release(bool child)
{
	for (struct platform_hold *h = holds; h; h = h->next)
		h->release(h, child);
	pthread_mutex_unlock(&holds_lock);
}

static void fork_parent(void)
{
	for (struct platform_fork *f = watchers; f; f = f->next)
		f->parent();
	for (struct platform_thread *t = threads; t; t = t->next)
		pthread_mutex_unlock(&t->round_lock);
	pthread_mutex_unlock(&threads_lock);
	release(false);
}

static void fork_child(void)
{
	struct platform_thread *t = threads;

	atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
	for (struct platform_fork *f = watchers; f; f = f->next)
		f->child();
	for (struct platform_copy *c = copies; c; c = c->next)
		c->copied(c);
	while (t) {
		struct platform_thread *next = t->next;

		pthread_mutex_unlock(&t->round_lock);
		atomic_store_explicit(&t->running, false, memory_order_relaxed);
		t->next = NULL;
		t = next;
	}
	threads = NULL;
	pthread_mutex_unlock(&threads_lock);
	release(true);
}

/*
 * Other allocators than the C library's have fork handlers of their own, which most install when something is first
 * allocated. That is done here before ours: their locks are taken after ours then, as by a thread that allocates
 * under a lock of ours.
 */
static void fork_start(void)
{
	platform_free(platform_alloc(1));
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/*
 * When the library is loaded, not when something is watched first: fork() takes the locks of a handler before
 * those of the handlers that were there earlier. A program's lock, which is held around calls of this
 * library, then comes before the library's also around a fork.
 */
__attribute__((constructor)) static void load(void)
{
	pthread_once(&fork_once, fork_start);
}

uint32_t platform_forks(void)
{
	pthread_once(&fork_once, fork_start);
	return atomic_load_explicit(&forks, memory_order_relaxed);
}

void platform_fork_watch(struct platform_fork *watcher)
{
	pthread_once(&fork_once, fork_start);
	pthread_mutex_lock(&threads_lock);
	if (!watcher->watched) {
		watcher->watched = true;
		watcher->next = watchers;
		watchers = watcher;
	}
	pthread_mutex_unlock(&threads_lock);
}

void platform_hold_watch(struct platform_hold *hold)
{
	struct platform_hold **at = &holds;

	pthread_once(&fork_once, fork_start);
	pthread_mutex_lock(&holds_lock);
	if (!hold->at) {
		while (*at && (*at)->rank < hold->rank)
			at = &(*at)->next;
		hold->at = at;
		hold->next = *at;
		if (*at)
			(*at)->at = &hold->next;
		*at = hold;
	}
	pthread_mutex_unlock(&holds_lock);
}

void platform_hold_unwatch(struct platform_hold *hold)
{
	pthread_mutex_lock(&holds_lock);
	if (hold->at) {
		*hold->at = hold->next;
		if (hold->next)
			hold->next->at = hold->at;
		hold->at = NULL;
	}
	pthread_mutex_unlock(&holds_lock);
}

void platform_copy_watch(struct platform_copy *copy)
{
	pthread_once(&fork_once, fork_start);
	pthread_mutex_lock(&threads_lock);
	if (!copy->at) {
		copy->at = &copies;
		copy->next = copies;
		if (copies)
			copies->at = &copy->next;
		copies = copy;
	}
	pthread_mutex_unlock(&threads_lock);
}

void platform_copy_unwatch(struct platform_copy *copy)
{
	pthread_mutex_lock(&threads_lock);
	if (copy->at) {
		*copy->at = copy->next;
		if (copy->next)
			copy->next->at = copy->at;
		copy->at = NULL;
	}
	pthread_mutex_unlock(&threads_lock);
}

/* Called with the round_lock held, which is released while the thread sleeps. */
static void thread_nap(struct platform_thread *t, uint64_t ns)
{
	struct timespec until;
	uint64_t end = platform_now_ns() + ns;

	until.tv_sec = (time_t)(end / 1000000000u);
	until.tv_nsec = (long)(end % 1000000000u);
	pthread_cond_timedwait(&t->wake, &t->round_lock, &until);
}

/* The same, on a bell: wake and stop ring it. */
static void thread_sleep(struct platform_thread *t, const struct platform_wakers *on,
			 uint64_t ns)
{
	pthread_mutex_unlock(&t->round_lock);
	platform_sleep(on, ns);
	pthread_mutex_lock(&t->round_lock);
}

static void *thread_main(void *arg)
{
	struct platform_thread *t = arg;

	/* The kernel would add 50 us to each nap. */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	pthread_setname_np(pthread_self(), t->name);
	pthread_mutex_lock(&t->round_lock);
	while (!t->stop) {
		uint64_t ns = t->work.round(t->work.arg);
		struct platform_wakers on;
		bool sleeps = t->work.sleep_on && t->work.sleep_on(t->work.arg, &on);

		/* One that was woken during the round does not nap. */
		if (t->stop || t->woken)
			;
		else if (sleeps)
			thread_sleep(t, &on, ns);
		else
			thread_nap(t, ns);
		t->woken = false;
	}
	pthread_mutex_unlock(&t->round_lock);
	return NULL;
}

/* A fork sees the thread from here on, also while it is created. */
static void thread_list(struct platform_thread *t)
{
	pthread_mutex_lock(&threads_lock);
	t->next = threads;
	threads = t;
	pthread_mutex_unlock(&threads_lock);
}

static void thread_unlist(struct platform_thread *t)
{
	struct platform_thread **at = &threads;

	pthread_mutex_lock(&threads_lock);
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	pthread_mutex_unlock(&threads_lock);
}

/* Signals are for the program's own threads. */
static int thread_create(struct platform_thread *t)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&t->id, NULL, thread_main, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int platform_thread_start(struct platform_thread *t, const struct platform_work *work)
{
	pthread_condattr_t attr;
	int err;

	pthread_once(&fork_once, fork_start);
	*t = (struct platform_thread){ .work = *work };
	snprintf(t->name, sizeof(t->name), "%s", work->name);
	pthread_mutex_init(&t->round_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->wake, &attr);
	pthread_condattr_destroy(&attr);
	thread_list(t);
	/* It allocates, so threads_lock is not held: an allocator may have taken its locks for a fork already. */
	err = thread_create(t);
	if (err) {
		thread_unlist(t);
		return err == EAGAIN ? -FI_EAGAIN : -FI_ENOMEM;
	}
	/* R:thread.running  all of it; pairs A:thread.running */
	atomic_store_explicit(&t->running, true, memory_order_release);
	return 0;
}

void platform_thread_wake(struct platform_thread *t)
{
	if (!platform_thread_runs(t))
		return;
	pthread_mutex_lock(&t->round_lock);
	t->woken = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->round_lock);
	if (t->work.wake)
		t->work.wake(t->work.arg);
}

void platform_thread_stop(struct platform_thread *t)
{
	int cancel;

	if (!platform_thread_runs(t))
		return;
	thread_unlist(t);
	pthread_mutex_lock(&t->round_lock);
	t->stop = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->round_lock);
	if (t->work.wake)
		t->work.wake(t->work.arg);
	/* Who is cancelled in it would leave the locks that it holds. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_join(t->id, NULL);
	pthread_setcancelstate(cancel, NULL);
	pthread_cond_destroy(&t->wake);
	pthread_mutex_destroy(&t->round_lock);
	atomic_store_explicit(&t->running, false, memory_order_relaxed);
}
