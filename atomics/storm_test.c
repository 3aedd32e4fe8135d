/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two threads on one location, without a lock: for every lock-free type and operation, what
 * both did must be in it, exactly. atomics_test.c has the values.
 */
#include <complex.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include "atomics.h"
#include <cmocka.h>

#define ROUNDS 5001  /* odd; per thread and operation */
#define ADDS   40000 /* of those that take a few cycles; twice that is exact in float */

/* One location, and what the threads found */
struct storm {
	_Alignas(64) uint8_t target[64];
	enum fi_datatype datatype;
	/* of those that one storm serves */
	enum fi_op op;
	size_t size;
	bool is_integer;
	/* how far the threads are */
	_Atomic long calls[2];
	/* what a thread saw and can't be */
	long wrong[2];
	/* what a thread did, as its storm says */
	long counted[2];
	_Atomic long guarded;
};

/* side - one thread's part. @me: 0 or 1 */
typedef void side(struct storm *s, int me);

static _Thread_local int myself;

/*
 * Each thread waits for the other every so often. Otherwise one would be done before the
 * other is awake, and there would be no storm. Relaxed: it orders nothing else.
 */
static void meet(struct storm *s)
{
	long calls = atomic_load_explicit(&s->calls[myself], memory_order_relaxed);
	int spins = 0;

	atomic_store_explicit(&s->calls[myself], calls + 1, memory_order_relaxed);
	if (calls % 1024)
		return;
	while (atomic_load_explicit(&s->calls[!myself], memory_order_relaxed) < calls) {
		if (++spins < 10000)
			platform_relax();
		else
			platform_yield();
	}
}

/* A small number in a type */
static void number_put(enum fi_datatype datatype, long n, uint8_t *value)
{
	float f = (float)n;
	double d = (double)n;
	long double wide = n;
	float complex fc = f;
	double complex dc = d;
	__int128 i = n;

	switch (datatype) {
	case FI_FLOAT:
		memcpy(value, &f, sizeof(f));
		break;
	case FI_DOUBLE:
		memcpy(value, &d, sizeof(d));
		break;
	case FI_LONG_DOUBLE:
		memset(value, 0, sizeof(wide));
		memcpy(value, &wide, 10);
		break;
	case FI_FLOAT_COMPLEX:
		memcpy(value, &fc, sizeof(fc));
		break;
	case FI_DOUBLE_COMPLEX:
		memcpy(value, &dc, sizeof(dc));
		break;
	default:
		memcpy(value, &i, atomics_size(datatype));
	}
}

/* The reverse; integers as unsigned, of their lowest 16 bits */
static long number_get(enum fi_datatype datatype, const uint8_t *value)
{
	float f;
	double d;
	long double wide;

	switch (datatype) {
	case FI_FLOAT:
	case FI_FLOAT_COMPLEX:
		memcpy(&f, value, sizeof(f));
		return (long)f;
	case FI_DOUBLE:
	case FI_DOUBLE_COMPLEX:
		memcpy(&d, value, sizeof(d));
		return (long)d;
	case FI_LONG_DOUBLE:
		memcpy(&wide, value, sizeof(wide));
		return (long)wide;
	default:
		return atomics_size(datatype) == 1 ? value[0] : value[0] | value[1] << 8;
	}
}

static void apply(struct storm *s, enum fi_op op, const uint8_t *operand,
		  const uint8_t *compare, uint8_t *result)
{
	struct atomics_update u = {
		.kind = compare	 ? ATOMICS_COMPARE
			: result ? ATOMICS_FETCH
				 : ATOMICS_BASE,
		.datatype = s->datatype,
		.op = op,
		.target = s->target,
		.operand = operand,
		.compare = compare,
		.result = result,
		.cnt = 1,
	};

	meet(s);
	if (atomics_apply(&u))
		abort();
}

