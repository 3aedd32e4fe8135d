/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sleeping and waking over the fake wires: no wake-up is lost, whatever the wires do and at
 * whatever time; timeouts; the cost.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "fault.h"
#include "sleepers.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 300
#else
#define ROUNDS 900
#endif

/* One side of a conversation: it fails by being too late. */
struct side {
	struct fake_end *end;
	fi_addr_t to;
	uint32_t rounds;
	uint64_t sequence;
	size_t len;
	bool first;
	bool epoll; /* sleeps on a descriptor of its own */
	int failed; /* line */
	char in[20000], out[20000];
	struct fi_context2 contexts[2];
};

#define SIDE_MUST(side, cond)                      \
	do {                                       \
		if (!(cond)) {                     \
			(side)->failed = __LINE__; \
			return false;              \
		}                                  \
	} while (0)

/* The next completion, by sleeping in a set of descriptors of the program's. */
static ssize_t read_by_epoll(struct side *s, struct fid_cq *cq, void *entry)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(EPOLL_CLOEXEC), fd = -1;
	struct fid *fids[] = { &cq->fid };
	ssize_t ret = -FI_EIO;

	if (!fi_control(&cq->fid, FI_GETWAIT, &fd) &&
	    !epoll_ctl(set, EPOLL_CTL_ADD, fd, &event)) {
		while ((ret = fi_cq_read(cq, entry, 1)) == -FI_EAGAIN) {
			int may = fi_trywait(s->end->fabric, fids, 1);

			if (!may && epoll_wait(set, &event, 1, TIMEOUT) != 1)
				break; /* it was not woken */
			if (may && may != -FI_EAGAIN)
				break;
		}
	}
	close(set);
	return ret;
}

static ssize_t read_by_set(struct side *s, struct fid_cq *cq, void *entry)
{
	ssize_t ret;

	while ((ret = fi_cq_read(cq, entry, 1)) == -FI_EAGAIN)
		if (s->end->set->ops->wait(s->end->set, TIMEOUT)) /* fi_wait() */
			break;					  /* it was not woken */
	return ret;
}

static bool completion(struct side *s)
{
	struct fi_cq_tagged_entry entry;
	uint64_t begin = platform_now_ns();
	ssize_t n;

	if (s->epoll)
		n = read_by_epoll(s, s->end->rx_cq, &entry);
	else if (s->end->set)
		n = read_by_set(s, s->end->rx_cq, &entry);
	else
		n = fi_cq_sread(s->end->rx_cq, &entry, 1, NULL, TIMEOUT);
	SIDE_MUST(s, n == 1);
	SIDE_MUST(s, platform_now_ns() - begin < LONG_NS / 4);
	return true;
}

static bool say(struct side *s)
{
	ssize_t ret;

	busy(&s->sequence);
	while ((ret = fi_tsend(s->end->ep, s->out, s->len, NULL, s->to, TAG, &s->contexts[0])) ==
	       -FI_EAGAIN)
		fi_cq_read(s->end->rx_cq, NULL, 0);
	SIDE_MUST(s, !ret);
	return true;
}

/* Both send and both wait for two completions, in any order: in each round one of them sleeps. */
static void *converse(void *arg)
{
	struct side *s = arg;

	for (uint32_t i = 0; i < s->rounds; i++) {
		if (fi_trecv(s->end->ep, s->in, s->len, NULL, FI_ADDR_UNSPEC, TAG, 0,
			     &s->contexts[1])) {
			s->failed = __LINE__;
			return NULL;
		}
		if (s->first && !say(s))
			return NULL;
		if (!completion(s))
			return NULL;
		if (!s->first && !say(s))
			return NULL;
		if (!completion(s))
			return NULL;
	}
	return NULL;
}

static void side_init(struct side *s, int i, uint32_t rounds, size_t len)
{
	*s = (struct side){ .end = &ends[i],
			    .to = to[i],
			    .rounds = rounds,
			    .len = len,
			    .first = i == 0,
			    .sequence = (seed + (uint64_t)i) * 2 + 1 };
}

static void run_both(struct side *sides)
{
	pthread_t other;

	assert_int_equal(pthread_create(&other, NULL, converse, &sides[1]), 0);
	converse(&sides[0]);
	assert_int_equal(pthread_join(other, NULL), 0);
	for (int i = 0; i < 2; i++)
		if (sides[i].failed)
			fail_msg("side %d: line %d", i, sides[i].failed);
}

static struct side sides[2];

