/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A watch of the tests over the area of a fake device: it tells what the test lets it tell, when the test
 * lets it. The test's thread.
 */
#ifndef WEFT_MEM_FAKE_WATCH_H
#define WEFT_MEM_FAKE_WATCH_H

#include "fake_device.h"
#include "watch.h"

#define UNTOLD_MAX 16u

struct fake_watch {
	struct mem_watch watch;
	struct mem_watcher *watcher;
	const struct fake_device *device;
	/* each page of the area */
	bool watched[AREA_PAGES];
	/* in the order in which they are told; their addresses are numbers of pages */
	struct mem_change untold[UNTOLD_MAX];
	uint32_t untold_cnt;
	/* valid() says 0 whatever happens */
	bool blind;
	bool closed;
};

void fake_watch_init(struct fake_watch *watch, const struct fake_device *device);

/* fake_watch_queue - a change of pages from @first to before @end is to be told */
void fake_watch_queue(struct fake_watch *watch, enum mem_change_kind kind, uint32_t first,
		      uint32_t end);

/* fake_watch_tell - tell the first of them; its kind is returned. There is one */
struct mem_change fake_watch_tell(struct fake_watch *watch);

#endif
