/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses whose pages were removed. Called by the cache with its lock held. */
#include "removed.h"

static void node_free(struct removed *removed, struct interval *node)
{
	node->left = removed->free;
	removed->free = node;
}

/* Returns a node that is not in the tree, or NULL. */
static struct interval *node_take(struct removed *removed)
{
	struct interval *node = removed->free;

	if (node)
		removed->free = node->left;
	return node;
}

void removed_init(struct removed *removed)
{
	*removed = (struct removed){ 0 };
	for (uint32_t i = 0; i < REMOVED_MAX; i++)
		node_free(removed, &removed->nodes[i]);
}

/* Without a node a neighbour grows over the addresses between, and keeps its place in the order. */
static void grow_neighbour(struct removed *removed, uintptr_t start, uintptr_t end)
{
	struct interval *next = intervals_after(&removed->ranges, start);

	if (next)
		next->start = start;
	else
		intervals_last(&removed->ranges)->end = end;
}

void removed_add(struct removed *removed, uintptr_t start, uintptr_t end)
{
	uintptr_t before = start ? start - 1 : 0, behind = end < UINTPTR_MAX ? end + 1 : end;
	struct interval *node;

	/* One that only touches the range becomes part of it too. */
	while ((node = intervals_first(&removed->ranges, before, behind))) {
		start = node->start < start ? node->start : start;
		end = node->end > end ? node->end : end;
		intervals_remove(&removed->ranges, node);
		node_free(removed, node);
	}
	node = node_take(removed);
	if (!node) {
		grow_neighbour(removed, start, end);
		return;
	}
	node->start = start;
	node->end = end;
	intervals_insert(&removed->ranges, node);
}

/* The range is in the middle of @node. Without a second node all of it stays. */
static void cut(struct removed *removed, struct interval *node, uintptr_t start, uintptr_t end)
{
	struct interval *rest = node_take(removed);

	if (!rest)
		return;
	rest->start = end;
	rest->end = node->end;
	node->end = start;
	intervals_insert(&removed->ranges, rest);
}

void removed_drop(struct removed *removed, uintptr_t start, uintptr_t end)
{
	struct interval *node;

	for (uintptr_t at = start; (node = intervals_first(&removed->ranges, at, end));) {
		at = node->end;
		if (node->start < start && node->end > end) {
			cut(removed, node, start, end);
		} else if (node->start < start) {
			node->end = start;
		} else if (node->end > end) {
			node->start = end;
		} else {
			intervals_remove(&removed->ranges, node);
			node_free(removed, node);
		}
	}
}

bool removed_has(const struct removed *removed, uintptr_t start, uintptr_t end)
{
	return intervals_first(&removed->ranges, start, end);
}
