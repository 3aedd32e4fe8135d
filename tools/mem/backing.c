/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pages of an arena's chunks; backing.h has the contract. */
#define _GNU_SOURCE
#include "backing.h"

#include <errno.h>
#include <string.h>

#define LINE_ROOM 8192 /* a path may be long */

/* As the kernel shows the memfd of a chunk. */
#define CHUNK_FILE "/memfd:weft-arena (deleted)"

/* Returns true for the first line of a mapping: "55d0-55f0 rw-s 00001000 00:01 1234   /path". */
static bool is_head(const char *line, bool *chunk)
{
	unsigned long long low, high;
	int path = 0;

	if (sscanf(line, "%llx-%llx %*s %*x %*x:%*x %*u %n", &low, &high, &path) != 2 || !path)
		return false;
	*chunk = !strncmp(line + path, CHUNK_FILE, strlen(CHUNK_FILE));
	return true;
}

/* What a line of a mapping counts for. Pages of hugetlbfs are not in Rss. */
static const struct {
	const char *name;
	bool resident;
	bool huge;
} fields[] = {
	{ "Rss:", true, false },
	{ "AnonHugePages:", false, true },
	{ "ShmemPmdMapped:", false, true },
	{ "FilePmdMapped:", false, true },
	{ "Shared_Hugetlb:", true, true },
	{ "Private_Hugetlb:", true, true },
};

static void take_field(const char *line, struct backing *backing)
{
	unsigned long long kib;
	char name[32];

	if (sscanf(line, "%31s %llu kB", name, &kib) != 2)
		return;
	if (!strcmp(name, "Swap:"))
		backing->swapped += kib << 10;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (strcmp(name, fields[i].name))
			continue;
		backing->resident += fields[i].resident ? kib << 10 : 0;
		backing->huge += fields[i].huge ? kib << 10 : 0;
	}
}

int backing_parse(FILE *from, struct backing *backing)
{
	struct backing sum = { 0 };
	char line[LINE_ROOM];
	bool chunk = false;

	while (fgets(line, sizeof(line), from))
		if (!is_head(line, &chunk) && chunk)
			take_field(line, &sum);
	if (ferror(from))
		return errno ? -errno : -EIO;
	*backing = sum;
	return 0;
}

int backing_read(pid_t pid, struct backing *backing)
{
	char path[64];
	FILE *from;
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	from = fopen(path, "re");
	if (!from)
		return errno == ENOENT ? -ESRCH : -errno;
	errno = 0;
	rc = backing_parse(from, backing);
	fclose(from);
	return rc;
}
