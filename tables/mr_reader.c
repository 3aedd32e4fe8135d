/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory-region key table of a peer: called by whoever mapped it, on any thread. What it holds is
 * not trusted. mr_lines.h says how what is shared is ordered.
 */
#include "mr_lines.h"

#define TRIES	 64u   /* attempts to read a line consistently */
#define WALK_MAX 1024u /* regions of a chain that a reader visits */

/* A:mr.field  the field before the second look at seq; pairs R:mr.field */
static uint64_t get64(const _Atomic uint64_t *field)
{
	return atomic_load_explicit(field, memory_order_acquire);
}

static uint32_t get32(const _Atomic uint32_t *field)
{
	return atomic_load_explicit(field, memory_order_acquire);
}

static const struct mr_header *reader_header(const struct mr_reader *reader)
{
	return (const struct mr_header *)reader->slabs[0];
}

/* A line at an index from anywhere, or NULL when it is in no mapped slab. */
static const struct mr_line *reader_line(const struct mr_reader *reader, uint32_t index)
{
	uint32_t slab = mr_slab_of(index);

	if (slab >= reader->slab_cnt)
		return NULL;
	return &reader->slabs[slab][index - mr_slab_base(slab)];
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
	return cap > MR_CAP_MAX ? MR_SLAB_CNT : mr_slab_of(cap - 1) + 1;
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
			if (cap < MR_SLAB_FIRST || cap > MR_CAP_MAX || cap & (cap - 1))
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
	    !mr_fits(view->base, view->len))
		return -FI_EACCES;
	if (!(view->flags & MR_LINE_DIRECT))
		return -FI_EOPNOTSUPP;
	*at = view->base + off;
	return 0;
}
