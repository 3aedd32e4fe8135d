/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who gets how much of a backend that takes time, in a time of the test's own: readers that wait for one command beside one
 * with many. Linked with --wrap=clock_gettime.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "rig.h"
#include "schedule.h"

#define READERS	    30
#define ROUND_NS    500u
#define RUN_NS	    300000000u
#define WARM_NS	    200000000u
#define LEN	    RIG_LEN
#define MODEL_DEPTH 128u
#define LARGE	    (128u << 10)
#define SMALL	    4096u

static uint64_t now_ns = 1000000000000ull;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	t->tv_sec = (time_t)(now_ns / 1000000000u);
	t->tv_nsec = (long)(now_ns % 1000000000u);
	return 0;
}

/*
 * struct model - a backend
 * @fixed_ns, @kib_ns: a piece takes the device so long, one after the other
 * @way_ns:            and so long on top, which others do not wait for
 * @free_at:           when it has done all that it has
 */
struct model {
	struct backend b;
	struct backend_ops ops;
	uint64_t fixed_ns;
	uint64_t kib_ns;
	uint64_t way_ns;
	uint64_t free_at;
	uint32_t first;
	uint32_t cnt;
	struct piece *pieces[MODEL_DEPTH];
	uint64_t ends[MODEL_DEPTH];
};

static uint64_t takes(const struct model *m, const struct piece *p)
{
	return m->fixed_ns + p->len / 1024 * m->kib_ns;
}

static bool device_start(struct backend *b, struct piece *p)
{
	struct model *m = (struct model *)b;
	uint32_t at = (m->first + m->cnt++) % MODEL_DEPTH;

	assert_true(m->cnt <= MODEL_DEPTH);
	if (m->free_at < now_ns)
		m->free_at = now_ns;
	m->free_at += takes(m, p);
	p->status = 0;
	m->pieces[at] = p;
	m->ends[at] = m->free_at + m->way_ns;
	return false;
}

static bool copy_start(struct backend *b, struct piece *p)
{
	now_ns += takes((struct model *)b, p);
	p->status = 0;
	return true;
}

static void model_submit(struct backend *b)
{
}

static uint32_t model_reap(struct backend *b, void (*done)(void *, struct piece *), void *arg)
{
	struct model *m = (struct model *)b;
	uint32_t cnt = 0;

	while (m->cnt && m->ends[m->first] <= now_ns) {
		struct piece *p = m->pieces[m->first];

		m->first = (m->first + 1) % MODEL_DEPTH;
		m->cnt--;
		cnt++;
		done(arg, p);
	}
	return cnt;
}

static int model_event(struct backend *b)
{
	return -1;
}

static void model_close(struct backend *b)
{
	free(b);
}

/* A disk: 1.1 GB/s, 150,000 IOPS, 26 us for a short read. Or a copy: 10 GB/s. */
static struct backend *model_make(bool device)
{
	struct model *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->ops = (struct backend_ops){ .slice = device ? 128u << 10 : 16u << 10,
				       .zeroes = 128 << 10,
				       .depth = device ? MODEL_DEPTH : 0,
				       .bytes = 4 << 20,
				       .start = device ? device_start : copy_start,
				       .submit = model_submit,
				       .reap = model_reap,
				       .event = model_event,
				       .close = model_close };
	m->fixed_ns = device ? 3000 : 50;
	m->kib_ns = device ? 900 : 100;
	m->way_ns = 20000;
	m->b = (struct backend){ .ops = &m->ops, .len = LEN, .how = "a model" };
	return &m->b;
}

/*
 * struct reader
 * @depth:    commands that it wants under way
 * @think_ns: from a completion to the next command
 * @turn:     it runs only in its turn, of @turns, of TURN_NS each; @turns 0: always
 * @bytes:    that it has got since WARM_NS
 */
struct reader {
	struct host_pair q;
	struct nvme_sqe sqe;
	uint32_t len;
	uint32_t depth;
	uint32_t think_ns;
	uint32_t turn, turns;
	uint32_t under_way;
	uint64_t next;
	uint64_t sent_at;
	uint64_t longest;
	uint64_t bytes;
};

