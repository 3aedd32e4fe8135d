/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests of measured copies: whichever kind is chosen, the bytes are right and no others change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "copy.h"
#include "copying.h"
#include "seeded.h"

#define LEN   (1u << 20)
#define GUARD 0xa5

static unsigned char *from, *to, *expected;

static int setup(void **state)
{
	from = malloc(LEN);
	to = malloc(LEN);
	expected = malloc(LEN);
	if (!from || !to || !expected)
		return -1;
	for (uint32_t i = 0; i < LEN; i++)
		from[i] = (unsigned char)(i * 7 + (i >> 8) * 13);
	memset(to, GUARD, LEN);
	memset(expected, GUARD, LEN);
	return 0;
}

static int teardown(void **state)
{
	free(from);
	free(to);
	free(expected);
	return 0;
}

/* Copies @cnt times @len bytes, as all of a payload of that length. */
static void copy_times(struct pshm_copying *copying, enum pshm_copy_use use, size_t len, int cnt)
{
	struct iovec iov = { to, LEN };

	while (cnt--)
		pshm_copy_to_iov(pshm_copy_choice(copying, use, len), &iov, 1, 0, from, len);
}

/* Returns the copies until the choice has ended another trial. */
static int copies_to_trial_end(struct pshm_copying *copying)
{
	struct pshm_copy_choice *c = pshm_copy_choice(copying, PSHM_COPY_READ,
						      PSHM_MEASURED_MIN);
	uint32_t gap = c->gap;
	int cnt = 0;

	while ((c->gap == gap || !c->left) && ++cnt < 10000)
		copy_times(copying, PSHM_COPY_READ, PSHM_MEASURED_MIN, 1);
	return cnt;
}

static void the_first_trial_measures_every_kind_and_takes_the_fastest(void **state)
{
	struct pshm_copying copying = { 0 };
	const struct pshm_copy_choice *c = pshm_copy_choice(&copying, PSHM_COPY_READ,
							    PSHM_MEASURED_MIN);
	int cnt = copies_to_trial_end(&copying);

	assert_in_range(cnt, PSHM_COPY_KINDS, 4 * PSHM_COPY_KINDS);
	for (uint32_t kind = 0; kind < PSHM_COPY_KINDS; kind++) {
		assert_int_not_equal(c->cost[kind], 0);
		/* the one that was taken before stays if it is nearly as fast */
		assert_true(c->cost[c->kind] <= c->cost[kind] + c->cost[c->kind] / 8);
	}
	assert_memory_equal(to, from, PSHM_MEASURED_MIN);
}

/* What was measured while pages were touched first does not count for long. */
static void trials_come_again_soon_and_then_seldom(void **state)
{
	struct pshm_copying copying = { 0 };
	int before = 0, cnt;

	copies_to_trial_end(&copying);
	for (int trial = 0; trial < 4; trial++) {
		cnt = copies_to_trial_end(&copying);
		assert_in_range(cnt, before + 1, 50 << trial);
		before = cnt;
	}
}

static void uses_and_lengths_are_measured_apart(void **state)
{
	static const size_t lens[] = { PSHM_MEASURED_MIN, 65537, 262145, LEN };
	static const struct pshm_copy_choice untouched;
	struct pshm_copying copying = { 0 };

	for (int use = 0; use < PSHM_COPY_USES; use++) {
		for (int i = 0; i < 3; i++) {
			const struct pshm_copy_choice *c = pshm_copy_choice(&copying, use,
									    lens[i]);

			assert_memory_equal(c, &untouched, sizeof(*c));
			copy_times(&copying, use, lens[i], 1);
			assert_int_equal(c->tried, 1);
		}
	}
	assert_ptr_equal(pshm_copy_choice(&copying, PSHM_COPY_WRITE, LEN),
			 pshm_copy_choice(&copying, PSHM_COPY_WRITE, 262145));
}

/* Payload below the bound is not worth two looks at the clock. */
static void short_copies_are_not_measured(void **state)
{
	static const struct pshm_copying untouched;
	struct pshm_copying copying = { 0 };
	struct iovec iov = { to, LEN };

	for (size_t len = 0; len < PSHM_MEASURED_MIN; len += 1021) {
		pshm_copy_to_iov(pshm_copy_choice(&copying, PSHM_COPY_READ, LEN), &iov, 1, 3,
				 from, len);
		assert_memory_equal(to + 3, from, len);
		assert_int_equal(to[3 + len], GUARD);
	}
	assert_memory_equal(&copying, &untouched, sizeof(copying));
}

/* A destination of up to four pieces, which may be shorter than what is copied. */
static size_t destination(uint64_t *seed, struct iovec *iov)
{
	size_t cnt = 1 + seeded_random(seed) % 4, at = seeded_random(seed) % 64;

	for (size_t i = 0; i < cnt; i++) {
		size_t len = seeded_random(seed) % (LEN / 4 - 64);

		iov[i] = (struct iovec){ to + at, len };
		at += len + seeded_random(seed) % 16;
	}
	return cnt;
}

/* Puts byte by byte into what is expected. */
static void expect(const struct iovec *iov, size_t cnt, size_t skip, const unsigned char *src,
		   size_t len)
{
	for (size_t i = 0; i < cnt; i++) {
		unsigned char *base = expected + ((unsigned char *)iov[i].iov_base - to);

		for (size_t j = 0; j < iov[i].iov_len; j++) {
			if (skip) {
				skip--;
			} else if (len) {
				base[j] = *src++;
				len--;
			}
		}
	}
}

static void any_length_skip_and_destination_gets_the_right_bytes(void **state)
{
	struct pshm_copying copying = { 0 };
	uint64_t seed = 0x5eed2001;
	struct iovec iov[4];

	print_message("seed %#llx\n", (unsigned long long)seed);
	for (int round = 0; round < 300; round++) {
		size_t cnt = destination(&seed, iov), skip = seeded_random(&seed) % 70000;
		size_t at = seeded_random(&seed) % 4096;
		size_t len = seeded_random(&seed) % (round & 1 ? 300000 : 40000);

		if (round % 3 == 0)
			skip = 0;
		pshm_copy_to_iov(pshm_copy_choice(&copying, round % PSHM_COPY_USES, len), iov,
				 cnt, skip, from + at, len);
		expect(iov, cnt, skip, from + at, len);
		assert_memory_equal(to, expected, LEN);
	}
}

/* What a destination has no room for is dropped; one without pieces gets nothing. */
static void nothing_is_stored_behind_the_destination(void **state)
{
	struct pshm_copy_choice choice = { 0 };
	struct iovec iov = { to, 100000 };

	for (int i = 0; i < 100; i++) {
		pshm_copy_to_iov(&choice, &iov, 1, 0, from, 200000);
		pshm_copy_to_iov(&choice, &iov, 1, 90000, from + 90000, 50000);
		pshm_copy_to_iov(&choice, &iov, 1, 100001, from, 50000);
		pshm_copy_to_iov(&choice, NULL, 0, 0, from, 50000);
	}
	assert_memory_equal(to, from, 100000);
	for (size_t i = 100000; i < LEN; i++)
		assert_int_equal(to[i], GUARD);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_trial_measures_every_kind_and_takes_the_fastest),
		TEST(trials_come_again_soon_and_then_seldom),
		TEST(uses_and_lengths_are_measured_apart),
		TEST(short_copies_are_not_measured),
		TEST(any_length_skip_and_destination_gets_the_right_bytes),
		TEST(nothing_is_stored_behind_the_destination),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
