/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What tells a cache of registrations that the memory behind some addresses is another one now: a
 * userfaultfd (uffd_watch.h), or a notifier of the kernel. A watch has one watcher.
 *
 * add, remove and valid are called with the watcher's lock held, by any thread.
 */
#ifndef WEFT_MEM_WATCH_H
#define WEFT_MEM_WATCH_H

#include "platform.h"

enum mem_change_kind {
	/* unmapped, or mapped over, by now */
	MEM_UNMAPPED,
	/* its pages are at another address by now */
	MEM_MOVED,
	/* its pages go at some later time, which nothing tells */
	MEM_REMOVED,
	/* changes were missed: any address may have changed */
	MEM_MISSED,
};

struct mem_change {
	enum mem_change_kind kind;
	/* addresses from start to before end */
	uintptr_t start;
	uintptr_t end;
};

struct mem_watcher {
	struct platform_lock *lock;
	/*
	 * changed - called once for each change of watched memory, with the lock held, on a thread of the
	 * watch. It does not allocate, free, or wait for anything but the lock.
	 */
	void (*changed)(struct mem_watcher *watcher, const struct mem_change *change);
};

struct mem_watch;

struct mem_watch_ops {
	/* start - begin to call @watcher. Called once, before the others; the lock is not held. 0 or -FI_E* */
	int (*start)(struct mem_watch *watch, struct mem_watcher *watcher);
	/* add - watch the pages of a range. Returns 0 or -FI_E*: they can't be watched */
	int (*add)(struct mem_watch *watch, uintptr_t start, uintptr_t end);
	/* remove - watch them no more, as far as they still are; changes may be told all the same */
	void (*remove)(struct mem_watch *watch, uintptr_t start, uintptr_t end);
	/*
	 * valid - look whether a range that was added is as it was then
	 * Returns 0: it is, and every change that any thread has seen before the call has been told; -FI_EAGAIN: a
	 * change of some range is not yet told; or another -FI_E*: the range is not as it was.
	 */
	int (*valid)(struct mem_watch *watch, uintptr_t start, uintptr_t end);
	/* forked - called in the child of a fork, where nothing is watched; then only close is called */
	void (*forked)(struct mem_watch *watch);
	/* close - tell nothing more; the lock is not held. Takes @watch */
	void (*close)(struct mem_watch *watch);
};

struct mem_watch {
	const struct mem_watch_ops *ops;
};

#endif
