/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Another program in the place of a process; program.h has the contract. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "program.h"

static const char *program;
static char number[16]; /* of a file that the program inherits: where the process had memory */
static int maps;

int program_set(const char *path)
{
	program = path;
	maps = memfd_create("maps", 0);
	snprintf(number, sizeof(number), "%d", maps);
	return maps < 0 ? -1 : 0;
}

/* A signal handler: it may interrupt the process anywhere, so its calls are async-signal-safe. */
static void begin(int sig)
{
	char buf[4096];
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0)
		if (write(maps, buf, (size_t)n) != n)
			_exit(120);
	execl(program, program, number, (char *)NULL);
	_exit(121);
}

void program_ready(void)
{
	struct sigaction act = { .sa_handler = begin };
	sigset_t set;

	/* The signal that ends the program may be sent before it runs. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigfillset(&act.sa_mask);
	sigaction(SIGUSR1, &act, NULL);
}

void program_begin(pid_t pid)
{
	if (!ftruncate(maps, 0) && !lseek(maps, 0, SEEK_SET))
		kill(pid, SIGUSR1);
}

void program_end(pid_t pid)
{
	kill(pid, SIGTERM);
}
