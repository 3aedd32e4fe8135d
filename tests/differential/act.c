/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * act - carry out scripts of calls on a libfabric, and write what it answered
 *
 * usage: act LIBRARY ABI DEADLINE_MS <SCRIPTS >TRANSCRIPTS
 *
 * A script begins with a line 'script NAME' and ends with a line 'end'. It has a child process of
 * its own, which is killed when its time is over: libraries crash and hang. The transcript has one
 * line 'INDEX RESULT...' a call, lines that begin with a space belong to the call above, and its
 * last line says how the child ended. README.md has the language.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "script.h"

#define SCRIPT_LINES 4096

struct stage stage = { .quiet_ms = 10, .patience_ms = 300 };
unsigned char arenas[ARENAS][ARENA_LEN], regions[REGIONS][ARENA_LEN];

static const struct verb *const rooms[] = {
	info_verbs,    open_verbs,   control_verbs,  event_verbs, address_verbs,
	message_verbs, access_verbs, deferred_verbs, sleep_verbs,
};

static const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(rooms); i++)
		for (const struct verb *v = rooms[i]; v->name; v++)
			if (strcmp(v->name, name) == 0)
				return v;
	return NULL;
}

static void write_all(const char *text, size_t len)
{
	ssize_t done;

	while (len > 0) {
		done = write(STDOUT_FILENO, text, len);
		if (done < 0)
			_exit(2);
		text += done;
		len -= (size_t)done;
	}
}

/* One call: its line of the transcript is there before the next begins. */
static void carry_out(char *line, int idx)
{
	static struct call c;
	static char out[ANSWER_LEN + 256];
	const struct verb *v;
	long result;
	int len;

	c.cnt = 0;
	c.answer_len = 0;
	c.answer[0] = '\0';
	for (char *rest, *w = strtok_r(line, " ", &rest); w && c.cnt < CALL_WORDS;
	     w = strtok_r(NULL, " ", &rest))
		c.words[c.cnt++] = w;
	if (c.cnt == 0)
		return;
	v = verb_find(c.words[0]);
	result = v ? v->run(&c) : RESULT_WRONG;
	len = snprintf(out, sizeof(out), "%d %s%s\n", idx, word_error(result), c.answer);
	write_all(out, (size_t)len);
}

static void run_script(char **lines, int cnt)
{
	const struct rlimit none = { 0, 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &none);
	for (int i = 0; i < cnt; i++)
		carry_out(lines[i], i);
	_exit(0);
}

static void say_end(int status, bool late)
{
	char text[64];

	if (late)
		snprintf(text, sizeof(text), "end deadline\n");
	else if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "end signal %d\n", WTERMSIG(status));
	else
		snprintf(text, sizeof(text), "end exit %d\n", WEXITSTATUS(status));
	write_all(text, strlen(text));
}

/* Libraries name what they share after the process, and leave it where they were killed. */
static void remove_left(pid_t child)
{
	DIR *folder = opendir("/dev/shm");
	char prefix[32];
	int len = snprintf(prefix, sizeof(prefix), "%d:", (int)child);

	for (struct dirent *e; folder && (e = readdir(folder));)
		if (strncmp(e->d_name, prefix, (size_t)len) == 0)
			unlinkat(dirfd(folder), e->d_name, 0);
	if (folder)
		closedir(folder);
}

static void script_in_child(char **lines, int cnt, int deadline_ms)
{
	struct pollfd ended = { .events = POLLIN };
	pid_t child = fork();
	bool late;
	int status = 0;

	if (child == 0)
		run_script(lines, cnt);
	if (child < 0) {
		perror("act: fork");
		exit(2);
	}
	ended.fd = (int)syscall(SYS_pidfd_open, child, 0);
	if (ended.fd < 0) {
		perror("act: pidfd_open");
		exit(2);
	}
	late = poll(&ended, 1, deadline_ms) == 0;
	if (late)
		kill(child, SIGKILL);
	waitpid(child, &status, 0);
	close(ended.fd);
	remove_left(child);
	say_end(status, late);
}

int main(int argc, char **argv)
{
	static char *lines[SCRIPT_LINES];
	char *line = NULL, title[160];
	size_t room = 0;
	int cnt = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: act LIBRARY ABI DEADLINE_MS <SCRIPTS >TRANSCRIPTS\n");
		return 2;
	}
	library_open(argv[1], argv[2]);
	while (getline(&line, &room, stdin) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "script ", 7) == 0) {
			snprintf(title, sizeof(title), "%.150s\n", line);
			write_all(title, strlen(title));
		} else if (strcmp(line, "end") == 0) {
			script_in_child(lines, cnt, atoi(argv[3]));
			while (cnt > 0)
				free(lines[--cnt]);
		} else if (cnt < SCRIPT_LINES) {
			lines[cnt++] = strdup(line);
		}
	}
	free(line);
	return 0;
}
