/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file of a namespace: opening it, and what it can do. Used by both backends of files. The loop's thread alone.
 */
#ifndef WEFT_NVMED_FILE_TARGET_H
#define WEFT_NVMED_FILE_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "backend.h"

/*
 * struct file_target
 * @align:    of offsets, lengths and memory; 1: the page cache is used
 * @no_zero, @no_punch: the file system can't do that
 */
struct file_target {
	int fd;
	uint32_t align;
	uint64_t len;
	bool no_zero;
	bool no_punch;
};

/*
 * file_open - open a regular file or a block device, and lock it
 * @block: bytes of a block
 *
 * Returns 0 or a negative errno: -EBUSY when another controller has it, -EINVAL for what is no such file, or is empty.
 */
int file_open(struct file_target *f, const char *path, uint32_t block, bool read_only);

/* file_is_straight - whether a piece's data goes straight between its windows and the file */
bool file_is_straight(const struct file_target *f, const struct piece *p);

/* file_fill - the memory of such a piece. @iov has room for PIECE_SEGS_MAX. Returns how many */
uint32_t file_fill(const struct piece *p, struct iovec *iov);

/* file_zero_mode - of fallocate(), for a piece that makes zeros; 0: they have to be written */
int file_zero_mode(const struct file_target *f, const struct piece *p);

/* file_zero_refused - fallocate() has failed. Returns true when it can't do this, and something else is to be tried */
bool file_zero_refused(struct file_target *f, int mode, int error);

/* iov_advance - leave out the first @len bytes. Returns how many vectors are left */
uint32_t iov_advance(struct iovec *iov, uint32_t cnt, uint64_t len);

/* file_status - the NVMe status of an errno */
uint16_t file_status(const struct piece *p, int error);

/* backend_sync_open - a backend that waits for each piece. Takes the file on success */
int backend_sync_open(const struct file_target *f, struct backend **b);

/* backend_uring_open - one that has several under way. Returns -ENOSYS when that is not there. Takes it likewise */
int backend_uring_open(const struct file_target *f, struct backend **b);

#endif
