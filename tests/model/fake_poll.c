/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Delivery of the fake wires: everything that the contract lets happen only in poll(). Called
 * by the engine's progress, with the wires' lock.
 *
 * The engine may end any conn while we call it: after each call c->dead is looked at, and what
 * was ended is freed when the poll is over.
 */
#include "arrive.h"
#include "copy.h"
#include "fake_conn.h"

/* Connecting */

/* The request of @from is answered. @hello: of a refusal the data alone */
static void answer(struct fake_conn *from, const struct hello *hello, int err)
{
	from->connreq = NULL;
	from->answered = true;
	from->answer_err = err;
	from->answer = *hello;
	fake_ring(from->wire);
}

void fake_accept(struct wire_conn *conn, const struct hello *hello)
{
	struct fake_conn *c = fake_conn_of(conn);

	if (!c->requested || !conn->peer)
		abort();
	c->requested = false;
	c->accepted = true;
	if (c->raw) {
		c->raw->answer = *hello;
		c->raw->err = 0;
	} else if (c->other) { /* else the requester has given up */
		answer(c->other, hello, 0);
	}
	fake_ring(c->wire);
}

void fake_refuse(struct wire_conn *conn, int err, const struct hello_data *data)
{
	struct fake_conn *c = fake_conn_of(conn), *other = c->other;
	struct hello hello = { .data = data ? *data : (struct hello_data){ .len = 0 } };

	if (!c->requested || err >= 0)
		abort();
	c->requested = false;
	if (c->raw) {
		c->raw->answer = hello;
		c->raw->err = err;
	} else if (other) {
		other->other = c->other = NULL;
		answer(other, &hello, err);
	}
	fake_conn_bury(c);
}

void fake_accepted(struct fake_conn *c)
{
	c->accepted = false;
	if (!c->other && !c->raw) {
		if (fake_chance(128)) {
			fake_conn_down(c, -FI_ECONNRESET);
			return;
		}
		c->ending = true;
		c->end_err = -FI_ECONNRESET;
	}
	c->conn.up = true;
	engine_conn_up(&c->conn, &c->request);
	c->known = true;
}

void fake_request(struct fake_conn *c, const struct hello *hello)
{
	c->requested = true;
	c->request = *hello;
	engine_conn_request(&c->conn, hello);
	if (c->accepted && !c->dead)
		fake_accepted(c);
}

static void take_connreq(struct fake_wire *wire, struct fake_connreq *connreq)
{
	struct fake_conn *from = connreq->from, *c;
	struct hello none = { .magic = 0 };
	int err = hello_check(&connreq->hello);

	if (err) {
		if (from)
			answer(from, &none, err);
	} else {
		c = fake_conn_new(wire, NULL);
		if (from) {
			from->connreq = NULL;
			from->other = c;
			c->other = from;
		}
		fake_request(c, &connreq->hello);
	}
	free(connreq);
}

static int take_connreqs(struct fake_wire *wire)
{
	struct fake_knobs *k = &fake_knobs[wire->kind];
	struct list turn, *node;
	int moved = 0;

	if (k->mute)
		return 0;
	list_init(&turn);
	while ((node = list_pop(&wire->connreqs)))
		list_add_tail(&turn, node);
	while ((node = list_pop(&turn))) {
		if (!fake_chance(k->move)) {
			list_add_tail(&wire->connreqs, node);
			continue;
		}
		take_connreq(wire, container_of(node, struct fake_connreq, link));
		moved++;
	}
	return moved;
}

/* Returns false when the conn ended. */
static bool take_answer(struct fake_conn *c)
{
	c->answered = false;
	if (c->answer_err) {
		fake_conn_refused(c, c->answer_err, &c->answer.data);
		return false;
	}
	c->conn.up = true;
	engine_conn_up(&c->conn, &c->answer);
	c->known = true;
	return !c->dead;
}

/* Packets */

static void item_read(const struct fake_item *item, size_t from, void *to, size_t len)
{
	if (!len)
		return;
	if (item->bytes)
		memcpy(to, item->bytes + from, len);
	else
		copy_from_iov(to, item->iov, item->iov_cnt, from, len);
}

static void item_done(struct fake_item *item)
{
	if (item->op && item->from)
		fake_op_done(item->from, item->op, 0);
	fake_item_free(item);
}

