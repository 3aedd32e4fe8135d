/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread that reads the userfaultfd, and the check of a range by the kernel.
 *
 * The thread reads without the watcher's lock, and tells what it has read once it gets that. In between the
 * change is marked as untold, and no range is valid. It is a plain thread, not one that works in rounds: fork()
 * waits for the end of rounds, and then for locks of malloc, whose holder may wait for this thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include "descriptor.h"
#include "list.h"
#include "uffd.h"
#include "uffd_watch.h"

#define EVENTS_MAX 1024
#define TRY_AGAIN_NS \
	20000 /* until the lock is tried again, for want of which changes are untold */
/* For an event that ought to come at once; its thread waited 0.3 s for a core where eleven programs ran on two. */
#define SELF_TEST_MS 10000

struct uffd_watch {
	struct mem_watch watch;
	struct mem_watcher *watcher;
	int uffd;
	struct platform_bell stop;
	pthread_t thread;
	bool runs;
	/* read and not told; the thread's own */
	struct sys_uffd_event events[EVENTS_MAX];
	int event_cnt;
	/* some were read for which there was no room, or the descriptor is broken */
	bool missed;
	bool broken;
	/*
	 * Not 0 from before the thread reads an event until it has told it. Set before the read that lets
	 * the thread of the change go on, and cleared with the lock held.
	 */
	_Atomic int untold;
};

static struct uffd_watch *watch_of(struct mem_watch *watch)
{
	return container_of(watch, struct uffd_watch, watch);
}

static void tell(struct uffd_watch *w, enum mem_change_kind kind, uintptr_t start, uintptr_t end)
{
	struct mem_change change = { .kind = kind, .start = start, .end = end };

	w->watcher->changed(w->watcher, &change);
}

static void tell_event(struct uffd_watch *w, const struct sys_uffd_event *e)
{
	switch (e->kind) {
	case SYS_UFFD_UNMAP:
		tell(w, MEM_UNMAPPED, e->start, e->end);
		break;
	case SYS_UFFD_REMAP:
		tell(w, MEM_MOVED, e->start, e->end);
		/* The userfaultfd has gone along with the pages. */
		tell(w, MEM_MOVED, e->to, e->to + (e->end - e->start));
		break;
	case SYS_UFFD_REMOVE:
		tell(w, MEM_REMOVED, e->start, e->end);
		break;
	}
}

/* Reads what is there. It is never left unread: threads of the program wait for that. */
static void gather(struct uffd_watch *w)
{
	struct sys_uffd_event more[8];
	int cnt;

	/* R:uffd_watch.untold  before the change's thread goes on: the read orders it; pairs A:uffd_watch.untold */
	atomic_store_explicit(&w->untold, 1, memory_order_seq_cst);
	do {
		cnt = sys_uffd_read(w->uffd, more, 8);
		for (int i = 0; i < cnt; i++) {
			if (w->event_cnt < EVENTS_MAX)
				w->events[w->event_cnt++] = more[i];
			else
				w->missed = true;
		}
	} while (cnt > 0);
	if (cnt < 0)
		w->missed = w->broken = true;
}

/* Tells what was read, if the lock is free. */
static void tell_all(struct uffd_watch *w)
{
	if (!w->event_cnt && !w->missed) {
		atomic_store_explicit(&w->untold, 0, memory_order_relaxed);
		return;
	}
	if (!platform_trylock(w->watcher->lock))
		return;
	for (int i = 0; i < w->event_cnt; i++)
		tell_event(w, &w->events[i]);
	if (w->missed)
		tell(w, MEM_MISSED, 0, UINTPTR_MAX);
	w->event_cnt = 0;
	w->missed = false;
	/* A descriptor that is broken tells nothing any more: no range is valid from now on. */
	if (!w->broken)
		atomic_store_explicit(&w->untold, 0, memory_order_relaxed);
	platform_unlock(w->watcher->lock);
}

