/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of the memory of processes by descriptor. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "image.h"
#include <cmocka.h>

#define DEADLINE_S 20

static pid_t child;
static int told[2];
static int go[2]; /* closing its end for writing sends the child on */

static int teardown(void **state)
{
	sys_fault_clear();
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	child = 0;
	return 0;
}

/* Returns true if @fd reaches the state @cond within the time. */
static bool comes_to(int fd, int wanted)
{
	struct timespec now, end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += DEADLINE_S;
	do {
		if (sys_image_gone(fd) == wanted)
			return true;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec);
	return false;
}

/* That of the program which has begun, or is about to. */
static int held_once_begun(pid_t pid, int *tries)
{
	struct timespec now, end;
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += DEADLINE_S;
	do {
		fd = sys_image_open(pid);
		(*tries)++;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (fd == -FI_EAGAIN && now.tv_sec < end.tv_sec);
	return fd;
}

static void go_wait(void)
{
	char byte;

	close(go[1]);
	while (read(go[0], &byte, 1) < 0)
		;
}

/* A child that waits, and then runs @body. */
static void child_start(void (*body)(void))
{
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		go_wait();
		body();
		_exit(1);
	}
	close(go[0]);
}

static void exec_sleep(void)
{
	execlp("sleep", "sleep", "60", (char *)NULL);
}

static void *exec_thread(void *arg)
{
	exec_sleep();
	return NULL;
}

static void exec_in_a_thread(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, exec_thread, NULL))
		pthread_join(thread, NULL);
}

static void fork_and_exec(void)
{
	pid_t us = getpid(), copy = fork();

	if (!copy) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == us) /* it may have been killed before that */
			pause();
		_exit(0);
	}
	exec_sleep();
}

static void image_goes_with(void (*body)(void))
{
	int fd, tries = 0;

	child_start(body);
	fd = sys_image_open(child);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(sys_image_gone(fd), 0);
	close(go[1]);
	assert_true(comes_to(fd, 1));
	assert_int_equal(kill(child, 0), 0);
	close(fd);
	/* what runs there now is another */
	fd = held_once_begun(child, &tries);
	assert_true(fd >= 0);
	assert_int_equal(sys_image_gone(fd), 0);
	close(fd);
}

static void program_that_is_begun_ends_the_one_before(void **state)
{
	image_goes_with(exec_sleep);
}

static void program_that_is_begun_by_a_thread_does_too(void **state)
{
	image_goes_with(exec_in_a_thread);
}

static void child_of_a_fork_keeps_nothing_of_its_parent(void **state)
{
	image_goes_with(fork_and_exec);
}

static void exec_with_much_memory(void)
{
	enum { LEN = 128 << 20 };
	char *memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);

	/* to take it away makes the beginning of a program take longer */
	if (memory == MAP_FAILED)
		_exit(1);
	for (size_t i = 0; i < LEN; i += 4096)
		memory[i] = 1;
	if (write(told[1], "", 1) == 1)
		exec_sleep();
}

/* ... and the descriptors of the one before are closed. */
static void program_is_held_once_it_has_begun(void **state)
{
	int before, fd, tries = 0;
	char path[64], byte;

	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	child_start(exec_with_much_memory);
	before = sys_image_open(child);
	assert_true(before >= 0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)child, told[1]);
	assert_int_equal(access(path, F_OK), 0);
	close(go[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	assert_true(comes_to(before, 1));
	close(before);
	fd = held_once_begun(child, &tries);
	print_message("held at attempt %d\n", tries);
	assert_true(fd >= 0);
	assert_int_equal(access(path, F_OK), -1);
	close(fd);
	close(told[0]);
	close(told[1]);
}

static void who_is_killed_is_gone_before_anybody_collects_it(void **state)
{
	siginfo_t info;
	int fd;

	child_start(exec_sleep);
	fd = sys_image_open(child);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(sys_image_gone(fd), 1);
	/* what is left of it belongs to root */
	assert_int_equal(sys_image_open(child), geteuid() ? -EACCES : -ESRCH);
	assert_int_equal(waitpid(child, NULL, 0), child);
	child = 0;
	assert_int_equal(sys_image_gone(fd), 1);
	close(fd);
	close(go[1]);
}

static void process_that_is_stopped_is_there(void **state)
{
	int fd, status;

	child_start(exec_sleep);
	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	fd = sys_image_open(child);
	assert_int_equal(sys_image_gone(fd), 0);
	close(fd);
	close(go[1]);
}

static void own_memory_is_there(void **state)
{
	int fd = sys_image_open(getpid());

	assert_true(fd >= 0);
	assert_int_equal(sys_image_gone(fd), 0);
	close(fd);
	assert_int_equal(sys_image_gone(fd), -FI_EBADF);
}

static void refusals_are_told(void **state)
{
	int fd;

	assert_int_equal(sys_image_open(0), -FI_ENOENT);
	sys_fault_set(SYS_CALL_OPEN_IMAGE, EACCES, 0, 1);
	assert_int_equal(sys_image_open(getpid()), -FI_EACCES);
	sys_fault_set(SYS_CALL_READ_IMAGE, EIO, 0, 1);
	assert_int_equal(sys_image_open(getpid()), -FI_ENOSYS);
	/* a file that has something there */
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(sys_image_gone(fd), -FI_ENOSYS);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(program_that_is_begun_ends_the_one_before, teardown),
		cmocka_unit_test_teardown(program_that_is_begun_by_a_thread_does_too, teardown),
		cmocka_unit_test_teardown(child_of_a_fork_keeps_nothing_of_its_parent, teardown),
		cmocka_unit_test_teardown(program_is_held_once_it_has_begun, teardown),
		cmocka_unit_test_teardown(who_is_killed_is_gone_before_anybody_collects_it,
					  teardown),
		cmocka_unit_test_teardown(process_that_is_stopped_is_there, teardown),
		cmocka_unit_test_teardown(own_memory_is_there, teardown),
		cmocka_unit_test_teardown(refusals_are_told, teardown),
	};

	return cmocka_run_group_tests_name("sys-image", tests, NULL, NULL);
}
