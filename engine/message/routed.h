/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Op tables of messages for families with several wires: link, tcp (routed.c).
 */
#ifndef WEFT_ROUTED_H
#define WEFT_ROUTED_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

/*
 * Tables of struct engine_family: each send looks up the peer's route and calls that wire's send.
 */
extern struct fi_ops_msg engine_routed_msg_ops;
extern struct fi_ops_tagged engine_routed_tagged_ops;

#endif
