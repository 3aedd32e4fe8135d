/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The wire of kofi_ibverbs (engine/wire/wire.h): its endpoints, and packets, each a message of a link from memory that the
 * device knows. Called by the engine with the domain held.
 */
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "conn.h"
#include "copy.h"
#include "kofi_ibverbs.h"
#include "now.h"
#include "send.h"

#define KIB_CLAIM_MAX WIRE_REQUEST_MAX
/* Time that the ends of conns have to be delivered when an endpoint closes */
#define KIB_CLOSE_NS 1000000000u

/* Steps of rdma_cm that one poll takes */
#define KIB_EVENTS_MAX 64
/* Conns that have a deadline are looked at so often while all sleep */
#define KIB_LOOK_NS 50000000u

#define KIB_PACKET_AT  sizeof(struct kib_head)
#define KIB_PAYLOAD_AT (KIB_PACKET_AT + sizeof(struct packet))

/* Packets */

static struct packet *kib_claim(struct wire_conn *conn, size_t len, void **payload)
{
	struct kib_conn *c = kib_conn_of(conn);
	struct kib_message *message;

	if (unlikely(c->receives <= KIB_RESERVE || kib_link_spare(c->link) <= KIB_RESERVE ||
		     c->ended))
		return NULL;
	message = c->claimed = kib_link_claim(c->link);
	*payload = message->bytes + KIB_PAYLOAD_AT;
	return (struct packet *)(message->bytes + KIB_PACKET_AT);
}

static void kib_publish(struct wire_conn *conn, struct packet *packet, bool more)
{
	struct kib_conn *c = kib_conn_of(conn);
	struct kib_message *message = c->claimed;
	uint32_t len = packet->len;

	kib_head_put(c, message->bytes, KIB_PACKET, (uint32_t)sizeof(*packet) + len);
	if (unlikely(kib_link_send(c->link, message, (uint32_t)KIB_PAYLOAD_AT + len)))
		kib_conn_broken(c, -FI_ECONNRESET);
}

static int kib_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
		     size_t iov_cnt, struct wire_op *op)
{
	struct kib_conn *c = kib_conn_of(conn);
	struct packet *packet;
	void *payload;

	if (hdr->len > KIB_CLAIM_MAX)
		return kib_offer(c, hdr, iov, iov_cnt, op);
	packet = kib_claim(conn, hdr->len, &payload);
	if (!packet)
		return -FI_EAGAIN;
	*packet = *hdr;
	copy_from_iov(payload, iov, iov_cnt, 0, hdr->len);
	kib_publish(conn, packet, false);
	wire_ended_add(&c->sent, op);
	c->wire->due = true;
	return 0;
}

/* Endpoints */

static void kib_wake(void *arg)
{
	struct kib_wire *wire = arg;

	engine_wire_wake(&wire->wire);
}

static void address_of(struct kib_address *out, const struct weft_addr *from)
{
	out->family = from->family;
	out->port = from->port;
	out->scope = from->scope;
	memcpy(out->ip, from->ip, sizeof(out->ip));
}

/* The first address of a device, where none is asked for. Returns 0 or -FI_E*. */
static int address_choose(struct kib_address *at)
{
	struct kib_place *place = platform_alloc(sizeof(*place));
	uint16_t port = at->port;
	int cnt;

	if (!place)
		return -FI_ENOMEM;
	cnt = kib_places(place, 1);
	if (cnt > 0) {
		*at = place->address;
		at->port = port;
	}
	platform_free(place);
	return cnt > 0 ? 0 : cnt ? cnt : -FI_ENODEV;
}

static int kib_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
		    struct wire **out, char *why, size_t why_len)
{
	struct kib_wire *wire = platform_alloc(sizeof(*wire));
	struct kib_address at = { .family = ADDR_FAMILY_NONE };
	int ret = 0;

	if (!wire) {
		snprintf(why, why_len, "no memory");
		return -FI_ENOMEM;
	}
	list_init(&wire->conns);
	list_init(&wire->grave);
	wire->dials = attr->dials;
	if (attr->bind)
		address_of(&at, attr->bind);
	if (at.family == ADDR_FAMILY_NONE)
		ret = address_choose(&at);
	if (!ret)
		ret = kib_port_open(&at, !attr->dials, kib_wake, wire, &wire->port,
				    &wire->where);
	if (ret) {
		snprintf(why, why_len, "no RDMA device can be reached there (%d)", -ret);
		platform_free(wire);
		return ret;
	}
	if (!attr->dials) {
		addr->family = wire->where.family;
		addr->port = wire->where.port;
		addr->scope = wire->where.scope;
		memcpy(addr->ip, wire->where.ip, sizeof(addr->ip));
	}
	*out = &wire->wire;
	return 0;
}

static void grave_empty(struct kib_wire *wire)
{
	struct list *node;

	while ((node = list_pop(&wire->grave)))
		kib_conn_free(container_of(node, struct kib_conn, node));
}

