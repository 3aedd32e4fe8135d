/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which addresses of DMA are in use, and which are free: ranges that a function may use, less what was taken. One thread
 * at a time.
 */
#ifndef WEFT_DEVICES_VFIO_ADDRESSES_H
#define WEFT_DEVICES_VFIO_ADDRESSES_H

#include <stdint.h>

#include "vfio.h"

/*
 * struct addresses
 * @taken: by address, disjoint
 * @next:  where the search for the next one begins: an address comes again as late as possible
 */
struct addresses {
	const struct vfio_range *ranges;
	uint32_t range_cnt;
	struct vfio_range *taken;
	uint32_t cnt;
	uint32_t room;
	uint64_t next;
};

/* addresses_init - @ranges: borrowed, ascending; what is below ADDRESSES_FIRST is not given out */
void addresses_init(struct addresses *a, const struct vfio_range *ranges, uint32_t range_cnt);
void addresses_fini(struct addresses *a);

/* So that a small number, and a pointer that was not set, is no address. */
#define ADDRESSES_FIRST (1ull << 20)

/*
 * addresses_take - take @len bytes, of whole pages
 * @addr: out
 *
 * Returns 0; -ENOSPC: there is no such range; -ENOMEM.
 */
int addresses_take(struct addresses *a, uint64_t len, uint64_t *addr);

/* addresses_claim - take these: -EEXIST: they are in use; -EINVAL: the function can't use them; -ENOMEM */
int addresses_claim(struct addresses *a, uint64_t addr, uint64_t len);

/* addresses_give - what was taken at @addr is free again */
void addresses_give(struct addresses *a, uint64_t addr);

#endif
