/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that is cancelled while it waits, over the real library and each provider: it leaves nothing behind that
 * those who wait after it would pay for. One process.
 *
 * usage: wait_cancelled_test PROVIDER
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
#include "ends.h"

static const char *provider;

#define REST_MS 300

struct resting {
	struct end e;
	struct fid_wait *set;
	struct fid_eq *eq;
};

static void rest_in_queue(struct resting *r, int ms)
{
	struct fi_cq_tagged_entry entry;

	fi_cq_sread(r->e.cq, &entry, 1, NULL, ms);
}

static void rest_in_set(struct resting *r, int ms)
{
	fi_wait(r->set, ms);
}

static void rest_in_events(struct resting *r, int ms)
{
	struct fi_eq_entry entry;
	uint32_t event;

	fi_eq_sread(r->eq, &event, &entry, sizeof(entry), ms, 0);
}

static void signal_queue(struct resting *r)
{
	assert_int_equal(fi_cq_signal(r->e.cq), 0);
}

/* Is an event that the next reader takes. */
static void signal_events(struct resting *r)
{
	struct fi_eq_entry entry = { 0 };
	uint32_t event;

	assert_int_equal(fi_eq_write(r->eq, 1, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(fi_eq_read(r->eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
}

static const struct way_to_rest {
	void (*rest)(struct resting *r, int ms);
	void (*signal)(struct resting *r);
} ways_to_rest[] = {
	{ rest_in_queue, signal_queue },
	{ rest_in_set, NULL },
	{ rest_in_events, signal_events },
};

static struct {
	struct resting *r;
	const struct way_to_rest *way;
} forever;

static void *rest_for_ever(void *arg)
{
	for (;;)
		forever.way->rest(forever.r, -1);
	return NULL;
}

static double thread_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What a sleep takes of the processor, s: the least of five, of which the first may be ended by what has come before */
static double rest_cost(struct resting *r, const struct way_to_rest *way)
{
	double least = 1;

	for (int i = 0; i < 5; i++) {
		double before = thread_cpu(), start = end_now();

		way->rest(r, REST_MS);
		if (end_now() - start > REST_MS / 2e3 && thread_cpu() - before < least)
			least = thread_cpu() - before;
	}
	return least;
}

/* It is not counted as asleep any more: else all who sleep after it would be woken at once, again and again. */
static void one_that_is_cancelled_sleeps_no_more(void **state)
{
	struct end_attr attr = { .provider = provider,
				 .cq_wait = FI_WAIT_UNSPEC,
				 .no_cntr = true };
	struct fi_wait_attr set_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC, .flags = FI_WRITE };
	struct resting r;
	pthread_t thread;
	void *ret;

	end_open(&r.e, &attr);
	assert_int_equal(fi_wait_open(r.e.fabric, &set_attr, &r.set), 0);
	assert_int_equal(fi_eq_open(r.e.fabric, &eq_attr, &r.eq, NULL), 0);
	for (size_t i = 0; i < sizeof(ways_to_rest) / sizeof(ways_to_rest[0]); i++) {
		const struct way_to_rest *way = &ways_to_rest[i];

		forever.r = &r;
		forever.way = way;
		assert_int_equal(pthread_create(&thread, NULL, rest_for_ever, NULL), 0);
		usleep(20000); /* so that it sleeps, mostly */
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(pthread_join(thread, &ret), 0);
		assert_ptr_equal(ret, PTHREAD_CANCELED);
		if (way->signal)
			way->signal(&r);
		assert_true(rest_cost(&r, way) < REST_MS / 6e3);
	}
	assert_int_equal(fi_close(&r.eq->fid), 0);
	assert_int_equal(fi_close(&r.set->fid), 0);
	end_close(&r.e);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_is_cancelled_sleeps_no_more),
	};

	if (argc != 2)
		return 2;
	provider = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
