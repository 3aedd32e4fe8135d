/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of segments that others may have. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <weft/device.h>

#include "descriptors.h"
#include "exports.h"
#include "packet.h"

#define USER  1000u
#define OTHER 1001u

static struct exports *exports;
static uid_t user;
static unsigned open_before;
static char one, two; /* connections, by their addresses */

static int setup(void **state)
{
	open_before = descriptors_open();
	user = USER;
	exports = exports_create(2 * EXPORTS_MAX);
	return exports ? 0 : -1;
}

static int teardown(void **state)
{
	exports_remove_all(exports, &one);
	exports_remove_all(exports, &two);
	free(exports);
	return descriptors_open() == open_before ? 0 : -1;
}

static int add(uint32_t fd_cnt, uint32_t flags, const void *by, uint32_t *idx,
	       uint32_t *generation)
{
	int fds[PACKET_FDS_MAX];
	struct exported segment = {
		.len = 4096, .flags = flags, .uid = user, .by = by, .fds = fds, .fd_cnt = fd_cnt
	};
	uint32_t i;

	for (i = 0; i < fd_cnt; i++) {
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
	return exports_add(exports, &segment, idx, generation);
}

static int get(uint32_t idx, uint32_t generation, uid_t uid)
{
	int fds[PACKET_FDS_MAX], err;
	uint32_t cnt = 0;
	uint64_t len = 0;

	err = exports_get(exports, idx, generation, uid, &len, fds, &cnt);
	if (!err) {
		assert_int_equal(len, 4096);
		assert_true(cnt);
	} else {
		assert_int_equal(cnt, 0);
	}
	packet_close_fds(fds, cnt);
	return err;
}

static void segment_is_its_users_and_roots(void **state)
{
	uint32_t idx, generation;

	assert_int_equal(add(3, 0, &one, &idx, &generation), 0);
	assert_int_equal(get(idx, generation, USER), 0);
	assert_int_equal(get(idx, generation, 0), 0);
	assert_int_equal(get(idx, generation, OTHER), -EACCES);
}

static void segment_for_all_is_everyones(void **state)
{
	uint32_t idx, generation;

	assert_int_equal(add(PACKET_FDS_MAX, WEFT_EXPORT_ALL, &one, &idx, &generation), 0);
	assert_int_equal(get(idx, generation, OTHER), 0);
}

static void address_of_another_generation_is_stale(void **state)
{
	uint32_t idx, generation;

	assert_int_equal(add(1, 0, &one, &idx, &generation), 0);
	assert_int_equal(get(idx, generation + 1, USER), -ESTALE);
	assert_int_equal(get(idx, generation - 1, USER), -ESTALE);
	assert_int_equal(get(idx, 0, USER), -ESTALE);
	assert_int_equal(get(idx + 1, generation, USER), -ESTALE);
	assert_int_equal(get(EXPORTS_MAX, generation, USER), -ESTALE);
	assert_int_equal(get(UINT32_MAX, generation, USER), -ESTALE);
	/* To who may not have it as well: which ones there are is not told. */
	assert_int_equal(get(idx, generation + 1, OTHER), -ESTALE);
}

static void segment_that_is_gone_is_stale_whatever_has_its_number(void **state)
{
	uint32_t idx, generation, other, later, i;

	assert_int_equal(add(1, 0, &one, &idx, &generation), 0);
	assert_int_equal(exports_remove(exports, idx, generation, &one), 0);
	assert_int_equal(get(idx, generation, USER), -ESTALE);
	assert_int_equal(exports_remove(exports, idx, generation, &one), -ESTALE);
	/* A number comes again after all others, and of another generation. */
	for (i = 1; i < EXPORTS_MAX; i++) {
		assert_int_equal(add(1, 0, &two, &other, &later), 0);
		assert_int_not_equal(other, idx);
		assert_int_equal(exports_remove(exports, other, later, &two), 0);
	}
	assert_int_equal(add(1, 0, &two, &other, &later), 0);
	assert_int_equal(other, idx);
	assert_int_not_equal(later, generation);
	assert_int_equal(get(idx, generation, USER), -ESTALE);
	assert_int_equal(get(idx, later, USER), 0);
	assert_int_equal(exports_remove(exports, idx, generation, &two), -ESTALE);
}

static void segment_is_taken_back_by_its_connection_alone(void **state)
{
	uint32_t idx, generation;

	assert_int_equal(add(1, WEFT_EXPORT_ALL, &one, &idx, &generation), 0);
	assert_int_equal(exports_remove(exports, idx, generation, &two), -EACCES);
	exports_remove_all(exports, &two);
	assert_int_equal(get(idx, generation, USER), 0);
	exports_remove_all(exports, &one);
	assert_int_equal(get(idx, generation, USER), -ESTALE);
}

static void who_has_a_segment_keeps_it(void **state)
{
	uint32_t idx, generation, cnt;
	int fds[PACKET_FDS_MAX];
	uint64_t len;

	assert_int_equal(add(2, 0, &one, &idx, &generation), 0);
	assert_int_equal(exports_get(exports, idx, generation, USER, &len, fds, &cnt), 0);
	assert_int_equal(cnt, 2);
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	exports_remove_all(exports, &one);
	assert_true(fcntl(fds[1], F_GETFD) >= 0);
	packet_close_fds(fds, cnt);
}

/* Export @cnt segments of different users, as many of each as one may have. Skips the test where files are too few. */
static void add_many(uint32_t cnt)
{
	uint32_t idx, generation, i;
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < cnt + 100)
		skip();
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (i = 0; i < cnt; i++) {
		user = USER + i / EXPORTS_OF_A_USER;
		assert_int_equal(add(1, 0, &one, &idx, &generation), 0);
	}
}