static void no_wake_up_is_lost_by_blocking_reads(void **state)
{
	static const size_t lens[WHIMS] = { 8, 8, 8, 4000, 20000, 8, 8, 4000, 20000 };
	struct fake_end_attr attr;
	struct fake_knobs knobs;
	uint32_t all = 0;

	for (int i = 0; i < WHIMS; i++) {
		knobs_of(&knobs, &whims[i]);
		for (int threading = 0; threading < 2; threading++) {
			attr = threading ? safe : alone;
			attr.one_cq = true;
			open_ends(&attr, &knobs);
			for (int side = 0; side < 2; side++)
				side_init(&sides[side], side, ROUNDS, lens[i]);
			run_both(sides);
			assert_int_equal(fake_armed_cnt(), 0);
			all += atomic_load(&sleeps);
			close_ends();
		}
	}
	print_message("%u rounds on both sides, %u sleeps\n", 2 * WHIMS * ROUNDS, all);
	assert_true(all > (WHIMS - 2) * ROUNDS); /* whatever else the machine has to do */
}

static void no_wake_up_is_lost_by_descriptors(void **state)
{
	struct fake_end_attr attr;
	struct fake_knobs knobs;

	for (int i = 0; i < WHIMS; i++) {
		attr = i % 2 ? safe : alone;
		attr.one_cq = true;
		attr.wait = FI_WAIT_FD;
		knobs_of(&knobs, &whims[i]);
		open_ends(&attr, &knobs);
		for (int side = 0; side < 2; side++) {
			side_init(&sides[side], side, 400, i % 3 ? 8 : 4000);
			sides[side].epoll = true;
		}
		run_both(sides);
		close_ends();
	}
}

static void no_wake_up_is_lost_by_wait_sets(void **state)
{
	struct fake_end_attr attr;
	struct fake_knobs knobs;

	for (int i = 0; i < WHIMS; i++) {
		attr = i % 2 ? safe : alone;
		attr.one_cq = true;
		attr.wait = FI_WAIT_SET;
		knobs_of(&knobs, &whims[i]);
		open_ends(&attr, &knobs);
		for (int side = 0; side < 2; side++)
			side_init(&sides[side], side, 400, i % 3 ? 8 : 4000);
		run_both(sides);
		close_ends();
	}
}

/* As in a kernel: threads sleep on a bell, and wires that have no descriptor ring it. */
static void no_wake_up_is_lost_where_there_are_no_poll_sets(void **state)
{
	struct fake_end_attr attr;
	struct fake_knobs knobs;

	for (int i = BARE; i < WHIMS; i++) {
		for (int kind = 0; kind < 3; kind++) {
			attr = kind ? safe : alone;
			attr.one_cq = true;
			attr.progress = kind == 2 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
			knobs_of(&knobs, &whims[i]);
			sys_fault_set(SYS_CALL_EPOLL, ENOSYS, 0, UINT32_MAX);
			open_ends(&attr, &knobs);
			for (int side = 0; side < 2; side++)
				side_init(&sides[side], side, 400, 8);
			run_both(sides);
			close_ends();
			sys_fault_clear();
		}
	}
}

/* With a thread that makes progress, which sleeps as well. */
static void no_wake_up_is_lost_with_automatic_progress(void **state)
{
	struct fake_end_attr attr = safe;
	struct fake_knobs knobs;

	attr.one_cq = true;
	attr.progress = FI_PROGRESS_AUTO;
	for (int i = 0; i < WHIMS; i++) {
		if (i == NO_BELL)
			continue;
		attr.wait = i % 2 ? FI_WAIT_FD : FI_WAIT_UNSPEC;
		knobs_of(&knobs, &whims[i]);
		open_ends(&attr, &knobs);
		for (int side = 0; side < 2; side++) {
			side_init(&sides[side], side, 300, i % 3 ? 8 : 4000);
			sides[side].epoll = i % 2;
		}
		run_both(sides);
		close_ends();
	}
}

/* Time */

static void a_timeout_is_kept_to_a_millisecond(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fake_knobs knobs;
	uint64_t begin, least;

	for (int i = 0; i < WHIMS; i++) {
		knobs_of(&knobs, &whims[i]);
		open_ends(i % 2 ? &safe : &alone, &knobs);
		least = UINT64_MAX;
		for (int n = 0; n < 50 && least > 21000000; n++) {
			uint64_t took;

			begin = platform_now_ns();
			assert_int_equal(fi_cq_sread(ends[0].rx_cq, &entry, 1, NULL, 20),
					 -FI_EAGAIN);
			took = platform_now_ns() - begin;
			assert_true(took >= 20000000);
			least = took < least ? took : least;
		}
		assert_true(least <= 21000000);
		begin = platform_now_ns();
		assert_int_equal(fi_cq_sread(ends[0].rx_cq, &entry, 1, NULL, 0), -FI_EAGAIN);
		close_ends();
	}
}