static void *watch_main(void *arg)
{
	static const struct timespec soon = { .tv_nsec = TRY_AGAIN_NS };
	struct uffd_watch *w = arg;
	struct pollfd p[2] = {
		{ .fd = platform_bell_descriptor(&w->stop), .events = POLLIN },
		{ .fd = w->uffd, .events = POLLIN },
	};

	for (;;) {
		bool untold = w->event_cnt || w->missed;

		ppoll(p, w->broken ? 1 : 2, untold ? &soon : NULL, NULL);
		if (p[0].revents)
			return NULL;
		if (!w->broken)
			gather(w);
		tell_all(w);
	}
}

/* A thread of our own, which takes no signals of the program. Returns 0 or -FI_E*. */
static int thread_start(pthread_t *thread, void *(*function)(void *), void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(thread, NULL, function, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

/* It is about to end. Whoever waits for it may hold locks: it is not cancelled here. */
static void thread_join(pthread_t thread)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_join(thread, NULL);
	pthread_setcancelstate(state, NULL);
}

static int watch_start(struct mem_watch *watch, struct mem_watcher *watcher)
{
	struct uffd_watch *w = watch_of(watch);
	int ret;

	w->watcher = watcher;
	ret = thread_start(&w->thread, watch_main, w);
	if (!ret) {
		pthread_setname_np(w->thread, "weft-mem-watch");
		w->runs = true;
	}
	return ret;
}

static int watch_add(struct mem_watch *watch, uintptr_t start, uintptr_t end)
{
	return sys_uffd_watch(watch_of(watch)->uffd, (void *)start, end - start);
}

static void watch_remove(struct mem_watch *watch, uintptr_t start, uintptr_t end)
{
	sys_uffd_unwatch(watch_of(watch)->uffd, (void *)start, end - start);
}

/*
 * The kernel first: a change of which the event is read by then was marked as untold before that, and
 * is still, or the watcher was told.
 */
static int watch_valid(struct mem_watch *watch, uintptr_t start, uintptr_t end)
{
	struct uffd_watch *w = watch_of(watch);
	int ret = sys_uffd_check(w->uffd, (void *)start, end - start);

	if (ret)
		return ret;
	/* A:uffd_watch.untold  after the kernel's answer; pairs R:uffd_watch.untold */
	return atomic_load_explicit(&w->untold, memory_order_seq_cst) ? -FI_EAGAIN : 0;
}

static void watch_forked(struct mem_watch *watch)
{
	struct uffd_watch *w = watch_of(watch);

	sys_descriptor_close(w->uffd);
	w->uffd = -1;
	w->runs = false;
}

static void watch_close(struct mem_watch *watch)
{
	struct uffd_watch *w = watch_of(watch);

	if (w->runs) {
		platform_bell_ring(&w->stop);
		thread_join(w->thread);
	}
	if (w->uffd >= 0)
		sys_descriptor_close(w->uffd);
	platform_bell_close(&w->stop);
	platform_free(w);
}

static const struct mem_watch_ops uffd_watch_ops = {
	.start = watch_start,
	.add = watch_add,
	.remove = watch_remove,
	.valid = watch_valid,
	.forked = watch_forked,
	.close = watch_close,
};

/* A change of one page, made by a thread that sleeps until its event is read. */
struct trial {
	uint8_t *at;
	size_t len;
	bool unmap;
	/* rings when the call has returned */
	struct platform_bell over;
};

static void *make_change(void *arg)
{
	struct trial *t = arg;

	if (t->unmap)
		munmap(t->at, t->len);
	else
		madvise(t->at, t->len, MADV_DONTNEED);
	platform_bell_ring(&t->over);
	return NULL;
}

/* Returns true once an event can be read; false: the call has returned without, or is not made in time. */
static bool event_waits(int uffd, const struct trial *t)
{
	struct pollfd p[2] = {
		{ .fd = uffd, .events = POLLIN },
		{ .fd = platform_bell_descriptor(&t->over), .events = POLLIN },
	};
	int cnt;

	/* The program's signals end a poll, whatever their handlers ask for. */
	do {
		cnt = sys_descriptor_poll(p, 2, SELF_TEST_MS);
	} while (cnt < 0 && errno == EINTR);
	return cnt > 0 && p[0].revents == POLLIN;
}

/* Returns true if @kind of @t is told while the check of the page @other says that something changes. */
static bool event_comes(int uffd, struct trial *t, enum sys_uffd_kind kind, const void *other)
{
	struct sys_uffd_event e;

	return event_waits(uffd, t) && sys_uffd_check(uffd, other, t->len) == -FI_EAGAIN &&
	       sys_uffd_read(uffd, &e, 1) == 1 && e.kind == kind &&
	       e.start == (uintptr_t)t->at && e.end == (uintptr_t)t->at + t->len;
}

/* Closing the userfaultfd lets the thread go on where its event was not read. Returns 0 or -FI_E*. */
static int try_change(int *uffd, struct trial *t, enum sys_uffd_kind kind, const void *other)
{
	pthread_t thread;
	int ret = platform_bell_open(&t->over);

	if (ret)
		return ret;
	ret = thread_start(&thread, make_change, t);
	if (ret)
		goto out;
	if (!event_comes(*uffd, t, kind, other)) {
		sys_descriptor_close(*uffd);
		*uffd = -1;
	}
	thread_join(thread);
	ret = *uffd < 0 ? -FI_EIO : 0;
out:
	platform_bell_close(&t->over);
	return ret;
}

/* Three pages: the second is unmapped, the third removed, and the first tells of both. */
static int self_test(int *uffd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	struct trial unmap = { .at = p + page, .len = page, .unmap = true };
	struct trial remove = { .at = p + 2 * page, .len = page };
	int ret;

	if (p == MAP_FAILED)
		return -FI_ENOMEM;
	memset(p, 1, 3 * page);
	ret = sys_uffd_watch(*uffd, p, 3 * page);
	if (!ret && sys_uffd_check(*uffd, p, 3 * page))
		ret = -FI_EIO;
	if (!ret)
		ret = try_change(uffd, &unmap, SYS_UFFD_UNMAP, p);
	if (!ret && (sys_uffd_check(*uffd, p, 3 * page) != -FI_ENOENT ||
		     sys_uffd_check(*uffd, p, page)))
		ret = -FI_EIO;
	if (!ret)
		ret = try_change(uffd, &remove, SYS_UFFD_REMOVE, p);
	/* Nothing reads events any more: what is unmapped must not be watched. */
	for (int i = 0; i < 3 && *uffd >= 0; i += 2)
		sys_uffd_unwatch(*uffd, p + (size_t)i * page, page);
	munmap(p, page);
	munmap(p + 2 * page, page);
	return ret;
}

/* One whose events are as they should be. Returns the descriptor, owned, or -FI_E*. */
static int open_tested(void)
{
	int uffd = sys_uffd_open();
	int ret = uffd < 0 ? uffd : self_test(&uffd);

	if (ret && uffd >= 0)
		sys_descriptor_close(uffd);
	return ret ? ret : uffd;
}

int mem_uffd_watch_open(struct mem_watch **watch)
{
	struct uffd_watch *w = platform_alloc(sizeof(*w));
	int ret;

	if (!w)
		return -FI_ENOMEM;
	w->watch.ops = &uffd_watch_ops;
	ret = platform_bell_open(&w->stop);
	if (ret)
		goto err_free;
	w->uffd = open_tested();
	/* The kernel's answer to a check may be that it is busy with the page table. */
	if (w->uffd == -FI_EIO)
		w->uffd = open_tested();
	if (w->uffd < 0) {
		ret = w->uffd;
		goto err_close;
	}
	*watch = &w->watch;
	return 0;

err_close:
	platform_bell_close(&w->stop);
err_free:
	platform_free(w);
	return ret;
}
