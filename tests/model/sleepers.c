/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Threads that sleep over the fake wires; see sleepers.h. Called by the tests of sleeping. */
#include "sleepers.h"
#include "seeded.h"

#define BOUND_NS 40000000u /* sleeps that are meant for deaths are longer */

int __real_platform_sleep(const struct platform_wakers *on, uint64_t ns);
int __wrap_platform_sleep(const struct platform_wakers *on, uint64_t ns);
void __real_platform_timer_set(int timer, uint64_t ns);
void __wrap_platform_timer_set(int timer, uint64_t ns);

_Atomic uint32_t sleeps;

static uint64_t without_bound(uint64_t ns)
{
	return ns > BOUND_NS ? LONG_NS : ns;
}

int __wrap_platform_sleep(const struct platform_wakers *on, uint64_t ns)
{
	bool wakes = on && (on->bell || on->descriptor >= 0);

	if (wakes)
		atomic_fetch_add(&sleeps, 1);
	return __real_platform_sleep(on, wakes ? without_bound(ns) : ns);
}

void __wrap_platform_timer_set(int timer, uint64_t ns)
{
	__real_platform_timer_set(timer, without_bound(ns));
}

uint64_t seed;
struct fake_end ends[2];
fi_addr_t to[2];

void seed_begin(void)
{
	const char *text = getenv("SLEEP_SEED");

	seed = text ? strtoull(text, NULL, 0) : platform_now_ns() / 1000;
	print_message("SLEEP_SEED=%llu\n", (unsigned long long)seed);
}

/* A sequence for each thread. */
uint32_t dice(uint64_t *sequence, uint32_t n)
{
	return (uint32_t)seeded_below(sequence, n);
}

/* At work: now for nothing, mostly for longer than the other looks before it sleeps, often just so long. */
void busy(uint64_t *sequence)
{
	uint64_t ns = dice(sequence, 8)
			      ? 50000 + dice(sequence, dice(sequence, 2) ? 20000 : 100000)
			      : dice(sequence, 10000);
	uint64_t end = platform_now_ns() + ns;

	while (platform_now_ns() < end)
		platform_relax();
}

void open_ends(const struct fake_end_attr *attr, const struct fake_knobs *knobs)
{
	fake_ends_begin(seed);
	if (knobs)
		for (int kind = 0; kind < FAKE_KINDS; kind++)
			fake_knobs_set(kind, knobs);
	for (int i = 0; i < 2; i++)
		fake_end_open(&ends[i], attr, NULL);
	for (int i = 0; i < 2; i++)
		to[i] = fake_end_insert(&ends[i], &ends[!i].name);
	atomic_store(&sleeps, 0);
}

void close_ends(void)
{
	for (int i = 0; i < 2; i++)
		fake_end_close(&ends[i]);
}

const struct fake_end_attr safe = {
	.family = FAKE_FAMILY_A,
	.threading = FI_THREAD_SAFE,
	.format = FI_CQ_FORMAT_TAGGED,
	.budget = 1u << 20,
};

const struct fake_end_attr alone = {
	.family = FAKE_FAMILY_B,
	.threading = FI_THREAD_DOMAIN,
	.format = FI_CQ_FORMAT_TAGGED,
	.budget = 1u << 20,
};

const struct whims whims[WHIMS] = {
	{ "plain", .move = 256 },
	{ "slow to move", .move = 60 },
	{ "rings for nothing", .move = 256, .spurious = 100 },
	{ "not to be armed at first", .move = 200, .fickle = 150 },
	{ "deaf now and then", .move = 200, .deaf = 60, .fickle = 30, .spurious = 30 },
	{ "without bells", .move = 256, .no_bell = true },
	{ "without a descriptor", .move = 256, .bare = true },
	{ "the same, rings for nothing", .move = 200, .spurious = 100, .bare = true },
	{ "the same, not to be armed at first", .move = 100, .fickle = 150, .bare = true },
};

void knobs_of(struct fake_knobs *knobs, const struct whims *w)
{
	fake_knobs_default(knobs);
	knobs->deaf = w->deaf;
	knobs->fickle = w->fickle;
	knobs->spurious = w->spurious;
	knobs->move = w->move;
	knobs->no_bell = w->no_bell;
	knobs->bare = w->bare;
}

static void *read_all(void *arg)
{
	struct reader *r = arg;
	struct fi_cq_tagged_entry entry;

	while (r->got < r->cnt) {
		ssize_t n = fi_cq_sread(r->cq, &entry, 1, NULL, TIMEOUT);

		if (n != 1) {
			r->failed = n;
			return NULL;
		}
		r->got++;
	}
	return NULL;
}

void reader_start(struct reader *r, struct fid_cq *cq, uint32_t cnt)
{
	*r = (struct reader){ .cq = cq, .cnt = cnt };
	assert_int_equal(pthread_create(&r->thread, NULL, read_all, r), 0);
}

void reader_end(struct reader *r)
{
	assert_int_equal(pthread_join(r->thread, NULL), 0);
	assert_int_equal(r->failed, 0);
	assert_int_equal(r->got, r->cnt);
}

void wait_asleep(struct fake_end *end, uint32_t cnt)
{
	struct engine_channel *channel =
		&container_of(end->domain, struct engine_domain, fid)->channel;
	uint64_t deadline = platform_now_ns() + 20000000000u;
	uint32_t asleep = 0;

	while (asleep < cnt) {
		platform_lock(&channel->lock);
		asleep = channel->asleep;
		platform_unlock(&channel->lock);
		assert_true(platform_now_ns() < deadline);
		platform_yield();
	}
}
