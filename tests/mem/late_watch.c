/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The watches of the controls. What comes from the userfaultfd passes through here, with the lock held. */
#include <rdma/fi_errno.h>
#include "late_watch.h"
#include "list.h"
#include "uffd_watch.h"

#define HELD_MAX 64u

struct late_watch {
	struct mem_watch watch;
	struct mem_watch *inner;
	enum late_kind kind;
	/* who is told, and what the inner watch tells */
	struct mem_watcher *outer;
	struct mem_watcher here;
	/* under the lock */
	struct mem_change held[HELD_MAX];
	uint32_t held_cnt;
};

static struct late_watch *watch_of(struct mem_watch *watch)
{
	return container_of(watch, struct late_watch, watch);
}

static void changed(struct mem_watcher *watcher, const struct mem_change *change)
{
	struct late_watch *w = container_of(watcher, struct late_watch, here);
	struct mem_change other = *change;

	if (w->kind == LATE_GONE) {
		if (other.kind == MEM_REMOVED)
			other.kind = MEM_UNMAPPED;
		w->outer->changed(w->outer, &other);
	} else if (w->held_cnt < HELD_MAX) {
		w->held[w->held_cnt++] = other;
	}
}

static int start(struct mem_watch *watch, struct mem_watcher *watcher)
{
	struct late_watch *w = watch_of(watch);

	w->outer = watcher;
	w->here = (struct mem_watcher){ .lock = watcher->lock, .changed = changed };
	return w->inner->ops->start(w->inner, &w->here);
}

static int add(struct mem_watch *watch, uintptr_t from, uintptr_t end)
{
	struct late_watch *w = watch_of(watch);

	return w->inner->ops->add(w->inner, from, end);
}

static void ignore(struct mem_watch *watch, uintptr_t from, uintptr_t end)
{
	struct late_watch *w = watch_of(watch);

	w->inner->ops->remove(w->inner, from, end);
}

static int valid(struct mem_watch *watch, uintptr_t from, uintptr_t end)
{
	return 0;
}

static void forked(struct mem_watch *watch)
{
	struct late_watch *w = watch_of(watch);

	w->inner->ops->forked(w->inner);
}

static void close_it(struct mem_watch *watch)
{
	struct late_watch *w = watch_of(watch);

	w->inner->ops->close(w->inner);
	platform_free(w);
}

static const struct mem_watch_ops late_watch_ops = {
	start, add, ignore, valid, forked, close_it
};

int late_watch_open(enum late_kind kind, struct mem_watch **watch)
{
	struct late_watch *w = platform_alloc(sizeof(*w));
	int ret;

	if (!w)
		return -FI_ENOMEM;
	w->watch.ops = &late_watch_ops;
	w->kind = kind;
	ret = mem_uffd_watch_open(&w->inner);
	if (ret) {
		platform_free(w);
		return ret;
	}
	*watch = &w->watch;
	return 0;
}

void late_watch_tell(struct mem_watch *watch)
{
	struct late_watch *w = watch_of(watch);

	platform_lock(w->outer->lock);
	for (uint32_t i = 0; i < w->held_cnt; i++)
		w->outer->changed(w->outer, &w->held[i]);
	w->held_cnt = 0;
	platform_unlock(w->outer->lock);
}
