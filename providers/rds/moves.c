/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is sent over a conn: packets, and payload in as many datagrams as it takes. What finds no room waits
 * in the conn, and poll() tries again. Called by the engine and from the wire's poll, with the domain held.
 */
#include <rdma/fi_errno.h>
#include "conn.h"
#include "copy.h"

/* Pieces of a datagram: a head, a packet, its payload */
#define PIECES_MAX (2 + WIRE_IOV_MAX)

static struct rds_head head_for(uint64_t to, enum rds_op op, uint32_t number, size_t len)
{
	return (struct rds_head){ .magic = RDS_MAGIC,
				  .version = RDS_VERSION,
				  .op = (uint8_t)op,
				  .to = to,
				  .number = number,
				  .len = (uint32_t)len };
}

int rds_say(struct rds_conn *c, enum rds_op op, const struct iovec *iov, size_t cnt)
{
	bool counts = op == RDS_PACKET || op == RDS_FIRST || op == RDS_MORE || op == RDS_END;
	struct iovec all[PIECES_MAX];
	struct rds_head head;
	size_t len = 0;
	int ret;

	if (rds_forked(c->wire))
		return -FI_EOPBADSTATE;
	for (size_t i = 0; i < cnt; i++) {
		all[i + 1] = iov[i];
		len += iov[i].iov_len;
	}
	head = head_for(c->peer_id, op, counts ? c->out_number : 0, len);
	all[0] = (struct iovec){ &head, sizeof(head) };
	ret = rds_socket_send(c->fd, &c->peer, all, cnt + 1);
	if (!ret && counts)
		c->out_number++;
	return ret;
}

void rds_refusal_say(struct rds_wire *wire, const union ip_sockaddr *to, uint64_t id, int err,
		     const struct hello_data *data)
{
	struct rds_refusal refusal = { .err = (uint32_t)-err };
	struct rds_head head = head_for(id, RDS_REFUSE, 0, sizeof(refusal));
	struct iovec iov[2] = { { &head, sizeof(head) }, { &refusal, sizeof(refusal) } };

	if (rds_forked(wire))
		return;
	if (data)
		refusal.data = *data;
	rds_socket_send(wire->fd, to, iov, 2);
}

/* Packets */

struct packet *rds_claim(struct wire_conn *conn, size_t len, void **payload)
{
	struct rds_conn *c = rds_conn_of(conn);

	if (unlikely(c->out_len || c->ended))
		return NULL;
	*payload = c->out->payload;
	return &c->out->packet;
}

/* Sends the packet in @out. Returns as rds_socket_send(). */
static int out_send(struct rds_conn *c, uint32_t len)
{
	struct iovec iov = { c->out, sizeof(c->out->head) + len };
	int ret;

	if (rds_forked(c->wire))
		return -FI_EOPBADSTATE;
	c->out->head = head_for(c->peer_id, RDS_PACKET, c->out_number, len);
	ret = rds_socket_send(c->fd, &c->peer, &iov, 1);
	if (!ret)
		c->out_number++;
	return ret;
}

void rds_publish(struct wire_conn *conn, struct packet *packet, bool more)
{
	struct rds_conn *c = rds_conn_of(conn);
	uint32_t len = (uint32_t)sizeof(*packet) + packet->len;
	int ret = out_send(c, len);

	if (likely(!ret))
		return;
	if (ret != -FI_EAGAIN) {
		rds_conn_broken(c, ret);
		return;
	}
	c->out_len = len;
	rds_conn_busy(c);
}

/* Payload */

static void sent_add(struct rds_conn *c, struct wire_op *op)
{
	wire_ended_add(&c->sent, op);
	rds_conn_busy(c);
}

int rds_sent_report(struct rds_conn *c)
{
	struct wire_op *op;
	int moved = 0;

	while (!c->buried && (op = wire_ended_take(&c->sent))) {
		op->done(op, 0);
		moved++;
	}
	return moved;
}

/* Sends the next datagram of it. Returns as rds_socket_send(). */
static int push_send(struct rds_conn *c, struct rds_push *push)
{
	bool first = !push->sent;
	uint64_t len = push->packet.len - push->sent;
	uint64_t most = first ? RDS_PAYLOAD_MAX : RDS_MORE_MAX;
	struct iovec iov[1 + WIRE_IOV_MAX];
	size_t cnt;
	int ret;

	if (len > most)
		len = most;
	iov[0] = (struct iovec){ &push->packet, sizeof(push->packet) };
	cnt = iov_slice(push->iov, push->iov_cnt, push->sent, len, iov + 1);
	ret = rds_say(c, first ? RDS_FIRST : RDS_MORE, first ? iov : iov + 1, cnt + first);
	if (!ret)
		push->sent += len;
	return ret;
}

static int pushes_go(struct rds_conn *c)
{
	int ret = 0;

	while (c->push_cnt && !ret) {
		struct rds_push *push = &c->pushes[c->push_first];

		ret = push_send(c, push);
		if (ret || push->sent < push->packet.len)
			continue;
		sent_add(c, push->op);
		c->push_first = (c->push_first + 1) % RDS_PUSHES;
		c->push_cnt--;
	}
	return ret;
}

int rds_moves_go(struct rds_conn *c)
{
	int ret = c->out_len ? out_send(c, c->out_len) : 0;

	if (ret)
		return ret;
	c->out_len = 0;
	return pushes_go(c);
}

static void push_add(struct rds_conn *c, const struct packet *hdr, const struct iovec *iov,
		     size_t iov_cnt, struct wire_op *op)
{
	struct rds_push *push = &c->pushes[(c->push_first + c->push_cnt) % RDS_PUSHES];
	int ret;

	push->packet = *hdr;
	memcpy(push->iov, iov, iov_cnt * sizeof(*iov));
	push->iov_cnt = iov_cnt;
	push->sent = 0;
	push->op = op;
	if (c->push_cnt++)
		return;
	ret = pushes_go(c);
	if (ret && ret != -FI_EAGAIN)
		rds_conn_broken(c, ret);
	rds_conn_busy(c);
}

int rds_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
	      size_t iov_cnt, struct wire_op *op)
{
	struct rds_conn *c = rds_conn_of(conn);
	struct iovec all[1 + WIRE_IOV_MAX];
	int ret;

	if (c->out_len || c->ended || c->push_cnt == RDS_PUSHES)
		return -FI_EAGAIN;
	if (hdr->len > RDS_PAYLOAD_MAX) {
		push_add(c, hdr, iov, iov_cnt, op);
		return 0;
	}
	all[0] = (struct iovec){ (void *)hdr, sizeof(*hdr) };
	ret = rds_say(c, RDS_PACKET, all, 1 + iov_slice(iov, iov_cnt, 0, hdr->len, all + 1));
	if (ret == -FI_EAGAIN)
		return ret;
	if (ret)
		rds_conn_broken(c, ret);
	else
		sent_add(c, op);
	return 0;
}
