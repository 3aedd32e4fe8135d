/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sampling over time, also while a command runs; follow.h has the contract. Called by look.c. */
#define _GNU_SOURCE
#include "follow.h"
#include "clock.h"
#include "picture.h"
#include "report.h"

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND	127
#define NS_PER_S	1000000000ull

struct follow {
	const struct mem_options *opt;
	/* of opt, with the command as its root */
	struct wanted wanted;
	sigset_t signals;
	uint64_t begin_ns;
	/* samples so far that had a process, the last of them, and all samples */
	size_t seen;
	size_t cnt;
	struct sample last;
	/* the command; 0: there is none, or it has ended */
	pid_t child;
	int child_status;
	bool stopped;
	bool failed;
	struct picture picture;
};

/* Returns 0, or the status to exit with. */
static int command_start(struct follow *f)
{
	char **argv = f->opt->command;
	posix_spawnattr_t attr;
	sigset_t none;
	int rc;

	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	rc = posix_spawnp(&f->child, argv[0], NULL, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	if (!rc) {
		f->wanted = (struct wanted){ .root = f->child };
		return 0;
	}
	warnx("%s: %s", argv[0], rc == ENOENT ? "no such program" : strerror(rc));
	return rc == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

/* A command gets the terminal's signals itself, and is told of the others. */
static void signal_take(struct follow *f, const siginfo_t *info)
{
	if (info->si_signo == SIGCHLD) {
		if (f->child && waitpid(f->child, &f->child_status, WNOHANG) == f->child)
			f->child = 0;
	} else if (!f->child) {
		f->stopped = true;
	} else if (info->si_code != SI_KERNEL) {
		kill(f->child, info->si_signo);
	}
}

/* Waits until a time, or until a signal says that this is the end. */
static void wait_until(struct follow *f, uint64_t until_ns)
{
	uint64_t now;

	while (!f->stopped && (!f->opt->command || f->child) && (now = clock_ns()) < until_ns) {
		struct timespec rest = { .tv_sec = (time_t)((until_ns - now) / NS_PER_S),
					 .tv_nsec = (long)((until_ns - now) % NS_PER_S) };
		siginfo_t info;

		if (sigtimedwait(&f->signals, &info, &rest) > 0)
			signal_take(f, &info);
	}
}

/* Returns false when nothing is left to be looked at. */
static bool sample_take(struct follow *f)
{
	struct sample sum = { .at_s = (double)(clock_ns() - f->begin_ns) / NS_PER_S };
	struct round round;

	mem_round(&f->wanted, f->opt->view, !f->seen, &round);
	for (size_t i = 0; i < round.cnt; i++)
		sample_add(&sum, &round.samples[i]);
	free(round.samples);
	f->failed |= round.failed;
	if (!round.cnt && f->wanted.which)
		return false;
	f->seen += round.cnt != 0;
	if (f->opt->plot)
		picture_add(&f->picture, &sum);
	if (f->opt->watch && f->opt->json)
		report_json(f->opt->to, f->opt->view, &sum, 1, true);
	else if (f->opt->watch)
		f->opt->view->moment(f->opt->to, &sum, f->cnt ? &f->last : NULL);
	f->last = sum;
	f->cnt++;
	return true;
}

static void sample_all(struct follow *f)
{
	const struct mem_options *opt = f->opt;
	uint64_t step_ns = (uint64_t)(opt->interval * NS_PER_S), next = f->begin_ns;
	uint64_t end = opt->seconds > 0 ? f->begin_ns + (uint64_t)(opt->seconds * NS_PER_S)
					: UINT64_MAX;

	while (!f->stopped && (!opt->command || f->child) && sample_take(f)) {
		/* the command goes on without us when the time is over */
		if (clock_ns() >= end)
			break;
		while (next <= clock_ns())
			next += step_ns;
		wait_until(f, next < end ? next : end);
	}
	while (f->child)
		wait_until(f, UINT64_MAX);
}

static int picture_write(struct follow *f)
{
	const struct mem_options *opt = f->opt;
	char title[256];
	int failed;

	if (!opt->plot)
		return 0;
	snprintf(title, sizeof(title), "weft mem: %s",
		 opt->command ? opt->command[0] : f->last.command);
	picture_print(opt->plot, &f->picture, title);
	failed = ferror(opt->plot);
	if (fclose(opt->plot) || failed) {
		warnx("%s: cannot write it", opt->plot_path);
		return EXIT_FAILURE;
	}
	return 0;
}

static int status_of(const struct follow *f)
{
	if (f->opt->command && WIFSIGNALED(f->child_status))
		return 128 + WTERMSIG(f->child_status);
	if (f->opt->command && WEXITSTATUS(f->child_status))
		return WEXITSTATUS(f->child_status);
	return f->failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int mem_follow(const struct mem_options *opt)
{
	struct follow *f = calloc(1, sizeof(*f));
	int status = 0, output;

	if (!f)
		err(EXIT_FAILURE, "%s", opt->view->command);
	f->opt = opt;
	f->wanted = opt->wanted;
	f->begin_ns = clock_ns();
	sigemptyset(&f->signals);
	sigaddset(&f->signals, SIGINT);
	sigaddset(&f->signals, SIGTERM);
	sigaddset(&f->signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &f->signals, NULL);
	if (opt->command)
		status = command_start(f);
	if (!status) {
		if (opt->watch && !opt->json)
			opt->view->heading(opt->to);
		sample_all(f);
		if (!f->seen && !f->failed)
			warnx("no process that was looked at has shown %s", opt->view->shown);
		output = picture_write(f) | mem_output_end(opt);
		status = status_of(f);
		status = status ? status : output;
		if (!f->seen && !opt->command)
			status = EXIT_FAILURE;
	}
	free(f);
	return status;
}
