/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of processes, from /proc/PID/smaps; memory.h has the contract. Called by
 * 'weft scale' between what it does.
 */
#define _GNU_SOURCE
#include "memory.h"

#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LINE_ROOM 8192 /* a path may be long */

/* A file of shared memory that some process maps. */
struct file {
	unsigned dev[2];
	unsigned long long inode;
	uint64_t bytes;
};

struct files {
	struct file *at;
	size_t cnt;
	size_t room;
};

/* One mapping, as its head line names it. */
struct mapping {
	unsigned long long low;
	unsigned long long high;
	struct file file;
	bool shared;
};

static bool read_head(const char *line, struct mapping *map)
{
	char flags[8];

	if (sscanf(line, "%llx-%llx %7s %*x %x:%x %llu", &map->low, &map->high, flags,
		   &map->file.dev[0], &map->file.dev[1], &map->file.inode) != 6)
		return false;
	map->file.bytes = 0;
	map->shared = strlen(flags) == 4 && flags[3] == 's' && map->file.inode;
	return true;
}

/*
 * All blocks of the file, whichever process has touched them. The kernel may refuse to report them.
 */
static uint64_t file_blocks(pid_t pid, const struct mapping *map)
{
	char path[96];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid, map->low,
		 map->high);
	return stat(path, &st) ? 0 : (uint64_t)st.st_blocks * 512;
}

static int keep_file(struct files *files, const struct file *file)
{
	size_t room = files->room ? files->room * 2 : 256;
	struct file *grown;

	if (files->cnt == files->room) {
		grown = realloc(files->at, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		files->at = grown;
		files->room = room;
	}
	files->at[files->cnt++] = *file;
	return 0;
}

/* @touched: bytes of it that are in the process's page table */
static int finish_mapping(pid_t pid, struct mapping *map, uint64_t touched, struct files *files)
{
	if (!map->shared)
		return 0;
	map->file.bytes = file_blocks(pid, map);
	if (map->file.bytes < touched)
		map->file.bytes = touched;
	return keep_file(files, &map->file);
}

static int read_process(pid_t pid, struct files *files, uint64_t *private_bytes)
{
	struct mapping map = { 0 }, next;
	uint64_t touched = 0;
	unsigned long long kib;
	char line[LINE_ROOM];
	int rc = 0;
	FILE *from;

	snprintf(line, sizeof(line), "/proc/%d/smaps", (int)pid);
	from = fopen(line, "re");
	if (!from)
		return -errno;
	while (!rc && fgets(line, sizeof(line), from)) {
		if (sscanf(line, "Rss: %llu kB", &kib) == 1) {
			touched = kib << 10;
		} else if (sscanf(line, "Anonymous: %llu kB", &kib) == 1) {
			*private_bytes += kib << 10;
		} else if (read_head(line, &next)) {
			rc = finish_mapping(pid, &map, touched, files);
			map = next;
			touched = 0;
		}
	}
	if (!rc)
		rc = finish_mapping(pid, &map, touched, files);
	if (ferror(from))
		rc = -EIO;
	fclose(from);
	return rc;
}

static int by_identity(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	if (x->dev[0] != y->dev[0])
		return x->dev[0] < y->dev[0] ? -1 : 1;
	if (x->dev[1] != y->dev[1])
		return x->dev[1] < y->dev[1] ? -1 : 1;
	/* The mapping with the largest figure is sorted first. */
	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static bool is_same(const struct file *x, const struct file *y)
{
	return x->inode == y->inode && x->dev[0] == y->dev[0] && x->dev[1] == y->dev[1];
}

static uint64_t sum_files(struct files *files)
{
	uint64_t sum = 0;
	size_t i;

	if (files->cnt)
		qsort(files->at, files->cnt, sizeof(*files->at), by_identity);
	for (i = 0; i < files->cnt; i++)
		if (!i || !is_same(&files->at[i], &files->at[i - 1]))
			sum += files->at[i].bytes;
	return sum;
}

int memory_read(const pid_t *pids, size_t cnt, struct memory *memory)
{
	struct files files = { 0 };
	struct memory got = { 0 };
	int rc = 0;
	size_t i;

	for (i = 0; i < cnt && !rc; i++)
		rc = read_process(pids[i], &files, &got.private_bytes);
	if (rc)
		warnx("cannot read the memory of process %d: %s", (int)pids[i - 1],
		      strerror(-rc));
	else
		got.shared_bytes = sum_files(&files);
	free(files.at);
	if (!rc)
		*memory = got;
	return rc;
}

static uint64_t growth(uint64_t before, uint64_t after, size_t cnt)
{
	return after > before ? (after - before) / cnt : 0;
}

struct memory memory_growth(const struct memory *before, const struct memory *after, size_t cnt)
{
	return (struct memory){
		.private_bytes = growth(before->private_bytes, after->private_bytes, cnt),
		.shared_bytes = growth(before->shared_bytes, after->shared_bytes, cnt),
	};
}
