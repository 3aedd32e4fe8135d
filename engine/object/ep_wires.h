/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The wires of an endpoint (ep_wires.c). The caller holds the domain. */
#ifndef WEFT_EP_WIRES_H
#define WEFT_EP_WIRES_H

#include "engine.h"

/*
 * engine_wires_open - so that the endpoint has its address and can be enabled; nothing if they are. 0 or -FI_E*
 * engine_wires_close - nothing if there are none
 * engine_wires_remote_events - what peers do to the domain's memory, and the endpoint has to be told of
 */
int engine_wires_open(struct engine_ep *ep);
void engine_wires_close(struct engine_ep *ep);
uint64_t engine_wires_remote_events(const struct engine_ep *ep);

#endif