int fake_packet(struct fake_conn *c, struct fake_item *item, size_t avail)
{
	struct engine_ep *ep = c->wire->wire.ep;
	void *part = malloc(avail ? avail : 1);
	int ret;

	if (!part)
		abort();
	item_read(item, 0, part, avail);
	memset(&item->dest, 0xa5, sizeof(item->dest));
	if (fake_watch.packet)
		fake_watch.packet(&c->conn, &item->packet, avail == item->packet.len);
	ret = engine_packet_on(ep, &c->conn, &item->packet, part, avail, &item->dest,
			       &fake_ops[c->wire->kind]);
	/* What the other side may change: the engine must not look again. */
	memset(part, 0xee, avail);
	free(part);
	return ret;
}

/*
 * Hand a header to the engine. Returns 1; 0 when it has to wait, first of its lane; -1 when the
 * conn ended.
 */
static int deliver(struct fake_conn *c, enum fake_lane lane, struct fake_item *item, bool split)
{
	size_t avail = split ? fake_random(item->packet.len) : item->packet.len;
	int ret = fake_packet(c, item, avail);

	if (ret == -FI_EAGAIN && lane == FAKE_SENDV && fake_knobs_of(c)->waits_min) {
		list_insert_after(&c->lanes[lane], &item->link);
		return 0;
	}

	if (c->dead) {
		fake_item_free(item);
		return -1;
	}
	if (ret) {
		fake_item_free(item);
		fake_conn_down(c, ret);
		return -1;
	}
	if (split)
		list_add_tail(&c->flowing, &item->link);
	else
		item_done(item);
	return 1;
}

/* The first packets of a lane. Returns how many, or -1 when the conn ended. */
static int move_lane(struct fake_conn *c, enum fake_lane lane)
{
	struct fake_knobs *k = fake_knobs_of(c);
	uint32_t left = 1 + fake_random(k->burst);
	struct list *node;
	int moved = 0, ret;

	if (!c->still[lane] && fake_chance(k->stall))
		c->still[lane] = fake_random(60);
	if (c->still[lane] && c->still[lane]--)
		return 0;
	if (!fake_chance(k->move))
		return 0;
	while (left-- && (node = list_pop(&c->lanes[lane]))) {
		struct fake_item *item = container_of(node, struct fake_item, link);
		bool split = lane == FAKE_SENDV && item->packet.len && fake_chance(k->split);

		ret = deliver(c, lane, item, split);
		if (ret < 0)
			return -1;
		if (!ret)
			break;
		moved++;
	}
	return moved;
}

/* Write some bytes of a payload to where the engine wants them; true when all are there. */
static bool flow(struct fake_item *item)
{
	const struct wire_dest *d = &item->dest;
	size_t left = item->packet.len - item->written;
	size_t n = 1 + fake_random((uint32_t)left);
	size_t skip = item->written;

	if (fake_chance(64))
		n = left;
	item->written += n;
	for (uint32_t i = 0; i < d->iov_cnt && n; i++) {
		size_t room = d->iov[i].iov_len;
		size_t step;

		if (skip >= room) {
			skip -= room;
			continue;
		}
		step = room - skip < n ? room - skip : n;
		item_read(item, item->written - n, (char *)d->iov[i].iov_base + skip, step);
		n -= step;
		skip = 0;
	}
	return item->written == item->packet.len;
}

/* Returns how many pieces moved, or -1 when the conn ended. */
static int move_flowing(struct fake_conn *c)
{
	struct fake_knobs *k = fake_knobs_of(c);
	struct list turn, *node;
	int moved = 0;

	list_init(&turn);
	while ((node = list_pop(&c->flowing)))
		list_add_tail(&turn, node);
	while ((node = list_pop(&turn))) {
		struct fake_item *item = container_of(node, struct fake_item, link);

		if (c->dead) {
			fake_item_free(item);
			continue;
		}
		if (!fake_chance(k->move) || !flow(item)) {
			list_add_tail(&c->flowing, node);
			continue;
		}
		moved++;
		if (fake_watch.payload)
			fake_watch.payload(&c->conn, &item->packet);
		if (item->dest.cookie)
			engine_payload_done(c->wire->wire.ep, &c->conn, item->dest.cookie);
		if (c->dead)
			fake_item_free(item);
		else
			item_done(item);
	}
	return c->dead ? -1 : moved;
}

