/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of what a lender keeps in mind. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descriptors.h"
#include "journal.h"
#include "log.h"

#define DEVICE 0x0123456789abcdefULL
#define CNT    16u

static char folder[64];
static unsigned open_before;
static unsigned lines;
static char last_line[512];

/* In the place of the lender's. */
void lender_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last_line, sizeof(last_line), format, args);
	va_end(args);
	lines++;
}

/* What the disk does: the linker leads these calls here. */
static struct {
	int write_err;
	size_t write_room; /* bytes that are taken before @write_err; and in pieces of one byte if @pieces */
	bool pieces;
	int sync_err;
	int rename_err;
	bool die;
} disk;

ssize_t __real_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
int __wrap_fdatasync(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
	if (!disk.write_err && !disk.pieces)
		return __real_write(fd, buf, len);
	if (disk.write_err && !disk.write_room) {
		errno = disk.write_err;
		return -1;
	}
	if (disk.write_err)
		disk.write_room--;
	return __real_write(fd, buf, 1);
}

int __wrap_fdatasync(int fd)
{
	errno = disk.sync_err;
	return disk.sync_err ? -1 : 0;
}

int __wrap_rename(const char *from, const char *to)
{
	if (disk.die)
		_exit(7);
	if (!disk.rename_err)
		return __real_rename(from, to);
	errno = disk.rename_err;
	return -1;
}

static const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static const char *journal_path(void)
{
	return path_of("leases-0123456789abcdef.json");
}

static int setup(void **state)
{
	open_before = descriptors_open();
	memset(&disk, 0, sizeof(disk));
	lines = 0;
	/* Thousands of files are written: into memory, if there is some. */
	strcpy(folder, "/dev/shm/weft-journal.XXXXXX");
	if (mkdtemp(folder))
		return 0;
	strcpy(folder, "/tmp/weft-journal.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while ((entry = readdir(dir)))
		if (*entry->d_name != '.')
			unlink(path_of(entry->d_name));
	closedir(dir);
	rmdir(folder);
	return descriptors_open() == open_before ? 0 : -1;
}

/* Leases 1 and 7 run; 3 has been lent. */
static void some_leases(struct journal_lease *leases)
{
	memset(leases, 0, CNT * sizeof(*leases));
	leases[1] = (struct journal_lease){
		1, 7, { 0x0123456789abcdefULL, 0xfedcba9876543210ULL }, 2, 1000, 4711
	};
	leases[3] = (struct journal_lease){ .generation = UINT32_MAX };
	leases[7] = (struct journal_lease){ 1, 1, { 0, 1 }, 0, 0, 1 };
	/* of another host */
	leases[9] = (struct journal_lease){ 1, 2, { 3, 0 }, 0, (uid_t)-1, -1 };
}

static bool is_same(const struct journal_lease *a, const struct journal_lease *b)
{
	uint32_t i;

	for (i = 0; i < CNT; i++)
		if (a[i].used != b[i].used || a[i].generation != b[i].generation ||
		    !lease_token_same(&a[i].token, &b[i].token) || a[i].flags != b[i].flags ||
		    a[i].uid != b[i].uid || a[i].pid != b[i].pid)
			return false;
	return true;
}

static bool is_empty(const struct journal_lease *leases)
{
	static const struct journal_lease none[CNT];

	return is_same(leases, none);
}

static void expect_some(void)
{
	struct journal_lease want[CNT], got[CNT];

	some_leases(want);
	memset(got, 0xff, sizeof(got));
	journal_read(folder, DEVICE, got, CNT);
	assert_true(is_same(want, got));
}

static void write_some(void)
{
	struct journal_lease leases[CNT];

	some_leases(leases);
	assert_int_equal(journal_write(folder, DEVICE, leases, CNT), 0);
}

static void put_file(const char *path, const void *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(__real_write(fd, text, len), len);
	close(fd);
}

static size_t get_file(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, text, room);

	assert_true(n > 0);
	close(fd);
	return (size_t)n;
}

