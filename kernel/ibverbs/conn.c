/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conns of kofi_ibverbs (conn.h): how they begin, what each turn of poll() does for them, and how they end. A conn that
 * ends is told to the engine once all is handled that was received before, and once its link has stopped.
 */
#include <rdma/fi_errno.h>
#include "arrive.h"
#include "conn.h"

/* Things of a link that one turn handles */
#define KIB_BURST 16

/* Messages of the wire's own */

void kib_head_put(struct kib_conn *c, void *to, enum kib_op op, uint32_t len)
{
	struct kib_head head = { .op = (uint8_t)op, .reposted = (uint16_t)c->due, .len = len };

	c->due = 0;
	c->receives--;
	__builtin_memcpy(to, &head, sizeof(head));
}

bool kib_say_ending(struct kib_conn *c, enum kib_op op, const void *body, uint32_t len,
		    uint32_t key)
{
	struct kib_message *message;
	uint32_t all = (uint32_t)sizeof(struct kib_head) + len;
	int ret;

	/* The last one is kept for saying what may be sent again, without which both sides would wait for the other's. */
	if (c->ended || c->receives <= (op != KIB_REPOSTED))
		return false;
	message = kib_link_claim(c->link);
	if (!message)
		return false;
	kib_head_put(c, message->bytes, op, len);
	if (len)
		memcpy(message->bytes + sizeof(struct kib_head), body, len);
	ret = key ? kib_link_send_ending(c->link, message, all, key)
		  : kib_link_send(c->link, message, all);
	if (ret)
		kib_conn_broken(c, -FI_ECONNRESET);
	return true;
}

bool kib_say(struct kib_conn *c, enum kib_op op, const void *body, uint32_t len)
{
	return kib_say_ending(c, op, body, len, 0);
}

/* Beginning and end */

struct kib_conn *kib_conn_new(struct kib_wire *wire, struct engine_peer *peer,
			      enum kib_state state)
{
	struct kib_conn *c = platform_alloc(sizeof(*c));

	if (!c)
		return NULL;
	c->conn.wire = &wire->wire;
	c->conn.peer = peer;
	c->wire = wire;
	c->state = state;
	list_init(&c->pulls);
	list_add_tail(&wire->conns, &c->node);
	wire->conn_cnt++;
	return c;
}

void kib_conn_free(struct kib_conn *c)
{
	kib_moves_drop(c);
	if (c->link)
		kib_link_free(c->link);
	platform_free(c);
}

void kib_conn_bury(struct kib_conn *c)
{
	struct kib_wire *wire = c->wire;

	if (c->buried)
		return;
	c->buried = true;
	c->conn.up = false;
	list_remove(&c->node);
	wire->conn_cnt--;
	if (c->link) {
		kib_link_stop(c->link);
		kib_link_own(c->link, NULL);
	}
	if (wire->polling)
		list_add_tail(&wire->grave, &c->node);
	else
		kib_conn_free(c);
}

void kib_conn_broken(struct kib_conn *c, int err)
{
	if (!c->ended)
		c->err = err;
	c->ended = true;
	c->wire->due = true;
}

/* The engine has an unanswered request until it answers, whatever becomes of it. */
void kib_conn_fail(struct kib_conn *c, int err)
{
	enum kib_state state = c->state;

	if (c->buried)
		return;
	if (state == KIB_REQUESTED) {
		kib_conn_broken(c, err);
		kib_link_stop(c->link);
		return;
	}
	kib_conn_bury(c);
	if (state == KIB_GREETED || state == KIB_REFUSING || c->wire->closing)
		return;
	if (state == KIB_DIALLING || state == KIB_ASKED)
		engine_conn_refused(&c->conn, err ? err : -FI_ECONNREFUSED, &c->refusal.data);
	else
		engine_conn_down(&c->conn, err);
}

/* Turns of poll() */

/* The memory of a message goes back to the device, and the peer will be told. */
static void message_over(struct kib_conn *c, const struct kib_done *done)
{
	if (c->buried)
		return;
	if (kib_link_repost(c->link, done->buffer))
		kib_conn_broken(c, -FI_ECONNRESET);
	c->due++;
}

static void held_add(struct kib_conn *c, const struct kib_done *done)
{
	/* The peer has no more of this side's receives. */
	c->held[c->held_cnt++] = *done;
}

/* @again: its head was taken already. Returns false if it waits. */
static bool message_handle(struct kib_conn *c, const struct kib_done *done, bool again)
{
	struct kib_head head;
	int ret = 0;

	if (again)
		memcpy(&head, done->bytes, sizeof(head));
	else
		ret = kib_head_taken(c, done, &head);
	if (!ret)
		ret = kib_take(c, &head, done->bytes + sizeof(head), done->key);
	if (ret == 1)
		return false;
	if (ret < 0)
		kib_conn_fail(c, ret);
	message_over(c, done);
	return true;
}

