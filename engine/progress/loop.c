/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The wire from an endpoint to itself: a queue of packets. Every endpoint of the engine has one, so
 * that sends to itself need neither shared memory nor a network. Called by the engine, with the
 * domain held.
 */
#include <rdma/fi_errno.h>
#include "conns.h"
#include "list.h"
#include "loop.h"
#include "now.h"
#include "recv.h"
#include "send.h"

#define LOOP_CLAIM_MAX WIRE_REQUEST_MAX
/* Most packets in the queue */
#define LOOP_QUEUE_MAX 1024u
/* Most packets that one poll() delivers */
#define LOOP_BURST 64u

/* A published packet with its payload, or the header of a sendv. */
struct loop_item {
	struct list link;
	struct packet packet;
	/* Operation of a sendv, whose payload is at @iov; NULL: it is in @payload */
	struct wire_op *op;
	struct iovec iov[WIRE_IOV_MAX];
	uint32_t iov_cnt;
	uint8_t payload[];
};

enum loop_state {
	LOOP_IDLE,
	/* connect() was called, and poll() has not passed the request on yet */
	LOOP_CONNECTING,
	/* The engine owns the request */
	LOOP_REQUESTED,
	/* The engine owns the request, whose requester has been disconnected */
	LOOP_GIVEN_UP,
	/* The engine has answered, and poll() has not reported that yet */
	LOOP_ACCEPTED,
	LOOP_REFUSED,
	/* The engine has accepted, and the requester has been disconnected */
	LOOP_ACCEPTED_LATE,
	/* Both ends are up */
	LOOP_CONNECTED,
};

struct loop {
	struct wire wire;
	/* The end that sends, which requests; and the end that receives, which is requested */
	struct wire_conn out, in;
	/* Hello of the request, and of the answer */
	struct hello hello, answer;
	enum loop_state state;
	/* LOOP_REFUSED: -FI_E* */
	int refusal;
	/* struct loop_item in the order of sending */
	struct list queue;
	/* Entries of @queue */
	uint32_t queued;
	/* A packet that is queued wakes the sleepers of the domain */
	bool armed;
};

static int loop_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
		     struct wire **wire, char *why, size_t why_len)
{
	struct loop *loop = platform_alloc(sizeof(*loop));

	if (!loop)
		return -FI_ENOMEM;
	list_init(&loop->queue);
	*wire = &loop->wire;
	return 0;
}

static void loop_drop_all(struct loop *loop)
{
	struct list *node;

	while ((node = list_pop(&loop->queue)))
		platform_free(container_of(node, struct loop_item, link));
	loop->queued = 0;
}

static void loop_close(struct wire *wire)
{
	struct loop *loop = container_of(wire, struct loop, wire);

	loop_drop_all(loop);
	platform_free(loop);
}

static int loop_connect(struct wire *wire, struct engine_peer *peer,
			const struct weft_addr *addr, const struct hello *hello,
			struct wire_conn **conn)
{
	struct loop *loop = container_of(wire, struct loop, wire);

	if (loop->state != LOOP_IDLE)
		return -FI_EAGAIN;
	loop->hello = *hello;
	loop->out = (struct wire_conn){ .wire = wire, .peer = peer };
	loop->in = (struct wire_conn){ .wire = wire };
	loop->state = LOOP_CONNECTING;
	*conn = &loop->out;
	return 0;
}

static void loop_disconnect(struct wire_conn *conn)
{
	struct loop *loop = container_of(conn->wire, struct loop, wire);

	loop_drop_all(loop);
	if (loop->state == LOOP_REQUESTED)
		loop->state = LOOP_GIVEN_UP;
	else if (loop->state == LOOP_ACCEPTED)
		loop->state = LOOP_ACCEPTED_LATE;
	else
		loop->state = LOOP_IDLE;
}

/* Wakes the sleepers of the domain: poll() has something to do. */
static void loop_wake(struct loop *loop)
{
	if (unlikely(loop->armed))
		engine_wire_wake(&loop->wire);
}

static void loop_accept(struct wire_conn *conn, const struct hello *hello)
{
	struct loop *loop = container_of(conn->wire, struct loop, wire);

	loop->answer = *hello;
	loop->state = loop->state == LOOP_GIVEN_UP ? LOOP_ACCEPTED_LATE : LOOP_ACCEPTED;
	loop_wake(loop);
}

