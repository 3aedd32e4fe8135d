/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lender's door: an endpoint at which borrowers of other hosts ask (lease/message.h), and a thread that answers them,
 * one after the other.
 */
#ifndef WEFT_DEVICES_LENDER_DOOR_H
#define WEFT_DEVICES_LENDER_DOOR_H

#include <stdint.h>

struct door;
struct lender;

/*
 * door_open - open a lender's door
 * @provider: NULL: the default one
 * @address:  at which it is; NULL: any
 * @service:  the well-known number; NULL: the default one
 * Returns 0 or -FI_E*.
 */
int door_open(struct lender *lender, const char *provider, const char *address,
	      const char *service, struct door **door);

/* door_provider - the name of its provider, for as long as it is open */
const char *door_provider(const struct door *door);

/* door_tell - tell the borrowers that watch of an event: enum weft_event_kind. Any thread */
void door_tell(struct door *door, uint32_t kind, uint64_t device, uint32_t lease);

#endif
