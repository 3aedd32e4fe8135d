/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a process costs whose domains make their progress by themselves and have nothing to do.
 */
#ifndef WEFT_TOOLS_IDLE_H
#define WEFT_TOOLS_IDLE_H

#include "channel.h"

struct idle {
	/* of one domain, per second */
	double wakes;
	/* of one domain: the part of a core that it takes */
	double cpu;
};

/*
 * idle_measure - open so many domains with automatic progress, each with an endpoint, and look for a while
 *
 * To be called in a process of its own, which does nothing else meanwhile. Complains itself, but for memory.
 * Returns 0 or a negative fi_errno.
 */
int idle_measure(const struct plan *plan, const struct channel_options *opt, unsigned cnt,
		 struct idle *idle);

#endif
