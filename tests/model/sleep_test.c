/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sleeping and waking over the fake wires, in threads: no wake-up is lost, whatever the wires do and
 * whenever it comes. Each thread has a domain of its own unless a test says otherwise.
 *
 * The engine bounds its sleeps so that it finds out about deaths; a wake-up that is lost would be late
 * by that much alone. So the linker leads the sleeps and timers of the engine here, and long ones are
 * made longer than any test takes.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "fake_ends.h"
#include "fault.h"
#include <cmocka.h>

#define BOUND_NS 40000000u /* sleeps that are meant for deaths are longer */
#define LONG_NS	 60000000000u
#define TIMEOUT	 30000 /* ms */
#define TAG	 7
#define ROUNDS	 900

void __real_platform_sleep(const int *on, int cnt, uint64_t ns);
void __wrap_platform_sleep(const int *on, int cnt, uint64_t ns);
void __real_platform_timer_set(int timer, uint64_t ns);
void __wrap_platform_timer_set(int timer, uint64_t ns);

static _Atomic uint32_t sleeps; /* that had something to wake by */
static _Atomic bool bounded;	/* leave the bounds as they are */

static uint64_t without_bound(uint64_t ns)
{
	return ns > BOUND_NS && !atomic_load(&bounded) ? LONG_NS : ns;
}

void __wrap_platform_sleep(const int *on, int cnt, uint64_t ns)
{
	if (cnt)
		atomic_fetch_add(&sleeps, 1);
	__real_platform_sleep(on, cnt, cnt ? without_bound(ns) : ns);
}

void __wrap_platform_timer_set(int timer, uint64_t ns)
{
	__real_platform_timer_set(timer, without_bound(ns));
}

static uint64_t seed;
static struct fake_end ends[2];
static fi_addr_t to[2]; /* of the other, in the vector of each */

/* A sequence for each thread. */
static uint32_t dice(uint64_t *sequence, uint32_t n)
{
	*sequence ^= *sequence << 13;
	*sequence ^= *sequence >> 7;
	*sequence ^= *sequence << 17;
	return (uint32_t)((*sequence * 0x2545f4914f6cdd1dull) >> 33) % n;
}

/* At work: now for nothing, mostly for longer than the other looks before it sleeps, often just so long. */
static void busy(uint64_t *sequence)
{
	uint64_t ns = dice(sequence, 8)
			      ? 50000 + dice(sequence, dice(sequence, 2) ? 20000 : 100000)
			      : dice(sequence, 10000);
	uint64_t end = platform_now_ns() + ns;

	while (platform_now_ns() < end)
		platform_relax();
}

static void open_ends(const struct fake_end_attr *attr, const struct fake_knobs *knobs)
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
	atomic_store(&bounded, false);
}

static void close_ends(void)
{
	for (int i = 0; i < 2; i++)
		fake_end_close(&ends[i]);
}

static const struct fake_end_attr safe = {
	.family = FAKE_FAMILY_A,
	.threading = FI_THREAD_SAFE,
	.format = FI_CQ_FORMAT_TAGGED,
	.budget = 1u << 20,
};

static const struct fake_end_attr alone = {
	.family = FAKE_FAMILY_B,
	.threading = FI_THREAD_DOMAIN,
	.format = FI_CQ_FORMAT_TAGGED,
	.budget = 1u << 20,
};

/* The wires of a run. */
static const struct whims {
	const char *name;
	uint16_t deaf, fickle, spurious, move;
	bool no_bell;
} whims[] = {
	{ "plain", .move = 256 },
	{ "slow to move", .move = 60 },
	{ "rings for nothing", .move = 256, .spurious = 100 },
	{ "not to be armed at first", .move = 200, .fickle = 150 },
	{ "deaf now and then", .move = 200, .deaf = 60, .fickle = 30, .spurious = 30 },
	{ "without bells", .move = 256, .no_bell = true },
};

static void knobs_of(struct fake_knobs *knobs, const struct whims *w)
{
	fake_knobs_default(knobs);
	knobs->deaf = w->deaf;
	knobs->fickle = w->fickle;
	knobs->spurious = w->spurious;
	knobs->move = w->move;
	knobs->no_bell = w->no_bell;
}

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

static bool completion(struct side *s)
{
	struct fi_cq_tagged_entry entry;
	uint64_t begin = platform_now_ns();
	ssize_t n;

	if (s->epoll)
		n = read_by_epoll(s, s->end->rx_cq, &entry);
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
	while ((ret = fi_tsend(s->end->ep, s->out, s->len, NULL, s->to, TAG,
			       &s->contexts[0])) == -FI_EAGAIN)
		fi_cq_read(s->end->rx_cq, NULL, 0);
	SIDE_MUST(s, !ret);
	return true;
}

