/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * 'weft run': starts a program, or mpirun with its ranks on any hosts, on this
 * weft's libfabric. Without --report this process becomes the program. With it,
 * this process stays in front of the program's stderr, takes the route reports out
 * and prints their sum at the end.
 */
#define _GNU_SOURCE
#include "arguments.h"
#include "launch_env.h"
#include "line_filter.h"
#include "weft.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOLD_MS 50 /* an unfinished line that may become a report waits so long */

#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND	127

struct run_options {
	/* where the report goes; NULL: there is none */
	FILE *report;
	/* NULL: the library of this weft */
	const char *library;
	bool no_mpi;
	bool mem;
	bool btl;
	/* as given */
	char **argv;
	struct launch_command cmd;
};

/* A program whose stderr is read by this process. */
struct run {
	pid_t pid;
	/* -1 once it has ended */
	int stderr_fd;
	int signal_fd;
	int wait_status;
	bool ended;
	struct line_filter filter;
	struct route_table table;
};

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

enum {
	OPT_LIBRARY = 256,
	OPT_NO_MPI,
	OPT_MEM,
	OPT_BTL,
};

static const struct option longopts[] = {
	{ "report", optional_argument, NULL, 'r' },
	{ "library", required_argument, NULL, OPT_LIBRARY },
	{ "mem", no_argument, NULL, OPT_MEM },
	{ "btl", no_argument, NULL, OPT_BTL },
	{ "no-mpi", no_argument, NULL, OPT_NO_MPI },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void usage(void)
{
	printf("Usage: weft run [OPTIONS] [--] PROGRAM [ARGUMENTS]\n"
	       "       weft run [OPTIONS] [--] mpirun -n 2 PROGRAM [ARGUMENTS]\n"
	       "\n"
	       "Runs a program that was built for libfabric.so.1 on this weft's library, for\n"
	       "this one command: the library's directory goes first into LD_LIBRARY_PATH. Under\n"
	       "Open MPI's mpirun the ranks on all hosts get it, and every FI_* variable that is\n"
	       "set here; the library must be at the same path there.\n"
	       "\n"
	       "      --report[=FILE]   at the end print, to stderr or into FILE, how many messages\n"
	       "                        and bytes took which route on each host\n"
	       "      --mem             put large allocations where peers reach them: libweft-mem.so\n"
	       "                        is preloaded. FI_MEM_MIN is the least length (64K),\n"
	       "                        FI_MEM_LIMIT the most for all (half of the memory), and\n"
	       "                        FI_MEM_DECAY the seconds that what is freed is kept (10)\n"
	       "      --btl             Open MPI's messages and windows by its component btl/weft\n"
	       "      --library=DIR     use the libfabric.so.1 in DIR instead\n"
	       "      --no-mpi          leave Open MPI's settings alone\n"
	       "  -h, --help            this text\n"
	       "\n"
	       "Exit status: the program's; 128 + N when signal N killed it; 127 when there is no\n"
	       "such program, 126 when it cannot be run.\n");
}

static void parse(struct run_options *opt, int argc, char **argv)
{
	int c;

	/* '+': options end at the program's name. */
	while ((c = getopt_long(argc, argv, "+h", longopts, NULL)) != -1) {
		switch (c) {
		case 'r':
			/* Opened now: it costs no run of the program if that fails. */
			opt->report = optarg ? fopen(optarg, "we") : stderr;
			if (!opt->report)
				err(EXIT_FAILURE, "%s", optarg);
			break;
		case OPT_LIBRARY:
			opt->library = optarg;
			break;
		case OPT_MEM:
			opt->mem = true;
			break;
		case OPT_BTL:
			opt->btl = true;
			break;
		case OPT_NO_MPI:
			opt->no_mpi = true;
			break;
		case 'h':
			usage();
			exit(EXIT_SUCCESS);
		default:
			argument_unknown("run");
		}
	}
	if (opt->btl && opt->no_mpi)
		errx(WEFT_EXIT_USAGE,
		     "--btl is a setting of Open MPI's, which --no-mpi leaves alone");
	opt->argv = argv + optind;
	if (!*opt->argv)
		errx(WEFT_EXIT_USAGE, "no program to run; 'weft run --help' shows how");
}

/* Whichever provider the program opens its endpoints of. Returns 0 or -1 without memory. */
static int ask_for_reports(void)
{
	static const char *const names[] = { "FI_LINK_REPORT", "FI_SHM_REPORT", "FI_TCP_REPORT",
					     "FI_RDS_REPORT" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (setenv(names[i], "1", 1))
			return -1;
	return 0;
}

static void put_mem_in_place(void)
{
	char file[PATH_MAX];

	if (launch_mem_find(file))
		errx(EXIT_FAILURE, "libweft-mem.so is neither in the build nor installed beside "
				   "this weft: it was built without jemalloc");
	if (launch_mem_prepend(file))
		errx(EXIT_FAILURE, "no memory");
}

static void put_btl_in_place(void)
{
	char dir[PATH_MAX];

	if (launch_btl_find(dir))
		errx(EXIT_FAILURE,
		     "mca_btl_weft.so is neither in the build nor installed beside "
		     "this weft: it was built without Open MPI's headers of "
		     "components (Debian: libopenmpi-dev)");
	if (launch_btl_set(dir))
		errx(EXIT_FAILURE, "no memory");
}

static void put_library_in_place(struct run_options *opt)
{
	char dir[PATH_MAX];

	if (opt->library)
		argument_library(opt->library, dir);
	else if (launch_library_find(dir))
		errx(EXIT_FAILURE, "libfabric.so.1 is neither in the build nor installed beside "
				   "this weft; --library=DIR names its directory");
	if (launch_library_prepend(dir) || (opt->report && ask_for_reports()))
		errx(EXIT_FAILURE, "no memory");
	if (opt->mem)
		put_mem_in_place();
	if (opt->btl)
		put_btl_in_place();
	if (opt->no_mpi)
		return;
	if (launch_forward(&opt->cmd, opt->argv, opt->mem))
		errx(EXIT_FAILURE, "no memory");
}

static int cannot_run(const char *program, int error)
{
	warnx("%s: %s", program, error == ENOENT ? "no such program" : strerror(error));
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

/* Signals of the terminal reach the program directly. */
static void forward_signal(const struct run *run, const struct signalfd_siginfo *info)
{
	if (info->ssi_code != SI_KERNEL)
		kill(run->pid, (int)info->ssi_signo);
}

static void write_stderr(void *arg, const char *data, size_t len)
{
	ssize_t n;

	while (len) {
		n = write(STDERR_FILENO, data, len);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
}

static int block_signals(sigset_t *old)
{
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(&set, forwarded[i]);
	if (sigprocmask(SIG_BLOCK, &set, old))
		err(EXIT_FAILURE, "sigprocmask");
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Returns 0 or an errno. */
static int spawn(struct run *run, char **argv, const sigset_t *mask)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC))
		return errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDERR_FILENO);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, mask);
	rc = posix_spawnp(&run->pid, argv[0], &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (rc) {
		close(fds[0]);
		return rc;
	}
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	run->stderr_fd = fds[0];
	return 0;
}

/* Reads what there is. */
static void drain(struct run *run)
{
	char data[8192];
	ssize_t n;

	while (run->stderr_fd >= 0) {
		n = read(run->stderr_fd, data, sizeof(data));
		if (n > 0) {
			line_filter_feed(&run->filter, data, (size_t)n);
		} else if (n == 0) {
			close(run->stderr_fd);
			run->stderr_fd = -1;
		} else if (errno != EINTR) {
			return;
		}
	}
}

static void take_signals(struct run *run)
{
	struct signalfd_siginfo info;

	while (read(run->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGCHLD)
			forward_signal(run, &info);
		else if (waitpid(run->pid, &run->wait_status, WNOHANG) == run->pid)
			run->ended = true;
	}
}

/* Until the program has ended; what it left running may keep stderr open. */
static void attend(struct run *run)
{
	struct pollfd fds[2] = {
		{ .fd = run->signal_fd, .events = POLLIN },
		{ .events = POLLIN },
	};
	int n;

	while (!run->ended) {
		fds[1].fd = run->stderr_fd;
		n = poll(fds, 2, line_filter_holds(&run->filter) ? HOLD_MS : -1);
		if (n < 0 && errno != EINTR)
			err(EXIT_FAILURE, "poll");
		if (!n)
			line_filter_tick(&run->filter);
		drain(run);
		take_signals(run);
	}
	drain(run);
	line_filter_finish(&run->filter);
}

static int run_with_report(const struct run_options *opt)
{
	struct run run = { .stderr_fd = -1 };
	sigset_t old;
	int rc;

	line_filter_init(&run.filter, &run.table, write_stderr, NULL);
	run.signal_fd = block_signals(&old);
	if (run.signal_fd < 0)
		err(EXIT_FAILURE, "signalfd");
	rc = spawn(&run, opt->cmd.argv ? opt->cmd.argv : opt->argv, &old);
	if (rc)
		return cannot_run(opt->argv[0], rc);
	attend(&run);
	route_table_print(&run.table, opt->report);
	if (fflush(opt->report))
		warn("the report");
	route_table_fini(&run.table);
	if (!WIFSIGNALED(run.wait_status))
		return WEXITSTATUS(run.wait_status);
	warnx("%s was killed by signal %d (%s)", opt->argv[0], WTERMSIG(run.wait_status),
	      strsignal(WTERMSIG(run.wait_status)));
	return 128 + WTERMSIG(run.wait_status);
}

int weft_run(int argc, char **argv)
{
	struct run_options opt = { 0 };
	int status;

	parse(&opt, argc, argv);
	put_library_in_place(&opt);
	if (opt.report) {
		status = run_with_report(&opt);
	} else {
		execvp(opt.argv[0], opt.cmd.argv ? opt.cmd.argv : opt.argv);
		status = cannot_run(opt.argv[0], errno);
	}
	launch_command_fini(&opt.cmd);
	return status;
}
