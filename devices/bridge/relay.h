/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs for borrowers of another machine, in memory that both have (bridge.h): what serves them in the controller's
 * process. Their doorbells are passed on, and nothing else: commands are the controller's as those of anyone, and a
 * device moves data to and from that memory by itself. The loop's thread alone.
 */
#ifndef WEFT_DEVICES_BRIDGE_RELAY_H
#define WEFT_DEVICES_BRIDGE_RELAY_H

#include <stdint.h>

struct nvmed;
struct remote;

/*
 * relay_create - serve borrowers by a BAR
 * @name: as bar_open() has it
 * @r:    out: returns owned
 *
 * Returns 0 or a negative errno.
 */
int relay_create(struct nvmed *c, const char *name, struct remote **r);

/* relay_destroy - the controller was destroyed, and its device with it: nothing reaches the BAR any more */
void relay_destroy(struct remote *r);

#endif
