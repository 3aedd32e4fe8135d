/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of memory that is found by a name, within a process and between processes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "shared_name.h"
#include <cmocka.h>
#include "mock_descriptors.h"

#define LEN ((size_t)3 * 4096)

static char name[SYS_SHARED_NAME_MAX]; /* of this run alone */

static int clear(void **state)
{
	sys_fault_clear();
	snprintf(name, sizeof(name), "test-%d", (int)getpid());
	return 0;
}

static struct sys_shared *published(char first)
{
	struct sys_shared *shared;
	size_t len;

	assert_int_equal(sys_shared_create(name, LEN, &shared), 0);
	*(char *)sys_shared_map(shared, &len) = first;
	assert_int_equal(len, LEN);
	assert_int_equal(sys_shared_publish(shared), 0);
	return shared;
}

static char first_of(const struct sys_shared *shared)
{
	size_t len;

	return *(char *)sys_shared_map(shared, &len);
}

static void name_leads_to_the_memory_as_long_as_it_is_kept(void **state)
{
	int before = mock_descriptors();
	struct sys_shared *keeper, *reader, *writer;
	size_t len;

	assert_int_equal(sys_shared_attach(name, false, &reader), -FI_ENOENT);
	keeper = published('a');
	assert_int_equal(sys_shared_attach(name, false, &reader), 0);
	assert_int_equal(sys_shared_attach(name, true, &writer), 0);
	assert_int_equal(first_of(reader), 'a');
	*(char *)sys_shared_map(writer, &len) = 'b';
	assert_int_equal(len, LEN);
	assert_int_equal(first_of(keeper), 'b');
	assert_int_equal(first_of(reader), 'b');
	sys_shared_close(keeper);
	assert_int_equal(first_of(reader), 'b'); /* its owner keeps it */
	assert_int_equal(sys_shared_attach(name, false, &keeper), -FI_ENOENT);
	sys_shared_close(reader);
	sys_shared_close(writer);
	sys_shared_close(NULL);
	assert_int_equal(mock_descriptors(), before);
}

static void name_is_given_once_and_again_when_it_is_free(void **state)
{
	struct sys_shared *first = published('1'), *second, *old, *reader;

	assert_int_equal(sys_shared_create(name, LEN, &second), 0);
	assert_int_equal(sys_shared_publish(second), -FI_EADDRINUSE);
	assert_int_equal(sys_shared_attach(name, true, &old), 0);
	assert_int_equal(first_of(old), '1'); /* and not the one that was not published */
	sys_shared_close(first);
	assert_int_equal(sys_shared_publish(second), 0);
	assert_int_equal(sys_shared_attach(name, false, &reader), 0);
	assert_int_equal(first_of(reader),
			 0); /* and not the old one, which this process has too */
	sys_shared_close(reader);
	sys_shared_close(second);
	sys_shared_close(old);
}

static void impossible_names_are_refused(void **state)
{
	static const char *const wrong[] = { "", "a/b", "a b", "a\nb" };
	struct sys_shared *shared;
	char longest[SYS_SHARED_NAME_MAX + 1];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(sys_shared_create(wrong[i], LEN, &shared), -FI_EINVAL);
		assert_int_equal(sys_shared_attach(wrong[i], false, &shared), -FI_EINVAL);
	}
	/* of this run alone, too */
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, name, strlen(name));
	longest[SYS_SHARED_NAME_MAX] = '\0';
	assert_int_equal(sys_shared_create(longest, LEN, &shared), -FI_EINVAL);
	longest[SYS_SHARED_NAME_MAX - 1] = '\0';
	assert_int_equal(sys_shared_create(longest, LEN, &shared), 0);
	assert_int_equal(sys_shared_publish(shared), 0);
	sys_shared_close(shared);
	assert_int_equal(sys_shared_create(name, 0, &shared), -FI_EINVAL);
}

/* Runs @what in a child; its answer. */
static int in_a_child(int (*what)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid)
		_exit(what());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int write_from_a_child(void)
{
	struct sys_shared *shared;
	size_t len;

	if (sys_shared_attach(name, true, &shared) || first_of(shared) != 'p')
		return 1;
	*(char *)sys_shared_map(shared, &len) = 'c';
	return len == LEN ? 0 : 2;
}

static void processes_share(void **state)
{
	struct sys_shared *keeper = published('p');

	assert_int_equal(in_a_child(write_from_a_child), 0);
	assert_int_equal(first_of(keeper), 'c');
	sys_shared_close(keeper);
}

