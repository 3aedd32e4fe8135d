/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory-region keys: maps a 64-bit key to a range of memory and to the access that peers have.
 *
 * There are two sides. The owner's table (struct mr_table) is private memory and serves the owner's lookups;
 * the engine has one per domain and serializes. If the owner passes an allocator, the table is also written to
 * shared memory. A peer process that maps it read-only resolves keys itself (struct mr_reader), on any thread
 * and while the owner changes it. The owner never reads the shared memory.
 *
 * Keys are either issued by the table (MR_KEYS_ISSUED): slot in the low 24 bits, generation in the high 40,
 * never the same key twice; or chosen by the application (MR_KEYS_GIVEN): hashed, and reusable after their
 * removal.
 *
 * The shared memory is an array of 64-byte lines in slabs of fixed sizes. It contains indexes and no pointers;
 * the place of a line follows from its index, and lines never move. Line 0 is the header. Line i > 0 describes
 * region i. The member 'bucket' of line b, also of the header, is the first region of the chain of regions
 * whose key hashes to b.
 */
#ifndef WEFT_MR_H
#define WEFT_MR_H

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "platform.h"

#define MR_IOV_MAX   8u /* pieces of a scattered region */
#define MR_SLOT_BITS 24u
#define MR_SLOT_MASK ((1u << MR_SLOT_BITS) - 1)
/* Bits of a generation. Fewer where a test is to see what comes after the last one. */
#ifndef MR_GENERATION_BITS
#define MR_GENERATION_BITS (64u - MR_SLOT_BITS)
#endif
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
	/* a peer may access the range directly: it is one piece, and the owner needs no notification */
	MR_LINE_DIRECT = 1 << 1,
};

/* A region as peers see it. seq is odd while the line changes; it covers all members but the last two. */
struct mr_line {
	_Atomic uint64_t seq;
	_Atomic uint64_t key;
	/* address in the owner's process */
	_Atomic uint64_t base;
	/* bytes */
	_Atomic uint64_t len;
	/* address that peers use for the first byte: base, or 0 */
	_Atomic uint64_t iova;
	uint64_t zero;
	/* FI_REMOTE_READ, FI_REMOTE_WRITE */
	_Atomic uint32_t access;
	/* enum mr_line_flag */
	_Atomic uint32_t flags;
	/* line of the next region of the chain, or 0; covered by the header's seq */
	_Atomic uint32_t next;
	/* first region of this line's chain, or 0; covered by the header's seq */
	_Atomic uint32_t bucket;
};

_Static_assert(sizeof(struct mr_line) == CACHE_LINE, "a region is one cache line");
_Static_assert(offsetof(struct mr_line, key) == 8, "layout");
_Static_assert(offsetof(struct mr_line, base) == 16, "layout");
_Static_assert(offsetof(struct mr_line, len) == 24, "layout");
_Static_assert(offsetof(struct mr_line, iova) == 32, "layout");
_Static_assert(offsetof(struct mr_line, zero) == 40, "layout");
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
	/* lines in the slabs in use, a power of two */
	_Atomic uint32_t cap;
	/* regions in use, for tools: not ordered */
	_Atomic uint32_t cnt;
	uint32_t zero32;
	uint64_t zero[3];
	uint32_t no_next;
	/* as in every line */
	_Atomic uint32_t bucket;
};

_Static_assert(sizeof(struct mr_header) == sizeof(struct mr_line), "the header is a line");
_Static_assert(offsetof(struct mr_header, magic) == 8, "layout");
_Static_assert(offsetof(struct mr_header, version) == 12, "layout");
_Static_assert(offsetof(struct mr_header, keys) == 16, "layout");
_Static_assert(offsetof(struct mr_header, cap) == 20, "layout");
_Static_assert(offsetof(struct mr_header, cnt) == 24, "layout");
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

/* mr_slab_offset - offset of a slab if all slabs are in one file */
static inline size_t mr_slab_offset(uint32_t slab)
{
	return slab ? mr_slab_len(slab) : 0;
}

/* The owner's side */

/* The allocator of the shared slabs. Called on the owner's thread, by mr_insert and mr_fini. */
struct mr_memory {
	/* alloc - returns mr_slab_len(slab) zeroed bytes, aligned to a cache line, or NULL */
	void *(*alloc)(void *arg, uint32_t slab);
	/* free - frees a slab */
	void (*free)(void *arg, uint32_t slab, void *memory);
	void *arg;
};

