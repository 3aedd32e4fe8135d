/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pages of counters as a faulty or hostile process may show them: whatever is in one, reading it ends with
 * figures or with a reason in words, and never with a crash.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "page.h"

#define PID	4711
#define RANDOMS 20000

static struct weft_mem_stats page;
static int file = -1;
static char why[128];

static void page_fill(void)
{
	memset(&page, 0, sizeof(page));
	page.magic = WEFT_MEM_STATS_MAGIC;
	page.version = WEFT_MEM_STATS_VERSION;
	page.pid = PID;
	page.parts[0].kind = WEFT_MEM_PART_ARENA;
	page.parts[0].counts[WEFT_MEM_ARENA_LIVE_BYTES] = 100;
	page.parts[0].counts[WEFT_MEM_ARENA_BASE] = 0x7000;
	page.parts[5].kind = WEFT_MEM_PART_PINS;
	page.parts[5].counts[WEFT_MEM_PINS_GRAIN_BYTES] = 1 << 21;
	page.parts[5].counts[WEFT_MEM_PINS_GRAINS] = 3;
	page.parts[62].kind = WEFT_MEM_PART_CACHE;
	page.parts[62].counts[WEFT_MEM_CACHE_ENTRIES] = 7;
}

static int take(struct sample *sample)
{
	assert_int_equal(pwrite(file, &page, sizeof(page), 0), sizeof(page));
	*sample = (struct sample){ .pid = PID };
	*why = '\0';
	return page_take(file, PID, sample, why);
}

static int setup(void **state)
{
	file = memfd_create(WEFT_MEM_STATS_FILE, MFD_CLOEXEC);
	page_fill();
	return file < 0 || ftruncate(file, sizeof(page));
}

static int teardown(void **state)
{
	return close(file);
}

static void what_is_shown_is_summed_by_kind(void **state)
{
	struct sample sample;

	page.hidden = 2;
	page.parts[6] = page.parts[5];
	assert_int_equal(take(&sample), 0);
	assert_int_equal(sample.parts[WEFT_MEM_PART_ARENA], 1);
	assert_int_equal(sample.parts[WEFT_MEM_PART_PINS], 2);
	assert_int_equal(sample.pinned_bytes, 6 << 21);
	assert_int_equal(sample_count(&sample, WEFT_MEM_PART_ARENA, WEFT_MEM_ARENA_LIVE_BYTES),
			 100);
	assert_int_equal(sample_count(&sample, WEFT_MEM_PART_CACHE, WEFT_MEM_CACHE_ENTRIES), 7);
	assert_int_equal(sample.hidden, 2);
	assert_int_equal(sample.arena_cnt, 1);
	assert_int_equal(sample.arenas[0].base, 0x7000);
}

static void an_unfinished_or_inherited_page_says_nothing(void **state)
{
	struct sample sample;

	page.magic = 0;
	assert_int_equal(take(&sample), 0);
	assert_int_equal(sample.parts[WEFT_MEM_PART_ARENA], 0);
	page_fill();
	page.pid = PID + 1;
	assert_int_equal(take(&sample), 0);
	assert_int_equal(sample.parts[WEFT_MEM_PART_ARENA], 0);
}

static void assert_refused(const char *reason)
{
	struct sample sample;

	assert_int_equal(take(&sample), -EPROTO);
	assert_non_null(strstr(why, reason));
	assert_int_equal(sample.parts[WEFT_MEM_PART_ARENA], 0);
	page_fill();
}

static void what_makes_no_sense_has_a_reason(void **state)
{
	page.magic = 1;
	assert_refused("begins with 0x1");
	page.version = 9;
	assert_refused("version 9");
	page.zero[29] = 1;
	assert_refused("head");
	page.parts[1].kind = WEFT_MEM_PART_KINDS;
	assert_refused("part 1");
	page.parts[5].zero = 1;
	assert_refused("part 5");
	page.parts[5].counts[WEFT_MEM_PINS_REVOKED] = UINT64_MAX;
	assert_refused("counter 5 of part 5");
	page.parts[5].counts[WEFT_MEM_PINS_GRAINS] = PAGE_COUNT_MAX - 1;
	assert_refused("more registered than there is memory");
	for (int i = 0; i <= SAMPLE_ARENAS; i++)
		page.parts[i] = (struct weft_mem_part){ .kind = WEFT_MEM_PART_ARENA };
	assert_refused("arenas");
}

