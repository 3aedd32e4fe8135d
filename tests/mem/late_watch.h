/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A userfaultfd as a cache would use it that does without the rules: for the controls of the storm.
 */
#ifndef WEFT_TESTS_LATE_WATCH_H
#define WEFT_TESTS_LATE_WATCH_H

#include "watch.h"

/* Neither checks hits. */
enum late_kind {
	/* changes are told when the test says so: their events come after them */
	LATE_TOLD,
	/* removed pages are told at once, but taken for unmapped ones, that is, for pages that are gone by now */
	LATE_GONE,
};

/* late_watch_open - returns 0 and the watch, owned, or -FI_E* */
int late_watch_open(enum late_kind kind, struct mem_watch **watch);

/* late_watch_tell - tell what was not yet told */
void late_watch_tell(struct mem_watch *watch);

#endif
