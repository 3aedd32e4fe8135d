/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A file that arrives: it takes its name when it is kept, and leaves nothing when it is not. */
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
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

static char path[] = "/tmp/weft-target-XXXXXX";
static int dir;

static struct copy_message file(const char *name, uint64_t size)
{
	struct copy_message m = { .kind = COPY_FILE,
				  .mode = 0640,
				  .size = size,
				  .mtime_s = 1000000000,
				  .mtime_ns = 123456789 };

	snprintf(m.text, sizeof(m.text), "%s", name);
	return m;
}

/* Files in the directory; all are removed if @clear. */
static size_t files(int clear)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	size_t cnt = 0;

	assert_non_null(d);
	while ((entry = readdir(d))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		cnt++;
		if (clear && unlinkat(dir, entry->d_name, 0))
			unlinkat(dir, entry->d_name, AT_REMOVEDIR);
	}
	closedir(d);
	return cnt;
}

static int setup(void **state)
{
	if (!mkdtemp(path))
		return -1;
	dir = open(path, O_RDONLY | O_DIRECTORY);
	return dir < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	files(1);
	close(dir);
	return rmdir(path);
}

static int clear(void **state)
{
	files(1);
	return 0;
}

static void a_file_that_is_kept_has_its_mode_and_time(void **state)
{
	struct copy_message m = file("kept", 5);
	const char *what = NULL;
	struct target target;
	char back[8] = "";
	struct stat st;
	void *addr;
	int fd;

	assert_int_equal(target_create(&target, dir, &m, &what), 0);
	assert_int_equal(fstatat(dir, "kept", &st, 0), -1);
	assert_int_equal(target_map(&target, 0, 5, &addr), 0);
	memcpy(addr, "hello", 5);
	munmap(addr, 5);
	assert_int_equal(target_keep(&target, &what), 0);
	assert_int_equal(fstatat(dir, "kept", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(st.st_mtim.tv_sec, 1000000000);
	assert_int_equal(st.st_mtim.tv_nsec, 123456789);
	fd = openat(dir, "kept", O_RDONLY);
	assert_int_equal(read(fd, back, sizeof(back)), 5);
	assert_memory_equal(back, "hello", 5);
	close(fd);
	assert_int_equal(files(0), 1);
}

static void what_is_there_stays_until_the_file_is_kept(void **state)
{
	struct copy_message m = file("old", 100);
	const char *what = NULL;
	struct target target;
	struct stat st;
	int fd = openat(dir, "old", O_WRONLY | O_CREAT, 0600);

	assert_int_equal(write(fd, "old", 3), 3);
	close(fd);
	assert_int_equal(target_create(&target, dir, &m, &what), 0);
	target_drop(&target);
	assert_int_equal(fstatat(dir, "old", &st, 0), 0);
	assert_int_equal(st.st_size, 3);
	assert_int_equal(files(0), 1);
	assert_int_equal(target_create(&target, dir, &m, &what), 0);
	assert_int_equal(target_keep(&target, &what), 0);
	assert_int_equal(fstatat(dir, "old", &st, 0), 0);
	assert_int_equal(st.st_size, 100);
}

static void a_directory_is_not_replaced(void **state)
{
	struct copy_message m = file("folder", 0);
	const char *what = NULL;
	struct target target;

	assert_int_equal(mkdirat(dir, "folder", 0700), 0);
	assert_int_equal(target_create(&target, dir, &m, &what), 0);
	assert_int_equal(target_keep(&target, &what), -EISDIR);
	assert_non_null(what);
	target_drop(&target);
	assert_int_equal(files(0), 1);
}

static void a_name_that_leads_away_is_refused(void **state)
{
	struct copy_message m = file("../away", 0);
	const char *what = NULL;
	struct target target;

	assert_int_equal(target_create(&target, dir, &m, &what), -EINVAL);
	assert_int_equal(files(0), 0);
}

static void a_file_without_room_leaves_nothing(void **state)
{
	const struct rlimit limit = { 4096, RLIM_INFINITY };
	struct copy_message m = file("large", 1 << 20);
	const char *what = NULL;
	struct target target;
	struct rlimit before;

	target_guard();
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(target_create(&target, dir, &m, &what), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_string_equal(what, "no room for it");
	m.size = INT64_MAX;
	assert_true(target_create(&target, dir, &m, &what) < 0);
	assert_int_equal(files(0), 0);
}

/* Runs a process that is ended by @sig while its file arrives. Returns its status. */
static int end_by(int sig)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		struct copy_message m = file("torn", 100);
		const char *what = NULL;
		struct target target;

		target_guard();
		if (target_create(&target, dir, &m, &what) || files(0) != 1)
			_exit(77);
		raise(sig);
		_exit(78);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_signal_removes_the_file(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		int status;

		/* whoever runs the tests may ignore it, as nohup(1) does */
		signal(signals[i], SIG_DFL);
		status = end_by(signals[i]);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signals[i]);
		assert_int_equal(files(0), 0);
	}
}

static void a_file_that_is_shortened_is_an_error(void **state)
{
	int status = end_by(SIGBUS);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EXIT_FAILURE);
	assert_int_equal(files(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_file_that_is_kept_has_its_mode_and_time, clear),
		cmocka_unit_test_teardown(what_is_there_stays_until_the_file_is_kept, clear),
		cmocka_unit_test_teardown(a_directory_is_not_replaced, clear),
		cmocka_unit_test_teardown(a_name_that_leads_away_is_refused, clear),
		cmocka_unit_test_teardown(a_file_without_room_leaves_nothing, clear),
		cmocka_unit_test_teardown(a_signal_removes_the_file, clear),
		cmocka_unit_test_teardown(a_file_that_is_shortened_is_an_error, clear),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
