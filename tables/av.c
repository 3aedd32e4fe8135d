/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address table: an array, a bit per entry to find the lowest free one, and a chained
 * hash for the way back. Called by the engine, which serializes.
 */
#include "av.h"

#define CAP_MIN	 64u	    /* a word of used */
#define CAP_HINT (1u << 16) /* most room that a hint is given at once */
#define CAP_MAX	 (1u << 31)

static uint32_t bucket_of(const struct av_table *av, const struct weft_addr *addr)
{
	return (uint32_t)addr_hash(addr) & (av->cap - 1);
}

static bool equal(const struct weft_addr *a, const struct weft_addr *b)
{
	return a->kind == b->kind && addr_same(a, b);
}

static void link_entry(struct av_table *av, uint32_t index)
{
	uint32_t *bucket = &av->buckets[bucket_of(av, &av->entries[index].addr)];

	av->entries[index].next_hash = *bucket;
	*bucket = index;
}

static void unlink_entry(struct av_table *av, uint32_t index)
{
	uint32_t *at = &av->buckets[bucket_of(av, &av->entries[index].addr)];

	while (*at != index)
		at = &av->entries[*at].next_hash;
	*at = av->entries[index].next_hash;
}

static void free_arrays(struct av_table *av)
{
	platform_free(av->entries);
	platform_free(av->used);
	platform_free(av->buckets);
}

/* Moves the table to arrays of @cap entries. On failure it stays as it is. */
static int resize(struct av_table *av, uint32_t cap)
{
	struct av_table to = { .cap = cap, .cnt = av->cnt, .free_word = av->free_word };

	to.entries = platform_alloc((size_t)cap * sizeof(*to.entries));
	to.used = platform_alloc(cap / 8);
	to.buckets = platform_alloc((size_t)cap * sizeof(*to.buckets));
	if (!to.entries || !to.used || !to.buckets) {
		free_arrays(&to);
		return -FI_ENOMEM;
	}
	memset(to.buckets, 0xff, (size_t)cap * sizeof(*to.buckets)); /* AV_END */
	if (av->cap) {
		memcpy(to.entries, av->entries, (size_t)av->cap * sizeof(*to.entries));
		memcpy(to.used, av->used, av->cap / 8);
	}
	for (uint32_t i = 0; i < av->cap; i++) {
		if (to.entries[i].refs)
			link_entry(&to, i);
	}
	free_arrays(av);
	*av = to;
	return 0;
}

int av_init(struct av_table *av, size_t cnt)
{
	uint32_t cap = CAP_MIN;

	while (cap < cnt && cap < CAP_HINT)
		cap *= 2;
	*av = (struct av_table){ 0 };
	return resize(av, cap);
}

void av_fini(struct av_table *av)
{
	free_arrays(av);
	*av = (struct av_table){ 0 };
}

fi_addr_t av_lowest(const struct av_table *av)
{
	uint32_t word = av->free_word;

	while (word < av->cap / 64 && !~av->used[word])
		word++;
	if (word == av->cap / 64)
		return av->cap;
	return word * 64u + (uint32_t)__builtin_ctzll(~av->used[word]);
}

/* An entry for @addr at a free index that there is room for. */
static void occupy(struct av_table *av, uint32_t at, const struct weft_addr *addr)
{
	struct av_entry *entry = &av->entries[at];

	av->used[at / 64] |= 1ull << (at % 64);
	entry->addr = *addr;
	entry->cq_addr = at;
	entry->refs = 1;
	link_entry(av, at);
	av->cnt++;
}

static uint32_t find(const struct av_table *av, const struct weft_addr *addr)
{
	uint32_t index;

	if (!av->cap)
		return AV_END;
	index = av->buckets[bucket_of(av, addr)];
	while (index != AV_END && !equal(&av->entries[index].addr, addr))
		index = av->entries[index].next_hash;
	return index;
}

int av_insert(struct av_table *av, const struct weft_addr *addr, fi_addr_t *index)
{
	uint32_t at = find(av, addr);

	if (at != AV_END) {
		if (av->entries[at].refs == UINT32_MAX)
			return -FI_ENOMEM;
		av->entries[at].refs++;
		*index = at;
		return 0;
	}

	if (av->cnt == av->cap) {
		uint32_t cap = av->cap ? av->cap * 2 : CAP_MIN;

		if (av->cap == CAP_MAX || resize(av, cap))
			return -FI_ENOMEM;
	}
	at = (uint32_t)av_lowest(av);
	av->free_word = at / 64;
	occupy(av, at, addr);
	*index = at;
	return 1;
}

int av_put(struct av_table *av, fi_addr_t index, const struct weft_addr *addr)
{
	uint32_t cap = av->cap ? av->cap : CAP_MIN;

	if (index >= CAP_MAX || av_get(av, index))
		return -FI_EINVAL;
	while (cap <= index)
		cap *= 2;
	if (cap > av->cap && resize(av, cap))
		return -FI_ENOMEM;
	occupy(av, (uint32_t)index, addr);
	return 0;
}

fi_addr_t av_find(const struct av_table *av, const struct weft_addr *addr)
{
	uint32_t at = find(av, addr);

	return at == AV_END ? FI_ADDR_NOTAVAIL : at;
}

const struct weft_addr *av_get(const struct av_table *av, fi_addr_t index)
{
	if (index >= av->cap || !av->entries[index].refs)
		return NULL;
	return &av->entries[index].addr;
}

int av_remove(struct av_table *av, fi_addr_t index)
{
	uint32_t at = (uint32_t)index;

	if (!av_get(av, index))
		return -FI_EINVAL;
	if (--av->entries[at].refs)
		return 0;
	unlink_entry(av, at);
	av->used[at / 64] &= ~(1ull << (at % 64));
	if (at / 64 < av->free_word)
		av->free_word = at / 64;
	av->cnt--;
	return 1;
}

int av_removable(struct av_table *av, const fi_addr_t *index, size_t cnt)
{
	size_t i;

	/* They are given back, and taken again. */
	for (i = 0; i < cnt && av_get(av, index[i]); i++)
		av->entries[index[i]].refs--;
	for (size_t n = i; n-- > 0;)
		av->entries[index[n]].refs++;
	return i < cnt ? -FI_EINVAL : 0;
}

int av_drop(struct av_table *av, fi_addr_t index)
{
	if (!av_get(av, index))
		return -FI_EINVAL;
	av->entries[index].refs = 1;
	av_remove(av, index);
	return 0;
}

int av_set_cq_addr(struct av_table *av, fi_addr_t index, fi_addr_t cq_addr)
{
	if (!av_get(av, index))
		return -FI_EINVAL;
	av->entries[index].cq_addr = cq_addr;
	return 0;
}

fi_addr_t av_cq_addr(const struct av_table *av, fi_addr_t index)
{
	return av_get(av, index) ? av->entries[index].cq_addr : FI_ADDR_NOTAVAIL;
}
