/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fake wires are opened and closed, and connect: where they listen, and whom they reach. With the
 * wires' lock.
 */
#include <unistd.h>
#include "fake_conn.h"

struct list fake_wires = { &fake_wires, &fake_wires };

static uint32_t host = 1;
static uint16_t next_port = 1;
static uint16_t listen_port; /* 0: the next */

void fake_ports_anew(void)
{
	next_port = 1;
}

void fake_host(uint32_t number)
{
	host = number;
}

void fake_listen_at(const struct weft_addr *service)
{
	listen_port = service->port;
}

/* Where a fake-b listens: as it is asked, or somewhere at its host. Returns 0 or -FI_EADDRINUSE. */
static int listen_somewhere(const struct weft_addr *bind, struct weft_addr *addr)
{
	static const uint8_t nowhere[sizeof(addr->ip)];
	bool six = bind && bind->family == ADDR_FAMILY_INET6;
	bool here = !bind || bind->family != (six ? ADDR_FAMILY_INET6 : ADDR_FAMILY_INET) ||
		    !memcmp(bind->ip, nowhere, sizeof(nowhere));
	struct fake_wire *other;

	addr->family = six ? ADDR_FAMILY_INET6 : ADDR_FAMILY_INET;
	if (here) {
		memcpy(addr->ip, six ? "\xfd\0\0" : "\x0a\0\0", 3);
		addr->ip[six ? 15 : 3] = (uint8_t)host;
	} else {
		memcpy(addr->ip, bind->ip, sizeof(addr->ip));
		addr->scope = bind->scope;
	}
	addr->port = listen_port ? listen_port : bind && bind->port ? bind->port : next_port++;
	listen_port = 0;
	list_for_each_entry(other, &fake_wires, link) {
		if (other->kind == FAKE_B && other->address.family == addr->family &&
		    other->address.port == addr->port &&
		    !memcmp(other->address.ip, addr->ip, sizeof(addr->ip)))
			return -FI_EADDRINUSE;
	}
	return 0;
}

static int fake_open(enum fake_kind kind, struct engine_ep *ep, struct weft_addr *addr,
		     struct wire **out)
{
	struct fake_wire *wire = fake_alloc(sizeof(*wire));

	wire->kind = kind;
	wire->wire.ep = ep;
	list_init(&wire->conns);
	list_init(&wire->grave);
	list_init(&wire->connreqs);
	wire->address = *addr;
	wire->bell = -1;
	wire->bare = fake_knobs[kind].bare;
	if (wire->bare)
		fake_ringer_join(wire);
	list_add_tail(&fake_wires, &wire->link);
	*out = &wire->wire;
	return 0;
}

static bool is_local_service(const struct weft_addr *addr)
{
	return addr && addr->kind == ADDR_SERVICE && addr->family == ADDR_FAMILY_LOCAL;
}

int fake_a_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
		struct wire **wire, char *why, size_t why_len)
{
	addr->pid = 1 + host;
	addr->ns_hash = host;
	addr->fd = next_port++;
	if (is_local_service(attr->bind) && attr->bind->ip[0]) {
		addr->family = ADDR_FAMILY_LOCAL;
		memcpy(addr->ip, attr->bind->ip, sizeof(addr->ip));
	}
	return fake_open(FAKE_A, ep, addr, wire);
}

int fake_b_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
		struct wire **wire, char *why, size_t why_len)
{
	struct weft_addr at = *addr;
	int ret = listen_somewhere(attr->bind, &at);

	if (ret) {
		snprintf(why, why_len, "port %u is in use", at.port);
		return ret;
	}
	*addr = at;
	return fake_open(FAKE_B, ep, addr, wire);
}

static void connreq_refuse(struct fake_connreq *connreq, int err)
{
	if (connreq->from) {
		connreq->from->connreq = NULL;
		connreq->from->answered = true;
		connreq->from->answer_err = err;
		fake_ring(connreq->from->wire);
	}
	list_remove(&connreq->link);
	free(connreq);
}

void fake_close(struct wire *base)
{
	struct fake_wire *wire = fake_wire_of(base);
	struct list *node;

	while (!list_empty(&wire->connreqs))
		connreq_refuse(container_of(wire->connreqs.next, struct fake_connreq, link),
			       -FI_ECONNREFUSED);
	while ((node = wire->conns.next) != &wire->conns) {
		struct fake_conn *c = container_of(node, struct fake_conn, link);

		if (c->requested) {
			fake_refuse(&c->conn, -FI_ECONNREFUSED, NULL);
			continue;
		}
		fake_conn_part(c, 0, true);
		fake_conn_bury(c);
	}
	list_remove(&wire->link);
	if (wire->bell >= 0)
		close(wire->bell);
	if (wire->bare)
		fake_ringer_part(wire);
	free(wire);
}

static bool reaches(const struct fake_wire *from, const struct fake_wire *to,
		    const struct weft_addr *addr)
{
	if (to->kind != from->kind)
		return false;
	if (is_local_service(addr))
		return to->address.family == ADDR_FAMILY_LOCAL &&
		       !memcmp(to->address.ip, addr->ip, sizeof(addr->ip));
	if (from->kind == FAKE_A)
		return !memcmp(to->address.nonce, addr->nonce, sizeof(addr->nonce));
	return to->address.family == addr->family && to->address.port == addr->port &&
	       !memcmp(to->address.ip, addr->ip, sizeof(addr->ip));
}

int fake_connect(struct wire *base, struct engine_peer *peer, const struct weft_addr *addr,
		 const struct hello *hello, struct wire_conn **out)
{
	struct fake_wire *wire = fake_wire_of(base);
	struct fake_wire *to;
	bool far = false, gone;
	struct fake_conn *c;

	if (wire->kind == FAKE_A && !is_local_service(addr)) {
		far = addr->kind != ADDR_NONCE || addr->ns_hash != wire->address.ns_hash;
		/* Like shared memory: sometimes it takes a look to see that it is not there. */
		if (far && fake_chance(128))
			return -FI_EHOSTUNREACH;
	}
	if (wire->kind == FAKE_B && (!addr->family || addr->family == ADDR_FAMILY_LOCAL))
		return -FI_EHOSTUNREACH;
	if (fake_chance(fake_knobs[wire->kind].refuse))
		return -FI_EAGAIN;
	c = fake_conn_new(wire, peer);
	gone = wire->kind == FAKE_A && !far;
	list_for_each_entry(to, &fake_wires, link) {
		if (far || !reaches(wire, to, addr))
			continue;
		c->connreq = fake_alloc(sizeof(*c->connreq));
		c->connreq->from = c;
		c->connreq->hello = *hello;
		list_add_tail(&to->connreqs, &c->connreq->link);
		fake_ring(to);
	}
	if (!c->connreq && gone && fake_chance(fake_knobs[FAKE_A].proof)) {
		fake_conn_bury(c);
		return -FI_ECONNREFUSED;
	}
	if (!c->connreq) { /* no endpoint listens there */
		c->answered = true;
		c->answer_err = far ? -FI_EHOSTUNREACH : -FI_ECONNREFUSED;
		fake_ring(wire);
	}
	*out = &c->conn;
	return 0;
}
