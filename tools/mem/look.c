/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft mem' and 'weft tcp': their options, and what is read once; follow.h has the contract. Over time: follow.c.
 */
#define _GNU_SOURCE
#include "arguments.h"
#include "follow.h"
#include "report.h"
#include "weft.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_MAX	  1e6
#define INTERVAL_MIN	  0.001
#define INTERVAL_OF_PLOT  0.1
#define INTERVAL_OF_WATCH 1.0

static double argument_seconds(const char *text, const char *what)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= INTERVAL_MIN && value <= SECONDS_MAX))
		errx(WEFT_EXIT_USAGE, "%s: '%s' is not a number of seconds from %g to %g", what,
		     text, INTERVAL_MIN, SECONDS_MAX);
	return value;
}

/* Ends the program if one of the texts is a number that no process has; @which: NULL: none. */
static void argument_processes(char **which)
{
	pid_t pid;

	for (; which && *which; which++)
		if (processes_is_number(*which, &pid) && !pid)
			errx(WEFT_EXIT_USAGE, "'%s' is not a process's number, from 1 to %d",
			     *which, INT32_MAX);
}

/* Opened now: it costs no run of the command if that fails. */
static FILE *argument_file(const char *path, const char *what)
{
	FILE *file;

	if (!*path)
		errx(WEFT_EXIT_USAGE, "%s= has no name of a file", what);
	file = fopen(path, "we");
	if (!file)
		err(EXIT_FAILURE, "%s", path);
	return file;
}

static void option_take(struct mem_options *opt, int c, const char *arg)
{
	switch (c) {
	case MEM_OPT_WATCH:
		opt->interval = arg ? argument_seconds(arg, "watch") : INTERVAL_OF_WATCH;
		opt->watch = true;
		break;
	case MEM_OPT_SECONDS:
		opt->seconds = argument_seconds(arg, "seconds");
		break;
	case MEM_OPT_PLOT:
		opt->plot_path = arg;
		break;
	case MEM_OPT_JSON:
		opt->json = true;
		opt->to_path = arg;
		break;
	case 'h':
		opt->view->usage();
		exit(EXIT_SUCCESS);
	default:
		argument_unknown(opt->view->command);
	}
}

/* Takes the command behind "--" off the arguments. Returns it, or NULL: there is no "--". */
static char **command_split(int *argc, char **argv)
{
	for (int i = 1; i < *argc; i++) {
		if (strcmp(argv[i], "--"))
			continue;
		argv[i] = NULL;
		*argc = i;
		return argv + i + 1;
	}
	return NULL;
}

/* Returns true for what prints nothing meanwhile, and does not end by itself. */
static bool is_endless(const struct mem_options *opt)
{
	if (opt->watch || !opt->plot_path || opt->command)
		return false;
	return !opt->wanted.which && !(opt->seconds > 0);
}

/* Ends the program for options that do not go together. */
static void options_check(const struct mem_options *opt)
{
	const char *over_time = opt->view->over_time;

	if (opt->command && !*opt->command)
		errx(WEFT_EXIT_USAGE, "no command to run; 'weft %s --help' shows how",
		     opt->view->command);
	argument_processes(opt->wanted.which);
	if (opt->command && opt->wanted.which)
		errx(WEFT_EXIT_USAGE, "either a command or '%s'", opt->wanted.which[0]);
	if (!opt->watch && !opt->plot_path && opt->command)
		errx(WEFT_EXIT_USAGE, "a command is looked at over time: %s", over_time);
	if (!opt->watch && !opt->plot_path && opt->seconds > 0)
		errx(WEFT_EXIT_USAGE, "--seconds are those of %s", over_time);
}

