/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared address tables: each entry is a seqlock of its own. A lock of the caller excludes other
 * writers. Called by the engine for address vectors that have a name.
 */
#include "av_shared.h"

#define AV_SHARED_VERSION 3u
#define TRIES		  64 /* readings of an entry that changes while it is read */
#define ENTRY_BYTES	  (sizeof(struct av_shared_entry) + sizeof(fi_addr_t))

static uint32_t cap_of(size_t cnt)
{
	if (cnt <= AV_SHARED_MIN)
		return AV_SHARED_MIN;
	return cnt < AV_SHARED_MAX ? (uint32_t)cnt : AV_SHARED_MAX;
}

size_t av_shared_len(size_t cnt)
{
	return sizeof(struct av_shared) + (size_t)cap_of(cnt) * ENTRY_BYTES;
}

void av_shared_format(void *map, size_t len, const char *name)
{
	struct av_shared *shared = map;

	shared->version = AV_SHARED_VERSION;
	shared->cap = (uint32_t)((len - sizeof(*shared)) / ENTRY_BYTES);
	memcpy(shared->name, name, strlen(name) + 1);
	shared->magic = AV_SHARED_MAGIC;
}

int av_view_init(struct av_view *view, void *map, size_t len, const char *name,
		 struct av_table *table)
{
	struct av_shared *shared = map;
	uint32_t cap;

	if (len < sizeof(*shared) || shared->magic != AV_SHARED_MAGIC ||
	    shared->version != AV_SHARED_VERSION)
		return -FI_EINVAL;
	cap = *(volatile uint32_t *)&shared->cap;
	if (!cap || cap > AV_SHARED_MAX || (len - sizeof(*shared)) / ENTRY_BYTES < cap)
		return -FI_EINVAL;
	if (strlen(name) >= AV_SHARED_NAME || memcmp(shared->name, name, strlen(name) + 1))
		return -FI_EINVAL;
	view->stamps = platform_alloc((size_t)cap * sizeof(*view->stamps));
	if (!view->stamps)
		return -FI_ENOMEM;
	view->map = shared;
	view->addrs = (fi_addr_t *)(void *)&shared->entries[cap];
	view->table = table;
	view->cap = cap;
	view->seen = 0;
	return 0;
}

void av_view_fini(struct av_view *view)
{
	platform_free(view->stamps);
	*view = (struct av_view){ 0 };
}

/* Load that is ordered before all later ones: the stamp is read again after them. */
static void read_addr(struct weft_addr *from, struct weft_addr *to)
{
	uint64_t words[sizeof(*to) / sizeof(uint64_t)];
	_Atomic uint64_t *at = (_Atomic uint64_t *)(void *)from;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = atomic_load_explicit(&at[i], memory_order_acquire);
	memcpy(to, words, sizeof(*to));
}

/* Reads an entry and its stamp. Returns false if it kept changing. */
static bool read_entry(struct av_shared_entry *entry, uint64_t *stamp, struct weft_addr *addr)
{
	for (int i = 0; i < TRIES; i++) {
		/* A:av.stamp  the address before it; pairs R:av.stamp */
		*stamp = atomic_load_explicit(&entry->stamp, memory_order_acquire);
		if (!(*stamp & 1))
			return true;
		read_addr(&entry->addr, addr);
		if (atomic_load_explicit(&entry->stamp, memory_order_relaxed) == *stamp)
			return true;
	}
	return false;
}

