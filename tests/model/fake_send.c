/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending over the fake wires: the calls of the contract for packets, payload and memory of the
 * sender. With the wires' lock. Delivery is in fake_poll.c.
 *
 * A packet that is sent is in a lane of the end that will receive it.
 */
#include "copy.h"
#include "fake_conn.h"

/* A call on a conn that may be used; aborts otherwise. */
static struct fake_conn *usable(struct wire_conn *conn)
{
	struct fake_conn *c = fake_conn_of(conn);

	if (c->dead || !conn->up || c->claimed) {
		fprintf(stderr, "fake wire: a call on a conn that is %s\n",
			c->dead	   ? "dead"
			: conn->up ? "claimed"
				   : "not up");
		abort();
	}
	return c;
}

static bool no_room(struct fake_conn *c, enum fake_lane lane)
{
	struct fake_knobs *k = fake_knobs_of(c);
	uint32_t cnt = c->other ? fake_lane_cnt(&c->other->lanes[lane]) : 0;

	if (lane == FAKE_SENDV && c->other)
		cnt += fake_lane_cnt(&c->other->flowing);
	return cnt >= (lane == FAKE_SENDV ? k->sendv_room : k->claim_room) ||
	       fake_chance(k->refuse);
}

struct packet *fake_claim(struct wire_conn *conn, size_t len, void **payload)
{
	struct fake_conn *c = usable(conn);

	if (len > fake_knobs_of(c)->claim_max && len > WIRE_REQUEST_MAX)
		abort();
	if (no_room(c, FAKE_CLAIMED))
		return NULL;
	c->claimed = fake_alloc(sizeof(*c->claimed));
	c->claimed->bytes = fake_alloc(len);
	c->claimed->written = len;
	*payload = c->claimed->bytes;
	/* Nothing may depend on the former contents. */
	memset(&c->claimed->packet, 0xa5, sizeof(c->claimed->packet));
	return &c->claimed->packet;
}

static void send_item(struct fake_conn *c, struct fake_item *item, enum fake_lane lane)
{
	if (c->raw) {
		if (!item->bytes)
			fake_item_copy(item);
		if (item->op)
			fake_op_done(c, item->op, 0);
		item->op = NULL;
		list_add_tail(&c->raw->out, &item->link);
	} else if (c->other) {
		list_add_tail(&c->other->lanes[lane], &item->link);
		fake_ring(c->other->wire);
	} else {
		fake_item_free(item); /* the other end has closed, which a later poll reports */
	}
}

void fake_publish(struct wire_conn *conn, struct packet *packet, bool more)
{
	struct fake_conn *c = fake_conn_of(conn);
	struct fake_item *item = c->claimed;

	if (!item || packet != &item->packet || packet->len != item->written)
		abort();
	c->claimed = NULL;
	item->written = 0;
	send_item(c, item, FAKE_CLAIMED);
}

/* When it arrives is whimsical anyway. */
void fake_hold(struct wire_conn *conn, struct packet *packet)
{
	fake_publish(conn, packet, true);
}

int fake_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
	       size_t iov_cnt, struct wire_op *op)
{
	struct fake_conn *c = usable(conn);
	struct fake_item *item;
	bool ok;

	if (iov_cnt > WIRE_IOV_MAX || iov_len(iov, iov_cnt, &ok) < hdr->len || !op->done)
		abort();
	if (no_room(c, FAKE_SENDV))
		return -FI_EAGAIN;
	item = fake_alloc(sizeof(*item));
	item->packet = *hdr;
	item->from = c;
	item->op = op;
	item->iov_cnt = (uint32_t)iov_cnt;
	memcpy(item->iov, iov, iov_cnt * sizeof(*iov));
	if (fake_chance(fake_knobs_of(c)->buffer)) {
		fake_item_copy(item);
		item->op = NULL;
		fake_op_done(c, op, 0);
	}
	send_item(c, item, FAKE_SENDV);
	return 0;
}

static void scribble(const struct iovec *iov, uint32_t iov_cnt)
{
	for (uint32_t i = 0; i < iov_cnt; i++)
		if (iov[i].iov_len)
			memset(iov[i].iov_base, 0xdd, iov[i].iov_len);
}

void fake_pull(const struct wire_source *from, const struct iovec *iov, size_t iov_cnt)
{
	size_t skip = 0;

	for (size_t i = 0; i < iov_cnt; i++) {
		copy_from_iov(iov[i].iov_base, from->iov, from->iov_cnt, skip, iov[i].iov_len);
		skip += iov[i].iov_len;
	}
}

int fake_get(struct wire_conn *conn, const struct wire_source *from, const struct iovec *iov,
	     size_t iov_cnt, struct wire_op *op)
{
	struct fake_conn *c = usable(conn);
	struct fake_knobs *k = fake_knobs_of(c);
	struct fake_get *get;

	if (!k->has_get)
		abort();
	if (fake_chance(k->get_now) && c->other) {
		fake_pull(from, iov, iov_cnt);
		return 1;
	}
	if (!fake_chance(k->get_later) || (!c->other && !c->raw)) {
		scribble(iov, (uint32_t)iov_cnt);
		return -FI_EOPNOTSUPP;
	}
	get = fake_alloc(sizeof(*get));
	get->op = op;
	get->from = *from;
	get->iov_cnt = (uint32_t)iov_cnt;
	memcpy(get->iov, iov, iov_cnt * sizeof(*iov));
	get->status = fake_chance(k->get_fails) ? -FI_EIO : 0;
	if (!get->status && fake_chance(k->get_fails))
		get->status = -FI_EBUSY;
	if (get->status)
		scribble(iov, (uint32_t)iov_cnt);
	list_add_tail(&c->gets, &get->link);
	fake_ring(c->wire);
	return 0;
}

int fake_check(struct wire_conn *conn)
{
	struct fake_conn *c = fake_conn_of(conn);

	if (c->ending && c->end_err && fake_chance(128))
		return c->end_err;
	return 0;
}
