/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payload that arrives after its header, straight into the memory that the engine names. Called by
 * both lanes from the wire's poll, on the thread that holds the endpoint's domain.
 */
#include "copy.h"
#include "tcp_flow.h"
#include "tcp_wire.h"

int tcp_flow_begin(struct tcp_conn *conn, struct tcp_flow *flow, const struct packet *packet)
{
	struct packet copy = *packet;
	struct wire_dest dest = { .iov_cnt = 0 };
	int err;

	if (copy.op >= TCP_OP_BYE)
		return -FI_EINVAL;
	err = engine_packet(conn->conn.wire->ep, &conn->conn, &copy, tcp_wire_of(conn)->hub->in,
			    0, &dest);
	if (err < 0)
		return err;
	flow->left = copy.len;
	flow->cookie = copy.len ? dest.cookie : NULL;
	flow->iov_cnt = copy.len ? dest.iov_cnt : 0;
	flow->done = 0;
	memcpy(flow->iov, dest.iov, flow->iov_cnt * sizeof(*flow->iov));
	return 0;
}

int tcp_flow_pieces(struct tcp_conn *conn, const struct tcp_flow *flow, struct iovec *iov,
		    size_t max, size_t *total)
{
	size_t len = flow->left < max ? flow->left : max;
	size_t cnt = iov_slice(flow->iov, flow->iov_cnt, flow->done, len, iov);
	bool ok;

	*total = iov_len(iov, cnt, &ok);
	/* The part that the engine has no memory for is discarded. */
	if (*total < len) {
		len = flow->left - *total;
		iov[cnt].iov_base = tcp_wire_of(conn)->hub->in;
		iov[cnt].iov_len = len < TCP_IN_LEN ? len : TCP_IN_LEN;
		*total += iov[cnt++].iov_len;
	}
	return (int)cnt;
}

void tcp_flow_take(struct tcp_flow *flow, const uint8_t *from, size_t len)
{
	if (from)
		copy_local_to_iov(flow->iov, flow->iov_cnt, flow->done, from, len);
	flow->done += len;
	flow->left -= len;
}

void tcp_flow_end(struct tcp_conn *conn, struct tcp_flow *flow)
{
	if (flow->cookie)
		engine_payload_done(conn->conn.wire->ep, &conn->conn, flow->cookie);
}
