/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For a query that no provider answers: which hints to leave out to get an answer. fi_getinfo logs it, when
 * a log is wanted.
 */
#ifndef WEFT_CORE_NEAREST_H
#define WEFT_CORE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/fabric.h>

/* The arguments of fi_getinfo that a search varies or needs. */
struct question {
	const char *node;
	const char *service;
	/* the hints, or NULL */
	const struct fi_info *hints;
};

/*
 * nearest_find - find one hint, or a minimal set of hints, without which a query is answered
 * @q:         a query that no provider answers
 * @answered:  returns true if a provider answers a query; called about once per hint
 * @arg:       argument of @answered
 * @text:      receives 'without ep_attr->protocol', or several of these with 'and' in between
 * @len:       bytes of @text
 *
 * If several single hints would do, the first one of the table is named. A set is minimal: no member can be
 * left out of it. Returns false if leaving out hints does not help.
 */
bool nearest_find(const struct question *q,
		  bool (*answered)(const struct question *q, void *arg), void *arg, char *text,
		  size_t len);

#endif /* WEFT_CORE_NEAREST_H */