#define TURN_NS 3000000u

static void reader_go(struct reader *d, bool warm)
{
	struct nvme_cqe cqe;

	if (d->turns && now_ns / TURN_NS % d->turns != d->turn)
		return;
	while (host_poll(&d->q, &cqe)) {
		assert_int_equal(NVME_CQE_STATUS(cqe.status), 0);
		d->under_way--;
		d->next = now_ns + d->think_ns;
		if (warm)
			continue;
		d->bytes += d->len;
		if (now_ns - d->sent_at > d->longest)
			d->longest = now_ns - d->sent_at;
	}
	if (d->under_way == d->depth || now_ns < d->next)
		return;
	d->sent_at = now_ns;
	while (d->under_way < d->depth) {
		host_submit(&d->q, &d->sqe);
		d->under_way++;
	}
	host_ring(&d->q);
}

static const struct nvmed_config config = {
	.queue_cnt = READERS, .block = 512, .granule = 4096, .spin_ns = 100000, .serial = "SHARE"
};

/* Have @cnt readers run. Out: what each has got */
static void run(bool device, struct reader *readers, uint32_t cnt)
{
	struct rig r;
	uint64_t begin, at;

	rig_open_with(&r, model_make(device), &config);
	assert_int_equal(host_enable(&r.h, &r.admin, 64), 0);
	for (uint32_t i = 0; i < cnt; i++) {
		struct reader *d = &readers[i];

		rig_pair(&r, &d->q, (uint16_t)(i + 1), 256, 0);
		d->sqe = host_rw(&r.h, NVME_IO_READ, 0, d->len / 512, host_take(&r.h, d->len),
				 d->len);
	}
	begin = now_ns;
	for (uint32_t n = 0; (at = now_ns - begin) < RUN_NS + WARM_NS; n++) {
		for (uint32_t i = 0; i < cnt; i++)
			reader_go(&readers[i], at < WARM_NS);
		schedule_round(r.c);
		nvmed_reap(r.c);
		if (n % 32 == 0)
			nvmed_clock(r.c);
		now_ns += ROUND_NS;
	}
	while (((struct model *)r.c->backend)->cnt) {
		now_ns += 1000000;
		nvmed_reap(r.c);
	}
	for (uint32_t i = 0; i < cnt; i++)
		host_pair_forget(&readers[i].q);
	rig_close(&r);
}

static struct reader small_one(bool device)
{
	return (struct reader){ .len = SMALL, .depth = 1, .think_ns = device ? 5000 : 300 };
}

static struct reader large_one(void)
{
	return (struct reader){ .len = LARGE, .depth = 128 };
}

/* What a small reader gets beside a large one and others like it, against what it gets among its like: the worst, in % */
static uint32_t share_beside_large(bool device, uint32_t cnt, bool turns, uint64_t *large)
{
	static struct reader readers[READERS];
	uint64_t equal = 0, longest = 0, least = UINT64_MAX;

	for (uint32_t i = 0; i < cnt; i++) {
		readers[i] = small_one(device);
		readers[i].turn = i;
		readers[i].turns = turns ? cnt : 0;
	}
	run(device, readers, cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		equal += readers[i].bytes / cnt;
		if (readers[i].longest > longest)
			longest = readers[i].longest;
	}
	for (uint32_t i = 0; i < cnt; i++) {
		readers[i] = small_one(device);
		readers[i].turn = i;
		readers[i].turns = turns ? cnt : 0;
	}
	readers[0] = large_one();
	run(device, readers, cnt);
	for (uint32_t i = 1; i < cnt; i++) {
		if (readers[i].bytes < least)
			least = readers[i].bytes;
		if (!turns)
			assert_in_range(readers[i].longest, 0, 5 * longest + 100000);
	}
	*large = readers[0].bytes;
	return (uint32_t)(100 * least / equal);
}

static uint64_t alone(bool device)
{
	struct reader d = large_one();

	run(device, &d, 1);
	return d.bytes;
}

