/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The wire of kofi_loop (engine/wire/wire.h): endpoints of one machine, in domains of any threads. A packet is queued at
 * the end that receives it, with a copy of its payload; payload of a rendezvous is copied by the receiver from where it is.
 *
 * One lock protects all wires, their ends and queues. It ranks after the domains', and is not held while the engine is
 * called, but for engine_wire_wake(), nor while memory is allocated: who waits for that may wait for a consumer that writes
 * back what is in memory over wires of its own. An end is freed by the thread that holds its own domain alone.
 */
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "arrive.h"
#include "copy.h"
#include "kofi_loop.h"
#include "now.h"
#include "send.h"

/* Most packets to one end that it has not taken; what one poll() passes on */
#define LOOP_QUEUE_MAX 256u
#define LOOP_BURST     256

struct loop_packet {
	/* in conn->packets of the end that receives it */
	struct list link;
	struct packet packet;
	uint8_t payload[];
};

struct loop_wire {
	struct wire wire;
	/* in wires */
	struct list link;
	/* struct loop_conn by link; those in the grave are freed when poll() ends */
	struct list conns, grave;
	/* struct loop_conn by ready: poll() has something to pass on of them */
	struct list ready;
	uint8_t nonce[ADDR_NONCE_LEN];
	bool armed, polling;
};

/* One end of two. */
struct loop_conn {
	struct wire_conn conn;
	struct list link, ready;
	struct loop_wire *wire;
	/* NULL: it has ended, with err; the engine hears of that behind what was sent before */
	struct loop_conn *other;
	int err;
	/* A request that is not answered: the engine hears nothing else of it */
	bool asked;
	/* The request, or the answer, is to be passed on */
	bool news;
	bool buried;
	/* of the other end */
	struct hello hello;
	/* To this end */
	struct list packets;
	uint32_t queued;
	/* What this end has sent by sendv() */
	struct wire_ended sent;
};

static struct platform_lock loop_lock;
static struct list wires = { &wires, &wires };

void kofi_loop_begin(void)
{
	platform_lock_init(&loop_lock);
}

void kofi_loop_end(void)
{
	platform_lock_fini(&loop_lock);
}

static struct loop_wire *wire_of(struct wire *wire)
{
	return container_of(wire, struct loop_wire, wire);
}

static struct loop_conn *conn_of(struct wire_conn *conn)
{
	return container_of(conn, struct loop_conn, conn);
}

/* Ends that come and go, with the lock */

static void conn_add(struct loop_conn *c, struct loop_wire *wire, struct engine_peer *peer)
{
	c->conn.wire = &wire->wire;
	c->conn.peer = peer;
	c->wire = wire;
	list_init(&c->packets);
	list_init(&c->ready);
	list_add_tail(&wire->conns, &c->link);
}

/* Has poll() pass on what there is of an end, and wakes who sleeps there. */
static void conn_ready(struct loop_conn *c)
{
	if (list_empty(&c->ready))
		list_add_tail(&c->wire->ready, &c->ready);
	if (c->wire->armed)
		engine_wire_wake(&c->wire->wire);
}

/* The other end hears of the end of this one, with @err. */
static void conn_part(struct loop_conn *c, int err)
{
	struct loop_conn *other = c->other;

	if (!other)
		return;
	c->other = other->other = NULL;
	other->err = err;
	if (!other->asked)
		conn_ready(other);
}

static void conn_bury(struct loop_conn *c)
{
	struct list *node;

	while ((node = list_pop(&c->packets)))
		platform_free(container_of(node, struct loop_packet, link));
	list_remove(&c->ready);
	list_remove(&c->link);
	c->buried = true;
	if (c->wire->polling)
		list_add_tail(&c->wire->grave, &c->link);
	else
		platform_free(c);
}

/* Opening and connecting */

static int loop_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
		     struct wire **out, char *why, size_t why_len)
{
	struct loop_wire *wire = platform_alloc(sizeof(*wire));

	if (!wire) {
		snprintf(why, why_len, "no memory");
		return -FI_ENOMEM;
	}
	list_init(&wire->conns);
	list_init(&wire->grave);
	list_init(&wire->ready);
	memcpy(wire->nonce, addr->nonce, sizeof(wire->nonce));
	platform_lock(&loop_lock);
	list_add_tail(&wires, &wire->link);
	platform_unlock(&loop_lock);
	*out = &wire->wire;
	return 0;
}

static void loop_close(struct wire *base)
{
	struct loop_wire *wire = wire_of(base);

	platform_lock(&loop_lock);
	while (!list_empty(&wire->conns)) {
		struct loop_conn *c = container_of(wire->conns.next, struct loop_conn, link);

		conn_part(c, c->asked ? -FI_ECONNREFUSED : 0);
		conn_bury(c);
	}
	list_remove(&wire->link);
	platform_unlock(&loop_lock);
	platform_free(wire);
}

static struct loop_wire *wire_at(const struct weft_addr *addr)
{
	struct loop_wire *wire;

