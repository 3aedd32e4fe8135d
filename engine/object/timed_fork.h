/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests: forks whose children close what they have inherited. A fork waits only so long for a call of another
 * thread (engine/domain/forked.c), which may not have run meanwhile: then the child can close nothing, and the fork is
 * tried again.
 */
#ifndef WEFT_TIMED_FORK_H
#define WEFT_TIMED_FORK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "platform.h"

#define FORK_WAITS_NS 1000000000u
/* What the child of a fork that came too late returns, and how often one is tried */
#define LATE  77
#define TRIES 10

static uint64_t fork_began_ns;

/* timed_fork - forks, and remembers when that began */
static inline pid_t timed_fork(void)
{
	fork_began_ns = platform_now_ns();
	return fork();
}

/* forked_late - in the child, at first: the fork may have been in vain */
static inline bool forked_late(void)
{
	return platform_now_ns() - fork_began_ns >= FORK_WAITS_NS;
}

/* ended_in_time - how a child has ended, with 0; returns false if its fork came too late */
static inline bool ended_in_time(int status)
{
	if (status == LATE << 8)
		return false;
	assert_int_equal(status, 0);
	return true;
}

/* forks_and_waits - a child that returns @body(); returns false if the fork came too late */
static inline bool forks_and_waits(int (*body)(void))
{
	pid_t pid = timed_fork();
	int status;

	if (!pid)
		_exit(body());
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return ended_in_time(status);
}

/* IN_TIME - tries again what returns that its fork came too late */
#define IN_TIME(attempt)                                     \
	do {                                                 \
		int tries_ = 0;                              \
		while (!(attempt))                           \
			assert_in_range(++tries_, 1, TRIES); \
	} while (0)

#endif
