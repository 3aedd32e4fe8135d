/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests: how many descriptors a process has, so that one that was lost is seen.
 */
#ifndef WEFT_DEVICES_FAKE_DESCRIPTORS_H
#define WEFT_DEVICES_FAKE_DESCRIPTORS_H

#include <dirent.h>

/* descriptors_open - of this process */
static inline unsigned descriptors_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned cnt = 0;

	while (folder && readdir(folder))
		cnt++;
	if (folder)
		closedir(folder);
	return cnt;
}

#endif