static void a_page_that_is_cut_off_has_a_reason(void **state)
{
	struct sample sample = { .pid = PID };
	static const off_t lens[] = { 0, 1, 255, 4096, sizeof(page) - 1, sizeof(page) + 1 };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		assert_int_equal(ftruncate(file, lens[i]), 0);
		assert_int_equal(page_take(file, PID, &sample, why), -EPROTO);
		assert_non_null(strstr(why, "bytes, not 16384"));
	}
	assert_int_equal(page_take(-1, PID, &sample, why), -EBADF);
}

/* Some of the head is right, so that what follows is looked at too. */
static void random_bytes_do_no_harm(void **state)
{
	unsigned seed = (unsigned)time(NULL);
	struct sample sample;

	print_message("seed %u\n", seed);
	srandom(seed);
	for (int i = 0; i < RANDOMS; i++) {
		unsigned char *bytes = (unsigned char *)&page;
		int cnt = 1 + (int)(random() % 40), rc;

		page_fill();
		while (cnt--)
			bytes[(size_t)random() % (random() % 2 ? 512 : sizeof(page))] =
				(unsigned char)random();
		rc = take(&sample);
		assert_true(!rc || (rc == -EPROTO && *why));
	}
}

/* Looks at a child that has what is in the file, and is ended afterwards if @end is. */
static int look(bool end, struct sample *sample)
{
	int stay[2], rc;
	pid_t pid;

	assert_int_equal(pipe(stay), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		char byte;

		close(stay[1]);
		page.pid = (uint32_t)getpid();
		if (pwrite(file, &page, sizeof(page), 0) == sizeof(page))
			_exit((int)read(stay[0], &byte, 1));
		_exit(1);
	}
	close(stay[0]);
	if (end) {
		close(stay[1]);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		return sample_read(pid, sample, why);
	}
	do
		rc = sample_read(pid, sample, why);
	while (rc == -ENOENT && page.magic); /* not written yet: the page is of its parent */
	close(stay[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return rc;
}

static void a_page_is_found_by_its_name(void **state)
{
	struct sample sample;

	assert_int_equal(look(false, &sample), 0);
	assert_int_equal(sample_count(&sample, WEFT_MEM_PART_ARENA, WEFT_MEM_ARENA_LIVE_BYTES),
			 100);
	assert_int_equal(sample.backing.resident, 0);
	page.parts[0].kind = 77;
	assert_int_equal(look(false, &sample), -EPROTO);
	assert_non_null(strstr(why, "part 0"));
}

static void more_pages_than_libraries_are_refused(void **state)
{
	struct sample sample;
	int copies[32];

	for (int i = 0; i < 32; i++)
		assert_true((copies[i] = dup(file)) >= 0);
	assert_int_equal(look(false, &sample), -EPROTO);
	assert_non_null(strstr(why, "more than"));
	for (int i = 0; i < 32; i++)
		close(copies[i]);
}

static void what_is_not_there_has_a_reason(void **state)
{
	struct sample sample;

	assert_int_equal(look(true, &sample), -ESRCH);
	assert_string_equal(why, "there is no such process");
	close(file);
	assert_int_equal(sample_read(getpid(), &sample, why), -ENOENT);
	assert_string_equal(why, "it shows no registered memory");
	file = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void another_users_process_is_not_looked_into(void **state)
{
	struct sample sample;
	pid_t parent = getpid(), pid;
	int status = -1;

	if (geteuid()) {
		/* process 1 is root's, where there are users */
		if (access("/proc/1/fd/0", F_OK) && errno == EACCES)
			assert_int_equal(sample_read(1, &sample, why), -EACCES);
		return;
	}
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
			_exit(1);
		status = sample_read(parent, &sample, why);
		_exit(status == -EACCES && strstr(why, "it belongs to uid 0") ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_shown_is_summed_by_kind),
		TEST(an_unfinished_or_inherited_page_says_nothing),
		TEST(what_makes_no_sense_has_a_reason),
		TEST(a_page_that_is_cut_off_has_a_reason),
		TEST(random_bytes_do_no_harm),
		TEST(a_page_is_found_by_its_name),
		TEST(more_pages_than_libraries_are_refused),
		TEST(what_is_not_there_has_a_reason),
		TEST(another_users_process_is_not_looked_into),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
