/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How conns of kofi_ibverbs come up (conn.h): greetings in the private data of rdma_cm, the engine's hello and its
 * answer as messages. Of MSG endpoints a conn changes its wire meanwhile.
 */
#include <rdma/fi_errno.h>
#include "conn.h"
#include "kofi_ibverbs.h"

static struct kib_greeting greeting_mine(void)
{
	return (struct kib_greeting){ .magic = KIB_MAGIC,
				      .version = KIB_VERSION,
				      .depth = KIB_DEPTH,
				      .message_max = KIB_MESSAGE_MAX,
				      .window_max = KIB_WINDOW_MAX,
				      .name = KIB_NAME };
}

/* Takes over what the peer can. Returns 0, -FI_ENOPROTOOPT or -FI_EINVAL. */
static int greeting_check(struct kib_conn *c, const struct kib_event *event)
{
	const struct kib_greeting mine = greeting_mine();
	struct kib_greeting its;

	if (event->greeting_len < sizeof(its))
		return -FI_EINVAL;
	memcpy(&its, event->greeting, sizeof(its));
	if (its.magic != KIB_MAGIC || memcmp(its.name, mine.name, sizeof(its.name)))
		return -FI_EINVAL;
	if (its.version != KIB_VERSION)
		return -FI_ENOPROTOOPT;
	/* What either side sends fits what the other receives. */
	if (its.depth < 4 * KIB_RESERVE || its.message_max < KIB_MESSAGE_MAX ||
	    its.window_max > KIB_WINDOW_MAX || !its.window_max)
		return -FI_EINVAL;
	c->depth = c->receives = its.depth;
	return 0;
}

static void address_to(struct weft_addr *out, const struct kib_address *from)
{
	*out = (struct weft_addr){ .version = ADDR_VERSION,
				   .kind = ADDR_SERVICE,
				   .family = from->family,
				   .port = from->port,
				   .scope = from->scope };
	memcpy(out->ip, from->ip, sizeof(out->ip));
}

int kib_connect(struct wire *base, struct engine_peer *peer, const struct weft_addr *addr,
		const struct hello *hello, struct wire_conn **conn)
{
	struct kib_wire *wire = kib_wire_of(base);
	const struct kib_greeting greeting = greeting_mine();
	struct kib_address to = { .family = addr->family,
				  .port = addr->port,
				  .scope = addr->scope };
	struct kib_conn *c;
	int ret;

	if (addr->family != wire->where.family)
		return -FI_EHOSTUNREACH;
	c = kib_conn_new(wire, peer, KIB_DIALLING);
	if (!c)
		return -FI_EAGAIN;
	memcpy(to.ip, addr->ip, sizeof(to.ip));
	c->mine = *hello;
	ret = kib_link_dial(wire->port, &to, &greeting, sizeof(greeting), &c->link);
	if (ret) {
		kib_conn_bury(c);
		return ret;
	}
	kib_link_own(c->link, c);
	*conn = &c->conn;
	return 0;
}

void kib_hello_say(struct kib_conn *c)
{
	c->hello_sent = kib_say(c, KIB_HELLO, &c->mine, sizeof(c->mine));
	c->stuck |= !c->hello_sent;
}

/* Returns true if as many peers as may have not said who they are. */
static bool greeted_full(struct kib_wire *wire)
{
	uint32_t cnt = 0;
	struct kib_conn *c;

	list_for_each_entry(c, &wire->conns, node)
		cnt += c->state == KIB_GREETED;
	return cnt >= KIB_GREETED_MAX;
}

static void conn_received(struct kib_wire *wire, const struct kib_event *event)
{
	const struct kib_greeting greeting = greeting_mine();
	struct kib_conn *c = NULL;

	if (!greeted_full(wire))
		c = kib_conn_new(wire, NULL, KIB_GREETED);
	if (!c) {
		kib_link_free(event->link);
		return;
	}
	c->link = event->link;
	kib_link_own(c->link, c);
	c->deadline_ns = platform_now_ns() + KIB_ANSWER_NS;
	if (wire->dials || greeting_check(c, event)) {
		kib_link_reject(c->link, &greeting, sizeof(greeting));
		kib_conn_bury(c);
	} else if (kib_link_accept(c->link, &greeting, sizeof(greeting))) {
		kib_conn_bury(c);
	}
}

static void conn_ready(struct kib_conn *c, const struct kib_event *event)
{
	int err;

	if (c->state != KIB_DIALLING)
		return;
	err = greeting_check(c, event);
	if (err) {
		kib_conn_fail(c, err);
		return;
	}
	c->state = KIB_ASKED;
	kib_hello_say(c);
}

void kib_conn_step(struct kib_wire *wire, const struct kib_event *event)
{
	struct kib_conn *c = kib_link_owner(event->link);

	if (event->step == KIB_REQUEST)
		conn_received(wire, event);
	else if (c && event->step == KIB_READY)
		conn_ready(c, event);
	else if (c)
		kib_conn_broken(c, event->err);
}

void kib_accept(struct wire_conn *conn, const struct hello *hello)
{
	struct kib_conn *c = kib_conn_of(conn);

	c->mine = *hello;
	c->state = KIB_ACCEPTED;
	c->wire->due = true;
	kib_hello_say(c);
}

void kib_refuse(struct wire_conn *conn, int err, const struct hello_data *data)
{
	struct kib_conn *c = kib_conn_of(conn);

	c->state = KIB_REFUSING;
	c->deadline_ns = platform_now_ns() + KIB_ANSWER_NS;
	c->refusal = (struct kib_refusal){ .err = (uint32_t)-err };
	if (data)
		c->refusal.data = *data;
	c->hello_sent = kib_say(c, KIB_REFUSE, &c->refusal, sizeof(c->refusal));
	c->stuck |= !c->hello_sent;
	c->wire->due = true;
}

void kib_disconnect(struct wire_conn *conn)
{
	kib_conn_bury(kib_conn_of(conn));
}

/* Of MSG endpoints */

int kib_names(struct wire_conn *conn, struct weft_addr *local, struct weft_addr *remote)
{
	struct kib_address here, there;
	int ret = kib_link_names(kib_conn_of(conn)->link, &here, &there);

	if (ret)
		return ret;
	address_to(local, &here);
	address_to(remote, &there);
	return 0;
}

void kib_part(struct wire_conn *conn)
{
	struct kib_conn *c = kib_conn_of(conn);

	kib_link_part(c->link);
	list_remove(&c->node);
	c->wire->conn_cnt--;
	c->wire = NULL;
	conn->wire = NULL;
}

int kib_join(struct wire_conn *conn, struct wire *base)
{
	struct kib_conn *c = kib_conn_of(conn);
	struct kib_wire *wire = kib_wire_of(base);

	c->wire = wire;
	conn->wire = base;
	list_add_tail(&wire->conns, &c->node);
	wire->conn_cnt++;
	kib_link_join(c->link, wire->port);
	return 0;
}

void kib_drop(struct wire_conn *conn)
{
	kib_conn_free(kib_conn_of(conn));
}