/* A region as the owner sees it: one cache line. Read-only outside mr.c. */
struct mr_region {
	uint64_t key;
	/* address of the first piece */
	uint64_t base;
	/* bytes of all pieces */
	uint64_t len;
	/* address that peers use for the first byte */
	uint64_t iova;
	/* generation of the last key of this slot */
	uint64_t generation;
	/* MR_IOV_MAX pieces; NULL if there is only one */
	struct iovec *iov;
	/* the caller's object; NULL: the slot is free */
	void *object;
	/* access as registered, MR_LIVE, MR_NOTIFY, MR_CHECKED() */
	uint32_t access;
	/* next region of its chain, or next free slot; 0: none */
	uint32_t next;
};

#define MR_LIVE (1u << 31) /* in mr_region.access: the key resolves */
#define MR_NOTIFY \
	(1u << 30) /* in mr_region.access: the owner must be notified of remote accesses */

/*
 * In mr_region.access, and then in mr_range(): the owner has checked that all of the memory allows accesses
 * of this kind, FI_REMOTE_READ, FI_REMOTE_WRITE or both
 */
#define MR_CHECKED(kind) ((kind) << 16)

_Static_assert(sizeof(void *) != 8 || sizeof(struct mr_region) == 64,
	       "a lookup reads one cache line");

struct mr_table {
	/* cap regions; slot 0 is never used */
	struct mr_region *regions;
	/* MR_KEYS_GIVEN: cap buckets, first region of the chain or 0 */
	uint32_t *buckets;
	/* slots, a power of two, or 0 */
	uint32_t cap;
	/* regions in use */
	uint32_t cnt;
	/* first free slot that was used before, or 0 */
	uint32_t free;
	/* first slot that was never used */
	uint32_t fresh;
	enum mr_keys keys;
	uint32_t slab_cnt;
	bool shared;
	struct mr_memory memory;
	struct mr_line *slabs[MR_SLAB_CNT];
};

/* The arguments of mr_insert(). */
struct mr_spec {
	/* pieces; copied */
	const struct iovec *iov;
	/* 1 to MR_IOV_MAX */
	size_t iov_cnt;
	/* FI_SEND, FI_RECV, FI_READ, ... FI_REMOTE_WRITE */
	uint64_t access;
	/* address that peers use for the first byte */
	uint64_t iova;
	/* MR_KEYS_GIVEN: the key, any but FI_KEY_NOTAVAIL */
	uint64_t key;
	/* mr_region.object, not NULL */
	void *object;
	/* false: the key resolves only after mr_validate() */
	bool live;
	/* true: as after mr_set_notify() */
	bool notify;
};

/*
 * mr_init - make an empty table; allocates nothing
 * @memory: allocator of the shared side, borrowed for the call; NULL: no shared side
 */
void mr_init(struct mr_table *table, enum mr_keys keys, const struct mr_memory *memory);
/* mr_fini - remove all regions and free the memory, also the shared slabs */
void mr_fini(struct mr_table *table);

/* mr_full - returns true if mr_insert() makes the table larger, which changes what is shared */
static inline bool mr_full(const struct mr_table *table)
{
	return !table->free && table->fresh >= table->cap;
}

/*
 * mr_insert - add a region
 * @index: out: its slot, valid until mr_remove()
 *
 * Ranges may overlap. A region of zero bytes is allowed; only transfers of zero bytes fit into it.
 * Returns 0; -FI_EINVAL for no pieces, too many, no object, or a range that exceeds the address space;
 * -FI_EKEYREJECTED for FI_KEY_NOTAVAIL; -FI_ENOKEY for a key that exists, live or not; -FI_ENOMEM. After an
 * error the table is unchanged.
 * Source: fi_mr(3).
 */
int mr_insert(struct mr_table *table, const struct mr_spec *spec, uint32_t *index);

/*
 * mr_invalidate - make lookups of the key fail; the key stays in use
 * If a peer marked itself as a direct user before mr_reader_check() confirmed the region, then loads of that
 * mark (memory_order_seq_cst) after this returns see it.
 */
void mr_invalidate(struct mr_table *table, uint32_t index);
/* mr_validate - make lookups of the key succeed (again) */
void mr_validate(struct mr_table *table, uint32_t index);
/* mr_remove - remove a region, live or not; a given key may be used again */
void mr_remove(struct mr_table *table, uint32_t index);

