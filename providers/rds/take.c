/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagrams that come to the provider rds. Anyone who can send to a socket may have sent one: each length, op and id is
 * checked before it is used. What is not of the conn's peer is dropped; what its peer sends and no end of this version does
 * ends the conn. From the wire's poll, with the domain held.
 */
#include <rdma/fi_errno.h>
#include "arrive.h"
#include "conn.h"
#include "copy.h"

/* A datagram, in the wire's memory. */
struct datagram {
	union ip_sockaddr from;
	struct rds_head head;
	const uint8_t *body;
};

/* Receives one that has the form. Returns 1, 0: it has not, or -FI_E*: there is none. */
static int receive(struct rds_wire *wire, int fd, struct datagram *d)
{
	ssize_t len = rds_socket_recv(fd, &d->from, wire->in, RDS_DATAGRAM_MAX);

	if (len < 0)
		return (int)len;
	if (len < (ssize_t)sizeof(d->head) || len > (ssize_t)RDS_DATAGRAM_MAX)
		return 0;
	memcpy(&d->head, wire->in, sizeof(d->head));
	d->body = wire->in + sizeof(d->head);
	return d->head.magic == RDS_MAGIC && d->head.version == RDS_VERSION &&
	       !d->head.reserved && d->head.len == (size_t)len - sizeof(d->head);
}

static bool same_socket(const union ip_sockaddr *a, const union ip_sockaddr *b)
{
	return ip_sockaddr_same_ip(a, b) && ip_sockaddr_port(a) == ip_sockaddr_port(b);
}

/* Hellos */

/* An endpoint says hello from its own host: RDS has checked where the datagram comes from. */
static bool hello_is_of(const struct hello *hello, const union ip_sockaddr *from)
{
	union ip_sockaddr says;

	return ip_sockaddr_set(&says, &hello->addr) && ip_sockaddr_same_ip(&says, from);
}

static struct rds_conn *conn_from(struct rds_wire *wire, const union ip_sockaddr *from)
{
	struct rds_conn *c;

	list_for_each_entry(c, &wire->conns, node)
		if (!c->conn.ours && c->state != RDS_ASKING && same_socket(&c->peer, from))
			return c;
	return NULL;
}

static void request_make(struct rds_wire *wire, const struct datagram *d,
			 const struct rds_greeting *greeting)
{
	struct rds_conn *c;

	/* Who is not heard now says it again. */
	if (wire->unproven >= RDS_UNPROVEN_MAX || rds_socket_full())
		return;
	c = rds_conn_new(wire, RDS_REQUESTED);
	if (!c)
		return;
	c->peer = d->from;
	c->peer_id = greeting->id;
	c->hello = greeting->hello;
	c->unproven = true;
	wire->unproven++;
	engine_conn_request(&c->conn, &c->hello);
}

static void hello_take(struct rds_wire *wire, const struct datagram *d)
{
	struct rds_greeting greeting;
	struct rds_conn *c;
	int err;

	if (d->head.op != RDS_HELLO || d->head.to || d->head.number ||
	    d->head.len != sizeof(greeting))
		return;
	memcpy(&greeting, d->body, sizeof(greeting));
	if (!greeting.id)
		return;
	err = hello_check(&greeting.hello);
	if (!err && !hello_is_of(&greeting.hello, &d->from))
		err = -FI_EINVAL;
	if (err) {
		rds_refusal_say(wire, &d->from, greeting.id, err, NULL);
		return;
	}
	c = conn_from(wire, &d->from);
	/* The engine has a request until it answers. */
	if (c && (c->peer_id == greeting.id || c->state == RDS_REQUESTED))
		return;
	/* The socket that said hello before is no more. */
	if (c)
		rds_conn_fail(c, -FI_ECONNRESET, NULL);
	request_make(wire, d, &greeting);
}

int rds_wire_take(struct rds_wire *wire)
{
	struct datagram d;
	int cnt = 0, ret;

	while (cnt < RDS_BURST && (ret = receive(wire, wire->fd, &d)) >= 0) {
		if (ret)
			hello_take(wire, &d);
		cnt++;
	}
	return cnt;
}

/* Datagrams of a conn. Return 0, or -FI_E* that ends it. */

static int answer_take(struct rds_conn *c, const struct datagram *d)
{
	struct rds_greeting greeting;
	int err;

	if (c->state != RDS_ASKING || d->head.len != sizeof(greeting) || d->head.number)
		return -FI_EINVAL;
	memcpy(&greeting, d->body, sizeof(greeting));
	err = hello_check(&greeting.hello);
	if (err)
		return err;
	if (!greeting.id)
		return -FI_EINVAL;
	c->peer = d->from;
	c->peer_id = greeting.id;
	c->hello = greeting.hello;
	/* Shows that this end has the answer. A beat does so too, where there is no room. */
	rds_say(c, RDS_ALIVE, NULL, 0);
	rds_conn_up(c);
	return 0;
}

