/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and writes of which each byte is checked, for the programs of this folder. Between the buffers, and around them,
 * are pages that no command names: they keep what the verifier has put there. One thread.
 *
 * A part of the device belongs to one verifier, or is shared. What is in a block of a shared part is known from its number
 * alone, and whoever writes there writes just that. In a part of its own a verifier changes what it writes each time.
 */
#ifndef WEFT_TESTS_DEVICES_VERIFY_H
#define WEFT_TESTS_DEVICES_VERIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <weft/nvme.h>

#define VERIFY_DEPTH 32u

/* Blocks are of 512 bytes, and commands of whole units. */
#define VERIFY_UNIT	4096u
#define VERIFY_BLOCKS	(VERIFY_UNIT / 512)
#define VERIFY_UNITS	16u /* of a command at most */
#define VERIFY_SLOT_LEN ((VERIFY_UNITS + 1) * (size_t)VERIFY_UNIT)

/* What a verifier needs, with a page before the first buffer. */
#define VERIFY_LEN(depth) (VERIFY_UNIT + (depth)*VERIFY_SLOT_LEN)

/* struct verify_slot - a buffer, with the command that has it */
struct verify_slot {
	struct weft_nvme_command command;
	uint32_t unit;
	uint32_t units;
	bool busy;
};

/*
 * struct verifier
 * @mem:         VERIFY_LEN(@depth) bytes with a window that lets the device read and write
 * @first, @cnt: the part of the device, in units
 * @generations: by unit, of a part of its own; NULL: the part is shared
 * @busy:        by unit, likewise: a command that is under way names it
 * @ended:       commands that have
 * @cancelled:   commands that ended with -ECANCELED
 */
struct verifier {
	struct weft_nvme *qp;
	uint8_t *mem;
	uint32_t depth;
	uint32_t first;
	uint32_t cnt;
	uint32_t *generations;
	bool *busy;
	uint64_t seed;
	uint64_t ended;
	uint32_t cancelled;
	uint32_t under_way;
	struct verify_slot slots[VERIFY_DEPTH];
};

/* verify_fill - what a unit has; @generation: 0 in a shared part */
void verify_fill(void *mem, uint32_t unit, uint32_t generation);

/* verify_init - returns 0 or -ENOMEM. @own: the part is this one's alone, and is to be prepared; its memory is given back by verify_fini() */
int verify_init(struct verifier *v, struct weft_nvme *qp, void *mem, uint32_t depth,
		uint32_t first, uint32_t cnt, bool own);
void verify_fini(struct verifier *v);

/* verify_prepare - write what the part has, and wait, with nothing under way. Returns 0 or a negative errno */
int verify_prepare(struct verifier *v);

/* verify_submit - have as many commands under way as may be. Returns 0 or a negative errno */
int verify_submit(struct verifier *v);

/*
 * verify_done - commands that have ended: their status, and every byte
 * Returns 0; -EILSEQ: other bytes than those that belong there, of which a line on standard error tells; the status of a
 * command; that of one that was cancelled only if none other is under way.
 */
int verify_done(struct verifier *v, const struct weft_nvme_completion *done, size_t cnt);

/* verify_pages - whether the pages that no command names are as they were: 0 or -EILSEQ, likewise */
int verify_pages(const struct verifier *v);

#endif