/*
 * mr_set_notify - require that the owner is notified of remote accesses: peers must send it requests
 * A direct access that is in progress is not stopped.
 */
void mr_set_notify(struct mr_table *table, uint32_t index);

/* mr_set_checked - from now on the region has MR_CHECKED(@kind) */
void mr_set_checked(struct mr_table *table, uint32_t index, uint64_t kind);

/* mr_next - the first slot in use after @index (0 to begin), or 0 if there are no more */
uint32_t mr_next(const struct mr_table *table, uint32_t index);

/* mr_at - the region of a slot in use; valid until the next mr_insert() */
static inline const struct mr_region *mr_at(const struct mr_table *table, uint32_t index)
{
	return &table->regions[index];
}

/* mr_bucket - index of the chain of a given key in a table of @cap lines, a power of two above 1 */
static inline uint32_t mr_bucket(uint64_t key, uint32_t cap)
{
	return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (cap - 1);
}

/*
 * mr_find - the live region with this key, or NULL; @key may be any 64 bits
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

/* mr_pieces - mr_range() of a region with several pieces, @at bytes from its start; the range has been checked */
void mr_pieces(const struct mr_region *region, uint64_t at, uint64_t len, struct iovec *iov,
	       size_t *cnt);

/*
 * mr_range - the owner's memory that a transfer accesses
 * @addr:   address that the peer uses, see mr_region.iova
 * @access: bits that must all have been granted, and MR_CHECKED()
 * @iov:    out: room for MR_IOV_MAX pieces
 * @cnt:    out: number of pieces, at least 1, also for zero bytes
 *
 * Returns 0, or -FI_EACCES for an access that was not granted or a range that is not inside the region.
 */
static inline int mr_range(const struct mr_region *region, uint64_t addr, uint64_t len,
			   uint64_t access, struct iovec *iov, size_t *cnt)
{
	uint64_t at = addr -
		      region->iova; /* an address below iova wraps around to more than len */

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
 * A peer's table, mapped. Its contents are not trusted: a faulty owner can make lookups fail or
 * return a wrong range of its own memory, and nothing else.
 */
struct mr_reader {
	const struct mr_line *slabs[MR_SLAB_CNT];
	uint32_t slab_cnt;
	enum mr_keys keys;
};

/* A consistent copy of one region's line. */
struct mr_view {
	uint64_t key;
	uint64_t base;
	uint64_t len;
	uint64_t iova;
	uint64_t seq;
	uint32_t access;
	uint32_t flags;
	uint32_t index;
};

/*
 * mr_reader_init - start to read a table
 * @slab: its slab 0, mapped; borrowed
 * Returns 0; -FI_EAGAIN if its owner has not initialized it yet; -FI_EINVAL if it is no table of this version.
 */
int mr_reader_init(struct mr_reader *reader, const void *slab);

/* mr_reader_wanted - number of slabs according to the table, 1 to MR_SLAB_CNT */
uint32_t mr_reader_wanted(const struct mr_reader *reader);

/* mr_reader_attach - add the next slab, mapped; borrowed. The reader has fewer than MR_SLAB_CNT */
void mr_reader_attach(struct mr_reader *reader, const void *slab);

/*
 * mr_reader_find - the live region with this key
 *
 * Takes bounded time. Returns 0; -FI_EKEYREJECTED if no live region has this key; -FI_EAGAIN if that can't be
 * decided, because more slabs are needed or because the owner keeps changing the table or died while it did.
 * The caller then asks the owner.
 */
int mr_reader_find(const struct mr_reader *reader, uint64_t key, struct mr_view *view);

/*
 * mr_reader_check - returns true if the region is still as in the view
 * A direct user first marks itself (memory_order_seq_cst) and then checks: see mr_invalidate().
 */
bool mr_reader_check(const struct mr_reader *reader, const struct mr_view *view);

/*
 * mr_view_range - the owner's memory that a transfer accesses
 * @at: out: address in the owner's process
 * Returns 0, -FI_EACCES as mr_range(), or -FI_EOPNOTSUPP if only the owner can carry out the transfer.
 */
int mr_view_range(const struct mr_view *view, uint64_t addr, uint64_t len, uint64_t access,
		  uint64_t *at);

#endif
