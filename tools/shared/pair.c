/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two pinned local processes; pair.h has the contract. Called by the
 * subcommands that measure, from main's thread.
 */
#define _GNU_SOURCE
#include "pair.h"

#include <err.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int pair_cpus_parse(const char *text, int cpus[2])
{
	char tail;
	int a, b;

	if (sscanf(text, "%d,%d%c", &a, &b, &tail) != 2)
		return -EINVAL;
	if (a < 0 || b < 0 || a >= CPU_SETSIZE || b >= CPU_SETSIZE)
		return -EINVAL;
	cpus[0] = a;
	cpus[1] = b;
	return 0;
}

/* The first two cores we may use; twice the same when there is but one. */
static int choose_cpus(int cpus[2])
{
	cpu_set_t set;
	int cpu, found = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -errno;
	for (cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[found++] = cpu;
	if (found == 1)
		cpus[1] = cpus[0];
	return found ? 0 : -EINVAL;
}

static void pin(int cpu, bool realtime)
{
	const struct sched_param param = { .sched_priority = 10 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(EXIT_FAILURE, "cannot run on cpu %d", cpu);
	if (realtime && sched_setscheduler(0, SCHED_FIFO, &param))
		warn("cannot run under SCHED_FIFO");
}

static void unpin(const cpu_set_t *before)
{
	const struct sched_param param = { 0 };

	sched_setaffinity(0, sizeof(*before), before);
	sched_setscheduler(0, SCHED_OTHER, &param);
}

static int reap(pid_t child, int status)
{
	int child_status;

	while (waitpid(child, &child_status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILURE;
	if (WIFSIGNALED(child_status)) {
		warnx("the second process was killed by signal %d (%s)", WTERMSIG(child_status),
		      strsignal(WTERMSIG(child_status)));
		return status ? status : 128 + WTERMSIG(child_status);
	}
	return status ? status : WEXITSTATUS(child_status);
}

static void run_child(struct side *side, pid_t parent, int (*body)(struct side *, void *),
		      void *arg)
{
	int status;

	/* A measurement without its other side would spin for ever. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	side->rank = 1;
	status = body(side, arg);
	fflush(NULL);
	_exit(status);
}

int pair_run(const int wanted[2], bool realtime, int (*body)(struct side *side, void *arg),
	     void *arg)
{
	struct side side = { .local = true };
	pid_t child, parent = getpid();
	int fds[2], cpus[2], status;
	cpu_set_t before;

	if (wanted)
		memcpy(cpus, wanted, sizeof(cpus));
	else if (choose_cpus(cpus))
		err(EXIT_FAILURE, "cannot find a cpu to run on");
	side.shares_core = cpus[0] == cpus[1];
	side.yields = side.shares_core && !wanted;
	if (side.yields)
		warnx("one core for both sides: the figures mean little");
	if (!side.shares_core)
		side.line = cacheline_create();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		err(EXIT_FAILURE, "socketpair");
	fflush(NULL);
	sched_getaffinity(0, sizeof(before), &before);
	/* A core that may not be used ends this process before there are two. */
	pin(cpus[1], false);
	pin(cpus[0], false);
	child = fork();
	if (child < 0)
		err(EXIT_FAILURE, "fork");
	oob_adopt(&side.oob, fds[!child]);
	close(fds[!!child]);
	pin(cpus[!child], realtime);
	if (!child)
		run_child(&side, parent, body, arg);
	status = body(&side, arg);
	oob_close(&side.oob);
	status = reap(child, status);
	unpin(&before);
	cacheline_destroy(side.line);
	return status;
}