static void parse(struct mem_options *opt, int argc, char **argv)
{
	int c;

	opt->command = command_split(&argc, argv);
	while ((c = getopt_long(argc, argv, "h", opt->view->options, NULL)) != -1)
		option_take(opt, c, optarg);
	if (optind < argc)
		opt->wanted.which = argv + optind;
	options_check(opt);
	if (opt->plot_path)
		opt->plot = argument_file(opt->plot_path, "--plot");
	opt->to = opt->command ? stderr : stdout;
	if (opt->to_path)
		opt->to = argument_file(opt->to_path, "--json");
	/* a line is one write, beside those of the command */
	else if (opt->command)
		setvbuf(stderr, NULL, _IOLBF, 0);
	if (is_endless(opt))
		warnx("looks at all processes until it is interrupted; --seconds would end it");
}

int mem_output_end(const struct mem_options *opt)
{
	int failed = ferror(opt->to);

	if (!opt->to_path || !(fclose(opt->to) || failed))
		return EXIT_SUCCESS;
	warnx("%s: cannot write it", opt->to_path);
	return EXIT_FAILURE;
}

/* A process that was there and has ended is no error, nor is one that was not named. */
static bool is_told(int rc, bool exact, bool first)
{
	if (!exact)
		return first && rc == -EPROTO;
	return first || (rc != -ESRCH && rc != -ENOENT);
}

static bool has_kind(const struct sample *sample, uint32_t kinds)
{
	for (unsigned i = 0; i < WEFT_MEM_PART_KINDS; i++)
		if (sample->parts[i] && kinds & MEM_KIND(i))
			return true;
	return false;
}

/* As sample_read(); a process that shows other kinds alone shows nothing. */
static int kinds_read(pid_t pid, const struct mem_view *view, struct sample *sample,
		      char why[128])
{
	int rc = sample_read(pid, sample, why);

	if (rc && rc != -ENOENT)
		return rc;
	if (!rc && has_kind(sample, view->kinds))
		return 0;
	snprintf(why, 128, "it shows no %s", view->shown);
	return -ENOENT;
}

void mem_round(const struct wanted *wanted, const struct mem_view *view, bool first,
	       struct round *round)
{
	struct processes found;
	char why[128];
	int rc;

	*round = (struct round){ .cnt = 0 };
	rc = processes_find(wanted, &found);
	if (rc)
		errx(EXIT_FAILURE, "/proc: %s", strerror(-rc));
	round->samples = calloc(found.cnt + 1, sizeof(*round->samples));
	if (!round->samples)
		err(EXIT_FAILURE, "%s", view->command);
	for (size_t i = 0; i < found.cnt; i++) {
		rc = kinds_read(found.pids[i], view, &round->samples[round->cnt], why);
		if (!rc) {
			round->cnt++;
		} else if (is_told(rc, found.exact[i], first)) {
			warnx("process %d: %s", (int)found.pids[i], why);
			round->failed = true;
		}
	}
	processes_fini(&found);
}

static int show_once(const struct mem_options *opt)
{
	const struct mem_view *view = opt->view;
	int status = EXIT_SUCCESS;
	struct round round;

	mem_round(&opt->wanted, view, true, &round);
	if (opt->json)
		status = report_json(opt->to, view, round.samples, round.cnt, false)
				 ? EXIT_FAILURE
				 : 0;
	else if (round.cnt == 1 && opt->wanted.which)
		view->process(opt->to, round.samples);
	else if (round.cnt)
		view->list(opt->to, round.samples, round.cnt);
	if (!round.cnt && !round.failed)
		warnx("no process%s shows %s",
		      opt->wanted.which ? " of that name" : " that you may look into",
		      view->shown);
	free(round.samples);
	status |= mem_output_end(opt);
	return round.failed || !round.cnt ? EXIT_FAILURE : status;
}

int mem_show(const struct mem_view *view, int argc, char **argv)
{
	struct mem_options opt = { .view = view, .interval = INTERVAL_OF_PLOT };

	parse(&opt, argc, argv);
	return opt.watch || opt.plot ? mem_follow(&opt) : show_once(&opt);
}
