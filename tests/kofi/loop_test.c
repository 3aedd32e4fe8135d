/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A provider of the kernel, kofi_loop, kofi_ibverbs or kofi_rds (loop_end.h), in user space: two threads that exchange messages, ends that
 * close, and allocations that fail, each in its turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "loop_end.h"
#include "wire.h"

#define LONG	(200u << 10)
#define COUNT	300u
#define WINDOW	8u
#define TAG	0x55u
#define FAILURE UINT32_MAX

void *__wrap_platform_alloc(size_t len);
void *__real_platform_alloc(size_t len);
void __wrap_platform_free(void *ptr);
void __real_platform_free(void *ptr);

#ifndef KOFI_OVER_NETWORK
/* The lock of the provider's wires, the first one of begin() */
static pthread_mutex_t *wires_lock;

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	if (!wires_lock)
		wires_lock = mutex;
	return __real_pthread_mutex_init(mutex, attr);
}
#endif

/* The lock of the provider's wires is to be free when memory is allocated: there is but one thread. */
static _Atomic bool lock_watched;

static void lock_look(void)
{
#ifndef KOFI_OVER_NETWORK
	if (!lock_watched)
		return;
	if (pthread_mutex_trylock(wires_lock))
		fail_msg("memory is allocated with the lock of all wires");
	pthread_mutex_unlock(wires_lock);
#endif
}

/* Allocations that succeed before the one that fails; FAILURE: all do */
static _Atomic uint32_t left = FAILURE;
/* Allocations that are not freed */
static _Atomic long held;

void *__wrap_platform_alloc(size_t len)
{
	void *ptr = left != FAILURE && left-- == 0 ? NULL : __real_platform_alloc(len);

	lock_look();
	held += ptr != NULL;
	return ptr;
}

void __wrap_platform_free(void *ptr)
{
	held -= ptr != NULL;
	__real_platform_free(ptr);
}

static uint8_t byte_of(size_t message, size_t at)
{
	return (uint8_t)(message * 13 + at * 7 + at / 251);
}

static size_t len_of(size_t message)
{
	static const size_t lens[] = { 8, 0, 64, 5000, 8192, 8193, 60000, LONG };

	return lens[message % (sizeof(lens) / sizeof(lens[0]))];
}

static void fill(uint8_t *bytes, size_t message)
{
	for (size_t i = 0; i < len_of(message); i++)
		bytes[i] = byte_of(message, i);
}

static bool holds(const uint8_t *bytes, size_t message)
{
	for (size_t i = 0; i < len_of(message); i++)
		if (bytes[i] != byte_of(message, i))
			return false;
	return true;
}

/* One of two threads, which sends COUNT messages and receives as many. */
struct side {
	struct loop_end end;
	uint8_t *out, *in;
	uint32_t sent, sends_done, posted, received;
	const char *wrong;
};

static void side_post(struct side *s)
{
	while (s->posted < COUNT && s->posted < s->received + WINDOW &&
	       !fi_trecv(s->end.ep, s->in + (size_t)(s->posted % WINDOW) * LONG, LONG, NULL,
			 FI_ADDR_UNSPEC, TAG, 0, NULL))
		s->posted++;
	while (s->sent < COUNT && s->sent < s->sends_done + 1) {
		fill(s->out, s->sent);
		if (fi_tsend(s->end.ep, s->out, len_of(s->sent), NULL, s->end.other, TAG, s))
			break;
		s->sent++;
	}
}

static void side_take(struct side *s, const struct fi_cq_tagged_entry *entry)
{
	if (entry->flags & FI_SEND) {
		s->sends_done++;
		return;
	}
	if (entry->len != len_of(s->received) ||
	    !holds(s->in + (size_t)(s->received % WINDOW) * LONG, s->received))
		s->wrong = "a message is not the one that was sent in its turn";
	s->received++;
}

static void *side_run(void *arg)
{
	struct side *s = arg;
	double end = loop_now_s() + 100.0;

	while (!s->wrong && (s->received < COUNT || s->sends_done < COUNT)) {
		struct fi_cq_tagged_entry entry;
		ssize_t n;

		side_post(s);
		n = fi_cq_read(s->end.cq, &entry, 1);
		if (n == 1)
			side_take(s, &entry);
		else if (n != -FI_EAGAIN)
			s->wrong = "an operation has failed";
		else if (loop_now_s() > end)
			s->wrong = "it takes too long";
	}
	return NULL;
}

