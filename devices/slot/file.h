/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Files that others have sent and that are to be mapped, by a controller for a window or by who imports a segment. Source:
 * fcntl(2), fstatfs(2).
 */
#ifndef WEFT_DEVICES_SLOT_FILE_H
#define WEFT_DEVICES_SLOT_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/*
 * slot_file_check - whether a file can be relied on: no access to a page of its first @len bytes faults, whatever its owner
 * does. With _GNU_SOURCE. Returns 0 or -EBADF
 */
static inline int slot_file_check(int fd, uint64_t len)
{
	struct statfs fs;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EBADF;
	/* A hole of a file of huge pages can't be filled when they are used up: a page of such a file may fault. */
	if (fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC)
		return -EBADF;
	if (fstat(fd, &st) || st.st_size < 0 || (uint64_t)st.st_size < len)
		return -EBADF;
	return 0;
}

#endif
