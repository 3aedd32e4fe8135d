/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The wire over RDS (engine/wire/wire.h): its endpoints, and progress. Called by the engine with the domain held.
 */
#include <rdma/fi_errno.h>
#include "conn.h"
#include "iface.h"
#include "rds.h"
#include "now.h"
#include "send.h"

/* Sockets that one poll looks at */
#define EVENTS_MAX 64
/* Time that the ends of conns have to be delivered when an endpoint closes, and between two looks */
#define CLOSE_NS 1000000000u
#define LOOK_NS	 1000000u

/* Endpoints */

/* RDS listens at one address alone. Returns 0 or -FI_E*. */
static int address_choose(union ip_sockaddr *at, const struct weft_addr *bind, char *why,
			  size_t why_len)
{
	const struct ip_iface_setting setting = { RDS_IFACE_VARIABLE, rds_settings.iface };
	bool named = bind && ip_sockaddr_set(at, bind);
	int ret;

	if (named && !ip_sockaddr_any(at))
		return 0;
	ret = ip_iface_default(&setting, named ? at->sa.sa_family : AF_UNSPEC, at, why, why_len);
	if (!ret && bind)
		ip_sockaddr_set_port(at, bind->port);
	return ret;
}

static int wire_open(struct rds_wire *wire, const struct weft_addr *bind, char *why,
		     size_t why_len)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
	union ip_sockaddr at;
	int ret = address_choose(&at, bind, why, why_len);

	if (ret)
		return ret;
	snprintf(why, why_len, "no memory");
	wire->in = platform_alloc(RDS_DATAGRAM_MAX);
	if (!wire->in)
		return -FI_ENOMEM;
	wire->set = sys_events_open();
	if (wire->set < 0)
		return wire->set;
	wire->fd = rds_socket_open(&at, &wire->where);
	if (wire->fd < 0) {
		snprintf(why, why_len, "RDS has no socket for the address: %s",
			 strerror(-wire->fd));
		return wire->fd;
	}
	return sys_events_hold(wire->set, EPOLL_CTL_ADD, wire->fd, &event);
}

static void wire_free(struct rds_wire *wire)
{
	if (wire->fd >= 0)
		sys_socket_close(wire->fd);
	if (wire->set >= 0)
		sys_events_close(wire->set);
	platform_free(wire->in);
	platform_free(wire);
}

static int rds_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
		    struct wire **out, char *why, size_t why_len)
{
	struct rds_wire *wire = platform_alloc(sizeof(*wire));
	int ret;

	if (!wire) {
		snprintf(why, why_len, "no memory");
		return -FI_ENOMEM;
	}
	wire->fd = wire->set = -1;
	wire->forks = platform_forks();
	list_init(&wire->conns);
	list_init(&wire->busy);
	list_init(&wire->grave);
	ret = wire_open(wire, attr->bind, why, why_len);
	if (ret) {
		wire_free(wire);
		return ret;
	}
	ip_sockaddr_get(&wire->where, addr);
	*out = &wire->wire;
	return 0;
}

/* Begins the end of a conn. One that is up stays: its other end hears of it once its host has all. */
static void closing_begin(struct rds_conn *c)
{
	if (c->state == RDS_REQUESTED) {
		rds_refuse(&c->conn, -FI_ECONNREFUSED, NULL);
	} else if (c->state != RDS_UP || c->ended || rds_forked(c->wire)) {
		rds_conn_bury(c);
	} else {
		c->err = c->push_cnt ? -FI_ECONNRESET : 0;
		c->push_cnt = 0;
	}
}

/* Returns true once it is over. */
static bool closing_turn(struct rds_conn *c)
{
	int ret = 0;

	if (!c->ended) {
		ret = rds_moves_go(c);
		if (!ret)
			ret = rds_conn_say_end(c, c->err);
		if (ret == -FI_EAGAIN)
			return false;
		c->ended = true;
	}
	return ret || rds_socket_sent(c->fd);
}

static void rds_close(struct wire *base)
{
	struct rds_wire *wire = rds_wire_of(base);
	uint64_t end = platform_now_ns() + CLOSE_NS;
	struct rds_conn *c;

	sys_events_disarm(wire->set, base);
	list_for_each_entry(c, &wire->conns, node)
		closing_begin(c);
	for (;;) {
		bool late = platform_now_ns() >= end;

		list_for_each_entry(c, &wire->conns, node)
			if (closing_turn(c) || late)
				rds_conn_bury(c);
		if (list_empty(&wire->conns))
			break;
		platform_sleep(NULL, LOOK_NS);
	}
	wire_free(wire);
}

/* Progress */

static int busy_turns(struct rds_wire *wire)
{
	uint32_t left = 0;
	struct rds_conn *c;
	struct list *node;
	int moved = 0;

	list_for_each_entry(c, &wire->busy, busy)
		left++;
	while (left-- && (node = list_pop(&wire->busy)))
		moved += rds_conn_turn(container_of(node, struct rds_conn, busy));
	return moved;
}

