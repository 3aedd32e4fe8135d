/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address table: a dense index (the fi_addr_t of FI_AV_TABLE and FI_AV_MAP alike)
 * to a 64-byte address and back. The engine's address vector owns one; the caller
 * serializes.
 *
 * Two addresses are equal here when they are of one kind and addr_same() says so: an
 * endpoint may stand here twice, by its nonce and as a service.
 */
#ifndef WEFT_AV_H
#define WEFT_AV_H

#include <rdma/fabric.h>
#include "addr.h"

struct av_entry {
	struct weft_addr addr;
	/* what completions say in place of the index */
	fi_addr_t cq_addr;
	/* insertions of the same address; 0: free */
	uint32_t refs;
	/* index of the next entry of the same bucket, or AV_END */
	uint32_t next_hash;
};

#define AV_END UINT32_MAX

struct av_table {
	struct av_entry *entries;
	/* a bit per entry */
	uint64_t *used;
	/* index of the first entry, or AV_END; cap of them */
	uint32_t *buckets;
	/* a power of two */
	uint32_t cap;
	/* entries in use */
	uint32_t cnt;
	/* no entry is free below this word of used */
	uint32_t free_word;
};

/*
 * av_init - an empty table
 * @cnt: addresses there is room for at first; a hint from anywhere: it grows
 * Returns 0 or -FI_ENOMEM.
 */
int av_init(struct av_table *av, size_t cnt);
/* av_fini - forget all addresses and release the memory */
void av_fini(struct av_table *av);

/*
 * av_insert - add a valid address, or one reference more to an equal one
 * @index: out: where it is; the lowest free index for a new one
 *
 * Returns 1 for a new entry, 0 for one that was there, or -FI_ENOMEM.
 * Source: fi_av(3), fi_av_insert: the lowest unused index.
 */
int av_insert(struct av_table *av, const struct weft_addr *addr, fi_addr_t *index);

/*
 * av_put - add a valid address at a free index of the caller's choice, with one reference
 * An equal address elsewhere is not looked for. Returns 0, -FI_EINVAL for an index that is in
 * use or beyond any table, or -FI_ENOMEM.
 */
int av_put(struct av_table *av, fi_addr_t index, const struct weft_addr *addr);

/* av_lowest - the index that a new address would be given */
fi_addr_t av_lowest(const struct av_table *av);

/* av_find - index of an equal address, or FI_ADDR_NOTAVAIL */
fi_addr_t av_find(const struct av_table *av, const struct weft_addr *addr);

/* av_get - the address at an index from anywhere, or NULL; valid until the next av_insert */
const struct weft_addr *av_get(const struct av_table *av, fi_addr_t index);

/*
 * av_remove - give back one reference
 * Returns 1 when the entry is free now, 0 when references are left, -FI_EINVAL for no entry.
 */
int av_remove(struct av_table *av, fi_addr_t index);

/*
 * av_removable - can one reference of each of these be given back, with one of its own where an entry
 * is named again? Returns 0 or -FI_EINVAL; the table is as it was.
 */
int av_removable(struct av_table *av, const fi_addr_t *index, size_t cnt);

/* av_drop - give back all references of an entry. Returns 0 or -FI_EINVAL for no entry */
int av_drop(struct av_table *av, fi_addr_t index);

/*
 * av_set_cq_addr - set what completions are to say of an entry; at first that is its index
 * Returns 0 or -FI_EINVAL for no entry.
 * Source: fi_av(3), user identifiers for addresses.
 */
int av_set_cq_addr(struct av_table *av, fi_addr_t index, fi_addr_t cq_addr);

/* av_cq_addr - what completions say of an entry; FI_ADDR_NOTAVAIL for no entry */
fi_addr_t av_cq_addr(const struct av_table *av, fi_addr_t index);

#endif
