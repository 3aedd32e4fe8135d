/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address table: maps a dense index (the fi_addr_t of FI_AV_TABLE and FI_AV_MAP alike) to an address, and an
 * address to its index. The engine's address vector owns one; the caller serializes.
 *
 * Two addresses are equal here if they are of one kind and addr_same(). An endpoint may have two entries, one
 * by its nonce and one as a service.
 */
#ifndef WEFT_AV_H
#define WEFT_AV_H

#include <rdma/fabric.h>
#include "addr.h"

struct av_entry {
	struct weft_addr addr;
	/* Source that completions report instead of the index */
	fi_addr_t cq_addr;
	/* number of insertions of this address; 0: the entry is free */
	uint32_t refs;
	/* index of the next entry in the same bucket, or AV_END */
	uint32_t next_hash;
};

#define AV_END UINT32_MAX

struct av_table {
	struct av_entry *entries;
	/* a bit per entry, set if it is in use */
	uint64_t *used;
	/* cap buckets: index of the first entry, or AV_END */
	uint32_t *buckets;
	/* entries allocated, a power of two */
	uint32_t cap;
	/* entries in use */
	uint32_t cnt;
	/* all entries of the words of used below this one are in use */
	uint32_t free_word;
};

/*
 * av_init - an empty table
 * @cnt: untrusted hint for the initial number of entries; the table grows
 * Returns 0 or -FI_ENOMEM.
 */
int av_init(struct av_table *av, size_t cnt);
/* av_fini - remove all addresses and free the memory */
void av_fini(struct av_table *av);

/*
 * av_insert - add a valid address, or a reference to its entry if there is one
 * @index: out: index of the entry; the lowest free index for a new one
 *
 * Returns 1 for a new entry, 0 for an existing one, or -FI_ENOMEM.
 * Source: fi_av(3), fi_av_insert: the lowest unused index.
 */
int av_insert(struct av_table *av, const struct weft_addr *addr, fi_addr_t *index);

/*
 * av_put - add a valid address at a given free index, with one reference
 * Other entries may have an equal address. Returns 0, -FI_EINVAL for an index that is in use or too large, or
 * -FI_ENOMEM.
 */
int av_put(struct av_table *av, fi_addr_t index, const struct weft_addr *addr);

/* av_lowest - the lowest free index, which the next new address gets */
fi_addr_t av_lowest(const struct av_table *av);

/* av_find - index of an equal address, or FI_ADDR_NOTAVAIL */
fi_addr_t av_find(const struct av_table *av, const struct weft_addr *addr);

/* av_get - the address at an untrusted index, or NULL; valid until the next av_insert */
const struct weft_addr *av_get(const struct av_table *av, fi_addr_t index);

/*
 * av_remove - drop one reference
 * Returns 1 if the entry is free now, 0 if references are left, -FI_EINVAL if there is no entry.
 */
int av_remove(struct av_table *av, fi_addr_t index);

/*
 * av_removable - check that av_remove() of each of these indexes would succeed
 * An index that occurs several times needs as many references. Returns 0 or -FI_EINVAL; changes nothing.
 */
int av_removable(struct av_table *av, const fi_addr_t *index, size_t cnt);

/* av_drop - drop all references of an entry. Returns 0, or -FI_EINVAL if there is no entry */
int av_drop(struct av_table *av, fi_addr_t index);

/*
 * av_set_cq_addr - set the source that completions report for an entry; initially its index
 * Returns 0, or -FI_EINVAL if there is no such entry.
 * Source: fi_av(3), user identifiers for addresses.
 */
int av_set_cq_addr(struct av_table *av, fi_addr_t index, fi_addr_t cq_addr);

/*
 * av_cq_addr - returns the source that completions report for an entry; FI_ADDR_NOTAVAIL if there
 * is none
 */
fi_addr_t av_cq_addr(const struct av_table *av, fi_addr_t index);

#endif
