/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Blocking calls: what ends them and what does not, and several threads in a domain. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "party.h"

static struct party a, b;
static fi_addr_t b_of_a, a_of_b;

static void open_pair(const struct party_choice *choice)
{
	party_open(&a, choice);
	party_open(&b, choice);
	b_of_a = party_meet(&a, &b);
	a_of_b = party_meet(&b, &a);
}

static void close_pair(void)
{
	party_close(&a);
	party_close(&b);
}

static void *send_one(void *arg)
{
	return (void *)(intptr_t)fi_inject(a.ep, "x", 1, b_of_a);
}

static void a_message_ends_a_sleep(void **state)
{
	struct fi_cq_tagged_entry entry;
	pthread_t thread;
	void *ret;
	char in;

	open_pair(&(struct party_choice){ .wait = FI_WAIT_UNSPEC });
	for (int i = 0; i < 20; i++) {
		assert_int_equal(fi_recv(b.ep, &in, 1, NULL, 0, &in), 0);
		assert_int_equal(pthread_create(&thread, NULL, send_one, NULL), 0);
		assert_int_equal(fi_cq_sread(b.cq, &entry, 1, NULL, PARTY_WAIT_MS), 1);
		assert_ptr_equal(entry.op_context, &in);
		assert_int_equal(pthread_join(thread, &ret), 0);
		assert_null(ret);
	}
	close_pair();
}

/* The datagram is there before the receive, which another thread posts. */
static void *post_one(void *arg)
{
	return (void *)(intptr_t)fi_recv(b.ep, arg, 1, NULL, 0, arg);
}

static void a_receive_that_is_posted_ends_a_sleep(void **state)
{
	struct fi_cq_tagged_entry entry;
	pthread_t thread;
	void *ret;
	char in;

	open_pair(&(struct party_choice){ .wait = FI_WAIT_UNSPEC });
	for (int i = 0; i < 20; i++) {
		assert_int_equal(fi_inject(a.ep, "x", 1, b_of_a), 0);
		assert_int_equal(fi_cq_sread(b.cq, &entry, 1, NULL, 1), -FI_EAGAIN);
		assert_int_equal(pthread_create(&thread, NULL, post_one, &in), 0);
		assert_int_equal(fi_cq_sread(b.cq, &entry, 1, NULL, PARTY_WAIT_MS), 1);
		assert_ptr_equal(entry.op_context, &in);
		assert_int_equal(pthread_join(thread, &ret), 0);
		assert_null(ret);
	}
	close_pair();
}

