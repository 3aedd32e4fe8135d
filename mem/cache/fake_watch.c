/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The watch of the tests. add, remove and valid come with the cache's lock held, the rest by the test. */
#define _GNU_SOURCE
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fake_watch.h"
#include "list.h"

static struct fake_watch *watch_of(struct mem_watch *watch)
{
	return container_of(watch, struct fake_watch, watch);
}

static uint32_t page_of(const struct fake_watch *w, uintptr_t addr)
{
	return (uint32_t)((addr - (uintptr_t)w->area) / w->page);
}

static int start(struct mem_watch *watch, struct mem_watcher *watcher)
{
	watch_of(watch)->watcher = watcher;
	return 0;
}

static int add(struct mem_watch *watch, uintptr_t from, uintptr_t end)
{
	struct fake_watch *w = watch_of(watch);

	if (w->refuses)
		return -FI_EINVAL;
	if (page_of(w, from) >= AREA_PAGES || page_of(w, end) > AREA_PAGES)
		return 0; /* another one's memory: nothing changes there */
	for (uint32_t i = page_of(w, from); i < page_of(w, end); i++)
		w->watched[i] = true;
	return 0;
}

static void ignore(struct mem_watch *watch, uintptr_t from, uintptr_t end)
{
	struct fake_watch *w = watch_of(watch);

	for (uint32_t i = page_of(w, from); i < page_of(w, end) && i < AREA_PAGES; i++)
		w->watched[i] = false;
}

static int valid(struct mem_watch *watch, uintptr_t from, uintptr_t end)
{
	struct fake_watch *w = watch_of(watch);

	if (w->blind)
		return 0;
	if (w->untold_cnt)
		return -FI_EAGAIN;
	for (uint32_t i = page_of(w, from); i < page_of(w, end) && i < AREA_PAGES; i++) {
		if (!w->watched[i])
			return -FI_ENOENT;
	}
	return 0;
}

static void forked(struct mem_watch *watch)
{
}

static void close_it(struct mem_watch *watch)
{
	watch_of(watch)->closed = true;
}

static const struct mem_watch_ops fake_watch_ops = {
	start, add, ignore, valid, forked, close_it
};

void fake_watch_init(struct fake_watch *w, struct fake_device *device)
{
	*w = (struct fake_watch){ .watch.ops = &fake_watch_ops,
				  .page = (size_t)sysconf(_SC_PAGESIZE) };
	w->area = mmap(NULL, AREA_PAGES * w->page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w->area == MAP_FAILED)
		abort();
	memset(w->area, 1, AREA_PAGES * w->page);
	device->generations = w->generation;
	device->base = (uintptr_t)w->area;
	device->page_cnt = AREA_PAGES;
	device->page = w->page;
}

void fake_watch_fini(struct fake_watch *w)
{
	munmap(w->area, AREA_PAGES * w->page);
}

void fake_watch_queue(struct fake_watch *w, enum mem_change_kind kind, uint32_t first,
		      uint32_t end)
{
	assert(w->untold_cnt < UNTOLD_MAX);
	w->untold[w->untold_cnt++] =
		(struct mem_change){ .kind = kind, .start = first, .end = end };
}

struct mem_change fake_watch_tell(struct fake_watch *w)
{
	struct mem_change pages = w->untold[0], change = pages;

	change.start = (uintptr_t)w->area + pages.start * w->page;
	change.end = (uintptr_t)w->area + pages.end * w->page;
	platform_lock(w->watcher->lock);
	w->untold_cnt--;
	memmove(w->untold, w->untold + 1, w->untold_cnt * sizeof(pages));
	w->watcher->changed(w->watcher, &change);
	platform_unlock(w->watcher->lock);
	return pages;
}
