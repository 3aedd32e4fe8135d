/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages of the peer (conn.h). What is in them was copied out of memory that a device writes, and is checked here
 * before it is used. Functions return as kib_take().
 */
#include <rdma/fi_errno.h>
#include "arrive.h"
#include "conn.h"

static int hello_taken(struct kib_conn *c, const struct hello *hello)
{
	int err = hello_check(hello);

	if (err)
		return err;
	c->hello = *hello;
	if (c->state == KIB_GREETED) {
		c->state = KIB_REQUESTED;
		engine_conn_request(&c->conn, &c->hello);
		return 0;
	}
	if (c->state != KIB_ASKED)
		return -FI_EINVAL;
	c->state = KIB_UP;
	c->conn.up = true;
	engine_conn_up(&c->conn, &c->hello);
	return 0;
}

static int refusal_taken(struct kib_conn *c, const struct kib_refusal *refusal)
{
	if (c->state != KIB_ASKED || !refusal->err || refusal->err > INT16_MAX ||
	    hello_data_check(&refusal->data))
		return -FI_EINVAL;
	c->refusal.data = refusal->data;
	return -(int)refusal->err;
}

/* Returns as kib_take(); 1: later. */
static int packet_taken(struct kib_conn *c, const uint8_t *bytes, uint32_t len)
{
	struct wire_dest dest = { .iov_cnt = 0 };
	struct packet packet;
	int ret;

	if (len < sizeof(packet))
		return -FI_EINVAL;
	memcpy(&packet, bytes, sizeof(packet));
	if (packet.len != len - sizeof(packet))
		return -FI_EINVAL;
	ret = kib_ends_send(c, &packet);
	if (ret)
		return ret;
	return engine_packet(c->wire->wire.ep, &c->conn, &packet, bytes + sizeof(packet),
			     packet.len, &dest);
}

/* One whose body has one length, of an op that a conn which is up alone takes. */
static int move_taken(struct kib_conn *c, enum kib_op op, const uint8_t *bytes, uint32_t len,
		      uint32_t given_up)
{
	union {
		struct kib_offer_say offer;
		struct kib_ask ask;
		struct kib_answer answer;
	} body;
	uint32_t want = op == KIB_OFFER ? sizeof(body.offer)
			: op == KIB_ASK ? sizeof(body.ask)
					: sizeof(body.answer);

	if (len != want)
		return -FI_EINVAL;
	memcpy(&body, bytes, len);
	switch (op) {
	case KIB_OFFER:
		return kib_offered(c, &body.offer);
	case KIB_ASK:
		return kib_asked(c, &body.ask);
	case KIB_DONE:
		return kib_answered(c, &body.answer, given_up);
	default:
		return kib_taken(c, &body.answer);
	}
}

static int greeted_taken(struct kib_conn *c, enum kib_op op, const uint8_t *bytes, uint32_t len)
{
	union {
		struct hello hello;
		struct kib_refusal refusal;
	} body;

	if (len != (op == KIB_HELLO ? sizeof(body.hello) : sizeof(body.refusal)))
		return -FI_EINVAL;
	memcpy(&body, bytes, len);
	return op == KIB_HELLO ? hello_taken(c, &body.hello) : refusal_taken(c, &body.refusal);
}

int kib_take(struct kib_conn *c, const struct kib_head *head, const uint8_t *bytes,
	     uint32_t given_up)
{
	switch (head->op) {
	case KIB_HELLO:
	case KIB_REFUSE:
		return greeted_taken(c, head->op, bytes, head->len);
	case KIB_PACKET:
		return c->conn.up ? packet_taken(c, bytes, head->len) : -FI_EINVAL;
	case KIB_OFFER:
	case KIB_ASK:
	case KIB_DONE:
	case KIB_TAKEN:
		return c->conn.up ? move_taken(c, head->op, bytes, head->len, given_up)
				  : -FI_EINVAL;
	case KIB_REPOSTED:
		return head->len ? -FI_EINVAL : 0;
	case KIB_BYE:
		if (head->len || !c->conn.up)
			return -FI_EINVAL;
		c->bye_received = true;
		kib_conn_broken(c, 0);
		return 0;
	default:
		return -FI_EINVAL;
	}
}

int kib_head_taken(struct kib_conn *c, const struct kib_done *done, struct kib_head *head)
{
	if (done->len < sizeof(*head))
		return -FI_EINVAL;
	memcpy(head, done->bytes, sizeof(*head));
	if (head->len != done->len - sizeof(*head) || head->reserved ||
	    head->reposted > c->depth - c->receives)
		return -FI_EINVAL;
	c->receives += head->reposted;
	c->stuck = true;
	return 0;
}