static void killed_keeper_leaves_nothing(void **state)
{
	struct sys_shared *shared;
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (sys_shared_create(name, LEN, &shared) || sys_shared_publish(shared) ||
		    sys_shared_lock(shared) || write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(sys_shared_attach(name, true, &shared), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(sys_shared_lock(shared), 0); /* its lock went with it */
	sys_shared_unlock(shared);
	sys_shared_close(shared);
	assert_int_equal(sys_shared_attach(name, false, &shared), -FI_ENOENT);
	shared = published('n');
	sys_shared_close(shared);
	close(ready[0]);
	close(ready[1]);
}

/* What a keeper's child has after the fork, until nobody has @hold any more. */
static int be_copied(struct sys_shared *shared, int said, const int hold[2])
{
	char c;

	alarm(120);
	close(hold[1]);
	sys_shared_forked(shared);
	if (sys_shared_lock(shared) != -FI_EOPBADSTATE || first_of(shared) != 'k' ||
	    write(said, "c", 1) != 1)
		return 1;
	return read(hold[0], &c, 1) != 0;
}

static int keep_with_a_child(int said, const int hold[2])
{
	struct sys_shared *shared = published('k');

	if (sys_shared_lock(shared))
		return 1;
	if (!fork())
		_exit(be_copied(shared, said, hold));
	for (;;)
		pause();
}

static void child_of_a_killed_keeper_keeps_nothing(void **state)
{
	struct sys_shared *shared;
	int said[2], hold[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(said), 0);
	assert_int_equal(pipe(hold), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(keep_with_a_child(said[1], hold));
	assert_int_equal(read(said[0], &c, 1), 1);
	assert_int_equal(sys_shared_attach(name, true, &shared), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	alarm(20);
	assert_int_equal(sys_shared_lock(shared), 0);
	alarm(0);
	sys_shared_close(shared);
	assert_int_equal(sys_shared_attach(name, false, &shared), -FI_ENOENT);
	shared = published('n');
	sys_shared_close(shared);
	for (int i = 0; i < 2; i++) {
		close(said[i]);
		close(hold[i]);
	}
}

#define ROUNDS 500

static int count_up(void)
{
	struct sys_shared *shared;
	volatile uint32_t *n;
	size_t len;

	if (sys_shared_attach(name, true, &shared))
		return 1;
	n = (volatile uint32_t *)((char *)sys_shared_map(shared, &len) + 8);
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t was;

		if (sys_shared_lock(shared))
			return 2;
		was = *n;
		for (volatile int spin = 0; spin < 100; spin++)
			;
		*n = was + 1;
		sys_shared_unlock(shared);
	}
	sys_shared_close(shared);
	return 0;
}

static void lock_excludes_other_handles(void **state)
{
	struct sys_shared *keeper = published('l');
	pid_t pid[3];
	size_t len;
	int status;

	for (int i = 0; i < 3; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (!pid[i])
			_exit(count_up());
	}
	assert_int_equal(count_up(), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(*(uint32_t *)((char *)sys_shared_map(keeper, &len) + 8), 4 * ROUNDS);
	sys_shared_close(keeper);
}

static void another_user_is_kept_out(void **state)
{
	struct sys_shared *keeper;
	pid_t pid;
	int status;

	if (geteuid()) {
		print_message("skipped: only root can be two users\n");
		skip();
	}
	keeper = published('u');
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct sys_shared *shared;

		if (setuid(65534))
			_exit(2);
		_exit(sys_shared_attach(name, false, &shared) == -FI_ENOENT ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	sys_shared_close(keeper);
}

static void refusals_of_the_kernel_are_told(void **state)
{
	int before = mock_descriptors();
	struct sys_shared *keeper, *shared;

	sys_fault_set(SYS_CALL_MEMFD_CREATE, EMFILE, 0, 0);
	assert_int_equal(sys_shared_create(name, LEN, &shared), -FI_EMFILE);
	sys_fault_clear();
	sys_fault_set(SYS_CALL_MMAP, ENOMEM, 0, 0);
	assert_int_equal(sys_shared_create(name, LEN, &shared), -FI_ENOMEM);
	sys_fault_clear();
	assert_int_equal(sys_shared_create(name, LEN, &keeper), 0);
	sys_fault_set(SYS_CALL_SOCKET, EMFILE, 0, 0);
	assert_int_equal(sys_shared_publish(keeper), -FI_EMFILE);
	assert_int_equal(sys_shared_attach(name, false, &shared), -FI_EMFILE);
	sys_fault_clear();
	sys_fault_set(SYS_CALL_BIND, ENOMEM, 0, 0);
	assert_int_equal(sys_shared_publish(keeper), -FI_ENOMEM);
	sys_fault_clear();
	assert_int_equal(sys_shared_publish(keeper), 0);
	sys_fault_set(SYS_CALL_CONNECT, EAGAIN, 0, 0);
	assert_int_equal(sys_shared_attach(name, false, &shared), -FI_EAGAIN);
	sys_fault_clear();
	sys_fault_set(SYS_CALL_OPEN_FD, EPERM, 0, 0);
	assert_int_equal(sys_shared_attach(name, false, &shared), -FI_EACCES);
	sys_fault_clear();
	sys_fault_set(SYS_CALL_FCNTL_LOCK, ENOLCK, 0, 0);
	assert_int_equal(sys_shared_lock(keeper), -ENOLCK);
	sys_fault_set(SYS_CALL_FCNTL_LOCK, EINTR, 0, 2);
	assert_int_equal(sys_shared_lock(keeper), 0);
	sys_shared_unlock(keeper);
	sys_shared_close(keeper);
	assert_int_equal(mock_descriptors(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(name_leads_to_the_memory_as_long_as_it_is_kept, clear),
		cmocka_unit_test_setup(name_is_given_once_and_again_when_it_is_free, clear),
		cmocka_unit_test_setup(impossible_names_are_refused, clear),
		cmocka_unit_test_setup(processes_share, clear),
		cmocka_unit_test_setup(killed_keeper_leaves_nothing, clear),
		cmocka_unit_test_setup(child_of_a_killed_keeper_keeps_nothing, clear),
		cmocka_unit_test_setup(lock_excludes_other_handles, clear),
		cmocka_unit_test_setup(another_user_is_kept_out, clear),
		cmocka_unit_test_setup(refusals_of_the_kernel_are_told, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