static int refusal_take(struct rds_conn *c, const struct datagram *d)
{
	struct rds_refusal refusal;

	if (c->state != RDS_ASKING || d->head.len != sizeof(refusal) || d->head.number)
		return -FI_EINVAL;
	memcpy(&refusal, d->body, sizeof(refusal));
	if (!refusal.err || refusal.err > INT16_MAX || refusal.reserved ||
	    hello_data_check(&refusal.data))
		return -FI_EINVAL;
	rds_conn_fail(c, -(int)refusal.err, &refusal.data);
	return 0;
}

/* Writes what has come of a payload, and tells the engine when that is all. */
static int payload_take(struct rds_conn *c, const uint8_t *bytes, uint32_t len)
{
	if (!len || len > c->missing)
		return -FI_EINVAL;
	copy_local_to_iov(c->dest.iov, c->dest.iov_cnt, c->dest_at, bytes, len);
	c->dest_at += len;
	c->missing -= len;
	if (!c->missing && c->dest.cookie)
		engine_payload_done(c->wire->wire.ep, &c->conn, c->dest.cookie);
	return 0;
}

/* Reads the packet in a datagram, and how much of its payload is there. Returns 0 or -FI_EINVAL. */
static int packet_read(const struct datagram *d, struct packet *packet, uint32_t *avail)
{
	if (d->head.len < sizeof(*packet))
		return -FI_EINVAL;
	memcpy(packet, d->body, sizeof(*packet));
	*avail = d->head.len - (uint32_t)sizeof(*packet);
	return 0;
}

static int packet_take(struct rds_conn *c, const struct datagram *d)
{
	struct wire_dest dest = { .iov_cnt = 0 };
	struct packet packet;
	uint32_t avail;

	if (packet_read(d, &packet, &avail) || packet.len != avail)
		return -FI_EINVAL;
	return engine_packet(c->wire->wire.ep, &c->conn, &packet, d->body + sizeof(packet),
			     avail, &dest);
}

static int first_take(struct rds_conn *c, const struct datagram *d)
{
	struct packet packet;
	uint32_t avail;
	int ret;

	if (c->missing || packet_read(d, &packet, &avail) || avail != RDS_PAYLOAD_MAX ||
	    packet.len <= avail)
		return -FI_EINVAL;
	c->dest = (struct wire_dest){ .iov_cnt = 0 };
	ret = engine_packet(c->wire->wire.ep, &c->conn, &packet, d->body + sizeof(packet),
			    avail, &c->dest);
	if (ret || c->buried)
		return ret;
	c->missing = packet.len;
	c->dest_at = 0;
	return payload_take(c, d->body + sizeof(packet), avail);
}

static int end_take(struct rds_conn *c, const struct datagram *d)
{
	struct rds_end end;
	int err;

	if (d->head.len != RDS_END_LEN)
		return -FI_EINVAL;
	memcpy(&end, d->body, sizeof(end));
	if (end.err > INT16_MAX || end.reserved)
		return -FI_EINVAL;
	err = -(int)end.err;
	rds_conn_fail(c, !err && c->missing ? -FI_ECONNRESET : err, NULL);
	return 0;
}

/* One of those that are counted: none is missing before it. */
static int counted_take(struct rds_conn *c, const struct datagram *d)
{
	if (c->state != RDS_UP)
		return -FI_EINVAL;
	if (d->head.number != c->in_number)
		return -FI_ECONNRESET;
	c->in_number++;
	switch (d->head.op) {
	case RDS_PACKET:
		return packet_take(c, d);
	case RDS_FIRST:
		return first_take(c, d);
	case RDS_MORE:
		return payload_take(c, d->body, d->head.len);
	case RDS_END:
		return end_take(c, d);
	default:
		return -FI_EINVAL;
	}
}

static int conn_datagram(struct rds_conn *c, const struct datagram *d)
{
	switch (d->head.op) {
	case RDS_ANSWER:
		return answer_take(c, d);
	case RDS_REFUSE:
		return refusal_take(c, d);
	case RDS_ALIVE:
		return d->head.len || d->head.number ? -FI_EINVAL : 0;
	default:
		return counted_take(c, d);
	}
}

/* An answer comes from another socket of the host that was asked, all else from the peer's. */
static bool is_of_peer(const struct rds_conn *c, const struct datagram *d)
{
	if (d->head.to != c->id)
		return false;
	return c->state == RDS_ASKING && d->head.op == RDS_ANSWER
		       ? ip_sockaddr_same_ip(&d->from, &c->peer)
		       : same_socket(&d->from, &c->peer);
}

int rds_conn_take(struct rds_conn *c)
{
	struct datagram d;
	int cnt = 0, ret;

	while (cnt < RDS_BURST && !c->buried && (ret = receive(c->wire, c->fd, &d)) >= 0) {
		cnt++;
		if (!ret || !is_of_peer(c, &d))
			continue;
		c->heard_ns = platform_now_ns();
		if (unlikely(c->unproven))
			rds_socket_count(c->fd);
		rds_conn_proven(c);
		ret = conn_datagram(c, &d);
		if (!ret || c->buried)
			continue;
		rds_conn_say_end(c, ret);
		rds_conn_fail(c, ret, NULL);
	}
	return cnt;
}
