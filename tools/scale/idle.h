/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cost of idle domains with automatic progress.
 */
#ifndef WEFT_TOOLS_IDLE_H
#define WEFT_TOOLS_IDLE_H

#include "channel.h"

struct idle {
	/* wake-ups of one domain per second */
	double wakes;
	/* share of a core that one domain uses */
	double cpu;
};

/*
 * idle_measure - open @cnt domains with automatic progress, each with an endpoint, and measure their cost
 * @look_s: seconds for which it is measured, after half as many
 *
 * Called in a process that does nothing else meanwhile. Prints the reason of a failure other than -FI_ENOMEM.
 * Returns 0 or a negative fi_errno.
 */
int idle_measure(const struct plan *plan, const struct channel_options *opt, unsigned cnt,
		 unsigned look_s, struct idle *idle);

#endif