/* In the child of a fork: ends all conns, which belong to the parent, but for requests, which the engine has. */
static int copies_end(struct rds_wire *wire)
{
	struct rds_conn *c;
	int moved = 0;

	list_for_each_entry(c, &wire->conns, node) {
		if (c->state == RDS_REQUESTED)
			continue;
		rds_conn_fail(c, -FI_EOPBADSTATE, NULL);
		moved++;
	}
	return moved;
}

static int turn(struct rds_wire *wire)
{
	struct epoll_event events[EVENTS_MAX];
	int cnt = sys_events_take(wire->set, events, EVENTS_MAX), moved = 0;

	for (int i = 0; i < cnt; i++) {
		struct rds_conn *c = events[i].data.ptr;

		/* What was buried by an event before is not freed. */
		moved += c ? rds_conn_take(c) : rds_wire_take(wire);
	}
	return moved + busy_turns(wire);
}

static int rds_poll(struct wire *base)
{
	struct rds_wire *wire = rds_wire_of(base);
	struct list *node;
	int moved;

	wire->polling = true;
	moved = rds_forked(wire) ? copies_end(wire) : turn(wire);
	wire->polling = false;
	while ((node = list_pop(&wire->grave)))
		rds_conn_free(container_of(node, struct rds_conn, node));
	return moved;
}

static uint64_t conn_due(const struct rds_conn *c, uint64_t now)
{
	if (c->ended || c->sent.first)
		return 0;
	if (c->state != RDS_ASKING)
		return RDS_ROOM_NS;
	return c->again_ns > now ? c->again_ns - now : 0;
}

/* Returns true if copies_end() has something to end. */
static bool copies_left(const struct rds_wire *wire)
{
	const struct rds_conn *c;

	list_for_each_entry(c, &wire->conns, node)
		if (c->state != RDS_REQUESTED)
			return true;
	return false;
}

static void ring(void *arg)
{
	engine_wire_wake(arg);
}

static uint64_t rds_arm(struct wire *base)
{
	struct rds_wire *wire = rds_wire_of(base);
	uint64_t ns = UINT64_MAX, now = platform_now_ns();
	struct rds_conn *c;

	if (rds_forked(wire))
		return copies_left(wire) ? 0 : UINT64_MAX;
	list_for_each_entry(c, &wire->busy, busy) {
		uint64_t due = conn_due(c, now);

		ns = due < ns ? due : ns;
	}
	wire->armed = ns && sys_events_arm(wire->set, ring, base);
	return wire->armed ? ns : 0;
}

static void rds_disarm(struct wire *base)
{
	struct rds_wire *wire = rds_wire_of(base);

	wire->armed = false;
	sys_events_disarm(wire->set, base);
}

static int rds_bell(struct wire *base, int poll_set)
{
	const struct rds_wire *wire = rds_wire_of(base);

	return rds_forked(wire) ? -FI_EOPBADSTATE : wire->set;
}

static void rds_local(struct wire *base, char *buf, size_t len)
{
	ip_sockaddr_str(&rds_wire_of(base)->where, buf, len);
}

static const struct wire_ops rds_ops;

static ssize_t rds_send(struct engine_ep *ep, struct engine_peer *peer,
			const struct engine_msg *msg)
{
	return engine_send_on(ep, peer, msg, &rds_ops);
}

static bool rds_access(struct engine_ctx *ctx, struct engine_peer *peer,
		       const struct engine_access *access)
{
	return engine_access_on(ctx, peer, access, &rds_ops);
}

static const struct wire_ops rds_ops = {
	.size = sizeof(struct wire_ops),
	.name = "rds",
	.claim_max = RDS_CLAIM_MAX,
	.eager_max = RDS_PAYLOAD_MAX,
	.in_order = true,
	.polls_after_send = true,
	.payload_local = true,
	.open = rds_open,
	.close = rds_close,
	.connect = rds_connect,
	.disconnect = rds_disconnect,
	.claim = rds_claim,
	.publish = rds_publish,
	.sendv = rds_sendv,
	.poll = rds_poll,
	.check = rds_check,
	.local = rds_local,
	.send = rds_send,
	.tsend = engine_wire_tsend,
	.tinject = engine_wire_tinject,
	.tsenddata = engine_wire_tsenddata,
	.tinjectdata = engine_wire_tinjectdata,
	.access = rds_access,
	.accept = rds_accept,
	.refuse = rds_refuse,
	.bell = SYS_EVENTS_DESCRIPTOR ? rds_bell : NULL,
	.arm = rds_arm,
	.disarm = rds_disarm,
};

const struct wire_provider rds_wire_provider = {
	.size = sizeof(struct wire_provider),
	.version = WIRE_LAYOUT,
	.layout = WIRE_LAYOUT,
	.ops = &rds_ops,
};
