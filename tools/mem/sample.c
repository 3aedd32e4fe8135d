/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finding a process's pages of counters among its descriptors; sample.h has the contract.
 */
#define _GNU_SOURCE
#include "sample.h"
#include "backing.h"
#include "page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More than the libraries of a process that have one. */
#define PAGES_MAX 16

#define PAGE_FILE "/memfd:" WEFT_MEM_STATS_FILE " (deleted)"

/* Returns true if the process has a page of counters at this descriptor. */
static bool is_page(int dir, const char *name)
{
	char target[sizeof(PAGE_FILE) + 1];
	ssize_t n = readlinkat(dir, name, target, sizeof(target));

	return n == (ssize_t)strlen(PAGE_FILE) && !memcmp(target, PAGE_FILE, (size_t)n);
}

/*
 * Opens what a process has at a descriptor, if that is a regular file: it may be another one by now, and no
 * device or pipe is touched. Returns a descriptor or -errno.
 */
static int page_open(int dir, const char *name)
{
	int found = openat(dir, name, O_PATH | O_CLOEXEC), opened;
	char path[64];
	struct stat st;

	if (found < 0)
		return -errno;
	if (fstat(found, &st) || !S_ISREG(st.st_mode)) {
		close(found);
		return -ENOENT;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	/* a lease of its owner (F_SETLEASE) would have this wait */
	opened = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (opened < 0)
		opened = -errno;
	close(found);
	return opened;
}

/* Returns the number of a process in its own namespace, which its pages have. */
static pid_t pid_inside(pid_t pid)
{
	char line[256], *last;
	pid_t inside = pid;
	FILE *from;

	snprintf(line, sizeof(line), "/proc/%d/status", (int)pid);
	from = fopen(line, "re");
	if (!from)
		return pid;
	while (fgets(line, sizeof(line), from)) {
		if (strncmp(line, "NSpid:", 6))
			continue;
		last = strrchr(line, '\t');
		inside = (pid_t)strtol(last ? last : line + 6, NULL, 10);
	}
	fclose(from);
	return inside;
}

/* Any user may be looked at, and gives names that a terminal would take for commands. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static void command_read(pid_t pid, char command[SAMPLE_COMMAND_MAX])
{
	char path[64];
	FILE *from;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	from = fopen(path, "re");
	if (!from || !fgets(command, SAMPLE_COMMAND_MAX, from))
		snprintf(command, SAMPLE_COMMAND_MAX, "?");
	command[strcspn(command, "\n")] = '\0';
	make_printable(command);
	if (from)
		fclose(from);
}

/* Takes all pages that are there. Returns 0 or -errno; what was closed meanwhile is no error. */
static int pages_take(DIR *dir, pid_t inside, struct sample *sample, char why[128])
{
	const struct dirent *entry;
	int rc = 0, fd, cnt = 0;

	while (!rc && (errno = 0, entry = readdir(dir))) {
		if (!is_page(dirfd(dir), entry->d_name))
			continue;
		if (++cnt > PAGES_MAX) {
			snprintf(why, 128, "it has more than %d pages", PAGES_MAX);
			return -EPROTO;
		}
		fd = page_open(dirfd(dir), entry->d_name);
		/* no library of ours holds a lease */
		if (fd == -ENOENT || fd == -EWOULDBLOCK)
			continue;
		if (fd < 0)
			return fd;
		rc = page_take(fd, inside, sample, why);
		close(fd);
	}
	return rc ? rc : errno == ENOENT ? -ESRCH : -errno;
}

static uint32_t parts_of(const struct sample *sample)
{
	uint32_t cnt = 0;

	for (unsigned i = 0; i < WEFT_MEM_PART_KINDS; i++)
		cnt += sample->parts[i];
	return cnt;
}

/* Puts an error into words. */
static int explain(pid_t pid, int rc, char why[128])
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (rc == -EACCES || rc == -EPERM) {
		if (stat(path, &st))
			st.st_uid = 0;
		snprintf(why, 128, "no permission to look into it: it belongs to uid %u",
			 (unsigned)st.st_uid);
		return -EACCES;
	}
	if (rc == -ENOENT)
		snprintf(why, 128, "it shows no registered memory");
	else if (rc == -ESRCH)
		snprintf(why, 128, "there is no such process");
	else if (rc != -EPROTO)
		snprintf(why, 128, "%s", strerror(-rc));
	return rc;
}

static int read_all(pid_t pid, struct sample *sample, char why[128])
{
	char path[32];
	DIR *dir;
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	rc = pages_take(dir, pid_inside(pid), sample, why);
	closedir(dir);
	if (!rc && !parts_of(sample))
		rc = -ENOENT;
	if (!rc && sample->parts[WEFT_MEM_PART_ARENA])
		rc = backing_read(pid, sample);
	return rc;
}

int sample_read(pid_t pid, struct sample *sample, char why[128])
{
	struct sample now = { .pid = pid, .processes = 1 };
	int rc = read_all(pid, &now, why);

	if (rc)
		return explain(pid, rc, why);
	command_read(pid, now.command);
	*sample = now;
	return 0;
}

void sample_add(struct sample *sum, const struct sample *of)
{
	sum->processes += of->processes;
	sum->pid = sum->processes == of->processes ? of->pid : 0;
	if (sum->pid)
		memcpy(sum->command, of->command, sizeof(sum->command));
	else
		snprintf(sum->command, sizeof(sum->command), "%u processes", sum->processes);
	for (unsigned kind = 0; kind < WEFT_MEM_PART_KINDS; kind++) {
		sum->parts[kind] += of->parts[kind];
		for (unsigned i = 0; i < WEFT_MEM_STATS_COUNTS; i++)
			sum->counts[kind][i] += of->counts[kind][i];
	}
	sum->pinned_bytes += of->pinned_bytes;
	sum->hidden += of->hidden;
	sum->backing.resident += of->backing.resident;
	sum->backing.huge += of->backing.huge;
	sum->backing.swapped += of->backing.swapped;
}

uint64_t sample_once(const struct sample *sample)
{
	uint64_t sum = 0;

	for (unsigned i = WEFT_MEM_CACHE_ONCE_REFUSED; i <= WEFT_MEM_CACHE_ONCE_OTHER; i++)
		sum += sample->counts[WEFT_MEM_PART_CACHE][i];
	return sum;
}
