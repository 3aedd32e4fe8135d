/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All executions that C11 allows of a few threads: the sources under test are what the library is built of,
 * compiled by -fsanitize=thread, and weak.c answers what the compiler calls for each access in the place of
 * ThreadSanitizer's runtime. The threads are coroutines; before each atomic access any of them may go
 * on, a load returns any store that it may see, and a store stands anywhere in its location's order
 * where it may. Bytes that two threads access in no order are an error (a data race).
 *
 * Memory is that of views: Kang et al., 'A Promising Semantics for Relaxed-Memory Concurrency', 2017,
 * without promises, and C11's rules for memory_order_seq_cst (N1570, 7.17.3). Without promises no store
 * is seen before a load that stands before it in its thread; where bytes are handed over it would be a
 * data race, and that is found. Executions that differ in the order of independent accesses alone are
 * run once (sleep sets: Godefroid, 1996).
 *
 * Memory that the threads share is prepared by setup(), in every execution anew.
 */
#ifndef WEFT_WEAK_H
#define WEFT_WEAK_H

#include <stdbool.h>
#include <stddef.h>

#define WEAK_THREADS 3

struct weak_test {
	const char *name;
	void (*setup)(void);
	void (*threads[WEAK_THREADS])(void); /* those that are there, from the first on */
	void (*check)(void);		     /* all have ended; NULL: nothing */
};

/*
 * An ordering, named as in the sources: 'R:' stores of a location lose their release, 'A:' loads their
 * acquire, 'F:' both their place in the order of memory_order_seq_cst; or, with no location, fences.
 * The test must fail without it.
 */
struct weak_ordering {
	const char *label;
	const struct weak_test *test;
};

/* weak_name - from setup(): @len bytes at @at are the location of that name in labels */
void weak_name(const char *name, const void *at, size_t len);

/* weak_assume - from a thread: what does not hold in an execution makes it one that is of no interest */
void weak_assume(bool holds);

/* weak_require - what must hold in all executions */
#define weak_require(holds) weak_require_at(holds, #holds, __FILE__, __LINE__)
void weak_require_at(bool holds, const char *what, const char *file, int line);

/* weak_barrier - membarrier(2): a fence of memory_order_seq_cst in every thread */
void weak_barrier(void);

/* weak_fence_name - fences and barriers of this thread have that name in labels from now on; NULL: none */
void weak_fence_name(const char *name);

/*
 * weak_relax - what processor_relax() calls in the sources; each test has its own
 * A turn of a loop that waits changes nothing for the others. Where the next turn finds nothing that the
 * first one does not find in another execution, this one is of no interest.
 */
void weak_relax(void);

/*
 * weak_main - explores the tests, and once more without each ordering
 * Returns 0, or 1 where a test failed or an ordering was not needed; says which.
 */
int weak_main(const struct weak_test *const *tests, const struct weak_ordering *orderings);

#endif
