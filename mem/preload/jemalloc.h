/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * jemalloc, as this library has it: Debian's archive of objects, in a copy in which the public names,
 * and those that it refers to and that are answered here, are those of jemalloc-names.txt. So
 * nothing that a program calls is jemalloc's, and no setting of a program's own jemalloc reaches it.
 *
 * jemalloc_fork_prepare, _parent, _child - what it has to do around fork(): called by heap.c, whose
 * order it has to keep
 *
 * Source: jemalloc(3).
 */
#ifndef WEFT_MEM_JEMALLOC_H
#define WEFT_MEM_JEMALLOC_H

#include <jemalloc/jemalloc.h>
#include <stdbool.h>

void *weft_je_mallocx(size_t len, int flags);
void *weft_je_rallocx(void *ptr, size_t len, int flags);
void weft_je_dallocx(void *ptr, int flags);
size_t weft_je_sallocx(const void *ptr, int flags);
int weft_je_mallctl(const char *name, void *old, size_t *old_len, void *new, size_t new_len);

/* The name of a control of all arenas. */
#define JEMALLOC_TEXT(word)	  #word
#define JEMALLOC_NAME(a, word, b) a "." JEMALLOC_TEXT(word) "." b
#define JEMALLOC_ALL(a, b)	  JEMALLOC_NAME(a, MALLCTL_ARENAS_ALL, b)

/*
 * The argument of "experimental.arenas_create_ext": an arena with these hooks, whose own tables are not
 * in what the hooks give.
 */
struct jemalloc_arena {
	extent_hooks_t *hooks;
	bool tables_by_hooks;
};

void jemalloc_fork_prepare(void);
void jemalloc_fork_parent(void);
void jemalloc_fork_child(void);

#endif
