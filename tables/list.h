/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Doubly linked list with a head, embedded in the objects it links. The caller serializes.
 */
#ifndef WEFT_LIST_H
#define WEFT_LIST_H

#include "platform.h"

struct list {
	struct list *next;
	struct list *prev;
};

#ifndef container_of
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#endif

/* The loop body may remove the current node. */
#define list_for_each(node, after, head)                                      \
	for ((node) = (head)->next, (after) = (node)->next; (node) != (head); \
	     (node) = (after), (after) = (node)->next)

/*
 * The same for the objects that the list links by their @member; @entry is a variable, a pointer to
 * them. It keeps the last object when the loop ends.
 */
#define list_for_each_entry(entry, head, member)                                            \
	for (struct list *entry##_node = (head)->next, *entry##_after = entry##_node->next; \
	     entry##_node != (head) &&                                                      \
	     ((entry) = container_of(entry##_node, __typeof__(*(entry)), member), true);    \
	     entry##_node = entry##_after, entry##_after = entry##_node->next)

static inline void list_init(struct list *head)
{
	head->next = head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

/* list_add_tail - append a node at the tail */
static inline void list_add_tail(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void list_insert_after(struct list *where, struct list *node)
{
	node->prev = where;
	node->next = where->next;
	where->next->prev = node;
	where->next = node;
}

/* list_remove - remove a node from its list and make it an empty list */
static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* list_pop - remove and return the first node, or NULL */
static inline struct list *list_pop(struct list *head)
{
	struct list *node = head->next;

	if (node == head)
		return NULL;
	list_remove(node);
	return node;
}

#endif
