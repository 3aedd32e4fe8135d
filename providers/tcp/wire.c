/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The TCP wire's endpoint: the listener, the epoll descriptor that watches all sockets, and
 * the poll that moves everything. Called by the engine through tcp_wire_ops, on the thread
 * that holds the endpoint's domain.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "iface.h"
#include "tcp.h"
#include "tcp_wire.h"

#define EVENT_MAX 64 /* sockets looked at in one poll */

/* All endpoints of the process, for the child of a fork. Rank 3, nothing is called under it. */
static struct platform_lock wires_lock = { PTHREAD_MUTEX_INITIALIZER };
static struct list wires = { &wires, &wires };

static void fork_prepare(void)
{
	platform_lock(&wires_lock);
}

static void fork_parent(void)
{
	platform_unlock(&wires_lock);
}

/*
 * The child has the parent's sockets and its epoll descriptor: bytes that it read or wrote, or a
 * socket that it took out of epoll, would be the parent's. It may only close its descriptors.
 */
static void fork_child(void)
{
	struct list *node, *after;

	list_for_each(node, after, &wires)
		container_of(node, struct tcp_wire, all)->forked = true;
	platform_unlock(&wires_lock);
}

static struct platform_fork fork_watcher = {
	.prepare = fork_prepare,
	.parent = fork_parent,
	.child = fork_child,
};

int tcp_watch(struct tcp_wire *wire, struct tcp_lane *lane, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = lane };
	int op;

	if (events == lane->events || wire->forked)
		return 0;
	op = !events ? EPOLL_CTL_DEL : lane->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	if (epoll_ctl(wire->epoll_fd, op, lane->fd, &event))
		return -errno;
	lane->events = events;
	return 0;
}

void tcp_watch_move(struct tcp_wire *wire, struct tcp_lane *from, struct tcp_lane *to)
{
	struct epoll_event event = { .events = from->events, .data.ptr = to };

	to->fd = from->fd;
	to->events = from->events;
	from->fd = -1;
	from->events = 0;
	epoll_ctl(wire->epoll_fd, EPOLL_CTL_MOD, to->fd, &event);
}

void tcp_lane_close(struct tcp_wire *wire, struct tcp_lane *lane)
{
	if (lane->fd < 0)
		return;
	/* By hand: a child of fork() may hold the socket, and epoll with it a pointer to us. */
	tcp_watch(wire, lane, 0);
	close(lane->fd);
	lane->fd = -1;
	lane->state = TCP_LANE_NONE;
	lane->events = 0;
	lane->want_out = false;
	if (!wire->rearm_ns)
		return;
	wire->rearm_ns = 1; /* a descriptor is free: do not wait */
	tcp_rouse(wire);
}

void tcp_due(struct tcp_conn *conn, uint64_t ns)
{
	conn->due_ns = ns;
	list_remove(&conn->timed);
	list_push(&tcp_wire_of(conn)->timed, &conn->timed);
	tcp_rouse(tcp_wire_of(conn));
}

void tcp_starved(struct tcp_wire *wire, const char *what, int err)
{
	if (wire->starved)
		return;
	wire->starved = true;
	FI_WARN(&tcp_provider, FI_LOG_EP_CTRL,
		"can't %s: %s; peers wait until descriptors are free (two are needed for each: raise "
		"'ulimit -n')\n",
		what, strerror(err));
}

