/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What weak.c and views.c have of each other: the exploration, and memory as the threads see it. */
#ifndef WEFT_VIEWS_H
#define WEFT_VIEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum views_kind {
	VIEWS_LOAD,
	VIEWS_STORE,
	VIEWS_UPDATE,
	VIEWS_FENCE,
	VIEWS_BARRIER,
};

/* views_reset - an execution begins; setup() is next */
void views_reset(void);
/* views_begin - a thread begins, with what setup() has done */
void views_begin(int thread);
/* views_end - all threads have ended; check() is next */
void views_end(void);
void views_barrier(void);

/*
 * views_weaken - drop that ordering from now on; NULL: drop none
 * views_weakened - returns true if that has changed anything
 */
void views_weaken(const char *label);
bool views_weakened(void);

/*
 * What a read-modify-write operation makes of a value. Returns false where it stores nothing.
 */
typedef bool views_next(uint64_t old, uint64_t operand, uint64_t compare, uint64_t *next);

/* views_load and the like - an access of the running thread; @mo: __ATOMIC_* */
uint64_t views_load(const volatile void *at, size_t len, int mo);
void views_store(const volatile void *at, size_t len, uint64_t value, int mo);
/* views_update - returns what was there */
uint64_t views_update(const volatile void *at, size_t len, views_next *next, uint64_t operand,
		      uint64_t compare, int mo);
void views_fence(int mo);
/* views_touch - an access that is not atomic */
void views_touch(const void *at, size_t len, bool write);

/* weak_choose - one of so many ways */
unsigned weak_choose(unsigned cnt);
/* weak_step - the running thread is about to make that access: another one may go on before it */
void weak_step(enum views_kind kind, const volatile void *at, bool seq);
/* weak_running - the thread, or WEAK_THREADS in setup() and check() */
int weak_running(void);
void weak_fail(const char *what);

#endif
