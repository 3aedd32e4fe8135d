/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A child with an endpoint of its own. Called by tests, on the thread that runs them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mock_child.h"

#define NOBODY 65534

struct mock_board *board;
pid_t child;

int mock_board_open(void)
{
	void *addr = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (addr == MAP_FAILED)
		return -1;
	board = addr;
	return 0;
}

void mock_board_close(void)
{
	if (child > 0)
		mock_child_kill();
	munmap(board, sizeof(*board));
	board = NULL;
}

static int child_main(int (*begin)(void), int (*body)(struct mock *m))
{
	static struct mock m;
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(600);
	err = begin ? begin() : 0;
	if (err) {
		atomic_store(&board->unable, err);
		atomic_store(&board->begun, 1);
		return 0;
	}
	mock_open(&m);
	board->child = m.addr;
	atomic_store(&board->begun, 1);
	return body(&m);
}

static void wait_until(const _Atomic int *value, int least)
{
	uint64_t end = platform_now_ns() + 10000000000;

	while (atomic_load(value) < least) {
		platform_yield();
		if (platform_now_ns() > end)
			_exit(99);
	}
}

bool mock_child_start(int (*begin)(void), int (*body)(struct mock *m))
{
	atomic_store(&board->begun, 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(child_main(begin, body));
	wait_until(&board->begun, 1);
	if (!atomic_load(&board->unable))
		return true;
	print_message("skipped: %s\n", strerror(atomic_load(&board->unable)));
	return false;
}

void mock_child_says(struct mock *m)
{
	mock_until(m, NULL, m->conn);
	for (uint64_t i = 0; i < 100; i++)
		mock_put(m->conn, i, (uint32_t)i);
}

void mock_child_ended(int status)
{
	int got;

	assert_int_equal(waitpid(child, &got, 0), child);
	child = 0;
	assert_int_equal(got, status);
}

void mock_child_kill(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	child = 0;
}

/*
 * Returns true if the child, which has stopped with @status, is in that call: before it is made, or
 * after.
 */
static bool stopped_in(int status, long number, bool made, bool *in)
{
	struct __ptrace_syscall_info info;

	if (WSTOPSIG(status) != (SIGTRAP | 0x80))
		return false;
	assert_true(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) > 0);
	if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return *in && made;
	*in = info.entry.nr == (uint64_t)number;
	return *in && !made;
}

/*
 * Waits until the child stops. Returns its status. @sig: out: the signal to pass when it continues
 */
static int await_stop(int *sig)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status));
	*sig = status >> 16 || WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
	return status;
}

void mock_child_stop_in(long number, uint32_t skip, bool made, void (*go)(void))
{
	bool in = false;
	int sig;

	assert_int_equal(ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_TRACESYSGOOD), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, child, 0, 0), 0);
	await_stop(&sig);
	go();
	do {
		do
			assert_int_equal(ptrace(PTRACE_SYSCALL, child, 0, sig), 0);
		while (!stopped_in(await_stop(&sig), number, made, &in));
	} while (skip--);
}

void mock_child_go(void)
{
	assert_int_equal(ptrace(PTRACE_DETACH, child, 0, 0), 0);
}

void mock_step_wait(int step)
{
	wait_until(&board->step, step);
}

int mock_begin_nobody(void)
{
	if (getuid())
		return EPERM;
	if (setgid(NOBODY) || setuid(NOBODY) || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
		return errno;
	return 0;
}