/* fetch - one operation on small numbers */
static long fetch(struct storm *s, enum fi_op op, long operand)
{
	uint8_t value[32], result[32];

	number_put(s->datatype, operand, value);
	apply(s, op, value, NULL, result);
	return number_get(s->datatype, result);
}

static long swap(struct storm *s, enum fi_op op, long compare, long operand)
{
	uint8_t value[32], key[32], result[32];

	number_put(s->datatype, operand, value);
	number_put(s->datatype, compare, key);
	apply(s, op, value, key, result);
	return number_get(s->datatype, result);
}

struct thread {
	struct storm *storm;
	side *run;
	int me;
};

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	myself = t->me;
	t->run(t->storm, t->me);
	atomic_store_explicit(&t->storm->calls[t->me], LONG_MAX, memory_order_relaxed);
	return NULL;
}

/* Both sides at once, from a location that holds @first; then it must hold @last, if >= 0. */
static void rage(struct storm *s, side *run, enum fi_op op, long first, long last)
{
	struct thread threads[2] = { { s, run, 0 }, { s, run, 1 } };
	pthread_t ids[2];
	long got;
	int i;

	s->op = op;
	s->guarded = 0;
	for (i = 0; i < 2; i++) {
		s->wrong[i] = s->counted[i] = 0;
		s->calls[i] = 0;
	}
	number_put(s->datatype, first, s->target);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&ids[i], NULL, thread_main, &threads[i]), 0);
	for (i = 0; i < 2; i++)
		pthread_join(ids[i], NULL);
	got = number_get(s->datatype, s->target);
	if (s->wrong[0] || s->wrong[1] || (last >= 0 && got != last))
		fail_msg("datatype %d, operation %d: %ld, not %ld; %ld and %ld wrong results",
			 s->datatype, op, got, last, s->wrong[0], s->wrong[1]);
}

/* for_each_lock_free - a storm's checks for every type that is one */
static void for_each_lock_free(void (*check)(struct storm *s))
{
	static struct storm s;
	enum fi_datatype datatype;
	int cnt = 0;

	for (datatype = FI_INT8; datatype <= FI_UINT128; datatype++) {
		if (!atomics_lock_free(s.target, datatype))
			continue;
		s.datatype = datatype;
		s.size = atomics_size(datatype);
		s.is_integer = atomics_valid(ATOMICS_BASE, datatype, FI_BOR);
		check(&s);
		cnt++;
	}
	/* with and without those of 16 bytes */
	assert_true(cnt == 15 || cnt == 11);
}

static void add_side(struct storm *s, int me)
{
	uint8_t one[32];
	int i;

	number_put(s->datatype, 1, one);
	for (i = 0; i < ADDS; i++)
		apply(s, s->op, one, NULL, NULL);
}

static void check_sums(struct storm *s)
{
	long mask = s->is_integer ? (s->size == 1 ? 0xff : 0xffff) : ~0l;

	rage(s, add_side, FI_SUM, 0, 2 * ADDS & mask);
	rage(s, add_side, FI_DIFF, 2 * ADDS, 0);
}

static void sums_and_differences_are_exact(void **state)
{
	for_each_lock_free(check_sums);
}

static void triple_side(struct storm *s, int me)
{
	int i;

	for (i = 0; i < ROUNDS; i++)
		fetch(s, FI_PROD, 3);
}

/* Times two, times a half: a lost one leaves something other than one */
static void scale_side(struct storm *s, int me)
{
	static const float half = 0.5f;
	static const double half_double = 0.5;
	static const long double half_wide = 0.5L;
	uint8_t two[32], other[32] = { 0 };
	int i;

	number_put(s->datatype, 2, two);
	if (s->datatype == FI_FLOAT || s->datatype == FI_FLOAT_COMPLEX)
		memcpy(other, &half, sizeof(half));
	else if (s->datatype == FI_LONG_DOUBLE)
		memcpy(other, &half_wide, 10);
	else
		memcpy(other, &half_double, sizeof(half_double));
	for (i = 0; i < ROUNDS; i++) {
		apply(s, FI_PROD, two, NULL, NULL);
		apply(s, FI_PROD, other, NULL, NULL);
	}
}

