/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A userfaultfd as a cache would use it that does without one of the rules: for the controls of the storm.
 */
#ifndef WEFT_TESTS_LATE_WATCH_H
#define WEFT_TESTS_LATE_WATCH_H

#include "watch.h"

enum late_kind {
	/* hits are not checked, and changes are told when the test says so: events come after the change */
	LATE_UNCHECKED,
	/* removed pages are taken for unmapped ones, that is, for pages that are gone by now */
	LATE_FORGETFUL,
};

/* late_watch_open - returns 0 and the watch, owned, or -FI_E* */
int late_watch_open(enum late_kind kind, struct mem_watch **watch);

/* late_watch_tell - tell what was not yet told */
void late_watch_tell(struct mem_watch *watch);

#endif