static void loop_refuse(struct wire_conn *conn, int err, const struct hello_data *data)
{
	struct loop *loop = container_of(conn->wire, struct loop, wire);

	loop->answer.data = data ? *data : (struct hello_data){ .len = 0 };
	loop->refusal = err;
	loop->state = loop->state == LOOP_GIVEN_UP ? LOOP_IDLE : LOOP_REFUSED;
	loop_wake(loop);
}

static struct loop_item *loop_item_new(struct loop *loop, size_t len)
{
	struct loop_item *item;

	if (loop->queued == LOOP_QUEUE_MAX)
		return NULL;
	item = platform_alloc(sizeof(*item) + len);
	return item;
}

static void loop_enqueue(struct loop *loop, struct loop_item *item)
{
	list_add_tail(&loop->queue, &item->link);
	loop->queued++;
	loop_wake(loop);
}

static struct packet *loop_claim(struct wire_conn *conn, size_t len, void **payload)
{
	struct loop_item *item = loop_item_new(container_of(conn->wire, struct loop, wire), len);

	if (!item)
		return NULL;
	*payload = item->payload;
	return &item->packet;
}

static void loop_publish(struct wire_conn *conn, struct packet *packet, bool more)
{
	loop_enqueue(container_of(conn->wire, struct loop, wire),
		     container_of(packet, struct loop_item, packet));
}

static int loop_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
		      size_t iov_cnt, struct wire_op *op)
{
	struct loop *loop = container_of(conn->wire, struct loop, wire);
	struct loop_item *item = loop_item_new(loop, 0);

	if (!item)
		return -FI_EAGAIN;
	item->packet = *hdr;
	item->op = op;
	item->iov_cnt = (uint32_t)iov_cnt;
	memcpy(item->iov, iov, iov_cnt * sizeof(*iov));
	loop_enqueue(loop, item);
	return 0;
}

static int loop_get(struct wire_conn *conn, const struct wire_source *from,
		    const struct iovec *iov, size_t iov_cnt, struct wire_op *op)
{
	struct iovec pieces[WIRE_IOV_MAX];
	size_t skip = 0, cnt;

	for (size_t i = 0; i < iov_cnt; skip += iov[i++].iov_len) {
		char *to = iov[i].iov_base;

		cnt = iov_slice(from->iov, from->iov_cnt, skip, iov[i].iov_len, pieces);
		/* Source and destination may overlap. */
		for (size_t k = 0; k < cnt; to += pieces[k++].iov_len)
			memmove(to, pieces[k].iov_base, pieces[k].iov_len);
	}
	return 1;
}

/* Copy the payload of a sendv from the memory of the send to its destination. */
static void loop_copy(const struct loop_item *item, const struct wire_dest *dest)
{
	size_t skip = 0;

	for (uint32_t i = 0; i < dest->iov_cnt; i++) {
		copy_from_iov(dest->iov[i].iov_base, item->iov, item->iov_cnt, skip,
			      dest->iov[i].iov_len);
		skip += dest->iov[i].iov_len;
	}
}

/* Add the traffic of @in to that of @out: reports show both ends as one route. */
static void loop_count(struct loop *loop)
{
	loop->out.rx_msgs += loop->in.rx_msgs;
	loop->out.rx_bytes += loop->in.rx_bytes;
	loop->out.tx_bytes += loop->in.tx_bytes;
	loop->in.rx_msgs = loop->in.rx_bytes = loop->in.tx_bytes = 0;
}

static void loop_deliver(struct loop *loop, struct loop_item *item)
{
	struct engine_ep *ep = loop->wire.ep;
	size_t avail = item->op ? 0 : item->packet.len;
	struct wire_dest dest = { .iov_cnt = 0 };

	if (engine_packet(ep, &loop->in, &item->packet, item->payload, avail, &dest)) {
		/* A packet of this endpoint was refused: its operation can't complete. */
		platform_free(item);
		engine_conn_broken(loop->in.peer, -FI_EIO);
		return;
	}
	loop_count(loop);
	/* The packet may have ended the connection: then item->op is gone. */
	if (loop->state != LOOP_CONNECTED) {
		platform_free(item);
		return;
	}
	if (avail != item->packet.len)
		loop_copy(item, &dest);
	/* The send ends first: the end of its receive may end the connection, and what it has sent. */
	if (item->op)
		item->op->done(item->op, 0);
	if (dest.cookie)
		engine_payload_done(ep, &loop->in, dest.cookie);
	platform_free(item);
}