static void what_was_written_is_read(void **state)
{
	struct stat st;

	write_some();
	expect_some();
	/* There are tokens in it. */
	assert_int_equal(stat(journal_path(), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	disk.pieces = true;
	write_some();
	expect_some();
}

static void devices_have_journals_of_their_own(void **state)
{
	struct journal_lease got[CNT];

	write_some();
	memset(got, 0xff, sizeof(got));
	journal_read(folder, DEVICE + 1, got, CNT);
	assert_true(is_empty(got));
	expect_some();
	assert_int_equal(lines, 0);
}

static void leases_that_the_reader_has_no_room_for_make_it_no_journal(void **state)
{
	struct journal_lease got[CNT];

	write_some();
	memset(got, 0xff, sizeof(got));
	journal_read(folder, DEVICE, got, 7);
	assert_int_equal(got[1].used, 0);
	assert_int_equal(got[3].generation, 0);
	assert_int_equal(got[6].used, 0);
	assert_int_equal(got[7].used, UINT32_MAX);
}

/* A lender that is killed while it writes leaves a whole file, but others may do anything. */
static void every_beginning_of_a_journal_is_none(void **state)
{
	struct journal_lease got[CNT];
	char text[4096];
	size_t len, n;

	write_some();
	len = get_file(journal_path(), text, sizeof(text));
	for (n = 0; n < len; n++) {
		put_file(journal_path(), text, n);
		memset(got, 0xff, sizeof(got));
		journal_read(folder, DEVICE, got, CNT);
		assert_true(is_empty(got));
		assert_int_equal(lines, n + 1);
	}
}

/* Of every bit that is wrong either nothing is read, or the leases but for what the bit is in. */
static void journal_with_any_wrong_bit_is_read_or_is_none(void **state)
{
	struct journal_lease got[CNT];
	char text[4096];
	size_t len, n;
	uint32_t i;
	int bit;

	write_some();
	len = get_file(journal_path(), text, sizeof(text));
	for (n = 0; n < len; n++)
		for (bit = 0; bit < 8; bit++) {
			text[n] ^= (char)(1 << bit);
			put_file(journal_path(), text, len);
			memset(got, 0xff, sizeof(got));
			journal_read(folder, DEVICE, got, CNT);
			for (i = 0; i < CNT; i++)
				assert_true(got[i].used <= 1);
			text[n] ^= (char)(1 << bit);
		}
}

#define TOKEN		  "\"00112233445566778899aabbccddeeff\""
#define VERSION_2(leases) "{\"version\":2,\"leases\":" leases "}"
#define LEASE(lease, token, pid)                                                             \
	"[{\"lease\":" lease ",\"used\":1,\"generation\":1,\"token\":" token ",\"flags\":0," \
	"\"uid\":0,\"pid\":" pid "}]"
#define WITH_TOKEN(token) VERSION_2(LEASE("1", token, "1"))

static void expect_none(const char *text)
{
	struct journal_lease got[CNT];
	unsigned before = lines;

	put_file(journal_path(), text, strlen(text));
	memset(got, 0xff, sizeof(got));
	journal_read(folder, DEVICE, got, CNT);
	assert_true(is_empty(got));
	assert_int_equal(lines, before + 1);
}

static void what_is_no_journal_is_one_without_leases(void **state)
{
	static const char *const texts[] = {
		"{}",
		"[]",
		"7",
		"\xff\xfe",
		"{\"version\":2}",
		"{\"version\":-2,\"leases\":[]}",
		"{\"version\":2.0,\"leases\":[]}",
		VERSION_2("{}"),
		VERSION_2("[7]"),
		VERSION_2("[{}]"),
		VERSION_2(LEASE("-1", TOKEN, "1")),
		VERSION_2(LEASE("16", TOKEN, "1")),
		VERSION_2(LEASE("1.5", TOKEN, "1")),
		VERSION_2(LEASE("1", TOKEN, "-2")),
		VERSION_2(LEASE("1", TOKEN, "2147483648")),
		WITH_TOKEN("7"),
		WITH_TOKEN("\"\""),
		WITH_TOKEN("\"1\""),
		WITH_TOKEN("\"0011223344556677\""),
		WITH_TOKEN("\"00112233445566778899aabbccddeef\""),
		WITH_TOKEN("\"00112233445566778899aabbccddeeff0\""),
		WITH_TOKEN("\"00112233445566778899aabbccddeef \""),
		WITH_TOKEN("\"0x112233445566778899aabbccddeeff\""),
		WITH_TOKEN("\"-0112233445566778899aabbccddeeff\""),
		WITH_TOKEN("\"00112233445566778899AABBCCDDEEFF\""),
	};
	static const char one[] = WITH_TOKEN(TOKEN);
	struct journal_lease got[CNT];
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		expect_none(texts[i]);
		assert_non_null(strstr(last_line, "not a journal"));
	}
	/* What they are but for one thing each. */
	put_file(journal_path(), one, strlen(one));
	journal_read(folder, DEVICE, got, CNT);
	assert_int_equal(got[1].used, 1);
	assert_int_equal(got[1].token.high, 0x0011223344556677ULL);
	assert_int_equal(got[1].token.low, 0x8899aabbccddeeffULL);
}

/* Tokens of version 1 have 64 bits: there is no lease of one any more. */
static void journal_of_another_version_is_said_to_be_one(void **state)
{
	static const char *const texts[] = {
		"{\"version\":0,\"leases\":" LEASE("1", TOKEN, "1") "}",
		"{\"version\":1,\"leases\":" LEASE("1", "\"0123456789abcdef\"", "1") "}",
		"{\"version\":1,\"leases\":" LEASE("1", TOKEN, "1") "}",
		"{\"version\":3,\"leases\":" LEASE("1", TOKEN, "1") "}",
		"{\"version\":3}",
	};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		expect_none(texts[i]);
		assert_non_null(strstr(last_line, "of another version"));
	}
}