	list_for_each_entry(wire, &wires, link)
		if (addr->kind == ADDR_NONCE &&
		    !memcmp(wire->nonce, addr->nonce, sizeof(wire->nonce)))
			return wire;
	return NULL;
}

static int loop_connect(struct wire *wire, struct engine_peer *peer,
			const struct weft_addr *addr, const struct hello *hello,
			struct wire_conn **conn)
{
	struct loop_conn *c = platform_alloc(sizeof(*c));
	struct loop_conn *request = platform_alloc(sizeof(*request));
	struct loop_wire *to = NULL;
	int ret = c && request ? -FI_ECONNREFUSED : -FI_EAGAIN;

	platform_lock(&loop_lock);
	if (c && request)
		to = wire_at(addr);
	if (to) {
		conn_add(c, wire_of(wire), peer);
		conn_add(request, to, NULL);
		c->other = request;
		request->other = c;
		request->hello = *hello;
		request->asked = request->news = true;
		conn_ready(request);
		*conn = &c->conn;
	}
	platform_unlock(&loop_lock);
	if (to)
		return 0;
	platform_free(c);
	platform_free(request);
	return ret;
}

static void loop_disconnect(struct wire_conn *conn)
{
	platform_lock(&loop_lock);
	conn_part(conn_of(conn), -FI_ECONNRESET);
	conn_bury(conn_of(conn));
	platform_unlock(&loop_lock);
}

static void loop_accept(struct wire_conn *conn, const struct hello *hello)
{
	struct loop_conn *c = conn_of(conn);

	platform_lock(&loop_lock);
	c->asked = false;
	c->news = true;
	conn_ready(c);
	if (c->other) {
		c->other->hello = *hello;
		c->other->news = true;
		conn_ready(c->other);
	}
	platform_unlock(&loop_lock);
}

static void loop_refuse(struct wire_conn *conn, int err, const struct hello_data *data)
{
	struct loop_conn *c = conn_of(conn);

	platform_lock(&loop_lock);
	if (c->other)
		c->other->hello.data = data ? *data : (struct hello_data){ .len = 0 };
	conn_part(c, err);
	conn_bury(c);
	platform_unlock(&loop_lock);
}

/* Sending */

static struct packet *loop_claim(struct wire_conn *conn, size_t len, void **payload)
{
	struct loop_conn *c = conn_of(conn);
	struct loop_packet *p = NULL;
	bool room;

	platform_lock(&loop_lock);
	room = !c->other || c->other->queued < LOOP_QUEUE_MAX;
	platform_unlock(&loop_lock);
	if (room)
		p = platform_alloc(sizeof(*p) + len);
	if (!p)
		return NULL;
	*payload = p->payload;
	return &p->packet;
}

/* @done: its end is to be reported, or NULL */
static void packet_send(struct loop_conn *c, struct packet *packet, struct wire_op *done)
{
	struct loop_packet *p = container_of(packet, struct loop_packet, packet);

	platform_lock(&loop_lock);
	if (done) {
		wire_ended_add(&c->sent, done);
		conn_ready(c);
	}
	if (c->other) {
		c->other->queued++;
		list_add_tail(&c->other->packets, &p->link);
		conn_ready(c->other);
		p = NULL;
	}
	platform_unlock(&loop_lock);
	platform_free(p);
}

static void loop_publish(struct wire_conn *conn, struct packet *packet, bool more)
{
	packet_send(conn_of(conn), packet, NULL);
}

static int loop_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
		      size_t iov_cnt, struct wire_op *op)
{
	void *payload;
	struct packet *packet = loop_claim(conn, hdr->len, &payload);

	if (!packet)
		return -FI_EAGAIN;
	*packet = *hdr;
	copy_from_iov(payload, iov, iov_cnt, 0, hdr->len);
	packet_send(conn_of(conn), packet, op);
	return 0;
}

/* The sender's memory is there while its end is: it parts with the lock. */
static int loop_get(struct wire_conn *conn, const struct wire_source *from,
		    const struct iovec *iov, size_t iov_cnt, struct wire_op *op)
{
	size_t skip = 0;
	int ret = -FI_EIO;

	platform_lock(&loop_lock);
	if (conn_of(conn)->other) {
		for (size_t i = 0; i < iov_cnt; skip += iov[i++].iov_len)
			copy_from_iov(iov[i].iov_base, from->iov, from->iov_cnt, skip,
				      iov[i].iov_len);
		ret = 1;
	}
	platform_unlock(&loop_lock);
	return ret;
}

/* Progress: each with the engine's part of it, without the lock */

/* @err: why it has ended */
static void conn_down(struct loop_conn *c, int err)
{
	if (!c->conn.up)
		engine_conn_refused(&c->conn, err ? err : -FI_ECONNREFUSED, &c->hello.data);
	else
		engine_conn_down(&c->conn, err);
	platform_lock(&loop_lock);
	if (!c->buried)
		conn_bury(c);
	platform_unlock(&loop_lock);
}