/* Both send and both wait for two completions, in whatever order: in each round somebody sleeps. */
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
	static const size_t lens[] = { 8, 8, 8, 4000, 20000, 8 };
	struct fake_end_attr attr;
	struct fake_knobs knobs;
	uint32_t all = 0;

	for (int i = 0; i < 6; i++) {
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
	print_message("%u rounds on both sides, %u sleeps\n", 12 * ROUNDS, all);
	assert_true(all > 5 * ROUNDS); /* whatever else the machine has to do */
}

static void no_wake_up_is_lost_by_descriptors(void **state)
{
	struct fake_end_attr attr;
	struct fake_knobs knobs;

	for (int i = 0; i < 6; i++) {
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

/* With a thread that makes progress, which sleeps as well. */
static void no_wake_up_is_lost_with_automatic_progress(void **state)
{
	struct fake_end_attr attr = safe;
	struct fake_knobs knobs;

	attr.one_cq = true;
	attr.progress = FI_PROGRESS_AUTO;
	for (int i = 0; i < 5; i++) {
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

/* Several threads in one domain */

/* Threads that each wait for so many completions of one queue. */
struct reader {
	struct fid_cq *cq;
	uint32_t cnt;
	uint32_t got;
	ssize_t failed;
	pthread_t thread;
};

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

static void reader_start(struct reader *r, struct fid_cq *cq, uint32_t cnt)
{
	*r = (struct reader){ .cq = cq, .cnt = cnt };
	assert_int_equal(pthread_create(&r->thread, NULL, read_all, r), 0);
}

static void reader_end(struct reader *r)
{
	assert_int_equal(pthread_join(r->thread, NULL), 0);
	assert_int_equal(r->failed, 0);
	assert_int_equal(r->got, r->cnt);
}

/* Sends of one end to the other, without ever looking for completions. */
static void send_many(struct fake_end *from, fi_addr_t addr, uint32_t cnt, uint64_t *sequence)
{
	static char bytes[64];
	static struct fi_context2 context;

	while (cnt) {
		ssize_t ret = fi_tsend(from->ep, bytes, 8, NULL, addr, TAG, &context);

		assert_true(!ret || ret == -FI_EAGAIN);
		cnt -= !ret;
		busy(sequence);
	}
}

#define EACH 1000

static void two_threads_sleep_on_two_queues_of_one_domain(void **state)
{
	static char in[64];
	static struct fi_context2 context;
	struct reader r[4];
	uint64_t sequence = seed * 2 + 1;
	struct fake_knobs knobs;

	for (int i = 0; i < 3; i++) {
		knobs_of(&knobs, &whims[i]);
		open_ends(&safe, &knobs);
		for (int n = 0; n < EACH; n++)
			for (int side = 0; side < 2; side++)
				assert_int_equal(fi_trecv(ends[side].ep, in, 8, NULL,
							  FI_ADDR_UNSPEC, TAG, 0, &context),
						 0);
		for (int side = 0; side < 2; side++) {
			reader_start(&r[2 * side], ends[side].tx_cq, EACH);
			reader_start(&r[2 * side + 1], ends[side].rx_cq, EACH);
		}
		for (int n = 0; n < EACH; n++)
			for (int side = 0; side < 2; side++)
				send_many(&ends[side], to[side], 1, &sequence);
		for (int n = 0; n < 4; n++)
			reader_end(&r[n]);
		assert_int_equal(fake_armed_cnt(), 0);
		close_ends();
	}
}

static void several_threads_sleep_on_one_queue(void **state)
{
	static char in[64];
	static struct fi_context2 context;
	struct reader r[4];
	uint64_t sequence = seed * 2 + 1;

	open_ends(&safe, NULL);
	for (int n = 0; n < EACH; n++)
		assert_int_equal(
			fi_trecv(ends[1].ep, in, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &context), 0);
	for (int n = 0; n < 3; n++)
		reader_start(&r[n], ends[1].rx_cq, EACH / 4);
	reader_start(&r[3], ends[0].tx_cq, EACH);
	for (int n = 0; n < EACH; n++)
		send_many(&ends[0], to[0], 1, &sequence);
	for (int n = 0; n < 4; n++)
		reader_end(&r[n]);
	reader_start(&r[0], ends[1].rx_cq, EACH / 4);
	reader_end(&r[0]);
	close_ends();
}

static void wait_asleep(struct fake_end *end, uint32_t cnt)
{
	struct engine_waiter *waiter =
		&container_of(end->domain, struct engine_domain, fid)->waiter;
	uint64_t deadline = platform_now_ns() + 20000000000u;
	uint32_t asleep = 0;

	while (asleep < cnt) {
		platform_lock(&waiter->lock);
		asleep = waiter->asleep;
		platform_unlock(&waiter->lock);
		assert_true(platform_now_ns() < deadline);
		platform_yield();
	}
}

static void a_completion_of_a_call_wakes_another_thread(void **state)
{
	static char bytes[64];
	static struct fi_context2 context;
	struct fi_cq_tagged_entry entry;
	struct reader r;

	open_ends(&safe, NULL);
	/* So that there is a connection. */
	assert_int_equal(fi_trecv(ends[1].ep, bytes, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &context),
			 0);
	assert_int_equal(fi_tsend(ends[0].ep, bytes, 8, NULL, to[0], TAG, &context), 0);
	while (fi_cq_read(ends[0].tx_cq, &entry, 1) != 1)
		fi_cq_read(ends[1].rx_cq, NULL, 0);
	for (int i = 0; i < 200; i++) {
		reader_start(&r, ends[0].tx_cq, 1);
		wait_asleep(&ends[0], 1);
		/* It is complete on return, and nobody makes a round. */
		assert_int_equal(fi_tsend(ends[0].ep, bytes, 8, NULL, to[0], TAG, &context), 0);
		reader_end(&r);
	}
	close_ends();
}

static void a_message_to_oneself_wakes_another_thread(void **state)
{
	static char bytes[2][64];
	static struct fi_context2 context;
	fi_addr_t self;
	struct reader r;

	open_ends(&safe, NULL);
	self = fake_end_insert(&ends[0], &ends[0].name);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(fi_trecv(ends[0].ep, bytes[0], 8, NULL, FI_ADDR_UNSPEC, TAG, 0,
					  &context),
				 0);
		reader_start(&r, ends[0].rx_cq, 1);
		wait_asleep(&ends[0], 1);
		assert_int_equal(fi_tsend(ends[0].ep, bytes[1], 8, NULL, self, TAG, &context),
				 0);
		reader_end(&r);
	}
	close_ends();
}

static void *read_signaled(void *arg)
{
	struct fi_cq_tagged_entry entry;

	return (void *)(intptr_t)fi_cq_sread(arg, &entry, 1, NULL, TIMEOUT);
}

static void a_signal_wakes_whoever_sleeps(void **state)
{
	uint64_t sequence = seed * 2 + 1, begin;
	pthread_t threads[2];
	void *ret;

	for (int cnt = 1; cnt <= 2; cnt++) {
		open_ends(cnt == 2 ? &safe : &alone, NULL);
		for (int i = 0; i < 500; i++) {
			for (int n = 0; n < cnt; n++)
				assert_int_equal(pthread_create(&threads[n], NULL,
								read_signaled, ends[0].rx_cq),
						 0);
			/* One that comes when all is over would not be woken by it. */
			if (i % 2 || cnt == 2)
				wait_asleep(&ends[0], (uint32_t)cnt);
			else
				busy(&sequence);
			begin = platform_now_ns();
			assert_int_equal(fi_cq_signal(ends[0].rx_cq), 0);
			for (int n = 0; n < cnt; n++) {
				assert_int_equal(pthread_join(threads[n], &ret), 0);
				assert_int_equal((intptr_t)ret, -FI_EAGAIN);
			}
			assert_true(platform_now_ns() - begin < LONG_NS / 4);
		}
		close_ends();
	}
}

/* Endpoints come and go while a thread sleeps */

static void an_endpoint_that_is_enabled_wakes_by_what_comes_to_it(void **state)
{
	static char in[64], out[64];
	static struct fi_context2 contexts[2];
	struct fake_end more;
	struct reader r;
	fi_addr_t addr;

	for (int i = 0; i < 50; i++) {
		open_ends(&safe, NULL);
		reader_start(&r, ends[0].rx_cq, 1);
		wait_asleep(&ends[0], 1);
		fake_end_open(&more, &safe, &ends[0]);
		addr = fake_end_insert(&ends[1], &more.name);
		assert_int_equal(
			fi_trecv(more.ep, in, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &contexts[0]),
			0);
		wait_asleep(&ends[0], 1);
		assert_int_equal(fi_tsend(ends[1].ep, out, 8, NULL, addr, TAG, &contexts[1]),
				 0);
		while (fi_cq_read(ends[1].tx_cq, &(struct fi_cq_tagged_entry){ 0 }, 1) != 1)
			platform_yield();
		reader_end(&r);
		fake_end_close(&more);
		close_ends();
	}
}

static void an_endpoint_that_is_closed_leaves_the_others_awake(void **state)
{
	static char in[64], out[64];
	static struct fi_context2 contexts[2];
	struct fake_end more;
	struct reader r;

	for (int i = 0; i < 50; i++) {
		open_ends(&safe, NULL);
		fake_end_open(&more, &safe, &ends[0]);
		assert_int_equal(
			fi_trecv(ends[0].ep, in, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &contexts[0]),
			0);
		reader_start(&r, ends[0].rx_cq, 1);
		wait_asleep(&ends[0], 1);
		fake_end_close(&more);
		assert_int_equal(fi_tsend(ends[1].ep, out, 8, NULL, to[1], TAG, &contexts[1]),
				 0);
		while (fi_cq_read(ends[1].tx_cq, &(struct fi_cq_tagged_entry){ 0 }, 1) != 1)
			platform_yield();
		reader_end(&r);
		close_ends();
	}
}

static void *read_error(void *arg)
{
	struct fi_cq_tagged_entry entry;

	return (void *)(intptr_t)fi_cq_sread(arg, &entry, 1, NULL, TIMEOUT);
}

static void the_death_of_a_peer_wakes_with_an_error(void **state)
{
	static char in[64], out[64];
	static struct fi_context2 contexts[2];
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;
	pthread_t thread;
	void *ret;

	for (int i = 0; i < 50; i++) {
		open_ends(&safe, NULL);
		assert_int_equal(fi_tsend(ends[0].ep, out, 8, NULL, to[0], TAG, &contexts[0]),
				 0);
		while (fi_cq_read(ends[0].tx_cq, &entry, 1) != 1)
			fi_cq_read(ends[1].tx_cq, NULL, 0);
		assert_int_equal(fi_trecv(ends[0].ep, in, 8, NULL, to[0], TAG, 0, &contexts[1]),
				 0);
		assert_int_equal(pthread_create(&thread, NULL, read_error, ends[0].rx_cq), 0);
		wait_asleep(&ends[0], 1);
		assert_int_equal(fake_break(fake_end_engine(&ends[0]),
					    fake_end_engine(&ends[1]), -FI_ECONNRESET),
				 1);
		assert_int_equal(pthread_join(thread, &ret), 0);
		assert_int_equal((intptr_t)ret, -FI_EAVAIL);
		error = (struct fi_cq_err_entry){ 0 };
		assert_int_equal(fi_cq_readerr(ends[0].rx_cq, &error, 0), 1);
		assert_int_equal(error.err, FI_ECONNRESET);
		close_ends();
	}
}

/* Time */

static void a_timeout_is_kept_to_a_millisecond(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct fake_knobs knobs;
	uint64_t begin, least;

	for (int i = 0; i < 6; i++) {
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
	assert_int_equal(fi_cq_sread(ends[0].rx_cq, &entry, 1, NULL, 5), -FI_EAGAIN);
	assert_int_equal(count_in("/proc/self/fd"), before + 3 + 1); /* and the wire's bell */
	close_ends();
}

static void descriptors_need_no_thread(void **state)
{
	struct fake_end_attr attr = safe;
	int threads = count_in("/proc/self/task"), before;

	attr.one_cq = true;
	open_ends(&attr, NULL);
	before = count_in("/proc/self/fd");
	close_ends();
	attr.wait = FI_WAIT_FD;
	open_ends(&attr, NULL);
	assert_int_equal(count_in("/proc/self/fd"),
			 before + 2 * (3 + 1 + 1)); /* with the wire's bell */
	assert_int_equal(count_in("/proc/self/task"), threads);
	for (int side = 0; side < 2; side++) {
		side_init(&sides[side], side, 20, 8);
		sides[side].epoll = true;
	}
	run_both(sides);
	assert_int_equal(count_in("/proc/self/task"), threads);
	close_ends();
}

/* Without descriptors one naps: all goes on, if slowly. */
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
		cmocka_unit_test(no_wake_up_is_lost_with_automatic_progress),
		cmocka_unit_test(two_threads_sleep_on_two_queues_of_one_domain),
		cmocka_unit_test(several_threads_sleep_on_one_queue),
		cmocka_unit_test(a_completion_of_a_call_wakes_another_thread),
		cmocka_unit_test(a_message_to_oneself_wakes_another_thread),
		cmocka_unit_test(a_signal_wakes_whoever_sleeps),
		cmocka_unit_test(an_endpoint_that_is_enabled_wakes_by_what_comes_to_it),
		cmocka_unit_test(an_endpoint_that_is_closed_leaves_the_others_awake),
		cmocka_unit_test(the_death_of_a_peer_wakes_with_an_error),
		cmocka_unit_test(a_timeout_is_kept_to_a_millisecond),
		cmocka_unit_test(who_polls_opens_nothing),
		cmocka_unit_test(descriptors_need_no_thread),
		cmocka_unit_test(without_descriptors_one_naps),
	};
	const char *text = getenv("SLEEP_SEED");

	seed = text ? strtoull(text, NULL, 0) : platform_now_ns() / 1000;
	print_message("SLEEP_SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
