/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ends of the fake wires' conns, from their creation until both are forgotten. With the wires'
 * lock.
 *
 * What sendv borrows is read on delivery, unless the wire took a copy first; when the sender's end
 * is closed, its borrowed data are lost, and everything behind them in that lane.
 */
#include "fake_conn.h"

struct fake_watch fake_watch;

static uint32_t telling; /* calls of engine_conn_down() that have not returned */

struct fake_conn *fake_conn_new(struct fake_wire *wire, struct engine_peer *peer)
{
	struct fake_conn *c = fake_alloc(sizeof(*c));

	c->conn.wire = &wire->wire;
	c->conn.peer = peer;
	c->wire = wire;
	for (int i = 0; i < FAKE_LANES; i++)
		list_init(&c->lanes[i]);
	list_init(&c->flowing);
	list_init(&c->gets);
	c->done_last = &c->done_first;
	list_add_tail(&wire->conns, &c->link);
	return c;
}

void fake_item_free(struct fake_item *item)
{
	free(item->bytes);
	free(item);
}

static void items_free(struct list *items)
{
	struct list *node;

	while ((node = list_pop(items)))
		fake_item_free(container_of(node, struct fake_item, link));
}

void fake_op_done(struct fake_conn *c, struct wire_op *op, int status)
{
	op->next = NULL;
	op->wire_private = (uint64_t)status;
	*c->done_last = op;
	c->done_last = &op->next;
	fake_ring(c->wire);
}

void fake_item_copy(struct fake_item *item)
{
	size_t at = 0;

	item->bytes = fake_alloc(item->packet.len);
	for (uint32_t i = 0; i < item->iov_cnt && at < item->packet.len; i++) {
		size_t n = item->iov[i].iov_len;

		if (n > item->packet.len - at)
			n = item->packet.len - at;
		if (n)
			memcpy(item->bytes + at, item->iov[i].iov_base, n);
		at += n;
	}
}

/* The rest of a lane, from a node on, never arrives. */
static void lane_cut(struct list *lane, struct list *node)
{
	while (node != lane) {
		struct list *next = node->next;

		list_remove(node);
		fake_item_free(container_of(node, struct fake_item, link));
		node = next;
	}
}

/* @c can't read the sender's memory any more, and reports nothing to it. */
void fake_sender_gone(struct fake_conn *c, bool orderly)
{
	bool copy = orderly && fake_chance(128);
	struct fake_item *item;

	list_for_each_entry(item, &c->flowing, link) {
		if (copy && !item->bytes)
			fake_item_copy(item);
		item->op = NULL;
		item->from = NULL;
		if (!orderly || !item->bytes) {
			list_remove(&item->link);
			fake_item_free(item);
		}
	}
	for (int i = 0; i < FAKE_LANES; i++) {
		list_for_each_entry(item, &c->lanes[i], link) {
			if (copy && !item->bytes)
				fake_item_copy(item);
			item->op = NULL;
			item->from = NULL;
			if (!item->bytes || (!orderly && fake_chance(64))) {
				lane_cut(&c->lanes[i], &item->link);
				break;
			}
		}
	}
}

void fake_conn_part(struct fake_conn *c, int err, bool orderly)
{
	struct fake_conn *other = c->other;

	if (c->connreq) {
		c->connreq->from = NULL;
		if (fake_chance(128)) {
			list_remove(&c->connreq->link);
			free(c->connreq);
		}
		c->connreq = NULL;
	}
	if (!other)
		return;
	other->other = NULL;
	c->other = NULL;
	fake_sender_gone(other, orderly);
	if (!other->ending) {
		other->ending = true;
		other->end_err = err;
	}
	fake_ring(other->wire);
}

void fake_conn_bury(struct fake_conn *c)
{
	struct list *node;

	c->dead = true;
	c->done_first = NULL;
	c->done_last = &c->done_first;
	for (int i = 0; i < FAKE_LANES; i++)
		items_free(&c->lanes[i]);
	items_free(&c->flowing);
	while ((node = list_pop(&c->gets)))
		free(container_of(node, struct fake_get, link));
	if (c->claimed)
		fake_item_free(c->claimed);
	c->claimed = NULL;
	if (c->raw)
		c->raw->conn = NULL;
	list_remove(&c->link);
	if (c->wire->polling)
		list_add_tail(&c->wire->grave, &c->link);
	else
		free(c);
}

void fake_wire_enter(struct fake_wire *wire)
{
	wire->polling++;
}

void fake_wire_leave(struct fake_wire *wire)
{
	struct list *node;

	if (--wire->polling)
		return;
	while ((node = list_pop(&wire->grave)))
		free(container_of(node, struct fake_conn, link));
}

/* Reports the end of a conn. @data: of a refusal; else NULL */
static void report_end(struct fake_conn *c, int err, const struct hello_data *data)
{
	fake_conn_part(c, -FI_ECONNRESET, false);
	c->dead = true;
	telling++;
	if (data)
		engine_conn_refused(&c->conn, err, data);
	else
		engine_conn_down(&c->conn, err);
	telling--;
	if (fake_watch.ended && c->conn.peer)
		fake_watch.ended(&c->conn, err);
	fake_conn_bury(c);
}

void fake_conn_down(struct fake_conn *c, int err)
{
	report_end(c, err, NULL);
}

void fake_conn_refused(struct fake_conn *c, int err, const struct hello_data *data)
{
	report_end(c, err, data);
}

void fake_disconnect(struct wire_conn *conn)
{
	struct fake_conn *c = fake_conn_of(conn);

	if (c->dead)
		abort();
	if (fake_watch.dropped && c->known && !telling)
		fake_watch.dropped(conn);
	fake_conn_part(c, -FI_ECONNRESET, false);
	fake_conn_bury(c);
}
