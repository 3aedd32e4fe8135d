/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections that break around their end: one side sends and shuts down, or closes, and a socket of
 * either end breaks just before, meanwhile or afterwards. What arrives is a first part of what was sent,
 * once, in order and whole; every operation ends, and each side hears of the end once.
 *
 * usage: end_test [ROUNDS]		BREAK_SEED
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "../model/breaks.h"
#include "party.h"
#include "seeded.h"
#include <cmocka.h>

#define ROUNDS	   200
#define SENDS	   12
#define LARGEST	   70000u
#define UNSETTLED  4000u   /* all that may be under way has room in the other end's socket */
#define GREETING   8192u   /* so that breaks.c takes the connection for one that is up */
#define SPREAD_NS  300000u /* a break comes at most so long before or after the end begins */
#define HELD	   8
#define DEADLINE_S 30

static struct party listener, caller, callee;
static unsigned char out[SENDS][LARGEST], in[SENDS][LARGEST];
static size_t lens[SENDS];
static uint32_t round_cnt = ROUNDS;
static uint64_t seed;

struct plan {
	enum break_kind kind; /* BREAK_KINDS: none */
	uint32_t end_ns, break_ns;
	pthread_barrier_t begin;
	int fd;
};

static int teardown(void **state)
{
	party_close_all();
	return 0;
}

static void spin(uint32_t ns)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < ns);
}

static void *breaker_role(void *arg)
{
	struct plan *plan = arg;

	pthread_barrier_wait(&plan->begin);
	spin(plan->break_ns);
	if (plan->kind != BREAK_KINDS)
		breaks_do(plan->fd, plan->kind);
	return NULL;
}

static void greet(struct party *from, struct party *to)
{
	void *context;

	assert_int_equal(fi_recv(to->ep, in[0], GREETING, NULL, 0, in), 0);
	assert_int_equal(fi_send(from->ep, out[0], GREETING, NULL, 0, out), 0);
	assert_int_equal(party_ends(to, &context), 0);
	assert_int_equal(party_ends(from, &context), 0);
}

/* Posts all receives, and sends. Returns how many sends have ended, all if @settled. */
static int send_all(bool settled)
{
	size_t most = settled ? LARGEST : UNSETTLED;
	void *context;
	int done = 0;

	for (int i = 0; i < SENDS; i++) {
		lens[i] = seeded_below(&seed, seeded_below(&seed, 2) ? most : 100);
		for (size_t at = 0; at < lens[i]; at++)
			out[i][at] = (unsigned char)(seed + (uint64_t)i * 37 + at * 7 +
						     (at >> 8));
		assert_int_equal(fi_recv(callee.ep, in[i], LARGEST, NULL, 0, in[i]), 0);
		assert_int_equal(fi_send(caller.ep, out[i], lens[i], NULL, 0, out[i]), 0);
	}
	for (; settled && done < SENDS; done++)
		assert_int_equal(party_ends(&caller, &context), 0);
	return done;
}

/* Ends the connection from the caller's side while a socket breaks. */
static void end_broken(struct plan *plan, bool closes)
{
	time_t end = time(NULL) + DEADLINE_S;
	pthread_t thread;
	int fds[HELD], cnt;

	/* both ends have the last acknowledgement soon */
	while ((cnt = breaks_find(fds, HELD, true)) < 2) {
		party_quiet(&callee);
		assert_true(time(NULL) < end);
	}
	plan->fd = dup(fds[seeded_below(&seed, (uint64_t)cnt)]);
	assert_true(plan->fd >= 0);
	assert_int_equal(pthread_barrier_init(&plan->begin, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, breaker_role, plan), 0);
	pthread_barrier_wait(&plan->begin);
	spin(plan->end_ns);
	if (closes)
		party_close(&caller);
	else
		assert_int_equal(fi_shutdown(caller.ep, 0), 0);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&plan->begin);
	close(plan->fd);
}

/* What the callee has received is right, and the rest of its receives is cancelled. Returns how many it has. */
static int received(void)
{
	int got = 0, err;
	void *context;

	for (int i = 0; i < SENDS; i++) {
		err = party_ends(&callee, &context);
		assert_ptr_equal(context, in[i]);
		if (err) {
			assert_int_equal(err, FI_ECANCELED);
			continue;
		}
		assert_int_equal(got++, i);
		assert_memory_equal(in[i], out[i], lens[i]);
	}
	return got;
}

static void round_run(void)
{
	bool before = seeded_below(&seed, 2), settled = seeded_below(&seed, 2);
	uint32_t ns = (uint32_t)seeded_below(&seed, SPREAD_NS);
	struct plan plan = { .kind = seeded_below(&seed, BREAK_KINDS + 1),
			     .end_ns = before ? ns : 0,
			     .break_ns = before ? 0 : ns };
	bool closes = seeded_below(&seed, 3) == 0;
	struct heard heard;
	void *context;
	int done, err;

	party_pair(&listener, &caller, &callee);
	greet(&caller, &callee);
	greet(&callee, &caller);
	done = send_all(settled);
	end_broken(&plan, closes);
	party_expect(&callee, FI_SHUTDOWN, &heard);
	if (received() < SENDS)
		assert_true(plan.kind != BREAK_KINDS);
	for (; !closes && done < SENDS; done++) {
		err = party_ends(&caller, &context);
		assert_true(!err || (err == FI_ECANCELED && plan.kind != BREAK_KINDS));
	}
	if (!closes)
		party_expect(&caller, FI_SHUTDOWN, &heard);
	assert_int_equal(fi_shutdown(callee.ep, 0), 0);
	assert_int_equal(fi_cq_read(callee.cq, &context, 1), -FI_EAGAIN);
	if (!closes)
		party_close(&caller);
	party_close(&callee);
}

static void what_arrives_around_a_break_is_right(void **state)
{
	party_listen(&listener);
	for (uint32_t i = 0; i < round_cnt; i++) {
		print_message("round %u, state %#llx\n", i, (unsigned long long)seed);
		round_run();
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_arrives_around_a_break_is_right, teardown),
	};
	const char *given = getenv("BREAK_SEED");
	struct timespec now;

	if (argc > 1)
		round_cnt = (uint32_t)strtoul(argv[1], NULL, 0);
	clock_gettime(CLOCK_MONOTONIC, &now);
	seed = given ? strtoull(given, NULL, 0)
		     : (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	print_message("BREAK_SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
