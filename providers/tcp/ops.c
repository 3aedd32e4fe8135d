/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The op table of the TCP wire, and the engine's fast path instantiated over it. Called on the
 * thread that holds the endpoint's domain.
 */
#include "net_socket.h"
#include "now.h"
#include "send.h"
#include "tcp.h"
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_data.h"
#include "tcp_greet.h"
#include "tcp_wire.h"

static ssize_t tcp_send(struct engine_ep *ep, struct engine_peer *peer,
			const struct engine_msg *msg)
{
	return engine_send_on(ep, peer, msg, &tcp_wire_ops);
}

static bool tcp_access(struct engine_ctx *ctx, struct engine_peer *peer,
		       const struct engine_access *access)
{
	return engine_access_on(ctx, peer, access, &tcp_wire_ops);
}

const struct wire_ops tcp_wire_ops = {
	.size = sizeof(struct wire_ops),
	.name = "tcp",
	.claim_max = TCP_CLAIM_MAX,
	.polls_after_send = true,
	.payload_local = true,
	.eager_max = TCP_EAGER_MAX,
	.open = tcp_open,
	.close = tcp_close,
	.connect = tcp_connect,
	.disconnect = tcp_disconnect,
	.claim = tcp_claim,
	.publish = tcp_publish,
	.hold = tcp_hold,
	.sendv = tcp_sendv,
	.poll = tcp_poll,
	.check = tcp_check,
	.local = tcp_local,
	.send = tcp_send,
	.tsend = engine_wire_tsend,
	.tinject = engine_wire_tinject,
	.tsenddata = engine_wire_tsenddata,
	.tinjectdata = engine_wire_tinjectdata,
	.access = tcp_access,
	.bell = SYS_EVENTS_DESCRIPTOR ? tcp_bell : NULL,
	.arm = tcp_arm,
	.disarm = tcp_disarm,
	.waits_min = TCP_CARRY_MAX + 1,
	.accept = tcp_conn_accept,
	.refuse = tcp_conn_refuse,
	.names = tcp_names,
	.part = tcp_part,
	.join = tcp_join,
	.drop = tcp_drop,
};

const struct wire_provider tcp_wire_provider = {
	.size = sizeof(struct wire_provider),
	.version = WIRE_LAYOUT,
	.layout = WIRE_LAYOUT,
	.ops = &tcp_wire_ops,
};
