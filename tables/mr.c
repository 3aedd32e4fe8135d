/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory-region key table: the owner's functions that change it, called with its domain held.
 * mr_lines.h says how what is shared is ordered.
 */
#include "mr_lines.h"

/* Bits of mr_region.access that are no access that was granted */
#define MR_OWN (MR_LIVE | MR_NOTIFY | (uint32_t)MR_CHECKED(FI_REMOTE_READ | FI_REMOTE_WRITE))

#define GENERATION_MAX ((1ull << MR_GENERATION_BITS) - 2) /* one more: FI_KEY_NOTAVAIL */

static struct mr_line *line_at(const struct mr_table *table, uint32_t index)
{
	uint32_t slab = mr_slab_of(index);

	return &table->slabs[slab][index - mr_slab_base(slab)];
}

static struct mr_header *header_of(const struct mr_table *table)
{
	return (struct mr_header *)table->slabs[0];
}

static void seq_begin(_Atomic uint64_t *seq)
{
	/* Only the owner writes; the fields' release stores keep this before them. */
	atomic_store_explicit(seq, atomic_load_explicit(seq, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static void seq_end(_Atomic uint64_t *seq)
{
	/* R:mr.seq  the fields before seq; pairs A:mr.seq */
	atomic_store_explicit(seq, atomic_load_explicit(seq, memory_order_relaxed) + 1,
			      memory_order_release);
}

/* seq_end() of what takes a right away from peers. */
static void seq_end_marked(_Atomic uint64_t *seq)
{
	/* S:mr.seq  as R:mr.seq, and before the owner looks at marks; pairs S:mr.check */
	atomic_store_explicit(seq, atomic_load_explicit(seq, memory_order_relaxed) + 1,
			      memory_order_seq_cst);
}

/* R:mr.field  the odd seq before the field; pairs A:mr.field */
static void put64(_Atomic uint64_t *field, uint64_t value)
{
	atomic_store_explicit(field, value, memory_order_release);
}

static void put32(_Atomic uint32_t *field, uint32_t value)
{
	atomic_store_explicit(field, value, memory_order_release);
}

void mr_init(struct mr_table *table, enum mr_keys keys, const struct mr_memory *memory)
{
	*table = (struct mr_table){ .keys = keys, .fresh = 1, .shared = memory != NULL };
	if (memory)
		table->memory = *memory;
}

void mr_fini(struct mr_table *table)
{
	for (uint32_t i = 1; i < table->fresh; i++)
		platform_free(table->regions[i].iov);
	platform_free(table->regions);
	platform_free(table->buckets);
	for (uint32_t i = 0; i < table->slab_cnt; i++)
		table->memory.free(table->memory.arg, i, table->slabs[i]);
	*table = (struct mr_table){ .keys = table->keys, .fresh = 1 };
}

static uint32_t line_flags(const struct mr_region *r)
{
	bool direct = !r->iov && !(r->access & MR_NOTIFY);

	return (r->access & MR_LIVE ? MR_LINE_LIVE : 0) | (direct ? MR_LINE_DIRECT : 0);
}

/* Writes to the line of a region what may change of it. */
static void publish_flags(const struct mr_table *table, uint32_t index)
{
	const struct mr_region *r = &table->regions[index];
	struct mr_line *line;

	if (!table->shared)
		return;
	line = line_at(table, index);
	seq_begin(&line->seq);
	put32(&line->flags, line_flags(r));
	if (r->access & MR_LIVE)
		seq_end(&line->seq);
	else
		seq_end_marked(&line->seq);
}

/* Writes a region to its line. */
static void publish(const struct mr_table *table, uint32_t index)
{
	const struct mr_region *r = &table->regions[index];
	struct mr_line *line;

	if (!table->shared)
		return;
	line = line_at(table, index);
	seq_begin(&line->seq);
	put64(&line->key, r->key);
	put64(&line->base, r->base);
	put64(&line->len, r->len);
	put64(&line->iova, r->iova);
	put32(&line->access, r->access & ~MR_OWN);
	put32(&line->flags, line_flags(r));
	seq_end(&line->seq);
}

/* Puts a region in front of its chain; shared chains are open for change. */
static void chain(struct mr_table *table, uint32_t index)
{
	uint32_t b = mr_bucket(table->regions[index].key, table->cap);

	table->regions[index].next = table->buckets[b];
	table->buckets[b] = index;
	if (table->shared) {
		put32(&line_at(table, index)->next, table->regions[index].next);
		put32(&line_at(table, b)->bucket, index);
	}
}

static void unchain(struct mr_table *table, uint32_t index)
{
	uint32_t b = mr_bucket(table->regions[index].key, table->cap);
	uint32_t next = table->regions[index].next;
	uint32_t before = table->buckets[b];

	if (before == index) {
		table->buckets[b] = next;
		if (table->shared)
			put32(&line_at(table, b)->bucket, next);
		return;
	}
	while (table->regions[before].next != index)
		before = table->regions[before].next;
	table->regions[before].next = next;
	if (table->shared)
		put32(&line_at(table, before)->next, next);
}

/* Everything to chains of the table's new size; there were @old before, the new words are zero. */
static void chain_all(struct mr_table *table, uint32_t old)
{
	for (uint32_t b = 0; table->shared && b < old; b++)
		put32(&line_at(table, b)->bucket, 0);
	for (uint32_t i = 1; i < table->fresh; i++) {
		if (table->regions[i].object)
			chain(table, i);
	}
}

/* The shared slab of the next size. Only the first one says something yet. */
static int add_slab(struct mr_table *table)
{
	struct mr_line *slab = table->memory.alloc(table->memory.arg, table->slab_cnt);

	if (!slab)
		return -FI_ENOMEM;
	if (!table->slab_cnt) {
		struct mr_header *header = (struct mr_header *)slab;

		atomic_store_explicit(&header->version, MR_VERSION, memory_order_relaxed);
		atomic_store_explicit(&header->keys, table->keys, memory_order_relaxed);
		/* R:mr.magic  what it is a table of before that it is one; pairs A:mr.magic */
		put32(&header->magic, MR_MAGIC);
	}
	table->slabs[table->slab_cnt++] = slab;
	return 0;
}

/* Doubles the table. On failure it stays as it is. */
static int grow(struct mr_table *table)
{
	uint32_t old = table->cap;
	uint32_t cap = old ? old * 2 : MR_SLAB_FIRST;
	struct mr_region *regions;
	uint32_t *buckets = NULL;

	if (old == MR_CAP_MAX)
		return -FI_ENOMEM;
	regions = platform_alloc((size_t)cap * sizeof(*regions));
	if (table->keys == MR_KEYS_GIVEN)
		buckets = platform_alloc((size_t)cap * sizeof(*buckets));
	if (!regions || (table->keys == MR_KEYS_GIVEN && !buckets) ||
	    (table->shared && add_slab(table))) {
		platform_free(regions);
		platform_free(buckets);
		return -FI_ENOMEM;
	}

	if (old)
		memcpy(regions, table->regions, (size_t)old * sizeof(*regions));
	platform_free(table->regions);
	platform_free(table->buckets);
	table->regions = regions;
	table->buckets = buckets;
	table->cap = cap;

	if (table->shared)
		seq_begin(&header_of(table)->seq);
	if (buckets)
		chain_all(table, old);
	if (table->shared) {
		put32(&header_of(table)->cap, cap);
		seq_end(&header_of(table)->seq);
	}
	return 0;
}

/* Checks a spec. @len: out: bytes in all. 0 or -FI_EINVAL. */
static int measure(const struct mr_spec *spec, uint64_t *len)
{
	uint64_t sum = 0;

	if (!spec->object || !spec->iov || !spec->iov_cnt || spec->iov_cnt > MR_IOV_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < spec->iov_cnt; i++) {
		if (!mr_fits((uintptr_t)spec->iov[i].iov_base, spec->iov[i].iov_len))
			return -FI_EINVAL;
		if (__builtin_add_overflow(sum, (uint64_t)spec->iov[i].iov_len, &sum))
			return -FI_EINVAL;
	}
	if (!mr_fits(spec->iova, sum))
		return -FI_EINVAL;
	*len = sum;
	return 0;
}

/* Is a given key taken? Live or not. */
static bool taken(const struct mr_table *table, uint64_t key)
{
	uint32_t i = table->cap ? table->buckets[mr_bucket(key, table->cap)] : 0;

	while (i && table->regions[i].key != key)
		i = table->regions[i].next;
	return i != 0;
}

/* A free slot, out of the free ones, or 0 without memory. */
static uint32_t take_slot(struct mr_table *table)
{
	uint32_t index = table->free;

	if (index) {
		table->free = table->regions[index].next;
		return index;
	}
	if (table->fresh >= table->cap && grow(table))
		return 0;
	return table->fresh++;
}

/* Whether a region may be inserted, and its length. Returns 0 or -FI_E*. */
static int admit(const struct mr_table *table, const struct mr_spec *spec, uint64_t *len)
{
	int ret = measure(spec, len);

	if (ret || table->keys != MR_KEYS_GIVEN)
		return ret;
	if (spec->key == FI_KEY_NOTAVAIL)
		return -FI_EKEYREJECTED;
	return taken(table, spec->key) ? -FI_ENOKEY : 0;
}

/* Make the region of a slot that was taken. It takes @iov, which is NULL for a single piece. */
static void fill(struct mr_table *table, uint32_t index, const struct mr_spec *spec,
		 uint64_t len, struct iovec *iov)
{
	struct mr_region *r = &table->regions[index];

	r->generation++;
	r->key = spec->key;
	if (table->keys == MR_KEYS_ISSUED)
		r->key = r->generation << MR_SLOT_BITS | index;
	r->base = (uintptr_t)spec->iov[0].iov_base;
	r->len = len;
	r->iova = spec->iova;
	r->iov = iov;
	r->object = spec->object;
	r->access = ((uint32_t)spec->access & ~MR_OWN) | (spec->live ? MR_LIVE : 0) |
		    (spec->notify ? MR_NOTIFY : 0);
}

/* Counts regions, also where a tool may ask. */
static void count(struct mr_table *table, int more)
{
	table->cnt += (uint32_t)more;
	if (table->shared)
		atomic_store_explicit(&header_of(table)->cnt, table->cnt, memory_order_relaxed);
}

int mr_insert(struct mr_table *table, const struct mr_spec *spec, uint32_t *out)
{
	struct iovec *iov = NULL;
	uint32_t index;
	uint64_t len;
	int ret;

	ret = admit(table, spec, &len);
	if (ret)
		return ret;
	if (spec->iov_cnt > 1) {
		iov = platform_alloc(MR_IOV_MAX * sizeof(*iov));
		if (!iov)
			return -FI_ENOMEM;
		memcpy(iov, spec->iov, spec->iov_cnt * sizeof(*iov));
	}
	index = take_slot(table);
	if (!index) {
		platform_free(iov);
		return -FI_ENOMEM;
	}
	fill(table, index, spec, len, iov);
	count(table, 1);
	publish(table, index);
	if (table->keys == MR_KEYS_GIVEN) {
		if (table->shared)
			seq_begin(&header_of(table)->seq);
		chain(table, index);
		if (table->shared)
			seq_end(&header_of(table)->seq);
	}
	*out = index;
	return 0;
}

void mr_invalidate(struct mr_table *table, uint32_t index)
{
	table->regions[index].access &= ~MR_LIVE;
	publish_flags(table, index);
}

void mr_validate(struct mr_table *table, uint32_t index)
{
	table->regions[index].access |= MR_LIVE;
	publish_flags(table, index);
}

void mr_set_notify(struct mr_table *table, uint32_t index)
{
	table->regions[index].access |= MR_NOTIFY;
	publish_flags(table, index);
}

void mr_set_checked(struct mr_table *table, uint32_t index, uint64_t kind)
{
	table->regions[index].access |= (uint32_t)MR_CHECKED(kind);
}

uint32_t mr_next(const struct mr_table *table, uint32_t index)
{
	while (++index < table->fresh)
		if (table->regions[index].object)
			return index;
	return 0;
}

void mr_remove(struct mr_table *table, uint32_t index)
{
	struct mr_region *r = &table->regions[index];

	assert(r->object);
	if (r->access & MR_LIVE)
		mr_invalidate(table, index);
	if (table->keys == MR_KEYS_GIVEN) {
		if (table->shared)
			seq_begin(&header_of(table)->seq);
		unchain(table, index);
		if (table->shared)
			seq_end(&header_of(table)->seq);
	}
	platform_free(r->iov);
	r->iov = NULL;
	r->object = NULL;
	count(table, -1);
	/* A slot that has issued all its keys is not used again. */
	if (table->keys == MR_KEYS_ISSUED && r->generation == GENERATION_MAX)
		return;
	r->next = table->free;
	table->free = index;
}

void mr_pieces(const struct mr_region *region, uint64_t at, uint64_t len, struct iovec *iov,
	       size_t *cnt)
{
	size_t n = 0;

	for (size_t i = 0; i < MR_IOV_MAX && (len || !n); i++) {
		const struct iovec *piece = &region->iov[i];
		uint64_t room;

		if (at > piece->iov_len || (len && at == piece->iov_len)) {
			at -= piece->iov_len;
			continue;
		}
		room = piece->iov_len - at;
		iov[n].iov_base = (char *)piece->iov_base + at;
		iov[n].iov_len = (size_t)(len < room ? len : room);
		len -= iov[n].iov_len;
		at = 0;
		n++;
	}
	*cnt = n;
}