/* Takes the next step of connecting this endpoint to itself. */
static void loop_step(struct loop *loop)
{
	if (loop->state == LOOP_CONNECTING) {
		loop->state = LOOP_REQUESTED;
		engine_conn_request(&loop->in, &loop->hello);
	}
	switch (loop->state) {
	case LOOP_ACCEPTED:
		loop->state = LOOP_CONNECTED;
		loop->in.up = loop->out.up = true;
		engine_conn_up(&loop->in, &loop->hello);
		engine_conn_up(&loop->out, &loop->answer);
		return;
	case LOOP_REFUSED:
		loop->state = LOOP_IDLE;
		engine_conn_refused(&loop->out, loop->refusal, &loop->answer.data);
		return;
	case LOOP_ACCEPTED_LATE:
		loop->state = LOOP_IDLE;
		engine_conn_down(&loop->in, -FI_ECONNRESET);
		return;
	default:
		return;
	}
}

/* Returns true if loop_step() has something to do. */
static bool loop_step_due(const struct loop *loop)
{
	return loop->state == LOOP_CONNECTING || loop->state == LOOP_ACCEPTED ||
	       loop->state == LOOP_REFUSED || loop->state == LOOP_ACCEPTED_LATE;
}

static int loop_poll(struct wire *wire)
{
	struct loop *loop = container_of(wire, struct loop, wire);
	uint32_t moved = 0;
	struct list *node;

	if (unlikely(loop_step_due(loop)))
		loop_step(loop);
	while (moved < LOOP_BURST && (node = list_pop(&loop->queue))) {
		loop->queued--;
		moved++;
		loop_deliver(loop, container_of(node, struct loop_item, link));
	}
	return (int)moved;
}

/*
 * The wire has no bell: packets come only from calls of this domain, and loop_enqueue() wakes the
 * sleepers.
 */
static uint64_t loop_arm(struct wire *wire)
{
	struct loop *loop = container_of(wire, struct loop, wire);

	loop->armed = !loop_step_due(loop) && list_empty(&loop->queue);
	return loop->armed ? UINT64_MAX : 0;
}

static void loop_disarm(struct wire *wire)
{
	container_of(wire, struct loop, wire)->armed = false;
}

static int loop_check(struct wire_conn *conn)
{
	return 0;
}

static void loop_local(struct wire *wire, char *buf, size_t len)
{
	if (len)
		buf[0] = '\0';
}

static ssize_t loop_send(struct engine_ep *ep, struct engine_peer *peer,
			 const struct engine_msg *msg)
{
	return engine_send_on(ep, peer, msg, &loop_wire_ops);
}

static bool loop_access(struct engine_ctx *ctx, struct engine_peer *peer,
			const struct engine_access *access)
{
	return engine_access_on(ctx, peer, access, &loop_wire_ops);
}

const struct wire_ops loop_wire_ops = {
	.size = sizeof(struct wire_ops),
	.name = "self",
	.claim_max = LOOP_CLAIM_MAX,
	.eager_max = LOOP_CLAIM_MAX,
	.in_order = true,
	.arrives = true,
	.polls_after_send = true,
	.open = loop_open,
	.close = loop_close,
	.connect = loop_connect,
	.disconnect = loop_disconnect,
	.claim = loop_claim,
	.publish = loop_publish,
	.sendv = loop_sendv,
	.get = loop_get,
	.poll = loop_poll,
	.check = loop_check,
	.local = loop_local,
	.send = loop_send,
	.tsend = engine_wire_tsend,
	.tinject = engine_wire_tinject,
	.tsenddata = engine_wire_tsenddata,
	.tinjectdata = engine_wire_tinjectdata,
	.access = loop_access,
	.accept = loop_accept,
	.refuse = loop_refuse,
	.arm = loop_arm,
	.disarm = loop_disarm,
};
