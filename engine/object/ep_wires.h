/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The wires of an endpoint (ep_wires.c). The caller holds the domain. */
#ifndef WEFT_EP_WIRES_H
#define WEFT_EP_WIRES_H

#include "engine.h"

/*
 * engine_wires_open - open the wires, which give the endpoint its address; no effect if they are
 * open.
 *		       Returns 0 or -FI_E*
 * engine_wires_close - close them; no effect if none is open
 * engine_wires_remote_events - remote events (FI_REMOTE_READ, FI_REMOTE_WRITE) that the endpoint
 * reports
 */
int engine_wires_open(struct engine_ep *ep);
void engine_wires_close(struct engine_ep *ep);
uint64_t engine_wires_remote_events(const struct engine_ep *ep);

#endif
