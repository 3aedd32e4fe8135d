/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The TCP wire of an endpoint: its address, and the poll that moves everything. Called by the
 * engine through tcp_wire_ops, on the thread that holds the endpoint's domain.
 */
#include "iface.h"
#include "net_socket.h"
#include "tcp.h"
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_data.h"
#include "tcp_greet.h"
#include "tcp_hot.h"
#include "tcp_hub.h"
#include "tcp_idle.h"
#include "tcp_session.h"
#include "tcp_wire.h"

#define CLOSE_NAP_NS 100000u /* time between looks at unacknowledged data during close */

void tcp_due(struct tcp_conn *conn, uint64_t ns)
{
	if (list_empty(&conn->timed) || ns < conn->due_ns)
		conn->due_ns = ns;
	list_remove(&conn->timed);
	list_add_tail(&tcp_wire_of(conn)->timed, &conn->timed);
	tcp_wake_by(tcp_wire_of(conn), conn->due_ns);
}

/* @at: out: where to listen; wire->local: where peers connect to, without the port. */
static int choose_address(struct tcp_wire *wire, const struct weft_addr *bind_addr,
			  union ip_sockaddr *at, char *why, size_t why_len)
{
	const struct ip_iface_setting setting = { TCP_IFACE_VARIABLE, tcp_settings.iface };
	int err;

	if (!bind_addr || !bind_addr->family) {
		err = ip_iface_default(&setting, AF_UNSPEC, at, why, why_len);
		if (err)
			return err;
		if (bind_addr && bind_addr->port)
			ip_sockaddr_set_port(at, bind_addr->port);
		wire->local = *at;
		return 0;
	}
	if (!ip_sockaddr_set(at, bind_addr)) {
		snprintf(why, why_len, "address family %u is neither IPv4 nor IPv6",
			 bind_addr->family);
		return -FI_EINVAL;
	}
	if (!ip_sockaddr_any(at)) {
		wire->local = *at;
		return 0;
	}
	return ip_iface_default(&setting, at->sa.sa_family, &wire->local, why, why_len);
}

static int start_listening(struct tcp_wire *wire, const struct wire_attr *attr, char *why,
			   size_t why_len)
{
	union ip_sockaddr at = { 0 };
	char name[64];
	int err;

	err = choose_address(wire, attr->bind, &at, why, why_len);
	if (err)
		return err;
	err = tcp_port_join(wire, &at, attr->by_nonce);
	if (err) {
		ip_sockaddr_str(&at, name, sizeof(name));
		if (err == -FI_EADDRINUSE && !ip_sockaddr_port(&at) && tcp_settings.port_low)
			snprintf(why, why_len,
				 "can't listen at %s: no port from %d to %d is free", name,
				 tcp_settings.port_low, tcp_settings.port_high);
		else
			snprintf(why, why_len, "can't listen at %s: %s", name, strerror(-err));
		return err;
	}
	ip_sockaddr_set_port(&wire->local, wire->port->number);
	return 0;
}

static struct tcp_wire *wire_alloc(struct engine_ep *ep, const struct weft_addr *addr)
{
	struct tcp_wire *wire = calloc(1, sizeof(*wire));
	uint32_t i;

	if (!wire)
		return NULL;
	wire->wire.ops = &tcp_wire_ops;
	wire->wire.ep = ep;
	memcpy(wire->nonce, addr->nonce, sizeof(wire->nonce));
	list_init(&wire->ready);
	list_init(&wire->arrived);
	list_init(&wire->conns);
	list_init(&wire->requests);
	list_init(&wire->dirty);
	list_init(&wire->finished);
	list_init(&wire->timed);
	list_init(&wire->telling);
	list_init(&wire->waiting);
	list_init(&wire->dead_conns);
	for (i = 0; i < TCP_KNOWN_CNT; i++)
		list_init(&wire->known[i]);
	return wire;
}

int tcp_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
	     struct wire **out, char *why, size_t why_len)
{
	struct tcp_wire *wire = wire_alloc(ep, addr);
	int err;

	if (!wire) {
		snprintf(why, why_len, "out of memory");
		return -FI_ENOMEM;
	}
	err = tcp_hub_join(wire, attr->domain, why, why_len);
	if (err)
		goto err_free;
	wire->dials = attr->dials;
	if (attr->dials) {
		if (attr->bind)
			ip_sockaddr_set(&wire->local, attr->bind);
		*out = &wire->wire;
		return 0;
	}
	err = start_listening(wire, attr, why, why_len);
	if (err)
		goto err_leave;
	ip_sockaddr_get(&wire->local, addr);
	if (wire->port->owner != wire)
		addr->flags |= ADDR_PORT_SHARED;
	*out = &wire->wire;
	return 0;

err_leave:
	tcp_hub_leave(wire);
err_free:
	free(wire);
	return err;
}

