/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a lender registers at a directory (directory.h): itself and its devices, whenever they are not as they were. By
 * threads of its own: a controller that does not answer holds up what is said of it, and not that the lender is there.
 */
#ifndef WEFT_DEVICES_LENDER_ANNOUNCER_H
#define WEFT_DEVICES_LENDER_ANNOUNCER_H

#include "lend.h"
#include "session.h"

struct announcer;

/*
 * announcer_open - begin to register a lender at @options->directory
 * @options: of the lender, whose socket is there
 * Returns 0 or -errno, with a log line.
 */
int announcer_open(struct lender *lender, const struct lend_options *options,
		   struct announcer **announcer);

/* announcer_close - the lender is registered no more; its process is about to end, and what the announcer had stays */
void announcer_close(struct announcer *announcer);

#endif
