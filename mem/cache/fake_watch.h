/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A watch of the tests, and the memory that it watches: it tells what the test lets it tell, when the test
 * lets it. A fake device finds in the page tables what the test says of each page. The test's thread.
 */
#ifndef WEFT_MEM_FAKE_WATCH_H
#define WEFT_MEM_FAKE_WATCH_H

#include "fake_device.h"
#include "watch.h"

#define AREA_PAGES 64u
#define UNTOLD_MAX 16u

struct fake_watch {
	struct mem_watch watch;
	struct mem_watcher *watcher;
	uint8_t *area;
	/* bytes of a page */
	size_t page;
	/* of each page of the area: what is there now, and whether it is watched */
	_Atomic uint32_t generation[AREA_PAGES];
	bool watched[AREA_PAGES];
	/* in the order in which they are told; their addresses are numbers of pages */
	struct mem_change untold[UNTOLD_MAX];
	uint32_t untold_cnt;
	/* valid() says 0 whatever happens */
	bool blind;
	/* add() fails */
	bool refuses;
	bool closed;
};

/* fake_watch_init - with an area that is mapped and touched, and that the device looks at */
void fake_watch_init(struct fake_watch *watch, struct fake_device *device);
/* fake_watch_fini - the device has no registration any more */
void fake_watch_fini(struct fake_watch *watch);

/* fake_watch_queue - a change of pages from @first to before @end is to be told */
void fake_watch_queue(struct fake_watch *watch, enum mem_change_kind kind, uint32_t first,
		      uint32_t end);

/* fake_watch_tell - tell the first of them; its kind is returned. There is one */
struct mem_change fake_watch_tell(struct fake_watch *watch);

#endif
