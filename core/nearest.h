/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What of a question that nobody answers stands in the way: the nearest question that is
 * answered. fi_getinfo asks it, when somebody reads the log.
 */
#ifndef WEFT_CORE_NEAREST_H
#define WEFT_CORE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/fabric.h>

/* What fi_getinfo is asked, apart from what no hint can help. */
struct question {
	const char *node;
	const char *service;
	/* or NULL */
	const struct fi_info *hints;
};

/*
 * nearest_find - which single hint, or smallest set of them, left out, gets an answer
 * @q:         nobody answers it
 * @answered:  does anybody answer this one? Called about as often as there are hints
 * @arg:       for it
 * @text:      receives 'without ep_attr->protocol', or several such with 'and' between
 *
 * A set is the smallest in that none of it can be done without; of single hints the first of
 * the table. Returns false when nothing that a program may leave out would help.
 */
bool nearest_find(const struct question *q,
		  bool (*answered)(const struct question *q, void *arg), void *arg, char *text,
		  size_t len);

#endif /* WEFT_CORE_NEAREST_H */
