/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The curve, and the age of what is free. Called by the keeper's thread. */
#include "decay.h"

/* Returns the part that is left of what has been free for @step steps: 1 at 0, 0 at DECAY_STEPS. */
static double part_left(size_t step)
{
	double t = (double)step / DECAY_STEPS;

	return 1 - t * t * t * (t * (t * 6 - 15) + 10);
}

/* Returns what goes of @len bytes in the step that ends their age of @step. */
static size_t lost_of(size_t len, size_t step)
{
	if (step + 1 == DECAY_STEPS)
		return len;
	return (size_t)((double)len * (1 - part_left(step + 1) / part_left(step)));
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t decay_step(struct decay *d, size_t unused, size_t now)
{
	size_t older = 0;

	/* What was used again was the youngest: @unused are the oldest ones. */
	d->due = least(d->due, unused);
	unused -= d->due;
	for (size_t step = DECAY_STEPS; step-- > 0;) {
		size_t len = least(d->aged[step], unused), lost = lost_of(len, step);

		unused -= len;
		d->due += lost;
		if (step + 1 == DECAY_STEPS)
			continue;
		d->aged[step + 1] = len - lost;
		older += len - lost;
	}
	d->aged[0] = now - older - d->due;
	return now - d->due;
}

void decay_gone(struct decay *d, size_t len)
{
	d->due -= least(d->due, len);
}
