/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory-region keys: a 64-bit key to a range of memory and what peers may do with it.
 *
 * Two sides. The owner's table (struct mr_table) stands in private memory and answers the
 * owner's own lookups; the engine has one per domain and serializes. If the owner passes an
 * allocator, the table is also written to memory in which a peer process, that maps it
 * read-only, resolves keys itself (struct mr_reader): on any thread of that process, while
 * the owner changes it. The owner never reads that memory for an answer.
 *
 * Keys are either issued here, MR_KEYS_ISSUED: slot in the low 24 bits, generation in the high
 * 40, no key twice in the life of a table; or the application's, MR_KEYS_GIVEN: hashed, and free
 * to be used again once removed.
 *
 * The shared memory is an array of 64-byte lines in slabs of fixed sizes: it holds indexes and
 * no pointers, a line's place follows from its index, nothing ever moves. Line 0 is the header.
 * Line i > 0 describes region i, and the word 'bucket' of any line b, the header's too,
 * begins the chain of the regions whose key hashes to b.
 */
#ifndef WEFT_MR_H
#define WEFT_MR_H

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "platform.h"

#define MR_IOV_MAX    8u /* pieces of a scattered region */
#define MR_SLOT_BITS  24u
#define MR_SLOT_MASK  ((1u << MR_SLOT_BITS) - 1)
#define MR_SLAB_FIRST 64u /* lines of the first slab and of the second, then 128, 256, ... */
#define MR_SLAB_CNT   19u /* together 2^24 lines */

enum mr_keys {
	MR_KEYS_GIVEN = 1,
	MR_KEYS_ISSUED = 2,
};

/* Shared layout */

#define MR_MAGIC   0x524d5457u /* "WTMR" */
#define MR_VERSION 1u

enum mr_line_flag {
	MR_LINE_LIVE = 1 << 0, /* the key resolves */
	/* a peer may do what access allows by itself: the range is whole, and nobody is told of it */
	MR_LINE_DIRECT = 1 << 1,
};

/* A region as peers see it. seq is odd while the line changes; it covers all but the last two. */
struct mr_line {
	_Atomic uint64_t seq;
	_Atomic uint64_t key;
	/* address in the owner */
	_Atomic uint64_t base;
	/* bytes */
	_Atomic uint64_t len;
	/* address by which peers name base: base itself, or 0 */
	_Atomic uint64_t name;
	/* zero: the memory is in no mapped chunk */
	_Atomic uint64_t chunk;
	/* FI_REMOTE_READ and the like */
	_Atomic uint32_t access;
	/* enum mr_line_flag */
	_Atomic uint32_t flags;
	/* line of the next region of the chain, or 0; header's seq */
	_Atomic uint32_t next;
	/* first region of this line's chain, or 0; header's seq */
	_Atomic uint32_t bucket;
};

_Static_assert(sizeof(struct mr_line) == 64, "a region is one cache line");
_Static_assert(offsetof(struct mr_line, key) == 8, "layout");
_Static_assert(offsetof(struct mr_line, base) == 16, "layout");
_Static_assert(offsetof(struct mr_line, len) == 24, "layout");
_Static_assert(offsetof(struct mr_line, name) == 32, "layout");
_Static_assert(offsetof(struct mr_line, chunk) == 40, "layout");
_Static_assert(offsetof(struct mr_line, access) == 48, "layout");
_Static_assert(offsetof(struct mr_line, flags) == 52, "layout");
_Static_assert(offsetof(struct mr_line, next) == 56, "layout");
_Static_assert(offsetof(struct mr_line, bucket) == 60, "layout");

/* Line 0. seq is odd while chains change; it covers cap and every next and bucket. */
struct mr_header {
	_Atomic uint64_t seq;
	_Atomic uint32_t magic;
	_Atomic uint32_t version;
	/* enum mr_keys */
	_Atomic uint32_t keys;
	/* lines, a power of two: those of the slabs in use */
	_Atomic uint32_t cap;
	uint64_t zero[4];
	uint32_t no_next;
	/* as in any line */
	_Atomic uint32_t bucket;
};

_Static_assert(sizeof(struct mr_header) == sizeof(struct mr_line), "the header is a line");
_Static_assert(offsetof(struct mr_header, magic) == 8, "layout");
_Static_assert(offsetof(struct mr_header, version) == 12, "layout");
_Static_assert(offsetof(struct mr_header, keys) == 16, "layout");
_Static_assert(offsetof(struct mr_header, cap) == 20, "layout");
_Static_assert(offsetof(struct mr_header, bucket) == offsetof(struct mr_line, bucket), "layout");

/* mr_slab_lines - lines of a slab, below MR_SLAB_CNT */
static inline uint32_t mr_slab_lines(uint32_t slab)
{
	return slab ? MR_SLAB_FIRST << (slab - 1) : MR_SLAB_FIRST;
}

