/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory-region key table: the owner's functions that change it, called with its domain
 * held, and the reader's, called by whoever mapped a peer's table, on any thread.
 *
 * Orderings of the shared side. A line's and the header's seq are seqlocks without fences:
 * every covered field is stored with release after the odd seq and loaded with acquire before
 * seq is loaded again, so that a reader that got any new field sees at least the odd seq.
 */
#include "mr.h"

#define GENERATION_MAX ((1ull << (64 - MR_SLOT_BITS)) - 2) /* one more: FI_KEY_NOTAVAIL */
#define CAP_MAX	       (1u << MR_SLOT_BITS)
#define TRIES	       64u   /* attempts to read a line consistently */
#define WALK_MAX       1024u /* regions of a chain that a reader visits */

/* Slab that holds a line. */
static uint32_t slab_of(uint32_t index)
{
	if (index < MR_SLAB_FIRST)
		return 0;
	return 32u - (uint32_t)__builtin_clz(index / MR_SLAB_FIRST);
}

/* First line of a slab. */
static uint32_t slab_base(uint32_t slab)
{
	return slab ? MR_SLAB_FIRST << (slab - 1) : 0;
}

static struct mr_line *line_at(const struct mr_table *table, uint32_t index)
{
	uint32_t slab = slab_of(index);

