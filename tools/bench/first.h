/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The first message of a size between two endpoints, as 'weft bench' times it: a channel of its own
 * for each sample, on which a few messages of 8 bytes were exchanged. Both sides call it at the
 * same time.
 */
#ifndef WEFT_TOOLS_FIRST_H
#define WEFT_TOOLS_FIRST_H

#include <stddef.h>
#include <stdint.h>

#include "channel.h"

/*
 * first_run - open a channel, and bounce a message over it
 * @taken:  receives nanoseconds of the round trip, on side 0
 *
 * Prints the reason of a failure. Returns 0 or a negative fi_errno.
 */
int first_run(const struct plan *plan, const struct channel_options *opt, struct side *side,
	      size_t size, uint64_t *taken);

#endif