/* An error of the disk at any place leaves the journal that there was, and no other file. */
static void full_disk_leaves_the_journal_as_it_was(void **state)
{
	struct journal_lease other[CNT] = { [2] = { 1, 2, { 3, 4 }, 5, 6, 7 } };
	uint64_t node;
	size_t room;

	write_some();
	disk.write_err = ENOSPC;
	for (room = 0; room < 40; room++) {
		disk.write_room = room;
		assert_int_equal(journal_write(folder, DEVICE, other, CNT), -ENOSPC);
		expect_some();
		assert_int_equal(access(path_of("leases-0123456789abcdef.json.new"), F_OK), -1);
	}
	disk.write_err = 0;
	/* Of the disk, which the number of the host has to reach, leases ask nothing. */
	disk.sync_err = EIO;
	assert_int_equal(journal_node(folder, &node), -EIO);
	assert_int_equal(access(path_of("node"), F_OK), -1);
	assert_int_equal(journal_write(folder, DEVICE, other, CNT), 0);
	disk.sync_err = 0;
	write_some();
	disk.rename_err = EACCES;
	assert_int_equal(journal_write(folder, DEVICE, other, CNT), -EACCES);
	expect_some();
	assert_int_equal(access(path_of("leases-0123456789abcdef.json.new"), F_OK), -1);
}

static void lender_killed_before_the_new_journal_is_in_place_leaves_the_old_one(void **state)
{
	struct journal_lease other[CNT] = { [2] = { 1, 2, { 3, 4 }, 5, 6, 7 } }, got[CNT];
	pid_t child;
	int status;

	write_some();
	disk.die = true;
	child = fork();
	if (!child) {
		journal_write(folder, DEVICE, other, CNT);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 7);
	disk.die = false;
	assert_int_equal(access(path_of("leases-0123456789abcdef.json.new"), F_OK), 0);
	expect_some();
	/* What that one has left is no hindrance to the next one. */
	assert_int_equal(journal_write(folder, DEVICE, other, CNT), 0);
	journal_read(folder, DEVICE, got, CNT);
	assert_true(is_same(got, other));
}