/* mr_slab_len - bytes of a slab, a multiple of 4096 */
static inline size_t mr_slab_len(uint32_t slab)
{
	return (size_t)mr_slab_lines(slab) * sizeof(struct mr_line);
}

/* mr_slab_offset - where a slab stands if all are laid out in one file */
static inline size_t mr_slab_offset(uint32_t slab)
{
	return slab ? mr_slab_len(slab) : 0;
}

/* The owner's side */

/* Where the shared slabs come from. Called by the owner's thread, from mr_insert and mr_fini. */
struct mr_memory {
	/* alloc - mr_slab_len(slab) zeroed bytes on a cache line boundary, or NULL */
	void *(*alloc)(void *arg, uint32_t slab);
	/* free - takes one back */
	void (*free)(void *arg, uint32_t slab, void *memory);
	void *arg;
};

/* A region, as the owner sees it: one cache line. Read-only outside mr.c. */
struct mr_region {
	uint64_t key;
	/* of the first piece */
	uint64_t base;
	/* bytes in all */
	uint64_t len;
	uint64_t name;
	/* of the last key that this slot had */
	uint64_t generation;
	/* MR_IOV_MAX pieces, NULL when there is only one */
	struct iovec *iov;
	/* the caller's; NULL: the slot is free */
	void *object;
	/* as registered, and MR_LIVE, MR_TOLD */
	uint32_t access;
	/* of its chain or of the free slots, or 0 */
	uint32_t next;
};

#define MR_LIVE (1u << 31) /* of mr_region.access: the key resolves */
#define MR_TOLD (1u << 30) /* ... the owner has to be told of what peers do */

_Static_assert(sizeof(void *) != 8 || sizeof(struct mr_region) == 64,
	       "a lookup reads one cache line");

struct mr_table {
	/* cap of them; 0 is never used */
	struct mr_region *regions;
	/* MR_KEYS_GIVEN: cap of them, first region or 0 */
	uint32_t *buckets;
	/* a power of two, or 0 */
	uint32_t cap;
	/* regions */
	uint32_t cnt;
	/* first free slot that had a key, or 0 */
	uint32_t free;
	/* first slot that never had one */
	uint32_t fresh;
	enum mr_keys keys;
	uint32_t slab_cnt;
	bool shared;
	struct mr_memory memory;
	struct mr_line *slabs[MR_SLAB_CNT];
};

/* What mr_insert() is told of a region. */
struct mr_spec {
	/* copied */
	const struct iovec *iov;
	/* 1 to MR_IOV_MAX */
	size_t iov_cnt;
	/* FI_SEND, FI_RECV, FI_READ, ... FI_REMOTE_WRITE */
	uint64_t access;
	/* address by which peers name the first byte */
	uint64_t name;
	/* MR_KEYS_GIVEN: any but FI_KEY_NOTAVAIL */
	uint64_t key;
	/* not NULL: what a lookup leads to */
	void *object;
	/* false: the key waits for mr_validate() */
	bool live;
	/* as after mr_tell() */
	bool told;
};

/*
 * mr_init - an empty table; allocates nothing
 * @memory: of the shared side, borrowed for the call; NULL: there is none
 */
void mr_init(struct mr_table *table, enum mr_keys keys, const struct mr_memory *memory);
/* mr_fini - forget all regions and release the memory, the shared slabs too */
void mr_fini(struct mr_table *table);

/*
 * mr_insert - add a region
 * @index: out: its slot, until mr_remove()
 *
 * Ranges may overlap others. A region of zero bytes is one: only a transfer of zero bytes
 * fits into it.
 * Returns 0; -FI_EINVAL for no pieces, too many, no object, or a range that goes beyond the
 * last address; -FI_EKEYREJECTED for FI_KEY_NOTAVAIL; -FI_ENOKEY for a key that is there
 * already, live or not; -FI_ENOMEM. After an error the table is as before.
 * Source: fi_mr(3).
 */
int mr_insert(struct mr_table *table, const struct mr_spec *spec, uint32_t *index);

/*
 * mr_invalidate - from now on the key is rejected; it stays taken
 * Whoever marked itself as a direct user before mr_reader_check() confirmed the region is seen
 * by loads (memory_order_seq_cst) of that mark after this returns.
 */
void mr_invalidate(struct mr_table *table, uint32_t index);
/* mr_validate - the key resolves (again) */
void mr_validate(struct mr_table *table, uint32_t index);
/* mr_remove - end of a region, live or not; a given key may be used again */
void mr_remove(struct mr_table *table, uint32_t index);

/*
 * mr_tell - the owner has to be told of what peers do from now on: they must ask it
 * Who is under way already is not held up.
 */
void mr_tell(struct mr_table *table, uint32_t index);

/* mr_next - the slot in use after @index, 0 before the first; 0: there are no more */
uint32_t mr_next(const struct mr_table *table, uint32_t index);

