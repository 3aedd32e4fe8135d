/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The treap: by start a search tree, by weight a heap. Weights are random, so that its height is about
 * twice that of a balanced tree whatever the order of calls. Called with the caller's lock held.
 */
#include "interval.h"

static uint32_t next_weight(struct intervals *tree)
{
	uint32_t x = tree->seed ? tree->seed : 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	tree->seed = x;
	return x;
}

/* What begins before @start goes to @low, the rest to @high. */
static void split(struct interval *node, uintptr_t start, struct interval **low,
		  struct interval **high)
{
	while (node) {
		if (node->start < start) {
			*low = node;
			low = &node->right;
			node = node->right;
		} else {
			*high = node;
			high = &node->left;
			node = node->left;
		}
	}
	*low = NULL;
	*high = NULL;
}

/* All of @low is before all of @high. */
static struct interval *merge(struct interval *low, struct interval *high)
{
	struct interval *root, **at = &root;

	while (low && high) {
		if (low->weight > high->weight) {
			*at = low;
			at = &low->right;
			low = low->right;
		} else {
			*at = high;
			at = &high->left;
			high = high->left;
		}
	}
	*at = low ? low : high;
	return root;
}

void intervals_insert(struct intervals *tree, struct interval *node)
{
	struct interval **at = &tree->root;

	node->weight = next_weight(tree);
	while (*at && (*at)->weight > node->weight)
		at = node->start < (*at)->start ? &(*at)->left : &(*at)->right;
	split(*at, node->start, &node->left, &node->right);
	*at = node;
}

void intervals_remove(struct intervals *tree, struct interval *node)
{
	struct interval **at = &tree->root;

	while (*at != node)
		at = node->start < (*at)->start ? &(*at)->left : &(*at)->right;
	*at = merge(node->left, node->right);
}

struct interval *intervals_after(const struct intervals *tree, uintptr_t addr)
{
	struct interval *found = NULL;

	for (struct interval *node = tree->root; node;) {
		if (node->end > addr) {
			found = node;
			node = node->left;
		} else {
			node = node->right;
		}
	}
	return found;
}

struct interval *intervals_last(const struct intervals *tree)
{
	struct interval *node = tree->root;

	while (node && node->right)
		node = node->right;
	return node;
}
