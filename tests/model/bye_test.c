/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections that break around their orderly end: one side sends, sees that its sends complete and
 * closes, and its sockets break just before, meanwhile or afterwards. Whatever it has sent arrives,
 * once and in order. Then the other side closes, and its sockets break likewise; or both close at
 * once.
 *
 * usage: bye_test PROVIDER [ROUNDS]		BREAK_SEED
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "breaks.h"
#include "pair_run.h"
#include "seeded.h"
#include <cmocka.h>

#define ROUNDS	    60
#define SENDS	    48
#define LARGEST	    200000u
#define GREETING    8192u    /* so that breaks.c takes the connection for one that is up */
#define SPREAD_NS   1000000u /* a break comes at most so long before or after fi_close() begins */
#define CLOSE_MAX_S 1.0	     /* fi_close() waits as long as that, and no longer */
#define WAIT_S	    20.0     /* for what must come */
#define HELD	    8

/* What happens around one fi_close(). */
struct plan {
	enum break_kind kind;
	uint32_t close_ns, break_ns; /* from when both threads begin */
};

/* What both processes know. */
struct round {
	uint64_t seed;
	bool closer_dials, together;
	struct plan plans[2];	      /* of who closes first, and of the other one */
	_Atomic bool late;	      /* the first fi_close() gave up */
	_Atomic bool closed;	      /* ... or did not; it is over */
	_Atomic unsigned long breaks; /* that were made, in all rounds */
};

static const char *provider;
static uint32_t round_cnt = ROUNDS;
static uint64_t seed;
static struct round *now;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Lets time pass without giving the processor away. */
static void spin(uint32_t ns)
{
	double end = seconds() + ns * 1e-9;

	while (seconds() < end)
		;
}

/* Breaking */

struct breaker {
	const struct plan *plan;
	pthread_barrier_t begin;
	pthread_t thread;
	int fds[HELD], cnt;
};

static void *breaker_role(void *arg)
{
	struct breaker *b = arg;

	pthread_barrier_wait(&b->begin);
	spin(b->plan->break_ns);
	for (int i = 0; i < b->cnt; i++)
		breaks_do(b->fds[i], b->plan->kind);
	return NULL;
}

/* Closes the endpoint while its sockets break, which stay when it has closed them. Returns seconds. */
static double close_broken(struct pair_side *s, const struct plan *plan)
{
	struct breaker b = { .plan = plan };
	double begin;

	b.cnt = breaks_find(b.fds, HELD, true);
	for (int i = 0; i < b.cnt; i++) {
		b.fds[i] = dup(b.fds[i]);
		PAIR_CHECK(s, b.fds[i] >= 0);
	}
	atomic_fetch_add(&now->breaks, (unsigned long)b.cnt);
	PAIR_CHECK(s, !pthread_barrier_init(&b.begin, NULL, 2));
	PAIR_CHECK(s, !pthread_create(&b.thread, NULL, breaker_role, &b));
	pthread_barrier_wait(&b.begin);
	spin(plan->close_ns);
	begin = seconds();
	pair_stop(s);
	begin = seconds() - begin;
	pthread_join(b.thread, NULL);
	pthread_barrier_destroy(&b.begin);
	for (int i = 0; i < b.cnt; i++)
		close(b.fds[i]);
	return begin;
}

/* Messages */

static size_t len_of(uint32_t seq)
{
	static const uint32_t most[] = { 64, 64, 64, 9000, 70000, LARGEST };
	uint64_t state = now->seed + seq;

	return seeded_below(&state, most[seeded_below(&state, 6)]);
}

static uint8_t byte_of(uint32_t seq, size_t at)
{
	return (uint8_t)(seq * 37 + at * 7 + (at >> 8));
}

static void send_all(struct pair_side *s)
{
	uint8_t *bytes[SENDS];
	uint32_t done = 0;

	for (uint32_t seq = 0; seq < SENDS; seq++) {
		size_t len = len_of(seq);
		ssize_t ret;

		bytes[seq] = malloc(LARGEST);
		PAIR_CHECK(s, bytes[seq]);
		for (size_t i = 0; i < len; i++)
			bytes[seq][i] = byte_of(seq, i);
		while ((ret = fi_tsend(s->ep, bytes[seq], len, NULL, s->peer, 7, NULL)) ==
		       -FI_EAGAIN) {
			PAIR_CHECK(s, pair_next(s) == 1);
			done++;
		}
		PAIR_CHECK(s, !ret);
	}
	for (; done < SENDS; done++)
		PAIR_CHECK(s, pair_next(s) == 1);
	for (uint32_t seq = 0; seq < SENDS; seq++)
		free(bytes[seq]);
}