static void more_segments_than_there_are_numbers_are_refused(void **state)
{
	uint32_t idx, generation;

	add_many(EXPORTS_MAX);
	user++;
	/* What was refused is closed, as teardown sees. */
	assert_int_equal(add(2, 0, &one, &idx, &generation), -ENOSPC);
}

static void user_does_not_take_all_numbers(void **state)
{
	uint32_t idx, generation;

	add_many(EXPORTS_OF_A_USER);
	assert_int_equal(add(1, 0, &two, &idx, &generation), -ENOSPC);
	user = OTHER;
	assert_int_equal(add(1, 0, &two, &idx, &generation), 0);
}

static void user_does_not_take_all_descriptors(void **state)
{
	struct exports *few = exports_create(8);
	int fds[8] = { 0 };
	struct exported segment = { .uid = USER, .by = &one, .fds = fds };
	uint32_t idx, generation, i;

	assert_non_null(few);
	for (i = 0; i < 2; i++) {
		for (segment.fd_cnt = 0; segment.fd_cnt < 5; segment.fd_cnt++)
			fds[segment.fd_cnt] = open("/dev/null", O_RDONLY);
		assert_int_equal(exports_add(few, &segment, &idx, &generation), i ? -ENOSPC : 0);
	}
	segment.uid = OTHER;
	for (segment.fd_cnt = 0; segment.fd_cnt < 8; segment.fd_cnt++)
		fds[segment.fd_cnt] = open("/dev/null", O_RDONLY);
	assert_int_equal(exports_add(few, &segment, &idx, &generation), 0);
	exports_remove_all(few, &one);
	free(few);
}

static void import_without_descriptors_for_it_takes_none(void **state)
{
	struct rlimit limit, low;
	uint32_t idx, generation;
	int next;

	assert_int_equal(add(8, 0, &one, &idx, &generation), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	next = open("/dev/null", O_RDONLY);
	close(next);
	low = limit;
	low.rlim_cur = (rlim_t)next + 4;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(get(idx, generation, USER), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(get(idx, generation, USER), 0);
}

static void another_lender_has_other_generations(void **state)
{
	struct exports *others = exports_create(2 * EXPORTS_MAX);
	uint32_t idx, generation, other, later;
	int fds[1] = { open("/dev/null", O_RDONLY) };
	struct exported segment = { .len = 4096, .by = &one, .fds = fds, .fd_cnt = 1 };

	assert_non_null(others);
	assert_int_equal(add(1, 0, &one, &idx, &generation), 0);
	assert_int_equal(exports_add(others, &segment, &other, &later), 0);
	assert_int_equal(other, idx);
	/* By chance they are the same once in two billion times. */
	assert_int_not_equal(later, generation);
	exports_remove_all(others, &one);
	free(others);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(segment_is_its_users_and_roots),
		TEST(segment_for_all_is_everyones),
		TEST(address_of_another_generation_is_stale),
		TEST(segment_that_is_gone_is_stale_whatever_has_its_number),
		TEST(segment_is_taken_back_by_its_connection_alone),
		TEST(who_has_a_segment_keeps_it),
		TEST(more_segments_than_there_are_numbers_are_refused),
		TEST(user_does_not_take_all_numbers),
		TEST(user_does_not_take_all_descriptors),
		TEST(import_without_descriptors_for_it_takes_none),
		TEST(another_lender_has_other_generations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