static void two_threads_exchange_in_order(void **state)
{
	struct side *sides = calloc(2, sizeof(*sides));
	pthread_t thread;

	assert_non_null(sides);
	for (int i = 0; i < 2; i++) {
		sides[i].out = malloc(LONG);
		sides[i].in = malloc((size_t)WINDOW * LONG);
		assert_non_null(sides[i].out);
		assert_non_null(sides[i].in);
		assert_int_equal(loop_end_open(&sides[i].end, sides[i].out, LONG), 0);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(loop_end_knows(&sides[i].end, &sides[!i].end), 0);
	assert_int_equal(pthread_create(&thread, NULL, side_run, &sides[0]), 0);
	side_run(&sides[1]);
	pthread_join(thread, NULL);
	for (int i = 0; i < 2; i++) {
		if (sides[i].wrong)
			fail_msg("%s; %u received", sides[i].wrong, sides[i].received);
		loop_end_close(&sides[i].end);
		free(sides[i].out);
		free(sides[i].in);
	}
	free(sides);
	assert_int_equal(held, 0);
}

static void open_pair(struct loop_end *a, struct loop_end *b, uint8_t *memory)
{
	memset(a, 0, sizeof(*a));
	memset(b, 0, sizeof(*b));
	assert_int_equal(loop_end_open(a, memory, LONG), 0);
	assert_int_equal(loop_end_open(b, memory + LONG, LONG), 0);
	assert_int_equal(loop_end_knows(a, b), 0);
	assert_int_equal(loop_end_knows(b, a), 0);
}

#ifdef KOFI_OVER_IBVERBS
/* The receiver of payload gives its keys up by itself. */
static void two_threads_exchange_where_keys_are_kept(void **state)
{
	mock_keeps_keys = true;
	two_threads_exchange_in_order(state);
	mock_keeps_keys = false;
}
#endif

#ifdef KOFI_OVER_RDS
/* Sockets that take no more for now, at any datagram. */
static void two_threads_exchange_where_there_is_little_room(void **state)
{
	mock_refuses_one_in = 3;
	two_threads_exchange_in_order(state);
	mock_refuses_one_in = 0;
}

/* An end that is not there any more: nobody says so. */
static void who_says_nothing_is_dead(void **state)
{
	uint8_t *memory = calloc(2, LONG);
	struct fi_cq_tagged_entry entry;
	struct loop_end a, b;
	int ret = 0;

	open_pair(&a, &b, memory);
	assert_int_equal(fi_tsend(a.ep, memory, 8, NULL, a.other, TAG, NULL), 0);
	assert_int_equal(loop_end_completion(&a, &b, &entry), 0);
	/* One that makes no progress lives. */
	for (double until = loop_now_s() + 2e-3 * rds_settings.dead_ms; loop_now_s() < until;)
		assert_int_equal(fi_cq_read(a.cq, &entry, 1), -FI_EAGAIN);
	assert_int_equal(fi_tsend(a.ep, memory, 8, NULL, a.other, TAG, NULL), 0);
	assert_int_equal(loop_end_completion(&a, &b, &entry), 0);
	/* What is sent goes nowhere: that of the other end too. */
	mock_loses_all = true;
	while (!ret) {
		ret = (int)fi_tsend(a.ep, memory, LONG, NULL, a.other, TAG, NULL);
		ret = ret ? ret : loop_end_completion(&a, NULL, &entry);
	}
	assert_int_equal(ret, -FI_ETIMEDOUT);
	mock_loses_all = false;
	loop_end_close(&a);
	loop_end_close(&b);
	free(memory);
	assert_int_equal(held, 0);
}

/* A datagram that is missing is an error, and not a message that never comes. */
static void what_is_lost_ends_the_conn(void **state)
{
	uint8_t *memory = calloc(2, LONG);
	struct fi_cq_tagged_entry entry;
	struct loop_end a, b;
	int ret;

	open_pair(&a, &b, memory);
	assert_int_equal(fi_tsend(a.ep, memory, 8, NULL, a.other, TAG, NULL), 0);
	assert_int_equal(loop_end_completion(&a, &b, &entry), 0);
	mock_loses_all = true;
	assert_int_equal(fi_tsend(a.ep, memory, 8, NULL, a.other, TAG, NULL), 0);
	assert_int_equal(loop_end_completion(&a, NULL, &entry), 0);
	mock_loses_all = false;
	ret = (int)fi_tsend(a.ep, memory, LONG, NULL, a.other, TAG, NULL);
	assert_int_equal(ret, 0);
	assert_int_equal(loop_end_completion(&a, &b, &entry), -FI_ECONNRESET);
	loop_end_close(&a);
	loop_end_close(&b);
	free(memory);
	assert_int_equal(held, 0);
}
#endif

/* Of an address that nobody has been met at a provider over a network says nothing: there may be somebody later. */
#ifndef KOFI_OVER_NETWORK
static void an_end_that_has_closed_is_refused(void **state)
{
	uint8_t *memory = calloc(2, LONG);
	struct fi_cq_tagged_entry entry;
	struct loop_end a, b;

	open_pair(&a, &b, memory);
	loop_end_close(&b);
	assert_int_equal(fi_tsend(a.ep, memory, 8, NULL, a.other, TAG, NULL), 0);
	assert_true(loop_end_completion(&a, NULL, &entry) < 0);
	loop_end_close(&a);
	free(memory);
	assert_int_equal(held, 0);
}

/* The other end has accepted, and closes before this one has heard of that: nothing is sent to it. */
static void an_end_that_closes_early_gets_nothing(void **state)
{
	uint8_t *memory = calloc(2, LONG);
	struct fi_cq_tagged_entry entry;
	struct loop_end a, b;

	open_pair(&a, &b, memory);
	assert_int_equal(fi_tsend(a.ep, memory, 8, NULL, a.other, TAG, NULL), 0);
	assert_int_equal(fi_cq_read(b.cq, NULL, 0), -FI_EAGAIN);
	loop_end_close(&b);
	assert_int_equal(loop_end_completion(&a, NULL, &entry), -FI_ECONNREFUSED);
	loop_end_close(&a);
	free(memory);
	assert_int_equal(held, 0);
}

/* Both connect, and one closes. Whose connection stands is a matter of chance. */
static void an_end_that_has_called_and_closed_is_refused(void **state)
{
	uint8_t *memory = calloc(2, LONG);
	struct fi_cq_tagged_entry entry;
	struct loop_end a, b;

	for (int i = 0; i < 32; i++) {
		open_pair(&a, &b, memory);
		assert_int_equal(fi_tsend(a.ep, memory, 8, NULL, a.other, TAG, NULL), 0);
		assert_int_equal(fi_tsend(b.ep, memory, 8, NULL, b.other, TAG, NULL), 0);
		loop_end_close(&b);
		assert_int_equal(loop_end_completion(&a, NULL, &entry), -FI_ECONNREFUSED);
		loop_end_close(&a);
		assert_int_equal(held, 0);
	}
	free(memory);
}

#endif

/* What was sent before the end arrives; what waits for the other end fails. */
static void an_end_closes_behind_what_it_has_sent(void **state)
{
	uint8_t *memory = calloc(2, LONG);
	struct fi_cq_tagged_entry entry;
	struct loop_end a, b;

	open_pair(&a, &b, memory);
	/* They know each other. */
	assert_int_equal(fi_trecv(b.ep, memory + LONG, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL),
			 0);
	assert_int_equal(fi_tsend(a.ep, memory, 8, NULL, a.other, TAG, NULL), 0);
	assert_int_equal(loop_end_completion(&b, &a, &entry), 0);
	assert_int_equal(loop_end_completion(&a, &b, &entry), 0);
	memset(memory, 0x77, 8);
	assert_int_equal(fi_tsend(a.ep, memory, 8, NULL, a.other, TAG, NULL), 0);
	assert_int_equal(loop_end_completion(&a, NULL, &entry), 0);
	assert_int_equal(fi_tsend(b.ep, memory + LONG, LONG, NULL, b.other, TAG, NULL), 0);
	loop_end_close(&a);
	assert_int_equal(fi_trecv(b.ep, memory, LONG, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL), 0);
	assert_int_equal(loop_end_completion(&b, NULL, &entry), 0);
	assert_int_equal(entry.len, 8);
	assert_int_equal(memory[7], 0x77);
	assert_true(loop_end_completion(&b, NULL, &entry) < 0);
	loop_end_close(&b);
	free(memory);
	assert_int_equal(held, 0);
}

/* Allocations that fail */

#define TRY(call)                       \
	do {                            \
		int try_ret = (call);   \
		if (try_ret)            \
			return try_ret; \
	} while (0)

/* A call that there is no memory for now. */
#define AGAIN(call)                                          \
	do {                                                 \
		ssize_t again_ret;                           \
		while ((again_ret = (call)) == -FI_EAGAIN) { \
			fi_cq_read(a->cq, NULL, 0);          \
			fi_cq_read(b->cq, NULL, 0);          \
		}                                            \
		TRY((int)again_ret);                         \
	} while (0)

static int exchange(struct loop_end *a, struct loop_end *b, uint8_t *memory, size_t len)
{
	struct fi_cq_tagged_entry entry;

	memset(memory, 0x5a, len);
	memset(memory + LONG, 0, len);
	AGAIN(fi_trecv(b->ep, memory + LONG, len, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL));
	AGAIN(fi_tsend(a->ep, memory, len, NULL, a->other, TAG, NULL));
	TRY(loop_end_completion(b, a, &entry));
	TRY(loop_end_completion(a, b, &entry));
	assert_memory_equal(memory, memory + LONG, len);
	memset(memory + LONG, 0, len);
	AGAIN(fi_write(a->ep, memory, len, NULL, a->other, 0, 1, NULL));
	TRY(loop_end_completion(a, b, &entry));
	memset(memory, 0, len);
	AGAIN(fi_read(a->ep, memory, len, NULL, a->other, 0, 1, NULL));
	TRY(loop_end_completion(a, b, &entry));
	assert_int_equal(memory[len - 1], 0x5a);
	return 0;
}

static int scenario(struct loop_end *a, struct loop_end *b, uint8_t *memory)
{
	TRY(loop_end_open(a, memory, LONG));
	TRY(loop_end_open(b, memory + LONG, LONG));
	TRY(loop_end_knows(a, b));
	TRY(loop_end_knows(b, a));
	TRY(exchange(a, b, memory, 8));
	TRY(exchange(b, a, memory, 8192));
	return exchange(a, b, memory, LONG);
}

static void each_allocation_may_fail(void **state)
{
	uint8_t *memory = calloc(2, LONG);
	uint32_t at, refused = 0;

	for (at = 0;; at++) {
		struct loop_end a = { .info = NULL }, b = { .info = NULL };
		bool failed;
		int ret;

		left = at;
		lock_watched = true;
		ret = scenario(&a, &b, memory);
		lock_watched = false;
		failed = left == FAILURE;
		left = FAILURE;
		loop_end_close(&a);
		loop_end_close(&b);
		if (held)
			fail_msg("allocation %u fails: %ld are left", at, held);
		if (ret == -FI_ETIMEDOUT || (ret && !failed))
			fail_msg("allocation %u fails: %s", at, fi_strerror(-ret));
		refused += ret != 0;
		if (!failed)
			break;
	}
	print_message("%u allocations, of which %u are asked for by calls that failed\n", at,
		      refused);
	assert_true(at > 20 && refused > 5 && refused < at);
	free(memory);
}

/* Queries for operations that the kernel's module has not, each by itself: of the endpoint, and of its contexts. */
static void what_the_kernel_lacks_is_not_offered(void **state)
{
	static const uint64_t lacked[] = { FI_COLLECTIVE, FI_TRIGGER };
	struct fi_info *info = NULL;

	for (size_t i = 0; i < 5 * sizeof(lacked) / sizeof(lacked[0]); i++) {
		struct fi_info *hints = fi_allocinfo();
		uint64_t *where[] = { &hints->caps, &hints->tx_attr->caps, &hints->rx_attr->caps,
				      &hints->tx_attr->op_flags, &hints->rx_attr->op_flags };

		assert_non_null(hints);
		hints->caps = FI_MSG;
		*where[i % 5] |= lacked[i / 5];
		assert_int_equal(KOFI(getinfo)(FI_VERSION(1, 18), NULL, NULL, 0, hints, &info),
				 -FI_ENODATA);
		fi_freeinfo(hints);
	}
	assert_int_equal(KOFI(getinfo)(FI_VERSION(1, 18), NULL, NULL, 0, NULL, &info), 0);
	for (const struct fi_info *each = info; each; each = each->next)
		assert_false((each->caps | each->tx_attr->caps | each->rx_attr->caps) &
			     (FI_COLLECTIVE | FI_TRIGGER));
	KOFI(freeinfo)(info);
}

static int begin(void **state)
{
#ifdef KOFI_OVER_RDS
	/* longer than the thread that says that an end lives is kept from running */
	rds_settings.dead_ms = 4000;
#endif
#ifndef KOFI_OVER_NETWORK
	wires_lock = NULL;
#endif
	KOFI(begin)();
	return wire_register(&KOFI(wire));
}

static int end(void **state)
{
	wire_unregister(&KOFI(wire));
	KOFI(end)();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_threads_exchange_in_order),
#ifndef KOFI_OVER_NETWORK
		cmocka_unit_test(an_end_that_has_closed_is_refused),
		cmocka_unit_test(an_end_that_closes_early_gets_nothing),
		cmocka_unit_test(an_end_that_has_called_and_closed_is_refused),
#endif
#ifdef KOFI_OVER_IBVERBS
		cmocka_unit_test(two_threads_exchange_where_keys_are_kept),
#endif
#ifdef KOFI_OVER_RDS
		cmocka_unit_test(two_threads_exchange_where_there_is_little_room),
		cmocka_unit_test(who_says_nothing_is_dead),
		cmocka_unit_test(what_is_lost_ends_the_conn),
#endif
		cmocka_unit_test(an_end_closes_behind_what_it_has_sent),
		cmocka_unit_test(each_allocation_may_fail),
		cmocka_unit_test(what_the_kernel_lacks_is_not_offered),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