/* The large one gets as much as a small one among 30; beside a single one the fifth that that one leaves idle. */
static void readers_share_a_device(void **state)
{
	uint64_t whole = alone(true), large;

	assert_in_range(share_beside_large(true, 30, false, &large), 80, 105);
	assert_true(large > whole / 60);
	assert_in_range(share_beside_large(true, 10, false, &large), 80, 105);
	assert_in_range(share_beside_large(true, 5, false, &large), 80, 105);
	assert_in_range(share_beside_large(true, 2, false, &large), 60, 105);
	assert_true(large > whole / 5);
}

static void readers_share_a_copy(void **state)
{
	uint64_t large;

	assert_in_range(share_beside_large(false, 30, true, &large), 80, 105);
	assert_true(large > alone(false) / 30);
	assert_in_range(share_beside_large(false, 5, true, &large), 75, 105);
	assert_in_range(share_beside_large(false, 30, false, &large), 80, 105);
	assert_in_range(share_beside_large(false, 5, false, &large), 80, 105);
	assert_in_range(share_beside_large(false, 2, false, &large), 60, 105);
}

/* A large piece takes 118.2 us of the model device, and a large slice 1.65 us of the model copy. */
static void one_that_is_alone_has_all(void **state)
{
	assert_true(alone(true) > RUN_NS / 118200ull * LARGE * 99 / 100);
	assert_true(alone(false) > RUN_NS / (1650ull + ROUND_NS) * 16384 * 95 / 100);
}

static void those_with_many_commands_are_not_held_back(void **state)
{
	static struct reader readers[2];

	readers[0] = (struct reader){ .len = SMALL, .depth = 32 };
	readers[1] = readers[0];
	run(true, readers, 2);
	/* 6.6 us each */
	assert_true(readers[0].bytes + readers[1].bytes > RUN_NS / 6600ull * SMALL * 98 / 100);
	assert_in_range(readers[0].bytes, readers[1].bytes * 95 / 100,
			readers[1].bytes * 105 / 100);
	readers[0] = readers[1] = large_one();
	run(true, readers, 2);
	assert_true(readers[0].bytes + readers[1].bytes > RUN_NS / 118200ull * LARGE * 98 / 100);
	assert_in_range(readers[0].bytes, readers[1].bytes * 95 / 100,
			readers[1].bytes * 105 / 100);
}

/* Who has the processor before others would keep it from the system's threads, which it waits for. */
static void who_waits_for_the_system_alone_may_sleep(void **state)
{
	struct reader d[2] = { large_one(), small_one(true) };
	struct rig r;

	rig_open_with(&r, model_make(true), &config);
	assert_int_equal(host_enable(&r.h, &r.admin, 64), 0);
	for (uint16_t i = 0; i < 2; i++) {
		rig_pair(&r, &d[i].q, (uint16_t)(i + 1), 256, 0);
		d[i].sqe = host_rw(&r.h, NVME_IO_READ, 0, d[i].len / 512,
				   host_take(&r.h, d[i].len), d[i].len);
	}
	/* First the backend has no room, then a queue is held back. */
	for (int i = 0; i < 2; i++) {
		int rounds = 0;

		reader_go(&d[i], true);
		while (schedule_round(r.c))
			assert_true(++rounds < 10000);
		assert_false(schedule_look(r.c));
		now_ns += 1000000000u;
		assert_true(nvmed_reap(r.c));
		assert_true(schedule_round(r.c));
	}
	while (schedule_round(r.c) | nvmed_reap(r.c) | ((struct model *)r.c->backend)->cnt)
		now_ns += 1000000;
	host_pair_forget(&d[0].q);
	host_pair_forget(&d[1].q);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_share_a_device),
		cmocka_unit_test(readers_share_a_copy),
		cmocka_unit_test(one_that_is_alone_has_all),
		cmocka_unit_test(those_with_many_commands_are_not_held_back),
		cmocka_unit_test(who_waits_for_the_system_alone_may_sleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