void tcp_local(struct wire *wire, char *buf, size_t len)
{
	ip_sockaddr_str(&tcp_wire_from(wire)->local, buf, len);
}

void tcp_reap(struct tcp_wire *wire)
{
	struct list *node;
	struct tcp_conn *conn;

	while ((node = list_pop(&wire->dead_conns))) {
		conn = container_of(node, struct tcp_conn, link);
		free(conn->out);
		free(conn->part);
		free(conn->bulk);
		free(conn);
	}
}

/*
 * Moves a list, so that what is added while it is walked waits for the next call. Every node taken
 * out is a list of its own, so that conns may be buried meanwhile.
 */
static void take_all(struct list *from, struct list *to)
{
	list_init(to);
	if (list_empty(from))
		return;
	*to = *from;
	to->next->prev = to;
	to->prev->next = to;
	list_init(from);
}

/* Handles marked conns once: gathered replies, lanes to open, failures to report. */
static void serve_dirty(struct tcp_wire *wire)
{
	struct list *node, batch;
	struct tcp_conn *conn;

	take_all(&wire->dirty, &batch);
	while ((node = list_pop(&batch))) {
		conn = container_of(node, struct tcp_conn, dirty);
		if (conn->accepted)
			tcp_conn_accepted(conn);
		if (conn->dead)
			continue;
		if (conn->err && !conn->ending) {
			tcp_conn_down(conn, conn->err);
			continue;
		}
		if (conn->control.state != TCP_LANE_UP)
			continue;
		if (!conn->control.want_out)
			tcp_control_flush(conn);
		else if (conn->session.ack_due)
			tcp_session_tell(conn);
		if (unlikely(conn->idle.due))
			tcp_idle_turn(conn);
	}
}

static int serve_finished(struct tcp_wire *wire)
{
	struct list *node, batch;
	int moved = 0;

	take_all(&wire->finished, &batch);
	while ((node = list_pop(&batch)))
		moved += tcp_data_complete(container_of(node, struct tcp_conn, finished));
	return moved;
}

static void serve_timed(struct tcp_wire *wire)
{
	struct list *node, batch;
	struct tcp_conn *conn;
	uint64_t now = platform_now_ns();

	take_all(&wire->timed, &batch);
	while ((node = list_pop(&batch))) {
		conn = container_of(node, struct tcp_conn, timed);
		if (now < conn->due_ns)
			list_add_tail(&wire->timed, &conn->timed);
		else
			tcp_conn_timer(conn, now);
	}
}

static int conn_event(struct tcp_conn *conn, struct tcp_lane *lane, uint32_t events)
{
	int moved;

	if (conn->dead || lane->fd < 0)
		return 0;
	if (lane->state != TCP_LANE_UP)
		return tcp_greet_event(conn, lane);
	if (events & EPOLLOUT) {
		if (lane == &conn->control)
			tcp_control_flush(conn);
		else
			tcp_data_flush(conn);
	}
	if (!(events & ~(uint32_t)EPOLLOUT))
		return 0;
	moved = lane == &conn->control ? tcp_control_read(conn) : tcp_data_read(conn);
	if (moved && !conn->dead)
		tcp_hot_lane(conn, lane);
	return moved;
}

/* Admits the guests of this endpoint. */
static void serve_arrived(struct tcp_wire *wire)
{
	struct list *node;

	while ((node = list_pop(&wire->arrived)))
		tcp_guest_admit(container_of(node, struct tcp_guest, link), wire);
}

/* Resumes data lanes that wait at a header, after the other lanes have been read. */
static int serve_waiting(struct tcp_wire *wire)
{
	struct list *node, batch;
	int moved = 0;

	take_all(&wire->waiting, &batch);
	while ((node = list_pop(&batch)))
		moved += tcp_data_resume(container_of(node, struct tcp_conn, waiting));
	return moved;
}

/* Handles the events of this wire's lanes. */
static int serve_ready(struct tcp_wire *wire)
{
	struct list *node, batch;
	struct tcp_lane *lane;
	struct tcp_conn *conn;
	uint32_t revents;
	int moved = 0;

	take_all(&wire->ready, &batch);
	while ((node = list_pop(&batch))) {
		lane = container_of(node, struct tcp_lane, ready);
		conn = lane->kind == TCP_LANE_CONTROL
			       ? container_of(lane, struct tcp_conn, control)
			       : container_of(lane, struct tcp_conn, data);
		revents = lane->revents;
		lane->revents = 0;
		moved += conn_event(conn, lane, revents);
		if (!list_empty(&wire->dirty))
			serve_dirty(wire);
	}
	return moved;
}