/* Calls @turn for each conn: those that come meanwhile have their turn later. Returns the sum. */
static int each_conn(struct kib_wire *wire, int (*turn)(struct kib_conn *c))
{
	uint32_t left = wire->conn_cnt;
	int moved = 0;

	while (left-- && !list_empty(&wire->conns)) {
		struct list *node = list_pop(&wire->conns);

		list_add_tail(&wire->conns, node);
		moved += turn(container_of(node, struct kib_conn, node));
	}
	return moved;
}

static int closing_begin(struct kib_conn *c)
{
	if (c->state == KIB_REQUESTED)
		kib_refuse(&c->conn, -FI_ECONNREFUSED, NULL);
	return 0;
}

static int closing_turn(struct kib_conn *c)
{
	if (kib_conn_closing(c))
		kib_conn_bury(c);
	return 0;
}

static int closing_end(struct kib_conn *c)
{
	kib_conn_bury(c);
	return 0;
}

static void kib_close(struct wire *base)
{
	struct kib_wire *wire = kib_wire_of(base);
	uint64_t end = platform_now_ns() + KIB_CLOSE_NS;

	wire->closing = true;
	wire->polling = true;
	each_conn(wire, closing_begin);
	each_conn(wire, closing_turn);
	while (!list_empty(&wire->conns) && platform_now_ns() < end) {
		platform_yield();
		each_conn(wire, closing_turn);
	}
	each_conn(wire, closing_end);
	grave_empty(wire);
	kib_port_close(wire->port);
	platform_free(wire);
}

/* Progress */

static int kib_poll(struct wire *base)
{
	struct kib_wire *wire = kib_wire_of(base);
	struct kib_event event;
	int moved = 0;

	wire->polling = true;
	wire->due = false;
	while (moved < KIB_EVENTS_MAX && kib_port_next(wire->port, &event)) {
		kib_conn_step(wire, &event);
		moved++;
	}
	moved += each_conn(wire, kib_conn_turn);
	wire->polling = false;
	grave_empty(wire);
	return moved;
}

static uint64_t kib_arm(struct wire *base)
{
	struct kib_wire *wire = kib_wire_of(base);
	uint64_t ns = UINT64_MAX;
	struct kib_conn *c;

	if (wire->due || !kib_port_arm(wire->port))
		return 0;
	list_for_each_entry(c, &wire->conns, node)
		if (c->state == KIB_GREETED || c->state == KIB_REFUSING)
			ns = KIB_LOOK_NS;
	return ns;
}

static void kib_disarm(struct wire *base)
{
	kib_port_disarm(kib_wire_of(base)->port);
}

/*
 * A peer that says nothing may be gone, and nothing may be on its way to it that would tell, such as where it has no receive
 * left. Its device answers by itself.
 */
static int kib_check(struct wire_conn *conn)
{
	struct kib_conn *c = kib_conn_of(conn);
	uint64_t now = platform_now_ns();

	if (c->ended || now < c->probe_ns)
		return 0;
	c->probe_ns = now + KIB_PROBE_NS;
	if (kib_link_probe(c->link))
		kib_conn_broken(c, -FI_ECONNRESET);
	return 0;
}

static const struct wire_ops kib_ops;

static ssize_t kib_send(struct engine_ep *ep, struct engine_peer *peer,
			const struct engine_msg *msg)
{
	return engine_send_on(ep, peer, msg, &kib_ops);
}

static bool kib_access(struct engine_ctx *ctx, struct engine_peer *peer,
		       const struct engine_access *access)
{
	return engine_access_on(ctx, peer, access, &kib_ops);
}

static const struct wire_ops kib_ops = {
	.size = sizeof(struct wire_ops),
	.name = "ibverbs",
	.claim_max = KIB_CLAIM_MAX,
	.eager_max = KIB_CLAIM_MAX,
	.in_order = true,
	.polls_after_send = true,
	.open = kib_open,
	.close = kib_close,
	.connect = kib_connect,
	.disconnect = kib_disconnect,
	.claim = kib_claim,
	.publish = kib_publish,
	.sendv = kib_sendv,
	.get = kib_get,
	.get_by_id = true,
	.poll = kib_poll,
	.check = kib_check,
	.send = kib_send,
	.tsend = engine_wire_tsend,
	.tinject = engine_wire_tinject,
	.tsenddata = engine_wire_tsenddata,
	.tinjectdata = engine_wire_tinjectdata,
	.access = kib_access,
	.accept = kib_accept,
	.refuse = kib_refuse,
	.arm = kib_arm,
	.disarm = kib_disarm,
	.names = kib_names,
	.part = kib_part,
	.join = kib_join,
	.drop = kib_drop,
};

const struct wire_provider kofi_ibverbs_wire = {
	.size = sizeof(struct wire_provider),
	.version = WIRE_LAYOUT,
	.layout = WIRE_LAYOUT,
	.ops = &kib_ops,
};