/* mr_at - region of a slot in use; valid until the next mr_insert() */
static inline const struct mr_region *mr_at(const struct mr_table *table, uint32_t index)
{
	return &table->regions[index];
}

/* mr_bucket - chain of a given key in a table of @cap lines, a power of two above 1 */
static inline uint32_t mr_bucket(uint64_t key, uint32_t cap)
{
	return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (cap - 1);
}

/*
 * mr_find - the live region with this key, or NULL; any 64 bits may be asked
 * Valid until the next mr_insert().
 */
static inline const struct mr_region *mr_find(const struct mr_table *table, uint64_t key)
{
	const struct mr_region *r;
	uint32_t index = (uint32_t)key & MR_SLOT_MASK;

	if (table->keys == MR_KEYS_ISSUED) {
		if (unlikely(index >= table->cap))
			return NULL;
		r = &table->regions[index];
		return likely(r->key == key && r->access & MR_LIVE) ? r : NULL;
	}
	if (unlikely(!table->cap))
		return NULL;
	for (index = table->buckets[mr_bucket(key, table->cap)]; index; index = r->next) {
		r = &table->regions[index];
		if (r->key == key)
			return r->access & MR_LIVE ? r : NULL;
	}
	return NULL;
}

/* mr_pieces - mr_range() of a scattered region, @at bytes from its start; range and access are fine */
void mr_pieces(const struct mr_region *region, uint64_t at, uint64_t len, struct iovec *iov,
	       size_t *cnt);

/*
 * mr_range - where in the owner's memory a transfer goes
 * @addr:   as peers name it
 * @access: all of these bits must have been granted
 * @iov:    out: room for MR_IOV_MAX pieces
 * @cnt:    out: pieces, at least one, also for zero bytes
 *
 * Returns 0, or -FI_EACCES for an access that was not granted or a range that is not inside.
 */
static inline int mr_range(const struct mr_region *region, uint64_t addr, uint64_t len,
			   uint64_t access, struct iovec *iov, size_t *cnt)
{
	uint64_t at = addr - region->name; /* below name: wraps around to more than len */

	if (unlikely((region->access & access) != access || at > region->len ||
		     len > region->len - at))
		return -FI_EACCES;
	if (unlikely(region->iov != NULL)) {
		mr_pieces(region, at, len, iov, cnt);
		return 0;
	}
	iov[0].iov_base = (void *)(uintptr_t)(region->base + at);
	iov[0].iov_len = (size_t)len;
	*cnt = 1;
	return 0;
}

/* The reader's side */

/*
 * A peer's table, mapped. Nothing in it is trusted: a hostile owner makes lookups fail or lie about
 * its own memory, and nothing else.
 */
struct mr_reader {
	const struct mr_line *slabs[MR_SLAB_CNT];
	uint32_t slab_cnt;
	enum mr_keys keys;
};

/* One region at one moment. */
struct mr_view {
	uint64_t key;
	uint64_t base;
	uint64_t len;
	uint64_t name;
	uint64_t chunk;
	uint64_t seq;
	uint32_t access;
	uint32_t flags;
	uint32_t index;
};

/*
 * mr_reader_init - begin to read a table
 * @slab: its slab 0, mapped; borrowed
 * Returns 0; -FI_EAGAIN when its owner has not begun it yet; -FI_EINVAL for what is no table of this version.
 */
int mr_reader_init(struct mr_reader *reader, const void *slab);

/* mr_reader_wanted - slabs that the table says it has, 1 to MR_SLAB_CNT */
uint32_t mr_reader_wanted(const struct mr_reader *reader);

/* mr_reader_attach - the next slab, mapped; borrowed. There are fewer than MR_SLAB_CNT */
void mr_reader_attach(struct mr_reader *reader, const void *slab);

/*
 * mr_reader_find - the live region with this key
 *
 * Bounded work. Returns 0; -FI_EKEYREJECTED when no live region had this key; -FI_EAGAIN when
 * that can't be told: more slabs are wanted, or the owner changes it too often (or for good:
 * it may have ended while it did). Ask the owner then.
 */
int mr_reader_find(const struct mr_reader *reader, uint64_t key, struct mr_view *view);

/*
 * mr_reader_check - is the region still as it was viewed
 * To use the memory directly mark it first (memory_order_seq_cst), then check: see mr_invalidate().
 */
bool mr_reader_check(const struct mr_reader *reader, const struct mr_view *view);

/*
 * mr_view_range - where in the owner's memory a transfer goes
 * @at: out: address in the owner
 * Returns 0, -FI_EACCES as mr_range() does, -FI_EOPNOTSUPP if only the owner can tell.
 */
int mr_view_range(const struct mr_view *view, uint64_t addr, uint64_t len, uint64_t access,
		  uint64_t *at);

#endif
