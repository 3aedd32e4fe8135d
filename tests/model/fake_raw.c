/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Raw peers: conns of an endpoint whose other end is the test. Called by tests, on one thread.
 */
#include "fake_conn.h"

/* An endpoint's wire to the raw peers: its fake-b, or the only one it has. */
static struct fake_wire *raw_wire_of(struct engine_ep *ep)
{
	struct fake_wire *found = NULL;
	struct fake_wire *wire;

	list_for_each_entry(wire, &fake_wires, link) {
		if (wire->wire.ep == ep && (!found || wire->kind == FAKE_B))
			found = wire;
	}
	return found;
}

static struct fake_raw *raw_of(struct fake_conn *c)
{
	c->raw = fake_alloc(sizeof(*c->raw));
	c->raw->conn = c;
	list_init(&c->raw->out);
	return c->raw;
}

int fake_raw_request(struct engine_ep *to, const struct hello *hello, struct fake_raw **out)
{
	struct fake_wire *wire = raw_wire_of(to);
	struct fake_conn *c;
	int ret;

	if (!wire)
		return -FI_EHOSTUNREACH;
	ret = hello_check(hello);
	if (ret)
		return ret;
	fake_wire_enter(wire);
	c = fake_conn_new(wire, NULL);
	*out = raw_of(c);
	(*out)->err = 1;
	fake_request(c, hello);
	fake_wire_leave(wire);
	return 0;
}

int fake_raw_answered(const struct fake_raw *raw, struct hello *answer)
{
	*answer = raw->answer;
	return raw->err;
}

int fake_raw_open(struct engine_ep *to, const struct hello *hello, struct fake_raw **out,
		  struct hello *answer)
{
	struct fake_raw *raw;
	int ret = fake_raw_request(to, hello, &raw);

	if (ret)
		return ret;
	ret = fake_raw_answered(raw, answer);
	if (ret > 0)
		abort(); /* the endpoint answers later */
	if (ret)
		fake_raw_close(raw, ret);
	else
		*out = raw;
	return ret;
}

/* A connection of the wire that is about to be refused. */
static struct fake_conn *forlorn(struct fake_wire *wire)
{
	struct fake_conn *c;

	list_for_each_entry(c, &wire->conns, link) {
		if (c->answered && c->answer_err == -FI_ECONNREFUSED)
			return c;
	}
	return NULL;
}

int fake_raw_answer(struct engine_ep *from, const struct hello *hello, struct fake_raw **out)
{
	struct fake_wire *wire = raw_wire_of(from);
	struct fake_conn *c = wire && wire->kind == FAKE_B ? forlorn(wire) : NULL;
	int ret;

	if (!c)
		return -FI_ENOENT;
	ret = hello_check(hello);
	fake_wire_enter(wire);
	c->answered = false;
	if (ret) {
		fake_conn_down(c, ret);
	} else {
		*out = raw_of(c);
		c->conn.up = true;
		engine_conn_up(&c->conn, hello);
	}
	fake_wire_leave(wire);
	return ret;
}

void fake_raw_hello(struct hello *hello, const struct weft_addr *like, uint32_t window)
{
	*hello = (struct hello){ .magic = HELLO_MAGIC,
				 .version = HELLO_VERSION,
				 .epoch = 0x1234567890,
				 .window = window,
				 .addr = *like };
	memset(hello->addr.nonce, 0x66, sizeof(hello->addr.nonce));
	hello->addr.port = 6666;
}

int fake_raw_send(struct fake_raw *raw, const struct packet *packet, const void *payload,
		  size_t avail, const void *rest)
{
	struct fake_conn *c = raw->conn;
	struct fake_wire *wire = c->wire;
	struct fake_item *item = fake_alloc(sizeof(*item));
	int ret;

	fake_wire_enter(wire);
	item->packet = *packet;
	item->bytes = fake_alloc(avail);
	if (avail)
		memcpy(item->bytes, payload, avail);
	ret = fake_packet(c, item, avail);
	if (c->dead || ret || avail == packet->len) {
		fake_item_free(item);
		if (ret && ret != -FI_EAGAIN && !c->dead)
			fake_conn_down(c, ret);
	} else {
		/* Only now: the engine has believed that there is so much of it. */
		item->bytes = realloc(item->bytes, packet->len);
		if (!item->bytes)
			abort();
		memset(item->bytes + avail, 0, packet->len - avail);
		if (rest)
			memcpy(item->bytes + avail, rest, packet->len - avail);
		list_add_tail(&c->flowing, &item->link);
	}
	fake_wire_leave(wire);
	if (!ret && rest && raw->conn)
		fake_raw_finish(raw);
	return ret;
}

int fake_raw_finish(struct fake_raw *raw)
{
	struct fake_conn *c = raw->conn;
	struct fake_wire *wire;
	struct list *node;
	int cnt = 0;

	if (!c)
		return 0;
	wire = c->wire;
	fake_wire_enter(wire);
	while (!c->dead && (node = list_pop(&c->flowing))) {
		struct fake_item *item = container_of(node, struct fake_item, link);
		size_t at = 0;

		for (uint32_t i = 0; i < item->dest.iov_cnt && at < item->packet.len; i++) {
			size_t n = item->dest.iov[i].iov_len;

			if (n > item->packet.len - at)
				n = item->packet.len - at;
			memcpy(item->dest.iov[i].iov_base, item->bytes + at, n);
			at += n;
		}
		if (item->dest.cookie)
			engine_payload_done(wire->wire.ep, &c->conn, item->dest.cookie);
		fake_item_free(item);
		cnt++;
	}
	fake_wire_leave(wire);
	return cnt;
}

int fake_raw_read(struct fake_raw *raw, struct packet *packet, void *payload, size_t len)
{
	struct list *node = list_pop(&raw->out);
	struct fake_item *item;

	if (!node)
		return 0;
	item = container_of(node, struct fake_item, link);
	*packet = item->packet;
	if (len > packet->len)
		len = packet->len;
	if (len)
		memcpy(payload, item->bytes, len);
	fake_item_free(item);
	return 1;
}

bool fake_raw_alive(const struct fake_raw *raw)
{
	return raw->conn != NULL;
}

void fake_raw_close(struct fake_raw *raw, int err)
{
	struct packet packet;

	if (raw->conn && !raw->conn->conn.up) {
		raw->conn->raw = NULL; /* reported to an engine that accepts it */
	} else if (raw->conn) {
		struct fake_conn *c = raw->conn;
		struct fake_wire *wire = c->wire;

		fake_wire_enter(wire);
		fake_conn_down(c, err);
		fake_wire_leave(wire);
	}
	while (fake_raw_read(raw, &packet, NULL, 0))
		;
	free(raw);
}
