/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Blocking calls: what ends them and what does not, and several threads in a domain. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
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
	assert_int_equal(fi_trywait(b.fabric, fids, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
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

static void nothing(int sig)
{
}

/* @arg: the thread that reads, which a signal handler may interrupt */
static void *signal_queue(void *arg)
{
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return (void *)(intptr_t)fi_cq_signal(b.cq);
}

static void a_sleep_ends_at_its_time_or_by_fi_cq_signal(void **state)
{
	struct sigaction action = { .sa_handler = nothing };
	pthread_t self = pthread_self();
	struct fi_cq_tagged_entry entry;
	uint64_t before;
	pthread_t thread;

	open_pair(&(struct party_choice){ .wait = FI_WAIT_UNSPEC });
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	before = party_now_ms();
	assert_int_equal(fi_cq_sread(b.cq, &entry, 1, NULL, 50), -FI_EAGAIN);
	assert_true(party_now_ms() - before >= 49);
	assert_int_equal(fi_cq_sread(b.cq, &entry, 1, NULL, 0), -FI_EAGAIN);
	/* Whether it comes before the read or meanwhile; a signal handler is no end. */
	for (int i = 0; i < 10; i++) {
		before = party_now_ms();
		assert_int_equal(pthread_create(&thread, NULL, signal_queue, &self), 0);
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
	uint32_t in;
	ssize_t ret;

	if (fi_av_insert(here[i].av, &there[i].name, 1, &to, 0, NULL) != 1)
		failures++;
	for (uint32_t n = 0; n < ROUNDS; n++) {
		if (fi_recv(there[i].ep, &in, sizeof(in), NULL, 0, NULL) ||
		    fi_inject(here[i].ep, &n, sizeof(n), to))
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_ends_a_sleep),
		cmocka_unit_test(a_receive_that_is_posted_ends_a_sleep),
		cmocka_unit_test(a_descriptor_says_when_to_read),
		cmocka_unit_test(a_sleep_ends_at_its_time_or_by_fi_cq_signal),
		cmocka_unit_test(counters_count_and_are_waited_for),
		cmocka_unit_test(threads_share_a_domain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
