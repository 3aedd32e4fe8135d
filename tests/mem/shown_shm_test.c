/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What 'weft mem' says of a program over shared memory, against what the program did: its regions, with keys and
 * without, and the messages out of the arena that one of its
 * endpoints sent to the other one. The tool is the argument.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>
#include "two_ends.h"

#define SMALL	   4096u
#define LARGE	   ((size_t)1 << 20)
#define TOUCHED	   (8 * LARGE)
#define MESSAGES   200
#define PLAIN	   3
#define KEYED	   2
#define DEADLINE_S 20

static const char *weft;
static struct two_ends ends;
static char *memory;

static int start(void **state)
{
	void *addr;

	if (two_ends_open(&ends, FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED) ||
	    ends.mem->alloc(2 * TOUCHED, 0, 0, &addr))
		return -1;
	memory = addr;
	memset(memory, 1, TOUCHED);
	return 0;
}

static int end(void **state)
{
	int err = ends.mem->free(memory);

	return err | two_ends_close(&ends);
}

/* Returns a figure of this process. */
static uint64_t shown(const char *part, const char *name)
{
	char command[4096];
	json_error_t error;
	json_t *whole, *value;
	uint64_t figure = 0;
	FILE *from;

	snprintf(command, sizeof(command), "%s mem --json %d", weft, (int)getpid());
	from = popen(command, "re");
	assert_non_null(from);
	whole = json_loadf(from, 0, &error);
	assert_int_equal(pclose(from), 0);
	value = json_array_get(json_object_get(whole, "processes"), 0);
	value = json_object_get(json_object_get(value, part), name);
	if (json_is_integer(value))
		figure = (uint64_t)json_integer_value(value);
	json_decref(whole);
	return figure;
}

/* Makes progress, by which the endpoint tells its figures. Returns completions. */
static size_t progress(void)
{
	struct fi_cq_msg_entry entries[8];
	ssize_t cnt = fi_cq_read(ends.cq, entries, 8);

	assert_true(cnt > 0 || cnt == -FI_EAGAIN);
	return cnt > 0 ? (size_t)cnt : 0;
}

/* Makes progress until a figure is what it has to be. */
static void assert_shown(const char *name, uint64_t wanted)
{
	time_t until = time(NULL) + DEADLINE_S;

	do {
		for (int i = 0; i < 2000; i++)
			progress();
	} while (shown("shm", name) != wanted && time(NULL) < until);
	assert_int_equal(shown("shm", name), wanted);
}

static struct fid_mr *reg(size_t at, uint64_t access)
{
	struct fid_mr *mr;

	assert_int_equal(
		fi_mr_reg(ends.domain, memory + at * LARGE, LARGE, access, 0, at, 0, &mr, NULL),
		0);
	return mr;
}

static void regions_are_counted_with_keys_and_without(void **state)
{
	struct fid_mr *mrs[PLAIN + KEYED];

	for (size_t i = 0; i < PLAIN + KEYED; i++)
		mrs[i] = reg(i, i < PLAIN ? FI_SEND : FI_REMOTE_READ);
	assert_shown("regions", PLAIN + KEYED);
	assert_shown("keys", KEYED);
	assert_int_equal(fi_close(&mrs[0]->fid), 0);
	assert_shown("regions", PLAIN + KEYED - 1);
	assert_shown("keys", KEYED);
	for (size_t i = 1; i < PLAIN + KEYED; i++)
		assert_int_equal(fi_close(&mrs[i]->fid), 0);
	assert_shown("regions", 0);
	assert_shown("keys", 0);
}

static void send_one(size_t len)
{
	char *from = memory, *into = memory + TOUCHED / 2;
	time_t until = time(NULL) + DEADLINE_S;
	size_t done = 0;

	assert_int_equal(fi_recv(ends.peer, into, len, NULL, FI_ADDR_UNSPEC, NULL), 0);
	while (fi_send(ends.ep, from, len, NULL, ends.to, NULL) == -FI_EAGAIN &&
	       time(NULL) < until)
		progress();
	while (done < 2 && time(NULL) < until)
		done += progress();
	assert_int_equal(done, 2);
}

static void messages_are_not_more_than_were_sent(void **state)
{
	uint64_t lent, read;

	for (int i = 0; i < MESSAGES; i++)
		send_one(i % 2 ? SMALL : LARGE);
	for (int i = 0; i < 2000; i++)
		progress();
	lent = shown("shm", "lent");
	read = shown("shm", "read");
	print_message("%d messages: %d lent, %d read\n", MESSAGES, (int)lent, (int)read);
	assert_in_range(lent + read, 1, MESSAGES);
	assert_in_range(lent, 0, MESSAGES / 2);
	assert_in_range(read, 0, MESSAGES / 2);
	assert_int_equal(shown("shm", "lent_bytes"), lent * SMALL);
	assert_int_equal(shown("shm", "read_bytes"), read * LARGE);
}

/* Returns the bytes of the memory that have pages, as the kernel says of each. */
static size_t resident(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), cnt = 2 * TOUCHED / page, sum = 0;
	unsigned char *there = malloc(cnt);

	assert_non_null(there);
	assert_int_equal(mincore(memory, 2 * TOUCHED, there), 0);
	for (size_t i = 0; i < cnt; i++)
		sum += there[i] & 1 ? page : 0;
	free(there);
	return sum;
}

static void bytes_are_those_that_the_kernel_knows(void **state)
{
	void *more;

	assert_int_equal(shown("arena", "live_bytes"), 2 * TOUCHED);
	assert_int_equal(shown("arena", "resident_bytes"), resident());
	assert_int_equal(ends.mem->alloc(LARGE, 0, 0, &more), 0);
	memset(more, 1, LARGE);
	assert_int_equal(shown("arena", "live_bytes"), 2 * TOUCHED + LARGE);
	assert_int_equal(shown("arena", "resident_bytes"), resident() + LARGE);
	assert_int_equal(ends.mem->free(more), 0);
	assert_int_equal(shown("arena", "live_bytes"), 2 * TOUCHED);
	assert_int_equal(shown("arena", "allocations"), 2);
	assert_int_equal(shown("arena", "frees"), 1);
}

/* Without a call of the program: by the keeper. */
static void what_the_keeper_takes_away_is_shown(void **state)
{
	time_t until = time(NULL) + DEADLINE_S;
	void *more;

	assert_int_equal(ends.mem->alloc(4 * LARGE, 0, 0, &more), 0);
	memset(more, 1, 4 * LARGE);
	assert_int_equal(ends.mem->free(more), 0);
	while (shown("arena", "quarantined_bytes") && time(NULL) < until)
		usleep(10000);
	assert_int_equal(shown("arena", "quarantined_bytes"), 0);
	assert_int_equal(shown("arena", "resident_bytes"), resident());
	assert_true(shown("arena", "punched_bytes") >= 4 * LARGE);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_those_that_the_kernel_knows),
		cmocka_unit_test(what_the_keeper_takes_away_is_shown),
		cmocka_unit_test(regions_are_counted_with_keys_and_without),
		cmocka_unit_test(messages_are_not_more_than_were_sent),
	};

	if (argc < 2)
		return 2;
	weft = argv[1];
	return cmocka_run_group_tests(tests, start, end);
}
