/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests of the library that borrows: a device of a lender that is a model, borrowed. At the end there are as many
 * descriptors as at the beginning.
 */
#ifndef WEFT_DEVICES_FAKE_USE_H
#define WEFT_DEVICES_FAKE_USE_H

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "descriptors.h"
#include "fake_eq.h"
#include "fake_lender.h"

/* Until what must happen has, on a machine with much to do. */
#define FAKE_USE_MS 20000u

struct fake_use {
	struct fake_lender fake;
	struct fake_eq eq;
	unsigned open_before;
	struct weft_lender *lender;
	struct weft_device *dev;
};

/* Wait until a condition holds, which is looked at every millisecond. */
#define FAKE_USE_UNTIL(condition)                             \
	do {                                                  \
		uint64_t until = fake_use_ms() + FAKE_USE_MS; \
		while (!(condition) && fake_use_ms() < until) \
			poll(NULL, 0, 1);                     \
		assert_true(condition);                       \
	} while (0)

static inline uint64_t fake_use_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* fake_use_setup, fake_use_teardown - of a test, with a lender that is open, and no device */
static inline int fake_use_setup(void **state)
{
	struct fake_use *u = calloc(1, sizeof(*u));
	struct weft_lender_attr attr = { .size = sizeof(attr), .eq = &u->eq.eq };

	u->open_before = descriptors_open();
	fake_eq_init(&u->eq);
	fake_lender_start(&u->fake);
	*state = u;
	if (weft_lender_open(u->fake.path, &attr, &u->lender))
		return -1;
	FAKE_USE_UNTIL(fake_lender_asked(&u->fake, LEASE_WATCH) == 1);
	return 0;
}

static inline int fake_use_teardown(void **state)
{
	struct fake_use *u = *state;
	unsigned open_after;

	if (u->dev)
		assert_int_equal(weft_device_return(u->dev), 0);
	assert_int_equal(weft_lender_close(u->lender), 0);
	fake_lender_stop(&u->fake);
	open_after = descriptors_open();
	assert_int_equal(open_after, u->open_before);
	free(u);
	return 0;
}

/* fake_use_borrow - for so long */
static inline void fake_use_borrow(struct fake_use *u, uint32_t ms)
{
	struct weft_borrow_attr attr = { .size = sizeof(attr), .ms = ms };

	assert_int_equal(weft_device_borrow(u->lender, &attr, &u->dev), 0);
}

static inline void fake_use_rule(struct fake_use *u, uint16_t kind, enum fake_how how)
{
	fake_lender_rule(&u->fake, kind, (struct fake_rule){ .how = how });
}

static inline void fake_use_lie(struct fake_use *u, uint16_t kind,
				void (*lie)(struct fake_answer *answer))
{
	fake_lender_rule(&u->fake, kind, (struct fake_rule){ .how = FAKE_LIES, .lie = lie });
}

#endif