static void check_products(struct storm *s)
{
	unsigned expected = 1, i;

	for (i = 0; i < 2 * ROUNDS; i++)
		expected = expected * 3 & (s->size == 1 ? 0xff : 0xffff);
	if (s->is_integer)
		rage(s, triple_side, FI_PROD, 1, expected);
	else
		rage(s, scale_side, FI_PROD, 1, 1);
}

static void products_are_exact(void **state)
{
	for_each_lock_free(check_products);
}

/* What a thread put there, or something beyond it, is what it finds next. */
static void climb_side(struct storm *s, int me)
{
	bool up = s->op == FI_MAX || s->op == FI_CSWAP_GT || s->op == FI_CSWAP_GE;
	bool compares = s->op >= FI_CSWAP;
	long last = up ? 0 : 100;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		long step = (2l * i + me) * 100 / (2 * ROUNDS), next = up ? step : 100 - step;
		long found = compares ? swap(s, s->op, next, next) : fetch(s, s->op, next);

		if (up ? found < last : found > last)
			s->wrong[me]++;
		last = (up ? next > found : next < found) ? next : found;
	}
}

static void check_order(struct storm *s)
{
	static const enum fi_op ops[] = { FI_MAX, FI_CSWAP_GT, FI_CSWAP_GE,
					  FI_MIN, FI_CSWAP_LT, FI_CSWAP_LE };
	size_t i;

	if (!atomics_valid(ATOMICS_BASE, s->datatype, FI_MIN))
		return;
	for (i = 0; i < 6; i++)
		rage(s, climb_side, ops[i], i < 3 ? 0 : 100, i < 3 ? 99 : 1);
}

static void minimum_and_maximum_are_never_overwritten(void **state)
{
	for_each_lock_free(check_order);
}

static void increment_side(struct storm *s, int me)
{
	long seen = 0, found;
	int done = 0;

	while (done < ROUNDS) {
		found = swap(s, FI_CSWAP, seen, (seen + 1) % 100);
		if (found == seen)
			done++;
		seen = found;
	}
}

static void check_increments(struct storm *s)
{
	rage(s, increment_side, FI_CSWAP, 0, 2 * ROUNDS % 100);
}

static void compare_and_swap_increments_are_exact(void **state)
{
	for_each_lock_free(check_increments);
}

/*
 * A lock: a thread that finds another value than 1 and leaves 1 holds it. The data that it protects
 * are not updated atomically.
 */
static void guard_side(struct storm *s, int me)
{
	uint8_t zero[32];
	int done = 0;
	long value;

	number_put(s->datatype, 0, zero);
	while (done < ROUNDS) {
		if (swap(s, FI_CSWAP_NE, 1, 1) == 1) {
			platform_yield();
			continue;
		}
		value = atomic_load_explicit(&s->guarded, memory_order_relaxed);
		atomic_store_explicit(&s->guarded, value + 1, memory_order_relaxed);
		apply(s, FI_ATOMIC_WRITE, zero, NULL, NULL);
		done++;
	}
}

static void check_locks(struct storm *s)
{
	rage(s, guard_side, FI_CSWAP_NE, 0, 0);
	assert_int_equal(s->guarded, 2 * ROUNDS);
}

static void swap_if_unequal_makes_a_lock(void **state)
{
	for_each_lock_free(check_locks);
}

static void token_side(struct storm *s, int me)
{
	int i;

	s->counted[me] = me + 2;
	for (i = 0; i < ROUNDS; i++)
		s->counted[me] = fetch(s, FI_ATOMIC_WRITE, s->counted[me]);
}