static int listen_at(struct tcp_wire *wire, const union tcp_sockaddr *at)
{
	int one = 1, err;

	wire->listener.fd = socket(at->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
				   0);
	if (wire->listener.fd < 0)
		return -errno;
	/* A port that was asked for may be in use by connections of a process that has ended. */
	if (tcp_sockaddr_port(at))
		setsockopt(wire->listener.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (at->sa.sa_family == AF_INET6)
		setsockopt(wire->listener.fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (!bind(wire->listener.fd, &at->sa, tcp_sockaddr_len(at)) &&
	    !listen(wire->listener.fd, SOMAXCONN))
		return 0;
	err = -errno;
	close(wire->listener.fd);
	wire->listener.fd = -1;
	return err;
}

/* At the port of @at, or at any of the configured range, or where the kernel likes. */
static int listen_in_range(struct tcp_wire *wire, union tcp_sockaddr *at)
{
	int port, err = -FI_EADDRINUSE;

	if (tcp_sockaddr_port(at) || !tcp_settings.port_low)
		return listen_at(wire, at);
	for (port = tcp_settings.port_low;
	     port <= tcp_settings.port_high && err == -FI_EADDRINUSE; port++) {
		tcp_sockaddr_set_port(at, (uint16_t)port);
		err = listen_at(wire, at);
	}
	return err;
}

/* @at: where to listen; wire->local: where peers shall connect to, port excepted. */
static int choose_address(struct tcp_wire *wire, const struct weft_addr *bind_addr,
			  union tcp_sockaddr *at, char *why, size_t why_len)
{
	int err;

	if (!bind_addr || !bind_addr->family) {
		err = tcp_iface_default(AF_UNSPEC, at, why, why_len);
		if (err)
			return err;
		if (bind_addr && bind_addr->port)
			tcp_sockaddr_set_port(at, bind_addr->port);
		wire->local = *at;
		return 0;
	}
	if (!tcp_sockaddr_set(at, bind_addr)) {
		snprintf(why, why_len, "address family %u is neither IPv4 nor IPv6",
			 bind_addr->family);
		return -FI_EINVAL;
	}
	if (!tcp_sockaddr_any(at)) {
		wire->local = *at;
		return 0;
	}
	return tcp_iface_default(at->sa.sa_family, &wire->local, why, why_len);
}

static int start_listening(struct tcp_wire *wire, const struct wire_attr *attr, char *why,
			   size_t why_len)
{
	union tcp_sockaddr at, bound;
	socklen_t len = sizeof(bound);
	char name[64];
	int err;

	err = choose_address(wire, attr->bind, &at, why, why_len);
	if (err)
		return err;
	err = listen_in_range(wire, &at);
	if (err) {
		tcp_sockaddr_str(&at, name, sizeof(name));
		snprintf(why, why_len, "can't listen at %s: %s", name, strerror(-err));
		return err;
	}
	if (getsockname(wire->listener.fd, &bound.sa, &len)) {
		snprintf(why, why_len, "the listening port can't be found out: %s",
			 strerror(errno));
		return -errno;
	}
	tcp_sockaddr_set_port(&wire->local, tcp_sockaddr_port(&bound));
	return 0;
}

static void wire_free(struct tcp_wire *wire)
{
	tcp_lane_close(wire, &wire->listener);
	if (wire->epoll_fd >= 0)
		close(wire->epoll_fd);
	free(wire->in);
	free(wire);
}

static struct tcp_wire *wire_alloc(struct engine_ep *ep)
{
	struct tcp_wire *wire = calloc(1, sizeof(*wire));

	if (!wire)
		return NULL;
	wire->wire.ops = &tcp_wire_ops;
	wire->wire.ep = ep;
	wire->epoll_fd = -1;
	wire->listener.fd = -1;
	wire->listener.kind = TCP_LANE_LISTENER;
	list_init(&wire->conns);
	list_init(&wire->dirty);
	list_init(&wire->finished);
	list_init(&wire->timed);
	list_init(&wire->guests);
	list_init(&wire->graves);
	list_init(&wire->guest_graves);
	wire->in = aligned_alloc(CACHE_LINE, TCP_IN_HEAD + TCP_IN_LEN);
	if (!wire->in) {
		free(wire);
		return NULL;
	}
	return wire;
}

int tcp_open(struct engine_ep *ep, const struct wire_attr *attr, struct weft_addr *addr,
	     struct wire **out, char *why, size_t why_len)
{
	struct tcp_wire *wire = wire_alloc(ep);
	int err;

	if (!wire) {
		snprintf(why, why_len, "out of memory");
		return -FI_ENOMEM;
	}
	wire->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (wire->epoll_fd < 0) {
		err = -errno;
		snprintf(why, why_len, "can't create an epoll descriptor: %s", strerror(errno));
		goto err_free;
	}
	err = start_listening(wire, attr, why, why_len);
	if (err)
		goto err_free;
	err = tcp_watch(wire, &wire->listener, EPOLLIN);
	if (err) {
		snprintf(why, why_len, "can't watch the listening socket: %s", strerror(-err));
		goto err_free;
	}
	platform_fork_watch(&fork_watcher);
	platform_lock(&wires_lock);
	list_push(&wires, &wire->all);
	platform_unlock(&wires_lock);
	tcp_sockaddr_get(&wire->local, addr);
	*out = &wire->wire;
	return 0;

err_free:
	wire_free(wire);
	return err;
}

void tcp_local(struct wire *wire, char *buf, size_t len)
{
	tcp_sockaddr_str(&tcp_wire_from(wire)->local, buf, len);
}

void tcp_reap(struct tcp_wire *wire)
{
	struct list *node;
	struct tcp_conn *conn;

	while ((node = list_pop(&wire->graves))) {
		conn = container_of(node, struct tcp_conn, link);
		free(conn->out);
		free(conn->bulk);
		free(conn);
	}
	while ((node = list_pop(&wire->guest_graves)))
		free(container_of(node, struct tcp_guest, link));
}

/*
 * Move a list: what is put on it while we walk waits for the next call. Every node that is taken
 * out stands on its own, so that conns may be buried meanwhile.
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

/* Once around what was marked: replies that were gathered, lanes to open, failures to report. */
static void serve_dirty(struct tcp_wire *wire)
{
	struct list *node, batch;
	struct tcp_conn *conn;

	take_all(&wire->dirty, &batch);
	while ((node = list_pop(&batch))) {
		conn = container_of(node, struct tcp_conn, dirty);
		if (conn->err && !conn->ending) {
			tcp_conn_down(conn, conn->err);
			continue;
		}
		if (conn->control.state == TCP_LANE_UP && !conn->control.want_out)
			tcp_control_flush(conn);
	}
}

static int serve_finished(struct tcp_wire *wire)
{
	struct list *node, batch;
	int moved = 0;

	take_all(&wire->finished, &batch);
	while ((node = list_pop(&batch)))
		moved += tcp_data_tell(container_of(node, struct tcp_conn, finished));
	return moved;
}

static void serve_timed(struct tcp_wire *wire)
{
	struct list *node, batch;
	struct tcp_conn *conn;
	uint64_t now = platform_now_ns();

	if (wire->rearm_ns && now >= wire->rearm_ns) {
		wire->rearm_ns = 0;
		tcp_watch(wire, &wire->listener, EPOLLIN);
	}
	take_all(&wire->timed, &batch);
	while ((node = list_pop(&batch))) {
		conn = container_of(node, struct tcp_conn, timed);
		if (now < conn->due_ns)
			list_push(&wire->timed, &conn->timed);
		else if (conn->ending)
			tcp_conn_down(conn, tcp_conn_end(conn));
		else
			tcp_data_open(conn);
	}
}

static int conn_event(struct tcp_conn *conn, struct tcp_lane *lane, uint32_t events)
{
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
	return lane == &conn->control ? tcp_control_read(conn) : tcp_data_read(conn);
}

static int lane_event(struct tcp_wire *wire, struct tcp_lane *lane, uint32_t events)
{
	struct tcp_guest *guest;

	switch (lane->kind) {
	case TCP_LANE_LISTENER:
		tcp_accept(wire);
		return 0;
	case TCP_LANE_GUEST:
		guest = container_of(lane, struct tcp_guest, lane);
		if (lane->fd >= 0)
			tcp_guest_event(guest, wire);
		return 0;
	case TCP_LANE_CONTROL:
		return conn_event(container_of(lane, struct tcp_conn, control), lane, events);
	default:
		return conn_event(container_of(lane, struct tcp_conn, data), lane, events);
	}
}

/* One round over everything that can move. @wait_ms: 0, but for close(). */
static int turn(struct tcp_wire *wire, int wait_ms)
{
	struct epoll_event events[EVENT_MAX];
	int cnt, i, moved;

	wire->tick++;
	wire->polling = true;
	moved = serve_finished(wire);
	if (!list_empty(&wire->dirty))
		serve_dirty(wire);
	cnt = epoll_wait(wire->epoll_fd, events, EVENT_MAX, wait_ms);
	for (i = 0; i < cnt; i++) {
		moved += lane_event(wire, events[i].data.ptr, events[i].events);
		if (!list_empty(&wire->dirty))
			serve_dirty(wire);
	}
	moved += serve_finished(wire);
	if (unlikely(!list_empty(&wire->timed) || wire->rearm_ns))
		serve_timed(wire);
	if (!list_empty(&wire->dirty))
		serve_dirty(wire);
	wire->polling = false;
	tcp_reap(wire);
	return moved;
}

/* Everything here belongs to the process that we are a copy of. */
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

	return unlikely(wire->forked) ? end_copies(wire) : turn(wire, 0);
}

/* Let go of the conns whose peers have everything. */
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

void tcp_close(struct wire *out)
{
	struct tcp_wire *wire = tcp_wire_from(out);
	uint64_t end = platform_now_ns() + TCP_END_NS;
	struct list *node, *after;
	struct tcp_conn *conn;

	platform_lock(&wires_lock);
	list_remove(&wire->all);
	platform_unlock(&wires_lock);

	wire->closing = true;
	list_for_each(node, after, &wire->conns) {
		conn = container_of(node, struct tcp_conn, link);
		if (!conn->conn.up || wire->forked)
			tcp_conn_bury(conn);
	}
	close_drained(wire);
	while (!list_empty(&wire->conns) && platform_now_ns() < end) {
		turn(wire, 1);
		close_drained(wire);
	}
	while ((node = wire->conns.next) != &wire->conns)
		tcp_conn_bury(container_of(node, struct tcp_conn, link));
	while ((node = wire->guests.next) != &wire->guests)
		tcp_guest_drop(wire, container_of(node, struct tcp_guest, link));
	tcp_reap(wire);
	wire_free(wire);
}