int av_view_pull(struct av_view *view,
		 void (*changed)(void *arg, fi_addr_t index, const struct weft_addr *addr),
		 void *arg)
{
	uint64_t change = atomic_load_explicit(&view->map->change, memory_order_acquire);
	uint32_t used = atomic_load_explicit(&view->map->used, memory_order_acquire);
	bool whole = true;
	int ret = 0;

	if (change == view->seen)
		return 0;
	for (uint32_t i = 0; i < used && i < view->cap; i++) {
		struct weft_addr addr;
		uint64_t stamp;

		if (!read_entry(&view->map->entries[i], &stamp, &addr)) {
			whole = false;
			continue;
		}
		if (stamp == view->stamps[i])
			continue;
		if (!av_drop(view->table, i))
			changed(arg, i, NULL);
		view->stamps[i] = 0;
		if (stamp & 1 && addr_valid(&addr)) {
			ret = av_put(view->table, i, &addr);
			if (ret)
				return ret;
			changed(arg, i, &addr);
		}
		view->stamps[i] = stamp;
	}
	if (whole && !(change & 1))
		view->seen = change;
	return 0;
}

static void change_begin(struct av_view *view)
{
	uint64_t change = atomic_load_explicit(&view->map->change, memory_order_relaxed);

	/*
	 * A writer that died leaves an odd value; the next writer sets another odd one, so that
	 * readers of the first one read again.
	 */
	atomic_exchange_explicit(&view->map->change, change + (change & 1 ? 2 : 1),
				 memory_order_acq_rel);
}

static void change_end(struct av_view *view)
{
	uint64_t change = atomic_load_explicit(&view->map->change, memory_order_relaxed) + 1;

	/* R:av.change  all entries before it; pairs A:av.change */
	atomic_store_explicit(&view->map->change, change, memory_order_release);
	view->seen = change;
}

/* Changes the state of an entry. */
static void stamp_next(struct av_view *view, uint32_t at)
{
	struct av_shared_entry *entry = &view->map->entries[at];

	view->stamps[at] = atomic_load_explicit(&entry->stamp, memory_order_relaxed) + 1;
	/* R:av.stamp  the address before it; pairs A:av.stamp */
	atomic_store_explicit(&entry->stamp, view->stamps[at], memory_order_release);
}

int av_view_insert(struct av_view *view, const struct weft_addr *addr, fi_addr_t *index)
{
	fi_addr_t at = av_find(view->table, addr);
	struct av_shared_entry *entry;
	int ret;

	if (at != FI_ADDR_NOTAVAIL) {
		entry = &view->map->entries[at];
		if (entry->refs == UINT32_MAX)
			return -FI_ENOMEM;
		entry->refs++;
		*index = at;
		return 0;
	}
	at = av_lowest(view->table);
	if (at >= view->cap)
		return -FI_ENOMEM;
	ret = av_put(view->table, at, addr);
	if (ret)
		return ret;
	entry = &view->map->entries[at];
	change_begin(view);
	entry->addr = *addr;
	entry->refs = 1;
	view->addrs[at] = at;
	if (atomic_load_explicit(&view->map->used, memory_order_relaxed) <= at)
		atomic_store_explicit(&view->map->used, (uint32_t)at + 1, memory_order_release);
	stamp_next(view, (uint32_t)at);
	change_end(view);
	*index = at;
	return 1;
}

/* Has an entry that was named refs - 1 times a reference more? */
static bool referenced_again(const struct av_view *view, fi_addr_t index)
{
	const struct av_entry *entry = &view->table->entries[index];

	return entry->refs == 1 || entry->refs <= view->map->entries[index].refs;
}

int av_view_removable(struct av_view *view, const fi_addr_t *index, size_t cnt)
{
	struct av_table *table = view->table;
	size_t i;

	/* The table has one reference to each entry: here it counts how often it is named. */
	for (i = 0; i < cnt && av_get(table, index[i]) && referenced_again(view, index[i]); i++)
		table->entries[index[i]].refs++;
	for (size_t n = i; n-- > 0;)
		table->entries[index[n]].refs--;
	return i < cnt ? -FI_EINVAL : 0;
}

int av_view_remove(struct av_view *view, fi_addr_t index)
{
	if (!av_get(view->table, index))
		return -FI_EINVAL;
	if (view->map->entries[index].refs > 1) {
		view->map->entries[index].refs--;
		return 0;
	}
	change_begin(view);
	stamp_next(view, (uint32_t)index);
	change_end(view);
	av_drop(view->table, index);
	return 1;
}