static void check_tokens(struct storm *s)
{
	long a, b, c;

	rage(s, token_side, FI_ATOMIC_WRITE, 1, -1);
	a = number_get(s->datatype, s->target);
	b = s->counted[0];
	c = s->counted[1];
	assert_int_equal(1 << a | 1 << b | 1 << c, 1 << 1 | 1 << 2 | 1 << 3);
}

static void exchanged_tokens_are_neither_lost_nor_doubled(void **state)
{
	for_each_lock_free(check_tokens);
}

/* All bytes of a value are the same: a torn one isn't. */
static void tear_side(struct storm *s, int me)
{
	uint8_t value[32];
	size_t at;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (me) {
			memset(value, i & 1 ? 0x3f : 0, sizeof(value));
			apply(s, FI_ATOMIC_WRITE, value, NULL, NULL);
			continue;
		}
		apply(s, FI_ATOMIC_READ, NULL, NULL, value);
		for (at = 1; at < s->size; at++)
			if (value[at] != value[0])
				s->wrong[me]++;
	}
}

static void check_reads(struct storm *s)
{
	rage(s, tear_side, FI_ATOMIC_READ, 0, 0);
}

static void reads_are_never_torn(void **state)
{
	for_each_lock_free(check_reads);
}

/* A thread's bit is as it left it; the other's is none of its business. */
static void bits_side(struct storm *s, int me)
{
	uint8_t bit[32] = { 0 }, others[32], result[32], zero[32] = { 0 };
	int i;

	bit[s->size - 1] = (uint8_t)(1 << me);
	memset(others, 0xff, sizeof(others));
	others[s->size - 1] = (uint8_t)~bit[s->size - 1];
	for (i = 0; i < ROUNDS; i++) {
		apply(s, FI_BOR, bit, NULL, result);
		s->wrong[me] += (result[s->size - 1] & 1 << me) != 0;
		apply(s, FI_BAND, others, NULL, result);
		s->wrong[me] += (result[s->size - 1] & 1 << me) == 0;
		apply(s, FI_BXOR, bit, NULL, result);
		s->wrong[me] += (result[s->size - 1] & 1 << me) != 0;
		apply(s, FI_MSWAP, zero, bit, result);
		s->wrong[me] += (result[s->size - 1] & 1 << me) == 0;
	}
}

static void check_bits(struct storm *s)
{
	if (s->is_integer)
		rage(s, bits_side, FI_BOR, 0, 0);
}

static void each_thread_finds_its_own_bits(void **state)
{
	for_each_lock_free(check_bits);
}

static void toggle_side(struct storm *s, int me)
{
	int i;

	for (i = 0; i < ROUNDS; i++)
		s->counted[me] += fetch(s, FI_LXOR, 1);
}

/* One raises, one lowers: each counts how often it made the difference. */
static void flag_side(struct storm *s, int me)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (me)
			s->counted[me] += fetch(s, FI_LOR, 5) == 0;
		else
			s->counted[me] -= fetch(s, FI_LAND, 0) == 1;
	}
}

static void check_logic(struct storm *s)
{
	rage(s, toggle_side, FI_LXOR, 0, 0);
	assert_int_equal(s->counted[0] + s->counted[1], ROUNDS);
	rage(s, flag_side, FI_LOR, 0, -1);
	assert_int_equal(s->counted[0] + s->counted[1], number_get(s->datatype, s->target));
}

static void logical_operations_alternate(void **state)
{
	for_each_lock_free(check_logic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_and_differences_are_exact),
		cmocka_unit_test(products_are_exact),
		cmocka_unit_test(minimum_and_maximum_are_never_overwritten),
		cmocka_unit_test(compare_and_swap_increments_are_exact),
		cmocka_unit_test(swap_if_unequal_makes_a_lock),
		cmocka_unit_test(exchanged_tokens_are_neither_lost_nor_doubled),
		cmocka_unit_test(reads_are_never_torn),
		cmocka_unit_test(each_thread_finds_its_own_bits),
		cmocka_unit_test(logical_operations_alternate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
