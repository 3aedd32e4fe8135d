/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The exploration behind weak.h: choices are kept in a trail and taken anew, depth first, one execution
 * after the other.
 */
#include "weak.h"
#include "views.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK	   (256u << 10)
#define TRAIL_MAX  4096
#define EXECUTIONS 20000000u /* more are an error: the test is to be made smaller */

/* A point where an execution may go on in several ways. */
struct choice {
	unsigned next, cnt;
};

/* What a thread is about to do. */
struct pending {
	enum views_kind kind;
	const volatile void *at;
	bool seq;
};

static struct choice trail[TRAIL_MAX];
static unsigned depth, trail_len;

static const struct weak_test *test;
/* Where each goes on: swapcontext() would make a system call for the signals at each switch. */
static jmp_buf scheduler, threads[WEAK_THREADS];
static ucontext_t beginnings[WEAK_THREADS];
static bool begun[WEAK_THREADS];
static char *stacks[WEAK_THREADS];
static struct pending pending[WEAK_THREADS];
static bool over[WEAK_THREADS];
static unsigned thread_cnt;
static int running; /* -1: setup() and check() */
static bool abandoned, failed;
static char why[512];

unsigned weak_choose(unsigned cnt)
{
	if (cnt <= 1)
		return 0;
	if (depth == TRAIL_MAX) {
		fprintf(stderr, "weak: an execution without an end\n");
		exit(1);
	}
	if (depth == trail_len)
		trail[trail_len++] = (struct choice){ .next = 0, .cnt = cnt };
	return trail[depth++].next;
}

/* The next execution: the last choice that has another way. */
static bool advance(void)
{
	while (trail_len && trail[trail_len - 1].next + 1 == trail[trail_len - 1].cnt)
		trail_len--;
	if (!trail_len)
		return false;
	trail[trail_len - 1].next++;
	return true;
}

static void leave(void)
{
	if (running >= 0 && !_setjmp(threads[running]))
		_longjmp(scheduler, 1);
}

void weak_fail(const char *what)
{
	if (!failed)
		snprintf(why, sizeof(why), "%s", what);
	failed = true;
	leave();
}

void weak_require_at(bool holds, const char *what, const char *file, int line)
{
	char text[256];

	if (holds)
		return;
	snprintf(text, sizeof(text), "%s:%d: %s", file, line, what);
	weak_fail(text);
}

void weak_assume(bool holds)
{
	if (holds)
		return;
	abandoned = true;
	leave();
}

int weak_running(void)
{
	return running < 0 ? WEAK_THREADS : running;
}

void weak_step(enum views_kind kind, const volatile void *at, bool seq)
{
	if (running < 0)
		return;
	pending[running] = (struct pending){ kind, at, seq };
	leave();
}

void weak_barrier(void)
{
	weak_step(VIEWS_BARRIER, NULL, true);
	views_barrier();
}

/* Whether one of them before the other is the same as the other way round. */
static bool independent(const struct pending *a, const struct pending *b)
{
	bool fences = a->kind == VIEWS_FENCE || b->kind == VIEWS_FENCE;

	if (a->kind == VIEWS_BARRIER || b->kind == VIEWS_BARRIER)
		return false;
	if (fences)
		return !a->seq || !b->seq;
	if (a->at != b->at)
		return true;
	return a->kind == VIEWS_LOAD && b->kind == VIEWS_LOAD;
}

static void run_thread(int n)
{
	test->threads[n]();
	over[n] = true;
	_longjmp(scheduler, 1);
}

static void resume(int n)
{
	running = n;
	if (!_setjmp(scheduler)) {
		if (begun[n])
			_longjmp(threads[n], 1);
		begun[n] = true;
		setcontext(&beginnings[n]);
	}
	running = -1;
}

static void start_threads(void)
{
	for (thread_cnt = 0; thread_cnt < WEAK_THREADS && test->threads[thread_cnt];) {
		int n = (int)thread_cnt++;

		if (!stacks[n])
			stacks[n] = malloc(STACK);
		getcontext(&beginnings[n]);
		beginnings[n].uc_stack.ss_sp = stacks[n];
		beginnings[n].uc_stack.ss_size = STACK;
		beginnings[n].uc_link = NULL;
		makecontext(&beginnings[n], (void (*)(void))run_thread, 1, n);
		begun[n] = over[n] = false;
		views_begin(n);
		resume(n); /* up to its first access */
		if (failed || abandoned)
			return;
	}
}

/* One execution: until all threads have ended, or nothing new can come of it. */
static void schedule(void)
{
	unsigned asleep = 0;

	while (!failed && !abandoned) {
		unsigned options[WEAK_THREADS], cnt = 0, alive = 0, way, now;
		struct pending did;

		for (unsigned n = 0; n < thread_cnt; n++) {
			alive += !over[n];
			if (!over[n] && !(asleep & 1u << n))
				options[cnt++] = n;
		}
		if (!alive)
			return;
		if (!cnt) {
			abandoned = true;
			return;
		}
		way = weak_choose(cnt);
		now = options[way];
		for (unsigned i = 0; i < way; i++)
			asleep |= 1u << options[i];
		did = pending[now];
		for (unsigned n = 0; n < thread_cnt; n++)
			if (asleep & 1u << n && !independent(&pending[n], &did))
				asleep &= ~(1u << n);
		resume((int)now);
	}
}

/* Returns the number of executions that reached their end, 0 if one failed. */
static unsigned long explore(const struct weak_test *t)
{
	unsigned long executions = 0, ends = 0;

	test = t;
	trail_len = 0;
	failed = false;
	do {
		depth = 0;
		abandoned = false;
		running = -1;
		views_reset();
		t->setup();
		start_threads();
		schedule();
		if (!failed && !abandoned) {
			views_end();
			if (t->check)
				t->check();
			ends++;
		}
		if (++executions == EXECUTIONS)
			weak_fail("more executions than are allowed: make the test smaller");
	} while (!failed && advance());
	return failed ? 0 : ends;
}

int weak_main(const struct weak_test *const *tests, const struct weak_ordering *orderings)
{
	int wrong = 0;

	for (; *tests; tests++) {
		unsigned long ends = explore(*tests);

		if (failed)
			printf("%s: %s\n", (*tests)->name, why);
		else
			printf("%s: no error, %lu executions\n", (*tests)->name, ends);
		wrong |= failed || !ends;
	}
	for (; orderings->label; orderings++) {
		bool used;

		views_weaken(orderings->label);
		explore(orderings->test);
		used = views_weakened();
		views_weaken(NULL);
		printf("without %s: %s\n", orderings->label,
		       !used	? "nobody has it"
		       : failed ? why
				: "no error, and there should be one");
		wrong |= !failed || !used;
	}
	return wrong;
}