/* Acknowledgements that no packet has taken along leave now. */
static void serve_telling(struct tcp_wire *wire)
{
	struct list *node, *after;
	struct tcp_conn *conn;

	list_for_each(node, after, &wire->telling) {
		conn = container_of(node, struct tcp_conn, telling);
		if (!tcp_session_ready(conn))
			continue;
		list_remove(&conn->telling);
		tcp_conn_dirty(conn);
	}
}

/* Makes one round over everything that can move. */
static int turn(struct tcp_wire *wire)
{
	struct tcp_hub *hub = wire->hub;
	int moved;

	wire->tick++;
	wire->polling = true;
	moved = serve_finished(wire);
	if (unlikely(!list_empty(&wire->telling)))
		serve_telling(wire);
	if (!list_empty(&wire->dirty))
		serve_dirty(wire);
	if (!tcp_hot_read(wire, &moved))
		tcp_hub_look(wire);
	if (unlikely(!list_empty(&wire->arrived)))
		serve_arrived(wire);
	if (!list_empty(&wire->ready))
		moved += serve_ready(wire);
	if (unlikely(!list_empty(&wire->waiting)))
		moved += serve_waiting(wire);
	moved += serve_finished(wire);
	if (unlikely(hub->paused_cnt))
		tcp_hub_rearm(hub);
	if (unlikely(!list_empty(&wire->timed)))
		serve_timed(wire);
	if (!list_empty(&wire->dirty))
		serve_dirty(wire);
	wire->polling = false;
	if (unlikely(wire->wake_due)) {
		wire->wake_due = false;
		wire->armed_ns = 0;
		tcp_wake(wire);
	}
	tcp_reap(wire);
	return moved;
}

/* In the child of a fork: ends all conns, which belong to the parent. */
static int end_copies(struct tcp_wire *wire)
{
	int moved = 0;

	wire->polling = true;
	while (!list_empty(&wire->conns)) {
		tcp_conn_down(container_of(wire->conns.next, struct tcp_conn, link),
			      -FI_EOPBADSTATE);
		moved++;
	}
	wire->polling = false;
	tcp_reap(wire);
	return moved;
}

int tcp_poll(struct wire *out)
{
	struct tcp_wire *wire = tcp_wire_from(out);

	return unlikely(wire->hub->forked) ? end_copies(wire) : turn(wire);
}

/* Buries the conns whose peers have everything. */
static void close_drained(struct tcp_wire *wire)
{
	struct list *node, *after;
	struct tcp_conn *conn;

	list_for_each(node, after, &wire->conns) {
		conn = container_of(node, struct tcp_conn, link);
		if (tcp_conn_drained(conn))
			tcp_conn_bury(conn);
	}
}

/* What arrives from now on is discarded, and not acknowledged. */
static void begin_end(struct tcp_conn *conn)
{
	tcp_session_last(conn);
	tcp_control_discard(conn);
}

void tcp_close(struct wire *out)
{
	struct tcp_wire *wire = tcp_wire_from(out);
	uint64_t end = platform_now_ns() + TCP_END_NS;
	struct list *node, *after;
	struct tcp_conn *conn;

	wire->closing = true;
	while ((node = wire->requests.next) != &wire->requests)
		tcp_conn_refuse(&container_of(node, struct tcp_conn, link)->conn,
				-FI_ECONNREFUSED, NULL);
	list_for_each(node, after, &wire->conns) {
		conn = container_of(node, struct tcp_conn, link);
		if (!conn->conn.up || wire->hub->forked)
			tcp_conn_bury(conn);
		else
			begin_end(conn);
	}
	close_drained(wire);
	/*
	 * Not by epoll, which reports events of other wires too, and these are not handled
	 * meanwhile.
	 */
	while (!list_empty(&wire->conns) && platform_now_ns() < end) {
		turn(wire);
		close_drained(wire);
		if (!list_empty(&wire->conns))
			platform_sleep(NULL, CLOSE_NAP_NS);
	}
	while ((node = wire->conns.next) != &wire->conns)
		tcp_conn_bury(container_of(node, struct tcp_conn, link));
	tcp_reap(wire);
	if (wire->breaks)
		FI_INFO(&tcp_provider, FI_LOG_EP_CTRL,
			"%llu sockets broke, and %llu were made again\n",
			(unsigned long long)wire->breaks, (unsigned long long)wire->resumes);
	if (wire->rests)
		FI_INFO(&tcp_provider, FI_LOG_EP_CTRL,
			"%llu times an idle connection was closed for want of descriptors\n",
			(unsigned long long)wire->rests);
	tcp_port_leave(wire);
	tcp_hub_leave(wire);
	free(wire);
}
