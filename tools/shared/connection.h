/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A connected endpoint (FI_EP_MSG) with the objects it needs: what endpoint.h is for reliable
 * datagrams. One thread on each side.
 */
#ifndef WEFT_TOOLS_CONNECTION_H
#define WEFT_TOOLS_CONNECTION_H

#include "endpoint.h"
#include "pair.h"

/*
 * connection_open - open an endpoint that is connected with the other side's
 * @info:       what fi_getinfo answered; borrowed for the call
 * @wait:       how the completion queue can be waited for
 * @timeout_s:  of each step
 *
 * Both sides call it: side 1 listens, side 0 connects. Prints the reason of a failure.
 * Returns 0 or a negative fi_errno, with nothing left open; endpoint_close() closes it.
 */
int connection_open(struct endpoint *end, struct fi_info *info, enum fi_wait_obj wait,
		    struct side *side, unsigned timeout_s);

#endif