static void a_descriptor_says_when_to_read(void **state)
{
	struct fi_cq_tagged_entry entry;
	struct pollfd p = { .events = POLLIN };
	struct fid *fids[1];
	char in;

	open_pair(&(struct party_choice){ .wait = FI_WAIT_FD });
	fids[0] = &b.cq->fid;
	assert_int_equal(fi_control(&b.cq->fid, FI_GETWAIT, &p.fd), 0);
	assert_int_equal(fi_trywait(b.fabric, fids, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	/* Nobody waits for it: it does not end a sleep, which would be ended at once every time. */
	assert_int_equal(fi_inject(a.ep, "x", 1, b_of_a), 0);
	party_rests(&b, p.fd);
	assert_int_equal(fi_recv(b.ep, &in, 1, NULL, 0, NULL), 0);
	assert_int_equal(poll(&p, 1, PARTY_WAIT_MS), 1);
	assert_int_equal(fi_trywait(b.fabric, fids, 1), -FI_EAGAIN);
	assert_int_equal(fi_cq_read(b.cq, &entry, 1), 1);
	assert_int_equal(fi_trywait(b.fabric, fids, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	/* What this thread reports itself ends a sleep too. */
	assert_int_equal(fi_send(b.ep, "x", 1, NULL, a_of_b, NULL), 0);
	assert_int_equal(poll(&p, 1, PARTY_WAIT_MS), 1);
	close_pair();
}

static void *signal_queue(void *arg)
{
	return (void *)(intptr_t)fi_cq_signal(b.cq);
}

static void a_sleep_ends_at_its_time_or_by_fi_cq_signal(void **state)
{
	struct fi_cq_tagged_entry entry;
	uint64_t before;
	pthread_t thread;

	open_pair(&(struct party_choice){ .wait = FI_WAIT_UNSPEC });
	before = party_now_ms();
	assert_int_equal(fi_cq_sread(b.cq, &entry, 1, NULL, 50), -FI_EAGAIN);
	assert_true(party_now_ms() - before >= 49);
	assert_int_equal(fi_cq_sread(b.cq, &entry, 1, NULL, 0), -FI_EAGAIN);
	/* Whether it comes before the read or meanwhile. */
	for (int i = 0; i < 10; i++) {
		before = party_now_ms();
		assert_int_equal(pthread_create(&thread, NULL, signal_queue, NULL), 0);
		assert_int_equal(fi_cq_sread(b.cq, &entry, 1, NULL, PARTY_WAIT_MS), -FI_EAGAIN);
		assert_true(party_now_ms() - before < PARTY_WAIT_MS / 2);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	before = party_now_ms();
	assert_int_equal(fi_cq_signal(b.cq), 0);
	assert_int_equal(fi_cq_sread(b.cq, &entry, 1, NULL, PARTY_WAIT_MS), -FI_EAGAIN);
	assert_true(party_now_ms() - before < PARTY_WAIT_MS / 2);
	close_pair();
}

static void *read_for_ever(void *arg)
{
	struct fi_cq_tagged_entry entry;

	return (void *)(intptr_t)fi_cq_sread(a.cq, &entry, 1, NULL, -1);
}

/* A thread that is cancelled in its sleep takes neither signals nor wake-ups of others. */
static void a_thread_that_is_cancelled_waits_no_more(void **state)
{
	struct pollfd p = { .events = POLLIN };
	struct fi_cq_tagged_entry entry;
	struct fid *fids[1];
	uint64_t before;
	pthread_t thread;
	void *ret;

	party_open(&a, &(struct party_choice){ .wait = FI_WAIT_FD });
	fids[0] = &a.cq->fid;
	assert_int_equal(fi_control(&a.cq->fid, FI_GETWAIT, &p.fd), 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(pthread_create(&thread, NULL, read_for_ever, NULL), 0);
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(pthread_join(thread, &ret), 0);
		assert_ptr_equal(ret, PTHREAD_CANCELED);
		assert_int_equal(fi_cq_signal(a.cq), 0);
		before = party_now_ms();
		assert_int_equal(fi_cq_sread(a.cq, &entry, 1, NULL, PARTY_WAIT_MS), -FI_EAGAIN);
		assert_true(party_now_ms() - before < PARTY_WAIT_MS / 2);
		assert_int_equal(fi_trywait(a.fabric, fids, 1), 0);
		assert_int_equal(poll(&p, 1, 0), 0);
	}
	party_close(&a);
}

static fi_addr_t to_itself;

static void *work_for_ever(void *arg)
{
	struct fi_cq_tagged_entry entry;

	for (;;) {
		if (arg)
			fi_cq_read(a.cq, &entry, 1);
		else
			fi_inject(a.ep, "", 0, to_itself);
		pthread_testcancel();
	}
	return NULL;
}

/* One that is cancelled while it works ends after the call, and leaves the domain to others. */
static void a_thread_that_is_cancelled_leaves_no_lock(void **state)
{
	char in[8];
	pthread_t thread;
	void *ret;

	party_open(&a, &(struct party_choice){ 0 });
	to_itself = party_meet(&a, &a);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(fi_recv(a.ep, in, sizeof(in), NULL, 0, in), 0);
		assert_int_equal(
			pthread_create(&thread, NULL, work_for_ever, i % 2 ? in : NULL), 0);
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(pthread_join(thread, &ret), 0);
		assert_ptr_equal(ret, PTHREAD_CANCELED);
		assert_int_equal(fi_cancel(&a.ep->fid, &ret), -FI_ENOENT);
	}
	party_close(&a);
}

static void counters_count_and_are_waited_for(void **state)
{
	char in[4];

	open_pair(&(struct party_choice){ .counts = true, .wait = FI_WAIT_UNSPEC });
	for (int i = 0; i < 4; i++)
		assert_int_equal(fi_recv(b.ep, &in[i], i < 3 ? 1 : 0, NULL, 0, NULL), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fi_send(a.ep, "x", 1, NULL, b_of_a, NULL), 0);
	assert_int_equal(fi_cntr_wait(a.tx_cntr, 3, PARTY_WAIT_MS), 0);
	assert_int_equal(fi_cntr_wait(b.rx_cntr, 3, PARTY_WAIT_MS), 0);
	assert_int_equal(fi_cntr_wait(b.rx_cntr, 4, 10), -FI_ETIMEDOUT);
	assert_int_equal(fi_send(a.ep, "x", 1, NULL, b_of_a, NULL), 0); /* does not fit */
	assert_int_equal(fi_cntr_wait(b.rx_cntr, 4, PARTY_WAIT_MS), -FI_EAVAIL);
	assert_int_equal(fi_cntr_readerr(b.rx_cntr), 1);
	assert_int_equal(fi_cntr_set(b.rx_cntr, 7), 0);
	assert_int_equal(fi_cntr_add(b.rx_cntr, 3), 0);
	assert_int_equal(fi_cntr_read(b.rx_cntr), 10);
	close_pair();
}

enum { PAIRS = 3, ROUNDS = 500 };

static struct party there[PAIRS], here[PAIRS];
static _Atomic int failures;

/*
 * One thread has both ends, in a domain that all share: a datagram is answered before the next one
 * is sent.
 */
static void *exchange(void *arg)
{
	int i = (int)(intptr_t)arg;
	struct fi_cq_tagged_entry entry;
	fi_addr_t to = 0;
	size_t least = (size_t)i, len = sizeof(least);
	uint32_t in;
	ssize_t ret;

	if (fi_av_insert(here[i].av, &there[i].name, 1, &to, 0, NULL) != 1)
		failures++;
	for (uint32_t n = 0; n < ROUNDS; n++) {
		if (fi_recv(there[i].ep, &in, sizeof(in), NULL, 0, NULL) ||
		    fi_inject(here[i].ep, &n, sizeof(n), to))
			failures++;
		/* An option of an endpoint that all of them use. */
		if (fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, len) ||
		    fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &len))
			failures++;
		ret = fi_cq_sread(there[i].cq, &entry, 1, NULL, PARTY_WAIT_MS);
		if (ret != 1 || in != n) {
			failures++;
			break;
		}
	}
	return NULL;
}

static void threads_share_a_domain(void **state)
{
	struct party_choice choice = { .wait = FI_WAIT_UNSPEC };
	pthread_t threads[PAIRS];

	party_open(&a, &choice);
	choice.domain_of = &a;
	for (int i = 0; i < PAIRS; i++) {
		party_open(&here[i], &choice);
		party_open(&there[i], &choice);
	}
	for (int i = 0; i < PAIRS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, exchange, (void *)(intptr_t)i), 0);
	for (int i = 0; i < PAIRS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		party_close(&here[i]);
		party_close(&there[i]);
	}
	party_close(&a);
	assert_int_equal(failures, 0);
}

enum { OTHERS = 3, STEPS = 2000, FAR = 1 << 30, LATE_MS = 800 };

static _Atomic uint64_t reached;

static void *wait_for_far(void *arg)
{
	return (void *)(intptr_t)fi_cntr_wait(a.rx_cntr, FAR, -1);
}

static void *wait_for_each(void *arg)
{
	for (uint64_t i = 1; i <= STEPS; i++) {
		if (fi_cntr_wait(a.rx_cntr, i, -1))
			failures++;
		reached = i;
	}
	return NULL;
}

/* Threads that wake up and find too little leave the wake-up to the one that finds enough. */
static void threads_wait_for_several_values(void **state)
{
	pthread_t others[OTHERS], each;
	uint64_t begin, late = 0;
	void *ret;

	party_open(&a, &(struct party_choice){ .counts = true, .wait = FI_WAIT_UNSPEC });
	for (int i = 0; i < OTHERS; i++)
		assert_int_equal(pthread_create(&others[i], NULL, wait_for_far, NULL), 0);
	assert_int_equal(pthread_create(&each, NULL, wait_for_each, NULL), 0);
	for (uint64_t i = 1; i <= STEPS; i++) {
		begin = party_now_ms();
		assert_int_equal(fi_cntr_add(a.rx_cntr, 1), 0);
		while (reached < i)
			sched_yield();
		late += party_now_ms() - begin >= LATE_MS;
	}
	assert_int_equal(pthread_join(each, NULL), 0);
	assert_int_equal(fi_cntr_set(a.rx_cntr, FAR), 0);
	for (int i = 0; i < OTHERS; i++) {
		assert_int_equal(pthread_join(others[i], &ret), 0);
		assert_null(ret);
	}
	party_close(&a);
	assert_int_equal(failures, 0);
	/* a thread that gets no core for so long is late too */
	assert_true(late < STEPS / 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_ends_a_sleep),
		cmocka_unit_test(a_receive_that_is_posted_ends_a_sleep),
		cmocka_unit_test(a_descriptor_says_when_to_read),
		cmocka_unit_test(a_sleep_ends_at_its_time_or_by_fi_cq_signal),
		cmocka_unit_test(a_thread_that_is_cancelled_waits_no_more),
		cmocka_unit_test(a_thread_that_is_cancelled_leaves_no_lock),
		cmocka_unit_test(counters_count_and_are_waited_for),
		cmocka_unit_test(threads_share_a_domain),
		cmocka_unit_test(threads_wait_for_several_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