static void journal_is_not_written_through_a_link(void **state)
{
	struct journal_lease leases[CNT];
	char target[512];

	some_leases(leases);
	strcpy(target, path_of("target"));
	assert_int_equal(symlink(target, path_of("leases-0123456789abcdef.json.new")), 0);
	assert_int_equal(journal_write(folder, DEVICE, leases, CNT), -ELOOP);
	assert_int_equal(access(target, F_OK), -1);
}

static void folder_that_is_not_there_is_an_error(void **state)
{
	struct journal_lease leases[CNT], got[CNT];
	uint64_t node;

	some_leases(leases);
	assert_int_equal(journal_write("/nonexistent", DEVICE, leases, CNT), -ENOENT);
	memset(got, 0xff, sizeof(got));
	journal_read("/nonexistent", DEVICE, got, CNT);
	assert_true(is_empty(got));
	assert_int_equal(journal_node("/nonexistent", &node), -ENOENT);
}

static void node_has_its_number_for_ever(void **state)
{
	uint64_t node = 0, again = 0;

	assert_int_equal(journal_node(folder, &node), 0);
	assert_true(node);
	assert_int_equal(journal_node(folder, &again), 0);
	assert_true(node == again);
}

static void node_without_a_number_is_not_given_another_one(void **state)
{
	static const char *const texts[] = { "", "\n", "0\n", "hello\n", "12 34\n" };
	uint64_t node;
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put_file(path_of("node"), texts[i], strlen(texts[i]));
		assert_int_equal(journal_node(folder, &node), -EILSEQ);
	}
}

/* A process that has the folder until it is killed. Returns its id */
static pid_t start_owner(void)
{
	int pipes[2];
	pid_t child, none;
	char byte;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child) {
		if (journal_lock(folder, &none) || __real_write(pipes[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
	close(pipes[1]);
	return child;
}

static void folder_is_one_lenders_until_its_process_ends(void **state)
{
	pid_t child = start_owner(), owner = 0, other;

	assert_int_equal(journal_lock(folder, &owner), -EBUSY);
	assert_int_equal(owner, child);
	/* By another name of it too. */
	assert_int_equal(symlink(folder, path_of("again")), 0);
	assert_int_equal(journal_lock(path_of("again"), &owner), -EBUSY);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	other = start_owner();
	assert_int_equal(journal_lock(folder, &owner), -EBUSY);
	assert_int_equal(owner, other);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

static void lock_that_cannot_be_is_an_error(void **state)
{
	pid_t owner;

	assert_int_equal(journal_lock("/nonexistent", &owner), -ENOENT);
	assert_int_equal(symlink("/dev/null", path_of("lock")), 0);
	assert_int_equal(journal_lock(folder, &owner), -ELOOP);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_written_is_read),
		TEST(devices_have_journals_of_their_own),
		TEST(leases_that_the_reader_has_no_room_for_make_it_no_journal),
		TEST(every_beginning_of_a_journal_is_none),
		TEST(journal_with_any_wrong_bit_is_read_or_is_none),
		TEST(what_is_no_journal_is_one_without_leases),
		TEST(journal_of_another_version_is_said_to_be_one),
		TEST(full_disk_leaves_the_journal_as_it_was),
		TEST(lender_killed_before_the_new_journal_is_in_place_leaves_the_old_one),
		TEST(journal_is_not_written_through_a_link),
		TEST(folder_that_is_not_there_is_an_error),
		TEST(folder_is_one_lenders_until_its_process_ends),
		TEST(lock_that_cannot_be_is_an_error),
		TEST(node_has_its_number_for_ever),
		TEST(node_without_a_number_is_not_given_another_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
