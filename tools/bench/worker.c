/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Children that measure on command; worker.h has the contract. Called by the
 * comparison in compare.c.
 */
#define _GNU_SOURCE
#include "worker.h"
#include "figures.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void become(const char *program, const char *library, const char *which, char **argv)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	size_t cnt = 0;
	char *path, **args;

	signal(SIGPIPE, SIG_DFL);
	while (argv[cnt])
		cnt++;
	args = calloc(cnt + 4, sizeof(*args));
	if (!args || asprintf(&args[2], "--worker=%s", which) < 0)
		_exit(EXIT_FAILURE);
	args[0] = (char *)"weft";
	args[1] = (char *)"bench";
	memcpy(args + 3, argv, cnt * sizeof(*args));
	if (library) {
		if (asprintf(&path, "%s%s%s", library, old ? ":" : "", old ? old : "") < 0 ||
		    setenv("LD_LIBRARY_PATH", path, 1))
			_exit(EXIT_FAILURE);
	}
	execv(program ? program : "/proc/self/exe", args);
	warn("cannot start %s", program ? program : "myself");
	_exit(EXIT_FAILURE);
}

/* Fields with tabs between them: a path or a version may contain blanks. */
void worker_ready_print(FILE *to, const struct results_config *config)
{
	fprintf(to, "ready\t%u\t%s\t%s\t%s\t%s\n", config->api, config->provider,
		config->prov_version, config->build, config->library);
	fflush(to);
}

int worker_ready_parse(const char *line, struct results_config *config)
{
	if (sscanf(line, "ready\t%u\t%511[^\t]\t%31[^\t]\t%511[^\t]\t%511[^\n]", &config->api,
		   config->provider, config->prov_version, config->build, config->library) != 5)
		return -EPROTO;
	return 0;
}

static int read_ready(struct worker *child)
{
	char line[4 * RESULTS_TEXT_MAX];

	if (!fgets(line, sizeof(line), child->from))
		return -EPIPE;
	return worker_ready_parse(line, &child->config);
}

/* The child's ends of the pipes, closed here; exec closes ours in the child. */
static int open_pipes(int command[2], int answer[2])
{
	if (pipe2(command, O_CLOEXEC))
		return -errno;
	if (!pipe2(answer, O_CLOEXEC))
		return 0;
	close(command[0]);
	close(command[1]);
	return -errno;
}

int worker_start(struct worker *child, const char *program, const char *library,
		 const char *which, char **argv)
{
	int command[2], answer[2], rc;

	memset(child, 0, sizeof(*child));
	signal(SIGPIPE, SIG_IGN);
	rc = open_pipes(command, answer);
	if (rc)
		return rc;
	fflush(NULL);
	child->pid = fork();
	if (!child->pid) {
		dup2(command[0], STDIN_FILENO);
		dup2(answer[1], STDOUT_FILENO);
		become(program, library, which, argv);
	}
	close(command[0]);
	close(answer[1]);
	child->to = fdopen(command[1], "w");
	child->from = fdopen(answer[0], "r");
	rc = child->pid < 0 || !child->to || !child->from ? -ENOMEM : read_ready(child);
	if (!rc)
		return 0;
	warnx("configuration %s did not start", which);
	worker_stop(child);
	return rc;
}

int worker_sample_parse(const char *line, struct worker_sample *sample)
{
	struct worker_sample got;
	char test[16];
	unsigned bits, t;

	if (sscanf(line, "sample %15s %zu %lf %lf", test, &got.size, &got.value, &got.raw_ns) !=
	    4)
		return -EINVAL;
	bits = figure_tests_parse(test);
	for (t = 0; t < FIGURE_TESTS; t++) {
		if (bits != FIGURE_BIT(t))
			continue;
		got.test = t;
		*sample = got;
		return 0;
	}
	return -EINVAL;
}

void worker_go(struct worker *child)
{
	fputs("go\n", child->to);
	fflush(child->to);
}

int worker_samples(struct worker *child, struct worker_sample *samples, size_t room)
{
	char line[256];
	size_t cnt = 0;

	while (fgets(line, sizeof(line), child->from)) {
		if (!strcmp(line, "end\n"))
			return (int)cnt;
		if (cnt == room || worker_sample_parse(line, &samples[cnt++])) {
			warnx("unexpected output of a measuring process: '%s'", line);
			return -EPROTO;
		}
	}
	warnx("a measuring process ended in the middle");
	return -EPIPE;
}

void worker_stop(struct worker *child)
{
	int status;

	if (child->to)
		fclose(child->to);
	if (child->from)
		fclose(child->from);
	if (child->pid > 0)
		waitpid(child->pid, &status, 0);
	memset(child, 0, sizeof(*child));
}
