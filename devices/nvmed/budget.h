/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What windows take of the process: descriptors, mappings, addresses. Borrowers say how many there are, and none of them
 * is to have so much that others get no window. Half of it is divided equally: each holder can have its part at any time.
 * The other half is whoever's comes first. The loop's thread alone.
 */
#ifndef WEFT_NVMED_BUDGET_H
#define WEFT_NVMED_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* struct budget_use - @files: mapped ones, each a descriptor and a mapping; @bytes: of addresses here */
struct budget_use {
	uint64_t files;
	uint64_t bytes;
};

/*
 * struct budget
 * @most:    that there is
 * @used:    by all holders
 * @holders: how many there may be
 */
struct budget {
	struct budget_use most;
	struct budget_use used;
	uint32_t holders;
};

/*
 * budget_init - what this process may have
 * @kept: descriptors and mappings that are needed otherwise
 */
void budget_init(struct budget *b, uint32_t holders, uint64_t kept);

/* budget_take - take @more for a holder that has @own. Returns false, and nothing is taken, where others are to have it */
bool budget_take(struct budget *b, struct budget_use *own, struct budget_use more);

/* budget_give - it is free again */
void budget_give(struct budget *b, struct budget_use *own, struct budget_use less);

#endif
