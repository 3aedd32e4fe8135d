/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Event queues, as those see them that report there. Any thread; a domain's lock may be held. */
#ifndef WEFT_UDP_EVENT_H
#define WEFT_UDP_EVENT_H

#include "objects.h"

/* udp_eq_there - returns 1 if an event or error is there, 0, or -FI_EOPBADSTATE in a fork's child */
int udp_eq_there(struct udp_eq *eq);
/* udp_eq_post - append an event of eq_event_new(); takes it */
void udp_eq_post(struct udp_eq *eq, struct eq_event *event);
/* udp_eq_error - append an error; copied. Returns 0 or -FI_ENOMEM */
int udp_eq_error(struct udp_eq *eq, const struct fi_eq_err_entry *err);

#endif