/* Operations of this conn */

static int tell_done(struct fake_conn *c)
{
	int moved = 0;

	while (c->done_first && fake_chance(fake_knobs_of(c)->move)) {
		struct wire_op *op = c->done_first;

		c->done_first = op->next;
		if (!c->done_first)
			c->done_last = &c->done_first;
		op->done(op, (int)op->wire_private);
		if (c->dead)
			return -1;
		moved++;
	}
	return moved;
}

/* The first bytes of a get, but not all. Returns how many */
static size_t pull_part(const struct fake_conn *c, const struct fake_get *get)
{
	struct iovec part[WIRE_IOV_MAX];
	size_t len;
	bool ok;

	len = fake_random((uint32_t)iov_len(get->iov, get->iov_cnt, &ok));
	if (!c->other)
		return 0;
	fake_pull(&get->from, part, iov_slice(get->iov, get->iov_cnt, 0, len, part));
	return len;
}

static int move_gets(struct fake_conn *c)
{
	struct list *node;
	int moved = 0;

	while (!list_empty(&c->gets) && fake_chance(fake_knobs_of(c)->move)) {
		struct fake_get *get;
		struct wire_op *op;
		int status;

		node = list_pop(&c->gets);
		get = container_of(node, struct fake_get, link);
		op = get->op;
		status = c->other || c->raw ? get->status : -FI_EIO;
		/*
		 * A raw peer has no memory that could be read: the present contents of the buffer
		 * are the result.
		 */
		if (!status && c->other)
			fake_pull(&get->from, get->iov, get->iov_cnt);
		if (status == -FI_EBUSY)
			op->moved = pull_part(c, get);
		free(get);
		op->done(op, status);
		if (c->dead)
			return -1;
		moved++;
	}
	return moved;
}

/* Returns true if everything has arrived that was sent before the end. */
static bool drained(const struct fake_conn *c)
{
	return list_empty(&c->lanes[FAKE_CLAIMED]) && list_empty(&c->lanes[FAKE_SENDV]) &&
	       list_empty(&c->flowing);
}

static int poll_conn(struct fake_conn *c)
{
	int (*const steps[])(struct fake_conn *) = { tell_done, move_gets, move_flowing };
	uint32_t first = fake_random(5);
	int moved = 0;

	if (c->answered) {
		if (!fake_chance(fake_knobs_of(c)->move))
			return 0;
		moved++;
		if (!take_answer(c))
			return moved;
	}
	if (c->accepted) {
		fake_accepted(c);
		return moved + 1;
	}
	if (c->requested || (!c->conn.up && !c->ending))
		return moved;
	for (uint32_t i = 0; c->conn.up && !c->stopped && i < 5; i++) {
		uint32_t step = (first + i) % 5;
		int n = step < 3 ? steps[step](c) : move_lane(c, (enum fake_lane)(step - 3));

		if (n < 0)
			return moved + 1;
		moved += n;
	}
	if (c->ending && drained(c) && fake_chance(fake_knobs_of(c)->move)) {
		fake_conn_down(c, c->end_err);
		moved++;
	}
	return moved;
}

static bool conn_ready(const struct fake_conn *c)
{
	if (c->answered || c->accepted)
		return true;
	if (c->requested)
		return false;
	if (c->conn.up && !c->stopped && (c->done_first || !list_empty(&c->gets) || !drained(c)))
		return true;
	return c->ending && drained(c);
}

bool fake_ready(const struct fake_wire *wire)
{
	struct list *node;

	if (!fake_knobs[wire->kind].mute && !list_empty(&wire->connreqs))
		return true;
	for (node = wire->conns.next; node != &wire->conns; node = node->next)
		if (conn_ready(container_of(node, struct fake_conn, link)))
			return true;
	return false;
}

int fake_poll(struct wire *base)
{
	struct fake_wire *wire = container_of(base, struct fake_wire, wire);
	struct list turn, *node;
	int moved;

	fake_wire_enter(wire);
	moved = take_connreqs(wire);
	list_init(&turn);
	while ((node = list_pop(&wire->conns)))
		list_add_tail(&turn, node);
	while ((node = list_pop(&turn))) {
		list_add_tail(&wire->conns, node);
		moved += poll_conn(container_of(node, struct fake_conn, link));
	}
	fake_wire_leave(wire);
	return moved;
}
