/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Payload that arrives after its header, straight into the memory that the engine names. Called by
 * both lanes from the wire's poll, on the thread that holds the endpoint's domain.
 */
#include "tcp_flow.h"
#include "tcp_wire.h"

int tcp_flow_begin(struct tcp_conn *conn, struct tcp_flow *flow, const struct packet *packet)
{
	struct packet copy = *packet;
	struct wire_dest dest = { .iov_cnt = 0 };
	uint32_t i;
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
	flow->iov_at = 0;
	for (i = 0; i < flow->iov_cnt; i++)
		flow->iov[i] = dest.iov[i];
	return 0;
}

int tcp_flow_pieces(struct tcp_conn *conn, const struct tcp_flow *flow, struct iovec *iov,
		    size_t max, size_t *total)
{
	uint64_t left = flow->left;
	size_t room = max;
	uint32_t i;
	int cnt = 0;

	for (i = flow->iov_at; i < flow->iov_cnt && left && room; i++) {
		iov[cnt] = flow->iov[i];
		if (iov[cnt].iov_len > left)
			iov[cnt].iov_len = left;
		if (iov[cnt].iov_len > room)
			iov[cnt].iov_len = room;
		left -= iov[cnt].iov_len;
		room -= iov[cnt].iov_len;
		cnt++;
	}
	/* The part that the engine has no memory for is discarded. */
	if (left && room) {
		iov[cnt].iov_base = tcp_wire_of(conn)->hub->in;
		iov[cnt].iov_len = left < TCP_IN_LEN ? left : TCP_IN_LEN;
		left -= iov[cnt].iov_len;
		cnt++;
	}
	*total = flow->left - left;
	return cnt;
}

void tcp_flow_take(struct tcp_flow *flow, const uint8_t *from, size_t len)
{
	flow->left -= len;
	while (len && flow->iov_at < flow->iov_cnt) {
		struct iovec *v = &flow->iov[flow->iov_at];
		size_t step = len < v->iov_len ? len : v->iov_len;

		if (from) {
			memcpy(v->iov_base, from, step);
			from += step;
		}
		v->iov_base = (char *)v->iov_base + step;
		v->iov_len -= step;
		len -= step;
		if (!v->iov_len)
			flow->iov_at++;
	}
}

void tcp_flow_end(struct tcp_conn *conn, struct tcp_flow *flow)
{
	if (flow->cookie)
		engine_payload_done(conn->conn.wire->ep, &conn->conn, flow->cookie);
}