	return &table->slabs[slab][index - slab_base(slab)];
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
	/*
	 * R:mr.seq  the fields before seq; pairs A:mr.seq.
	 * S:mr.seq  and before the owner looks at marks; pairs S:mr.check.
	 */
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

/* A:mr.field  the field before the second look at seq; pairs R:mr.field */
static uint64_t get64(const _Atomic uint64_t *field)
{
	return atomic_load_explicit(field, memory_order_acquire);
}

static uint32_t get32(const _Atomic uint32_t *field)
{
	return atomic_load_explicit(field, memory_order_acquire);
}

/* The owner's side */

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

/* Writes a region to its line. */
static void publish(const struct mr_table *table, uint32_t index)
{
	const struct mr_region *r = &table->regions[index];
	bool live = r->access & MR_LIVE, direct = !r->iov && !(r->access & MR_NOTIFY);
	struct mr_line *line;

	if (!table->shared)
		return;
	line = line_at(table, index);
	seq_begin(&line->seq);
	put64(&line->key, r->key);
	put64(&line->base, r->base);
	put64(&line->len, r->len);
	put64(&line->iova, r->iova);
	put32(&line->access, r->access & ~(MR_LIVE | MR_NOTIFY));
	put32(&line->flags, (live ? MR_LINE_LIVE : 0) | (direct ? MR_LINE_DIRECT : 0));
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

	if (old == CAP_MAX)
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

/* Does a range end at or before the last address? */
static bool fits(uint64_t base, uint64_t len)
{
	return !len || len - 1 <= UINT64_MAX - base;
}

/* Checks a spec. @len: out: bytes in all. 0 or -FI_EINVAL. */
static int measure(const struct mr_spec *spec, uint64_t *len)
{
	uint64_t sum = 0;

	if (!spec->object || !spec->iov || !spec->iov_cnt || spec->iov_cnt > MR_IOV_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < spec->iov_cnt; i++) {
		if (!fits((uintptr_t)spec->iov[i].iov_base, spec->iov[i].iov_len))
			return -FI_EINVAL;
		if (__builtin_add_overflow(sum, (uint64_t)spec->iov[i].iov_len, &sum))
			return -FI_EINVAL;
	}
	if (!fits(spec->iova, sum))
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
	r->access = ((uint32_t)spec->access & ~(MR_LIVE | MR_NOTIFY)) |
		    (spec->live ? MR_LIVE : 0) | (spec->notify ? MR_NOTIFY : 0);
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
	table->cnt++;
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
	publish(table, index);
}

void mr_validate(struct mr_table *table, uint32_t index)
{
	table->regions[index].access |= MR_LIVE;
	publish(table, index);
}

void mr_set_notify(struct mr_table *table, uint32_t index)
{
	table->regions[index].access |= MR_NOTIFY;
	publish(table, index);
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
	table->cnt--;
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

/* The reader's side */

static const struct mr_header *reader_header(const struct mr_reader *reader)
{
	return (const struct mr_header *)reader->slabs[0];
}

/* A line at an index from anywhere, or NULL when it is in no mapped slab. */
static const struct mr_line *reader_line(const struct mr_reader *reader, uint32_t index)
{
	uint32_t slab = slab_of(index);

	if (slab >= reader->slab_cnt)
		return NULL;
	return &reader->slabs[slab][index - slab_base(slab)];
}

int mr_reader_init(struct mr_reader *reader, const void *slab)
{
	const struct mr_header *header = slab;
	/* A:mr.magic  it before the rest; pairs R:mr.magic */
	uint32_t magic = get32(&header->magic), keys = get32(&header->keys);

	if (!magic)
		return -FI_EAGAIN;
	if (magic != MR_MAGIC || get32(&header->version) != MR_VERSION ||
	    (keys != MR_KEYS_GIVEN && keys != MR_KEYS_ISSUED))
		return -FI_EINVAL;
	*reader = (struct mr_reader){ .slab_cnt = 1, .keys = (enum mr_keys)keys };
	reader->slabs[0] = slab;
	return 0;
}

uint32_t mr_reader_wanted(const struct mr_reader *reader)
{
	uint32_t cap = get32(&reader_header(reader)->cap);

	if (cap <= MR_SLAB_FIRST)
		return 1;
	return cap > CAP_MAX ? MR_SLAB_CNT : slab_of(cap - 1) + 1;
}

void mr_reader_attach(struct mr_reader *reader, const void *slab)
{
	assert(reader->slab_cnt < MR_SLAB_CNT);
	reader->slabs[reader->slab_cnt++] = slab;
}

/* One consistent look at a line. False: it kept changing. */
static bool look(const struct mr_line *line, struct mr_view *view)
{
	for (uint32_t i = 0; i < TRIES; i++) {
		/* A:mr.seq  seq before the fields; pairs R:mr.seq */
		view->seq = atomic_load_explicit(&line->seq, memory_order_acquire);
		if (!(view->seq & 1)) {
			view->key = get64(&line->key);
			view->base = get64(&line->base);
			view->len = get64(&line->len);
			view->iova = get64(&line->iova);
			view->chunk = get64(&line->chunk);
			view->access = get32(&line->access);
			view->flags = get32(&line->flags);
			if (atomic_load_explicit(&line->seq, memory_order_relaxed) == view->seq)
				return true;
		}
		platform_relax();
	}
	return false;
}

/*
 * Walks the chain of a given key once. Returns 0 with a view of its live region, -FI_EKEYREJECTED
 * when there was none on the way, -FI_EAGAIN when the way can't be gone.
 */
static int walk(const struct mr_reader *reader, uint64_t key, uint32_t cap, struct mr_view *view)
{
	const struct mr_line *line = reader_line(reader, mr_bucket(key, cap));
	uint32_t index = line ? get32(&line->bucket) : 0;

	if (!line)
		return -FI_EAGAIN;
	for (uint32_t i = 0; index; i++) {
		line = reader_line(reader, index);
		if (!line || i == WALK_MAX)
			return -FI_EAGAIN;
		if (get64(&line->key) == key) {
			if (!look(line, view))
				return -FI_EAGAIN;
			view->index = index;
			/* The slot may have got another key meanwhile, and another chain. */
			if (view->key == key && view->flags & MR_LINE_LIVE)
				return 0;
		}
		index = get32(&line->next);
	}
	return -FI_EKEYREJECTED;
}

static int find_given(const struct mr_reader *reader, uint64_t key, struct mr_view *view)
{
	const struct mr_header *header = reader_header(reader);

	for (uint32_t i = 0; i < TRIES; i++) {
		/* A:mr.seq  seq before the chains; pairs R:mr.seq */
		uint64_t seq = atomic_load_explicit(&header->seq, memory_order_acquire);
		uint32_t cap = get32(&header->cap);
		int ret;

		if (!(seq & 1)) {
			if (cap < MR_SLAB_FIRST || cap > CAP_MAX || cap & (cap - 1))
				return -FI_EAGAIN;
			ret = walk(reader, key, cap, view);
			if (!ret)
				return 0;
			/* Not found on the way: only a way that nobody changed says so. */
			if (atomic_load_explicit(&header->seq, memory_order_relaxed) == seq)
				return ret;
		}
		platform_relax();
	}
	return -FI_EAGAIN;
}

static int find_issued(const struct mr_reader *reader, uint64_t key, struct mr_view *view)
{
	uint32_t index = (uint32_t)key & MR_SLOT_MASK;
	const struct mr_line *line;

	if (!index)
		return -FI_EKEYREJECTED;
	line = reader_line(reader, index);
	if (!line)
		return mr_reader_wanted(reader) > reader->slab_cnt ? -FI_EAGAIN
								   : -FI_EKEYREJECTED;
	if (!look(line, view))
		return -FI_EAGAIN;
	view->index = index;
	return view->key == key && view->flags & MR_LINE_LIVE ? 0 : -FI_EKEYREJECTED;
}

int mr_reader_find(const struct mr_reader *reader, uint64_t key, struct mr_view *view)
{
	struct mr_view v;
	int ret;

	ret = reader->keys == MR_KEYS_ISSUED ? find_issued(reader, key, &v)
					     : find_given(reader, key, &v);
	if (!ret)
		*view = v;
	return ret;
}

bool mr_reader_check(const struct mr_reader *reader, const struct mr_view *view)
{
	const struct mr_line *line = reader_line(reader, view->index);

	/* S:mr.check  the caller's mark before seq; pairs S:mr.seq */
	return line && atomic_load_explicit(&line->seq, memory_order_seq_cst) == view->seq;
}

int mr_view_range(const struct mr_view *view, uint64_t addr, uint64_t len, uint64_t access,
		  uint64_t *at)
{
	uint64_t off = addr - view->iova;

	if ((view->access & access) != access || off > view->len || len > view->len - off ||
	    !fits(view->base, view->len))
		return -FI_EACCES;
	if (!(view->flags & MR_LINE_DIRECT))
		return -FI_EOPNOTSUPP;
	*at = view->base + off;
	return 0;
}
