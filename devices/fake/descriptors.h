/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests: how many descriptors a process has, so that one that was lost is seen.
 */
#ifndef WEFT_DEVICES_FAKE_DESCRIPTORS_H
#define WEFT_DEVICES_FAKE_DESCRIPTORS_H

#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* The page of counters (WEFT_MEM_STATS_FILE of weft/mem_stats.h), which a process keeps until it ends. */
static inline bool descriptor_of_counters(int folder, const char *name)
{
	static const char page[] = "/memfd:weft-mem ";
	char path[sizeof(page) - 1];

	return readlinkat(folder, name, path, sizeof(path)) == (ssize_t)sizeof(path) &&
	       !memcmp(path, page, sizeof(path));
}

/* descriptors_open - of this process, but for its page of counters */
static inline unsigned descriptors_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned cnt = 0;

	while (folder && (entry = readdir(folder)))
		cnt += !descriptor_of_counters(dirfd(folder), entry->d_name);
	if (folder)
		closedir(folder);
	return cnt;
}

#endif
