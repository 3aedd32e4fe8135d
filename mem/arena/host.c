/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process that puts settings of the host back: it reads a pipe that ends when the test has.
 */
#define _GNU_SOURCE
#include "host.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The pipe's end of the test, and who reads the other one. */
static int pipe_fd = -1;
static pid_t restorer;

bool host_set(const char *path, const char *word)
{
	FILE *file = fopen(path, "r+");
	bool done;

	if (!file)
		return false;
	done = fputs(word, file) >= 0;
	return !fclose(file) && done;
}

/* What ends the test, a signal to its group say, does not end this. */
static int restore_at_end(int fd, const struct host_setting *settings, size_t cnt)
{
	int failed = 0;
	char byte;

	setsid();
	for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
		close(i);
	while (read(fd, &byte, 1) > 0)
		continue;
	for (size_t i = 0; i < cnt; i++)
		failed |= settings[i].before[0] &&
			  !host_set(settings[i].path, settings[i].before);
	return failed;
}

int host_keep(const struct host_setting *settings, size_t cnt)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	restorer = fork();
	if (!restorer) {
		close(ends[1]);
		_exit(restore_at_end(ends[0], settings, cnt));
	}
	close(ends[0]);
	pipe_fd = ends[1];
	return restorer < 0 ? -1 : 0;
}

int host_restore(void)
{
	int status = -1;

	if (pipe_fd < 0)
		return 0;
	close(pipe_fd);
	return waitpid(restorer, &status, 0) == restorer && !status ? 0 : -1;
}
