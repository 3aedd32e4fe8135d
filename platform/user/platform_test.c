/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the platform interface in a process. */
#include <setjmp.h>
#include <stdarg.h>
#include "platform.h"
#include <cmocka.h>

static const size_t lens[] = { 0, 1, 63, 64, 65, 4096, 100000, 1 << 20, 40 << 20 };

static void alloc_gives_zeroed_cache_lines(void **state)
{
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t len = lens[i], step = len > 4096 ? 509 : 1;

		/* Twice: the second time from memory that was written. */
		for (int round = 0; round < 2; round++) {
			unsigned char *p = platform_alloc(len);

			assert_non_null(p);
			assert_int_equal((uintptr_t)p % CACHE_LINE, 0);
			for (size_t at = 0; at < len; at += step)
				assert_int_equal(p[at], 0);
			memset(p, 0xff, len);
			platform_free(p);
		}
	}
}

static void alloc_of_too_much_is_refused(void **state)
{
	assert_null(platform_alloc(SIZE_MAX));
	assert_null(platform_alloc(SIZE_MAX - CACHE_LINE + 1));
	assert_null(platform_alloc((size_t)PTRDIFF_MAX));
}

static void free_takes_null(void **state)
{
	platform_free(NULL);
}

static void time_does_not_go_back(void **state)
{
	uint64_t last = platform_now_ns();

	for (int i = 0; i < 1000; i++) {
		uint64_t now = platform_now_ns();

		assert_true(now >= last);
		last = now;
		platform_relax();
	}
	platform_yield();
	assert_true(platform_now_ns() >= last);
}

static void random_bytes_differ(void **state)
{
	unsigned char a[1024] = { 0 }, b[1024] = { 0 };

	assert_int_equal(platform_random(a, sizeof(a)), 0);
	assert_int_equal(platform_random(b, sizeof(b)), 0);
	assert_memory_not_equal(a, b, sizeof(a));
	/* The last 16 bytes were written too. */
	assert_memory_not_equal(a + sizeof(a) - 16, b + sizeof(b) - 16, 16);
	assert_int_equal(platform_random(a, 0), 0);
}

struct shared {
	struct platform_lock lock;
	long count;
};

static void *count_up(void *arg)
{
	struct shared *s = arg;

	for (int i = 0; i < 10000; i++) {
		platform_lock(&s->lock);
		s->count++;
		platform_unlock(&s->lock);
	}
	return NULL;
}

static void lock_excludes(void **state)
{
	struct shared s = { .count = 0 };
	pthread_t other;

	platform_lock_init(&s.lock);
	assert_int_equal(pthread_create(&other, NULL, count_up, &s), 0);
	count_up(&s);
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_int_equal(s.count, 20000);
	platform_lock_fini(&s.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alloc_gives_zeroed_cache_lines),
		cmocka_unit_test(alloc_of_too_much_is_refused),
		cmocka_unit_test(free_takes_null),
		cmocka_unit_test(time_does_not_go_back),
		cmocka_unit_test(random_bytes_differ),
		cmocka_unit_test(lock_excludes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
