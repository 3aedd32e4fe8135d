/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A picture of registered memory over time: a panel for the arena, and where there are devices, one for what
 * they have registered and one for the cache. One thread.
 */
#ifndef WEFT_TOOLS_PICTURE_H
#define WEFT_TOOLS_PICTURE_H

#include <stdio.h>

#include "sample.h"

/* Points of a line that are kept; of a long time every second one, every fourth, ... */
#define PICTURE_POINTS 2048

enum picture_value {
	PICTURE_LIVE,
	PICTURE_QUARANTINED,
	PICTURE_PAGES,
	PICTURE_HUGE,
	PICTURE_PINNED,
	PICTURE_CACHED,
	PICTURE_HITS,
	PICTURE_MISSES,
	PICTURE_ONCE,
	PICTURE_VALUES,
};

struct picture_point {
	double at_s;
	double values[PICTURE_VALUES];
};

struct picture {
	size_t cnt;
	/* samples for each point; and those that are left out until the next one */
	unsigned stride;
	unsigned skip;
	bool devices;
	struct picture_point points[PICTURE_POINTS];
};

/* picture_add - add a sample to a picture, which begins as all zeros */
void picture_add(struct picture *picture, const struct sample *sample);

/*
 * picture_print - draw it
 * @title: of what
 * Well-formed XML whatever the title contains.
 */
void picture_print(FILE *to, const struct picture *picture, const char *title);

#endif
