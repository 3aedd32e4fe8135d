/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * PRP entries and lists of a command, walked as its data moves: each entry is loaded from its owner's memory once,
 * checked, and used. A list is as long as the data makes it: one that loops is walked no further. The loop's thread.
 * Source: NVMe 1.4, section 4.3.
 */
#ifndef WEFT_NVMED_PRP_H
#define WEFT_NVMED_PRP_H

#include <stdint.h>

#include "domain.h"

enum prp_state {
	PRP_FIRST,  /* the data ends in the page of PRP1 */
	PRP_SECOND, /* PRP2 is the second page */
	PRP_LIST,   /* PRP2, or what the last list ended with, is a list */
};

/*
 * struct prp
 * @addr: of the next byte
 * @room: bytes from there that the entry has
 * @left: bytes of the transfer from there
 * @next: where the next entry is, or the second page
 */
struct prp {
	uint64_t addr;
	uint64_t next;
	uint64_t left;
	uint32_t room;
	enum prp_state state;
};

/* A contiguous piece of data in a window */
struct segment {
	struct window *window;
	uint64_t at;
	uint64_t len;
};

/*
 * prp_begin - the PRPs of a transfer
 * @len: bytes, not 0
 *
 * Returns 0 or the NVMe status of what is wrong.
 */
int prp_begin(struct prp *p, uint64_t prp1, uint64_t prp2, uint64_t len);

/*
 * prp_gather - where the next bytes are
 * @access:   what is done there, SLOT_DMA_*
 * @len:      at most what is left
 * @segs:     out: pieces, as many as PRP_SEGMENTS(len) at most
 * @cnt:      out: how many
 *
 * Returns 0; or the NVMe status of what is wrong, and then the transfer ends.
 */
int prp_gather(struct prp *p, struct domain *d, uint32_t access, uint64_t len,
	       struct segment *segs, uint32_t *cnt);

#define PRP_SEGMENTS(len) ((len) / 4096 + 2)

#endif
