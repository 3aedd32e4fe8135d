/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The wires of an endpoint (ep_wires.c). The caller holds the domain. */
#ifndef WEFT_EP_WIRES_H
#define WEFT_EP_WIRES_H

#include "engine.h"

/*
 * engine_wires_open - open the wires, which give the endpoint its address
 * Has no effect if they are open. Returns 0 or -FI_E*.
 */
int engine_wires_open(struct engine_ep *ep);

/* engine_wires_close - close the wires; no effect if none is open */
void engine_wires_close(struct engine_ep *ep);

/*
 * engine_wires_remote_events - returns the remote events that the endpoint reports: FI_REMOTE_READ,
 * FI_REMOTE_WRITE
 */
uint64_t engine_wires_remote_events(const struct engine_ep *ep);

#endif