/* What it costs */

/* Entries of a folder of /proc/self. */
static int count_in(const char *folder)
{
	DIR *dir = opendir(folder);
	int cnt = 0;

	assert_non_null(dir);
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

static void *poll_and_answer(void *arg)
{
	struct fi_cq_tagged_entry entry;
	struct reader *r = arg;

	while (r->got < r->cnt)
		if (fi_cq_read(r->cq, &entry, 1) == 1)
			r->got++;
	return NULL;
}

/* Programs that never sleep have no descriptors for it; those that do, three for each domain. */
static void who_polls_opens_nothing(void **state)
{
	static char in[64], out[64];
	static struct fi_context2 contexts[2];
	struct fi_cq_tagged_entry entry;
	struct reader r = { 0 };
	int before;

	open_ends(&alone, NULL);
	before = count_in("/proc/self/fd");
	for (int i = 0; i < 100; i++) {
		assert_int_equal(
			fi_trecv(ends[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &contexts[0]),
			0);
		assert_int_equal(fi_tsend(ends[0].ep, out, 8, NULL, to[0], TAG, &contexts[1]),
				 0);
		r = (struct reader){ .cq = ends[1].rx_cq, .cnt = 1 };
		while (fi_cq_read(ends[0].tx_cq, &entry, 1) != 1)
			fi_cq_read(ends[1].rx_cq, NULL, 0);
		poll_and_answer(&r);
	}
	assert_int_equal(count_in("/proc/self/fd"), before);
	assert_int_equal(fake_armed_cnt(), 0);
	/* A call whose time ends before it has had the core for 50 us does not sleep either. */
	for (int i = 0; i < 1000 && count_in("/proc/self/fd") == before; i++)
		assert_int_equal(fi_cq_sread(ends[0].rx_cq, &entry, 1, NULL, 10), -FI_EAGAIN);
	assert_int_equal(count_in("/proc/self/fd"), before + 3 + 1); /* and the wire's bell */
	close_ends();
}

static int threads_at_start;

/* The kernel lists a thread for a moment after it was joined. */
static int threads_after_joins(int expected)
{
	uint64_t end_ns = platform_now_ns() + 10000000000u;
	int cnt;

	while ((cnt = count_in("/proc/self/task")) > expected && platform_now_ns() < end_ns)
		platform_yield();
	return cnt;
}

static void descriptors_need_no_thread(void **state)
{
	struct fake_end_attr attr = safe;
	int threads, before;

	threads = threads_after_joins(threads_at_start);

	attr.one_cq = true;
	open_ends(&attr, NULL);
	before = count_in("/proc/self/fd");
	close_ends();
	attr.wait = FI_WAIT_FD;
	open_ends(&attr, NULL);
	assert_int_equal(count_in("/proc/self/fd"),
			 before + 2 * (3 + 1 + 1)); /* with the wire's bell */
	assert_int_equal(threads_after_joins(threads), threads);
	for (int side = 0; side < 2; side++) {
		side_init(&sides[side], side, 20, 8);
		sides[side].epoll = true;
	}
	run_both(sides);
	assert_int_equal(threads_after_joins(threads), threads);
	close_ends();
}

/* Without descriptors threads sleep for a bounded time: everything continues, if slowly. */
static void without_descriptors_one_naps(void **state)
{
	struct fake_end_attr attr = safe;

	attr.one_cq = true;
	open_ends(&attr, NULL);
	for (int side = 0; side < 2; side++)
		side_init(&sides[side], side, 100, 8);
	sys_fault_set(SYS_CALL_EPOLL, EMFILE, 0, 0);
	run_both(sides);
	sys_fault_clear();
	assert_int_equal(atomic_load(&sleeps), 0);
	close_ends();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_wake_up_is_lost_by_blocking_reads),
		cmocka_unit_test(no_wake_up_is_lost_by_descriptors),
		cmocka_unit_test(no_wake_up_is_lost_by_wait_sets),
		cmocka_unit_test(no_wake_up_is_lost_where_there_are_no_poll_sets),
		cmocka_unit_test(no_wake_up_is_lost_with_automatic_progress),
		cmocka_unit_test(a_timeout_is_kept_to_a_millisecond),
		cmocka_unit_test(who_polls_opens_nothing),
		cmocka_unit_test(descriptors_need_no_thread),
		cmocka_unit_test(without_descriptors_one_naps),
	};

	seed_begin();
	threads_at_start = count_in("/proc/self/task");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
