/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A file that is sent. It is read and not mapped: a file that becomes shorter is an error of a read, and a signal where
 * it is mapped. One thread.
 */
#ifndef WEFT_TOOLS_COPY_SOURCE_H
#define WEFT_TOOLS_COPY_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "message.h"

/*
 * source_name - the name that a file has at the receiver: the last part of its path
 */
const char *source_name(const char *path);

/*
 * source_open - open a regular file
 * @file: out: its COPY_FILE
 * @why: out: what is wrong, COPY_TEXT_MAX bytes
 * Returns a descriptor, or a negative errno.
 */
int source_open(const char *path, struct copy_message *file, char *why);

/*
 * source_read - read exactly @len bytes at @at
 * @why: as above
 * Returns 0 or a negative errno: -ENODATA where the file has ended before.
 */
int source_read(int fd, void *buf, size_t len, uint64_t at, char *why);

#endif
