/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* For tests that look whether descriptors are left behind. Behind cmocka.h. */
#ifndef WEFT_SYS_MOCK_DESCRIPTORS_H
#define WEFT_SYS_MOCK_DESCRIPTORS_H

#include <dirent.h>

/* mock_descriptors - how many this process has open; always the same number more than that */
static inline int mock_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int cnt = 0;

	assert_non_null(dir);
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

#endif
