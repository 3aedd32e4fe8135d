/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pages of an arena's chunks; backing.h has the contract. */
#define _GNU_SOURCE
#include "backing.h"

#include <errno.h>
#include <string.h>

#define LINE_ROOM 8192 /* a path may be long */

static bool is_in_arena(const struct sample *sample, uint64_t addr)
{
	for (uint32_t i = 0; i < sample->arena_cnt; i++)
		if (addr - sample->arenas[i].base < sample->arenas[i].len)
			return true;
	return false;
}

/* Returns true for the first line of a mapping: "55d0-55f0 rw-s 00001000 00:01 1234   /path". */
static bool is_head(const char *line, unsigned long long *base)
{
	unsigned long long end, offset;

	return sscanf(line, "%llx-%llx %*4c %llx", base, &end, &offset) == 3;
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

int backing_parse(FILE *from, struct sample *sample)
{
	struct backing sum = { 0 };
	unsigned long long base;
	char line[LINE_ROOM];
	bool ours = false;

	while (fgets(line, sizeof(line), from)) {
		if (is_head(line, &base))
			ours = is_in_arena(sample, base);
		else if (ours)
			take_field(line, &sum);
	}
	if (ferror(from))
		return errno ? -errno : -EIO;
	sample->backing = sum;
	return 0;
}

int backing_read(pid_t pid, struct sample *sample)
{
	char path[64];
	FILE *from;
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	from = fopen(path, "re");
	if (!from)
		return errno == ENOENT ? -ESRCH : -errno;
	errno = 0;
	rc = backing_parse(from, sample);
	fclose(from);
	return rc;
}
