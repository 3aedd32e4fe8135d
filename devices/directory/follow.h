/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A directory that is followed: all keys of lenders, and a watch on them, by a thread of its own. directory.h has the
 * contract of these calls.
 */
#ifndef WEFT_DEVICES_DIRECTORY_FOLLOW_H
#define WEFT_DEVICES_DIRECTORY_FOLLOW_H

#include "directory.h"

/* How often a member that says nothing is asked whether it is there, and has a majority. */
#define FOLLOW_PROBE_MS 5000u

/* Keys that are asked for at a time. */
#define FOLLOW_PAGE 64u

int follow_open(const char *urls, const struct directory_listener *listener,
		struct directory_follow **follow);
void follow_close(struct directory_follow *follow);

#endif
