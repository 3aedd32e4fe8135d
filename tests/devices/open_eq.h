/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An event queue for weft_lender_open(), for the programs of this folder. One thread. */
#ifndef WEFT_TESTS_DEVICES_OPEN_EQ_H
#define WEFT_TESTS_DEVICES_OPEN_EQ_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* die - say what can't be done, and why, and end the program. @err: a negative errno */
static inline void die(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-err));
	exit(1);
}

/* open_eq - open an event queue, of whichever provider is first; ends the program if it can't */
static inline void open_eq(struct fid_eq **eq)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC, .flags = FI_WRITE };
	struct fid_fabric *fabric;
	struct fi_info *info;
	int err = fi_getinfo(FI_VERSION(1, 11), NULL, NULL, 0, NULL, &info);

	if (!err)
		err = fi_fabric(info->fabric_attr, &fabric, NULL);
	if (!err)
		err = fi_eq_open(fabric, &attr, eq, NULL);
	if (err)
		die("an event queue", err);
}

#endif
