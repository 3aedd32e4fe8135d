/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ranges of addresses that don't overlap, in the order of their addresses: a treap, embedded in the objects that
 * have the ranges. It allocates nothing. The caller serializes.
 * Source: Seidel and Aragon, Randomized Search Trees, 1996.
 */
#ifndef WEFT_MEM_INTERVAL_H
#define WEFT_MEM_INTERVAL_H

#include "platform.h"

struct interval {
	/* addresses from start to before end. Changed in place only where the order stays */
	uintptr_t start;
	uintptr_t end;
	struct interval *left;
	struct interval *right;
	uint32_t weight;
};

/* Zeroed: empty. */
struct intervals {
	struct interval *root;
	uint32_t seed;
};

/* intervals_insert - @node overlaps none that is there */
void intervals_insert(struct intervals *tree, struct interval *node);

/* intervals_remove - @node is there */
void intervals_remove(struct intervals *tree, struct interval *node);

/* intervals_after - returns the lowest one that ends after @addr, or NULL */
struct interval *intervals_after(const struct intervals *tree, uintptr_t addr);

/* intervals_first - returns the lowest one that overlaps a range, or NULL */
static inline struct interval *intervals_first(const struct intervals *tree, uintptr_t start,
					       uintptr_t end)
{
	struct interval *node = intervals_after(tree, start);

	return node && node->start < end ? node : NULL;
}

/* intervals_last - returns the highest one, or NULL */
struct interval *intervals_last(const struct intervals *tree);

#endif