/* Returns false if the sender has given up, and there is no more. */
static bool receive_one(struct pair_side *s, uint8_t *bytes, uint32_t seq)
{
	double end = seconds() + WAIT_S;
	size_t len = len_of(seq);

	PAIR_CHECK(s, !fi_trecv(s->ep, bytes, LARGEST, NULL, s->peer, 7, 0, bytes));
	for (uint32_t i = 1; fi_cq_read(s->cq, NULL, 0) == -FI_EAGAIN; i++) {
		if (now->late && pair_none(s))
			return false;
		if (i % 1024)
			continue;
		PAIR_CHECK(s, seconds() < end);
		sched_yield();
	}
	if (pair_next(s) != 1) {
		/* The connection ends before fi_close() says that it gave up. */
		while (!now->closed && seconds() < end)
			sched_yield();
		if (now->late)
			return false;
		print_error("message %u of %zu bytes: error %d\n", seq, len, s->error.err);
	}
	PAIR_CHECK(s, !s->error.err);
	PAIR_CHECK(s, s->entry.op_context == bytes && s->entry.len == len);
	for (size_t i = 0; i < len; i++)
		PAIR_CHECK(s, bytes[i] == byte_of(seq, i));
	return true;
}

/* Both sides have sent more than a greeting; who sends first connects. */
static void get_up(struct pair_side *s, bool first)
{
	static uint8_t bytes[2][GREETING];

	PAIR_CHECK(s, !fi_trecv(s->ep, bytes[0], GREETING, NULL, s->peer, 1, 0, bytes[0]));
	if (!first)
		pair_done(s, bytes[0]);
	PAIR_CHECK(s, !fi_tsend(s->ep, bytes[1], GREETING, NULL, s->peer, 1, bytes[1]));
	if (!first) {
		pair_done(s, bytes[1]);
		return;
	}
	PAIR_CHECK(s, pair_next(s) == 1);
	PAIR_CHECK(s, pair_next(s) == 1);
}

/* Sides */

static void closer(struct pair_side *s)
{
	get_up(s, now->closer_dials);
	send_all(s);
	if (now->together)
		pair_hear(s, 'a', true);
	if (close_broken(s, &now->plans[0]) >= CLOSE_MAX_S)
		now->late = true;
	now->closed = true;
}

static void other(struct pair_side *s)
{
	uint8_t *bytes = malloc(LARGEST);

	PAIR_CHECK(s, bytes);
	get_up(s, !now->closer_dials);
	for (uint32_t seq = 0; seq < SENDS; seq++)
		if (!receive_one(s, bytes, seq))
			break;
	if (now->together)
		pair_say(s, 'a');
	close_broken(s, &now->plans[1]);
	free(bytes);
}

static void plan(struct plan *p)
{
	bool before = seeded_below(&seed, 2);
	uint32_t ns = seeded_below(&seed, seeded_below(&seed, 2) ? SPREAD_NS : SPREAD_NS / 10);

	*p = (struct plan){ .kind = seeded_below(&seed, BREAK_KINDS),
			    .close_ns = before ? ns : 0,
			    .break_ns = before ? 0 : ns };
}

static void what_was_sent_before_the_end_arrives(void **state)
{
	struct pair_attr attr = { .provider = provider, .mode = PAIR_PROCESSES };
	uint32_t late = 0;

	for (uint32_t i = 0; i < round_cnt; i++) {
		now->late = now->closed = false;
		now->closer_dials = seeded_below(&seed, 2);
		now->together = !seeded_below(&seed, 4);
		plan(&now->plans[0]);
		plan(&now->plans[1]);
		now->seed = seed;
		print_message("round %u, state %#llx\n", i, (unsigned long long)seed);
		pair_run(&attr, closer, other);
		late += now->late;
	}
	print_message("%lu breaks in %u rounds; %u times fi_close() waited no longer\n",
		      now->breaks, round_cnt, late);
	assert_true(now->breaks >= round_cnt);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_sent_before_the_end_arrives),
	};
	const char *given = getenv("BREAK_SEED");

	if (argc < 2)
		return 2;
	provider = argv[1];
	if (argc > 2)
		round_cnt = (uint32_t)strtoul(argv[2], NULL, 0);
	seed = given ? strtoull(given, NULL, 0) : (uint64_t)(seconds() * 1e9);
	print_message("BREAK_SEED=%llu\n", (unsigned long long)seed);
	now = mmap(NULL, sizeof(*now), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		   0);
	if (now == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
