/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A file that arrives: a temporary one in the directory, which gets its room before anything is written, is mapped in
 * windows, and takes the name of the target when all of it is right. Until then what has that name stays as it is. One
 * at a time, on one thread; a signal that ends the process removes it.
 */
#ifndef WEFT_TOOLS_COPY_TARGET_H
#define WEFT_TOOLS_COPY_TARGET_H

#include <stddef.h>
#include <stdint.h>

#include "message.h"

/* struct target - the file, from target_create() to target_keep() or target_drop() */
struct target {
	/* of the directory, the caller's */
	int dir;
	int fd;
	/* what the sender says of it */
	struct copy_message file;
};

/*
 * target_guard - have SIGINT, SIGTERM, SIGHUP and SIGQUIT remove the file before they end the process; and SIGBUS,
 * which comes where someone else has shortened it
 */
void target_guard(void);

/*
 * target_create - make the temporary file, with all of its room
 * @file: of kind COPY_FILE; the name is not trusted
 * @what: out: what failed, for a message; never changed on success
 * Returns 0, or a negative errno: -EINVAL for a name that is not plain, -ENOSPC. There is no file then.
 */
int target_create(struct target *target, int dir, const struct copy_message *file,
		  const char **what);

/*
 * target_map - map some of the file
 * @at: a multiple of the page's size
 * Returns 0 or a negative errno.
 */
int target_map(const struct target *target, uint64_t at, size_t len, void **addr);

/*
 * target_keep - give the file its mode and its time, and put it in place of what has its name
 * @what: as for target_create()
 * Returns 0, or a negative errno, and the file is still to be dropped.
 */
int target_keep(struct target *target, const char **what);

/* target_drop - remove the temporary file */
void target_drop(struct target *target);

#endif