static void held_handle(struct kib_conn *c)
{
	uint32_t i, cnt = c->held_cnt;
	struct kib_done held[KIB_DEPTH];

	if (!cnt)
		return;
	memcpy(held, c->held, cnt * sizeof(*held));
	c->held_cnt = 0;
	for (i = 0; i < cnt && !c->buried; i++)
		if (c->held_cnt || !message_handle(c, &held[i], !i))
			held_add(c, &held[i]);
}

static void done_handle(struct kib_conn *c, const struct kib_done *done)
{
	int ret = 0;

	switch (done->what) {
	case KIB_RECEIVED:
		if (c->held_cnt || !message_handle(c, done, false))
			held_add(c, done);
		return;
	case KIB_SENT:
		return;
	case KIB_WRITTEN:
		ret = kib_written(c, done->cookie);
		break;
	case KIB_SHUT:
		ret = kib_shut(c, done->cookie);
		break;
	case KIB_BROKEN:
		/* Of one that is being made rdma_cm says why. */
		if (c->state != KIB_DIALLING)
			kib_conn_broken(c, -FI_ECONNRESET);
		return;
	}
	if (ret)
		kib_conn_fail(c, ret);
	else if (!c->buried)
		held_handle(c);
}

/* Ends of sendv()s that have gone already. */
static int sent_report(struct kib_conn *c)
{
	struct wire_op *op;
	int moved = 0;

	while (!c->buried && (op = wire_ended_take(&c->sent))) {
		op->done(op, 0);
		moved++;
	}
	return moved;
}

/* What waited for room: the first message, payload, receives to tell of. */
static void room_use(struct kib_conn *c)
{
	int ret = 0;

	if (c->stuck) {
		c->stuck = false;
		if (!c->hello_sent && c->state == KIB_REFUSING)
			kib_refuse(&c->conn, -(int)c->refusal.err, &c->refusal.data);
		else if (!c->hello_sent && c->state != KIB_GREETED && c->state != KIB_REQUESTED)
			kib_hello_say(c);
		if (c->state == KIB_UP)
			ret = kib_moves_go(c);
	}
	if (ret)
		kib_conn_fail(c, ret);
	else if (!c->buried && c->due >= KIB_DEPTH / 2)
		kib_say(c, KIB_REPOSTED, NULL, 0);
}

static void accepted_up(struct kib_conn *c)
{
	c->state = KIB_UP;
	c->conn.up = true;
	engine_conn_up(&c->conn, &c->hello);
}

/* Returns true if the conn has waited for too long, or has done what it was there for. */
static bool conn_over(struct kib_conn *c)
{
	if (c->state == KIB_REFUSING && c->hello_sent && kib_link_spare(c->link) == KIB_DEPTH)
		return true;
	return (c->state == KIB_GREETED || c->state == KIB_REFUSING) &&
	       platform_now_ns() > c->deadline_ns;
}

int kib_conn_turn(struct kib_conn *c)
{
	struct kib_done done[KIB_BURST];
	int n, i;

	if (unlikely(c->state == KIB_ACCEPTED) && !c->ended)
		accepted_up(c);
	if (c->buried)
		return 1;
	n = kib_link_poll(c->link, done, KIB_BURST);
	for (i = 0; i < n && !c->buried; i++)
		done_handle(c, &done[i]);
	n += sent_report(c);
	if (c->buried)
		return n + 1;
	if (unlikely(c->ended) && !n && c->state != KIB_REQUESTED) {
		kib_conn_fail(c, c->bye_received ? 0 : c->err);
		return 1;
	}
	room_use(c);
	if (!c->buried && unlikely(c->state == KIB_GREETED || c->state == KIB_REFUSING) &&
	    conn_over(c))
		kib_conn_bury(c);
	return n;
}

bool kib_conn_closing(struct kib_conn *c)
{
	struct kib_done done[KIB_BURST];
	struct kib_head head;
	int n, i;

	n = kib_link_poll(c->link, done, KIB_BURST);
	for (i = 0; i < n; i++) {
		if (done[i].what == KIB_BROKEN)
			return true;
		if (done[i].what != KIB_RECEIVED)
			continue;
		if (kib_head_taken(c, &done[i], &head))
			return true;
		message_over(c, &done[i]);
	}
	if (c->ended || (c->state != KIB_UP && c->state != KIB_REFUSING))
		return true;
	if (c->state == KIB_UP && !c->bye_sent)
		c->bye_sent = kib_say(c, KIB_BYE, NULL, 0);
	if (c->state == KIB_REFUSING && !c->hello_sent)
		room_use(c);
	return (c->bye_sent || (c->state == KIB_REFUSING && c->hello_sent)) &&
	       kib_link_spare(c->link) == KIB_DEPTH;
}
