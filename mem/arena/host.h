/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Settings of the host that a test changes, which only root may do. Another process puts them back, also when
 * the test is killed.
 */
#ifndef WEFT_MEM_HOST_H
#define WEFT_MEM_HOST_H

#include <stdbool.h>
#include <stddef.h>

struct host_setting {
	/* of a file in /proc or /sys */
	const char *path;
	/* what is written to it when the test has ended; empty: nothing */
	char before[32];
};

/* host_set - write a word to a setting. Returns false: it can't be changed so */
bool host_set(const char *path, const char *word);

/*
 * host_keep - from now on the settings are put back when this process and its children have ended
 * Once in a process. Returns 0, or -1: what is changed now would stay.
 */
int host_keep(const struct host_setting *settings, size_t cnt);

/* host_restore - put them back now, if they are kept; no child of this process runs. Returns 0, or -1: one can't be */
int host_restore(void);

#endif