static void news_pass(struct loop_conn *c)
{
	if (!c->asked) {
		c->conn.up = true;
		engine_conn_up(&c->conn, &c->hello);
	} else if (hello_check(&c->hello)) {
		loop_refuse(&c->conn, -FI_EINVAL, NULL);
	} else {
		engine_conn_request(&c->conn, &c->hello);
	}
}

static void packet_pass(struct loop_conn *c, struct loop_packet *p)
{
	struct wire_dest dest = { .iov_cnt = 0 };
	int err = engine_packet(c->wire->wire.ep, &c->conn, &p->packet, p->payload,
				p->packet.len, &dest);

	platform_free(p);
	if (!err || c->buried)
		return;
	platform_lock(&loop_lock);
	conn_part(c, -FI_ECONNRESET);
	platform_unlock(&loop_lock);
	conn_down(c, err);
}

/*
 * Returns true for a request, and for an end that comes up. One whose other end is gone, and has sent nothing, does not: what
 * waits for it to come up would be sent to nobody.
 */
static bool conn_has_news(const struct loop_conn *c)
{
	return c->news && (c->asked || c->other || c->queued);
}

/* Passes on the next thing of an end that is ready. With the lock, which is not held meanwhile. */
static void conn_pass(struct loop_conn *c)
{
	bool news = conn_has_news(c);
	struct wire_op *sent = news ? NULL : wire_ended_take(&c->sent);
	struct list *node = NULL;

	c->news = false;
	if (!news && !sent && c->queued) {
		node = list_pop(&c->packets);
		c->queued--;
	}
	platform_unlock(&loop_lock);
	if (news)
		news_pass(c);
	else if (sent)
		sent->done(sent, 0);
	else if (node)
		packet_pass(c, container_of(node, struct loop_packet, link));
	else
		conn_down(c, c->err);
	platform_lock(&loop_lock);
}

/* Returns true if there is something else of it. */
static bool conn_has(const struct loop_conn *c)
{
	if (c->buried || c->asked)
		return false;
	return c->news || c->sent.first || !list_empty(&c->packets) || !c->other;
}

static int loop_poll(struct wire *base)
{
	struct loop_wire *wire = wire_of(base);
	struct list *node;
	int moved = 0;

	platform_lock(&loop_lock);
	wire->polling = true;
	for (; moved < LOOP_BURST && (node = list_pop(&wire->ready)); moved++) {
		struct loop_conn *c = container_of(node, struct loop_conn, ready);

		conn_pass(c);
		if (conn_has(c) && list_empty(&c->ready))
			list_add_tail(&wire->ready, &c->ready);
	}
	wire->polling = false;
	while ((node = list_pop(&wire->grave)))
		platform_free(container_of(node, struct loop_conn, link));
	platform_unlock(&loop_lock);
	return moved;
}

/* Sleeping */

static uint64_t loop_arm(struct wire *base)
{
	struct loop_wire *wire = wire_of(base);
	bool armed;

	platform_lock(&loop_lock);
	armed = wire->armed = list_empty(&wire->ready);
	platform_unlock(&loop_lock);
	return armed ? UINT64_MAX : 0;
}

static void loop_disarm(struct wire *base)
{
	platform_lock(&loop_lock);
	wire_of(base)->armed = false;
	platform_unlock(&loop_lock);
}

/* The engine's sends over this table, which is constant */

static const struct wire_ops loop_ops;

static ssize_t loop_send(struct engine_ep *ep, struct engine_peer *peer,
			 const struct engine_msg *msg)
{
	return engine_send_on(ep, peer, msg, &loop_ops);
}

static bool loop_access(struct engine_ctx *ctx, struct engine_peer *peer,
			const struct engine_access *access)
{
	return engine_access_on(ctx, peer, access, &loop_ops);
}

static const struct wire_ops loop_ops = {
	.size = sizeof(struct wire_ops),
	.name = "loop",
	.claim_max = WIRE_REQUEST_MAX,
	.eager_max = WIRE_REQUEST_MAX,
	.in_order = true,
	.arrives = true,
	.polls_after_send = true,
	.open = loop_open,
	.close = loop_close,
	.connect = loop_connect,
	.disconnect = loop_disconnect,
	.accept = loop_accept,
	.refuse = loop_refuse,
	.claim = loop_claim,
	.publish = loop_publish,
	.sendv = loop_sendv,
	.get = loop_get,
	.poll = loop_poll,
	.arm = loop_arm,
	.disarm = loop_disarm,
	.send = loop_send,
	.tsend = engine_wire_tsend,
	.tinject = engine_wire_tinject,
	.tsenddata = engine_wire_tsenddata,
	.tinjectdata = engine_wire_tinjectdata,
	.access = loop_access,
};

const struct wire_provider kofi_loop_wire = {
	.size = sizeof(struct wire_provider),
	.version = WIRE_LAYOUT,
	.layout = WIRE_LAYOUT,
	.ops = &loop_ops,
};
