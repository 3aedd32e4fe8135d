/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fair turns: by bytes and commands, whatever each queue asks for. No time passes, so that no queue is held back
 * besides (share_test.c). Linked with --wrap=clock_gettime.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "rig.h"
#include "schedule.h"

#define SMALL  29
#define ROUNDS 2000

static const struct nvmed_config config = {
	.queue_cnt = SMALL + 3, .block = 512, .granule = 4096, .spin_ns = 100000, .serial = "FAIR"
};

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	*t = (struct timespec){ .tv_sec = 1000 };
	return 0;
}

struct load {
	struct host_pair q;
	struct nvme_sqe sqe;
	uint32_t depth;
	uint32_t sent;
	uint32_t done;
	uint32_t longest; /* rounds from one completion to the next */
	uint32_t last;
};

static void load_open(struct rig *r, struct load *l, uint16_t qid, uint64_t len, uint32_t depth)
{
	memset(l, 0, sizeof(*l));
	rig_pair(r, &l->q, qid, 256, 0);
	l->sqe = host_rw(&r->h, NVME_IO_READ, 0, (uint32_t)(len / 512), host_take(&r->h, len),
			 len);
	l->depth = depth;
}

static void load_go(struct load *l, uint32_t round)
{
	struct nvme_cqe cqe;

	while (host_poll(&l->q, &cqe)) {
		assert_int_equal(NVME_CQE_STATUS(cqe.status), 0);
		l->done++;
		if (round - l->last > l->longest)
			l->longest = round - l->last;
		l->last = round;
	}
	while (l->sent - l->done < l->depth) {
		host_submit(&l->q, &l->sqe);
		l->sent++;
	}
	host_ring(&l->q);
}

static void one_that_asks_for_much_does_not_starve_the_others(void **state)
{
	static struct load big, small[SMALL];
	struct rig r;
	uint64_t bytes;

	rig_open_enabled(&r, RIG_MEMORY, &config);
	load_open(&r, &big, SMALL + 1, 128 << 10, 128);
	for (uint16_t i = 0; i < SMALL; i++)
		load_open(&r, &small[i], (uint16_t)(i + 1), 4096, 1);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		load_go(&big, round);
		for (int i = 0; i < SMALL; i++)
			load_go(&small[i], round);
		schedule_round(r.c);
	}
	bytes = (uint64_t)big.done * (128 << 10);
	/* Each small one a command in nearly every round, as among equals; the big one a turn's worth in each. */
	for (int i = 0; i < SMALL; i++) {
		assert_in_range(small[i].done, ROUNDS * 9 / 10, ROUNDS);
		assert_in_range(small[i].longest, 1, 12);
		host_pair_forget(&small[i].q);
	}
	assert_in_range(bytes, ROUNDS * 8192ull, ROUNDS * 20480ull);
	host_pair_forget(&big.q);
	rig_close(&r);
}

static void queues_with_different_lengths_get_the_same_bytes(void **state)
{
	static const uint64_t lens[] = { 4096, 16384, 65536, 131072 };
	static struct load loads[4];
	struct rig r;
	uint64_t bytes[4];

	rig_open_enabled(&r, RIG_MEMORY, &config);
	for (uint16_t i = 0; i < 4; i++)
		load_open(&r, &loads[i], (uint16_t)(i + 1), lens[i], 64);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 4; i++)
			load_go(&loads[i], round);
		schedule_round(r.c);
	}
	for (int i = 0; i < 4; i++) {
		bytes[i] = loads[i].done * (lens[i] + 2048);
		assert_in_range(bytes[i], bytes[0] * 8 / 10, bytes[0] * 12 / 10);
		host_pair_forget(&loads[i].q);
	}
	rig_close(&r);
}

static void idle_queues_are_looked_at_now_and_then(void **state)
{
	static struct load loads[8];
	struct rig r;

	rig_open_enabled(&r, RIG_MEMORY, &config);
	for (uint16_t i = 0; i < 8; i++)
		load_open(&r, &loads[i], (uint16_t)(i + 1), 4096, 1);
	for (int i = 0; i < 10000; i++)
		schedule_round(r.c);
	assert_int_equal(r.c->hot_cnt, 0);
	assert_false(schedule_look(r.c));
	for (int i = 0; i < 8; i++) {
		load_go(&loads[i], 0);
		assert_true(schedule_look(r.c));
		for (int n = 0; n < 4 && !loads[i].done; n++) {
			struct nvme_cqe cqe;

			schedule_round(r.c);
			loads[i].done = host_poll(&loads[i].q, &cqe);
		}
		assert_int_equal(loads[i].done, 1);
		host_pair_forget(&loads[i].q);
	}
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_asks_for_much_does_not_starve_the_others),
		cmocka_unit_test(queues_with_different_lengths_get_the_same_bytes),
		cmocka_unit_test(idle_queues_are_looked_at_now_and_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
