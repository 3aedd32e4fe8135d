/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For tests: a device that is lent, of a controller that is a model. Time passes when somebody waits for the controller, or
 * when a test says so. At the end there are as many descriptors as at the beginning.
 */
#ifndef WEFT_DEVICES_LENDER_LENT_RIG_H
#define WEFT_DEVICES_LENDER_LENT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_device.h"
#include "fake_time.h"
#include "lent_types.h"
#include "message.h"
#include "packet.h"

/* The controller; its device as it is lent; where that keeps its state; lines that were logged */
extern struct fake_device device;
extern struct lent *lent;
extern char state_folder[64];
extern _Atomic unsigned lines;

/* rig_setup, rig_teardown - of a test, with the device open */
int rig_setup(void **state);
int rig_teardown(void **state);

/* open_again - after it was closed. Returns 0 or a negative errno */
int open_again(void);

/* restart - the lender ends, and another one begins */
void restart(void);

/* remove_state - of the lender, on the disk */
void remove_state(void);

/* nudge - have the keeper of the device look at it */
void nudge(void);

/* events_so_far - how many were told; wait_for_events: until there are so many, while time passes at the keeper */
unsigned events_so_far(void);
void wait_for_events(unsigned cnt);

/* expect_event - the @n-th of them is this */
void expect_event(unsigned n, uint32_t kind, uint32_t lease);

/* borrow_well - a lease of 10 s, which there is. borrow - whether there is one for another user: 0 or a negative errno */
struct lent_lease borrow_well(uint32_t flags);
int borrow(uint32_t flags);

/* memory - a file of so many bytes that does not shrink, owned */
int memory(size_t len);

/* window, pair - of a lease: returns 0 or a negative errno; @addr: out; of a pair: of its queues. @qid: out */
int window(const struct lent_lease *lease, size_t len, uint64_t *addr);
int pair(const struct lent_lease *lease, uint64_t addr, uint16_t *qid);

/* bells_close - descriptors of a pair's doorbells */
void bells_close(const struct lent_bells *bells);

/* info_now - the device as it is listed */
struct weft_device_info info_now(void);

#endif
