/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the TCP wires of a domain share, so that a thousand endpoints do not need thousands of
 * descriptors: one epoll for all their sockets, and one listening socket for the wires that need
 * no port of their own. Their peers know them by a nonce too, and name it in the preamble.
 *
 * A wire that calls epoll passes the events to the wires that they belong to; each handles its own
 * in its own poll, so that the engine is called for no endpoint but the one that it polls. All of
 * it runs on the thread that holds the domain; the list of hubs has a lock.
 */
#include "net_socket.h"
#include "shown.h"
#include "tcp.h"
#include "tcp_bell.h"
#include "tcp_greet.h"
#include "tcp_hub.h"
#include "tcp_lane.h"
#include "tcp_options.h"
#include "tcp_prove.h"
#include "tcp_say.h"
#include "tcp_secret.h"
#include "tcp_shown.h"
#include "tcp_wire.h"

#define EVENT_MAX 64	/* events of one epoll_wait() */
#define LOOK_NS	  5000u /* time within which another wire's look at epoll counts for this one */

static struct list hubs = { &hubs, &hubs };

static void fork_prepare(void)
{
	platform_lock(&tcp_hubs_lock);
}

static void fork_parent(void)
{
	platform_unlock(&tcp_hubs_lock);
}

/*
 * The child of a fork has the parent's epoll descriptor: a socket that it removed from that would be
 * the parent's. It may only close its descriptors. The parent's sockets it gives up at once: peers would
 * not hear of the parent's end before the child's, and its port would stay taken.
 */
static void fork_child(void)
{
	struct tcp_hub *hub;

	list_for_each_entry(hub, &hubs, all) {
		if (!hub->forked)
			sys_sockets_leave(hub->epoll_fd);
		hub->forked = true;
	}
	platform_unlock(&tcp_hubs_lock);
}

static struct platform_fork fork_watcher = {
	.prepare = fork_prepare,
	.parent = fork_parent,
	.child = fork_child,
};

static void hub_free(struct tcp_hub *hub)
{
	if (hub->epoll_fd >= 0)
		sys_events_close(hub->epoll_fd);
	tcp_secret_free(hub->secret);
	tcp_shown_end(hub);
	free(hub->in);
	free(hub);
}

static struct tcp_hub *hub_create(const void *domain, int *err, char *why, size_t why_len)
{
	struct tcp_hub *hub = calloc(1, sizeof(*hub));

	*err = -FI_ENOMEM;
	snprintf(why, why_len, "out of memory");
	if (!hub)
		return NULL;
	hub->domain = domain;
	hub->epoll_fd = -1;
	list_init(&hub->wires);
	list_init(&hub->ports);
	list_init(&hub->dead_guests);
	list_init(&hub->used);
	*err = tcp_secret_create(&hub->secret, why, why_len);
	if (*err)
		goto err_free;
	hub->epoll_fd = sys_events_open();
	if (hub->epoll_fd < 0) {
		*err = hub->epoll_fd;
		snprintf(why, why_len, "can't create an epoll descriptor: %s", strerror(-*err));
		goto err_free;
	}
	*err = -FI_ENOMEM;
	hub->in = aligned_alloc(CACHE_LINE, TCP_IN_HEAD + TCP_IN_LEN);
	if (!hub->in)
		goto err_free;
	/* Most reads end within these pages: the first read would fault on each of them. */
	memset(hub->in, 0, TCP_IN_HEAD + TCP_IN_FIRST);
	platform_fork_watch(&fork_watcher);
	mem_shown_start();
	platform_lock(&tcp_hubs_lock);
	list_add_tail(&hubs, &hub->all);
	platform_unlock(&tcp_hubs_lock);
	return hub;

err_free:
	hub_free(hub);
	return NULL;
}

/* Returns the hub of the domain, or NULL; a hub that a parent process made for it does not count. */
static struct tcp_hub *hub_find(const void *domain)
{
	struct tcp_hub *found = NULL;
	struct tcp_hub *hub;

	if (!domain)
		return NULL;
	platform_lock(&tcp_hubs_lock);
	list_for_each_entry(hub, &hubs, all) {
		if (hub->domain == domain && !hub->forked)
			found = hub;
	}
	platform_unlock(&tcp_hubs_lock);
	return found;
}

int tcp_hub_join(struct tcp_wire *wire, const void *domain, char *why, size_t why_len)
{
	struct tcp_hub *hub = hub_find(domain);
	int err = 0;

	if (!hub)
		hub = hub_create(domain, &err, why, why_len);
	if (!hub)
		return err;
	wire->hub = hub;
	list_add_tail(&hub->wires, &wire->link);
	return 0;
}

void tcp_hub_leave(struct tcp_wire *wire)
{
	struct tcp_hub *hub = wire->hub;

	if (!hub)
		return;
	sys_events_disarm(hub->epoll_fd, &wire->wire);
	list_remove(&wire->link);
	wire->hub = NULL;
	if (!list_empty(&hub->wires))
		return;
	platform_lock(&tcp_hubs_lock);
	list_remove(&hub->all);
	platform_unlock(&tcp_hubs_lock);
	hub_free(hub);
}

/* ---- lanes ---- */

int tcp_watch(struct tcp_hub *hub, struct tcp_lane *lane, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = lane };
	int op, err;

	if (events == lane->events || hub->forked)
		return 0;
	op = !events ? EPOLL_CTL_DEL : lane->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	err = sys_events_hold(hub->epoll_fd, op, lane->fd, &event);
	if (!err)
		lane->events = events;
	return err;
}

void tcp_watch_move(struct tcp_hub *hub, struct tcp_lane *from, struct tcp_lane *to)
{
	struct epoll_event event = { .events = from->events, .data.ptr = to };

	to->fd = from->fd;
	to->events = from->events;
	to->proof = from->proof;
	to->secure = from->secure;
	to->unsaid = from->unsaid;
	from->proof = NULL;
	from->secure = NULL;
	from->unsaid = NULL;
	from->fd = -1;
	from->events = 0;
	sys_events_hold(hub->epoll_fd, EPOLL_CTL_MOD, to->fd, &event);
}

/* A descriptor is free: listeners that rest for lack of one are watched again. */
static void hub_relieved(struct tcp_hub *hub)
{
	struct tcp_port *port;

	if (!hub->paused_cnt)
		return;
	list_for_each_entry(port, &hub->ports, link) {
		if (port->rearm_ns)
			port->rearm_ns = 1;
	}
	if (!list_empty(&hub->wires))
		tcp_wake(container_of(hub->wires.next, struct tcp_wire, link));
}

void tcp_lane_reset(struct tcp_lane *lane)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };

	/* connect(2): the association is dissolved, also where a child of fork() has the socket */
	if (lane->fd >= 0)
		sys_socket_connect(lane->fd, &none, sizeof(none));
}

void tcp_lane_close(struct tcp_hub *hub, struct tcp_lane *lane)
{
	if (lane->fd < 0)
		return;
	tcp_prove_end(lane);
	tcp_lane_insecure(lane);
	tcp_say_forget(lane);
	/*
	 * Removed explicitly: a child of fork() may keep the socket open, and epoll with it this
	 * pointer.
	 */
	tcp_watch(hub, lane, 0);
	sys_socket_close(lane->fd);
	lane->fd = -1;
	lane->state = TCP_LANE_NONE;
	lane->events = 0;
	lane->want_out = false;
	lane->revents = 0;
	list_remove(&lane->ready);
	hub_relieved(hub);
}

void tcp_starved(struct tcp_hub *hub, const char *what, int err)
{
	const char *remedy = err == -FI_EMFILE
				     ? " (two descriptors are needed for each: raise 'ulimit -n')"
				     : "";

	if (hub->shortage_logged)
		return;
	hub->shortage_logged = true;
	FI_WARN(&tcp_provider, FI_LOG_EP_CTRL,
		"can't %s: %s, and no connection is idle; peers wait until that has passed%s\n",
		what, strerror(-err), remedy);
}

/* ---- ports ---- */

static int listen_at(struct tcp_hub *hub, struct tcp_lane *lane, const union ip_sockaddr *at)
{
	int one = 1, err;

	lane->fd = sys_socket_open(at->sa.sa_family, SOCK_STREAM);
	if (lane->fd < 0) {
		err = lane->fd;
		lane->fd = -1;
		/* A process that may not use sockets can have other wires. */
		return err == -FI_EACCES ? -FI_EPERM : err;
	}
	sys_socket_private(lane->fd);
	tcp_set_listening(hub, lane->fd);
	/* The port that was asked for may have connections of a process that has ended. */
	if (ip_sockaddr_port(at))
		sys_socket_set(lane->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (at->sa.sa_family == AF_INET6)
		sys_socket_set(lane->fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	err = sys_socket_bind(lane->fd, &at->sa, ip_sockaddr_len(at));
	err = err ? err : sys_socket_listen(lane->fd);
	if (!err)
		return 0;
	sys_socket_close(lane->fd);
	lane->fd = -1;
	return err;
}

/* Listens at the port of @at, or at one of the configured range, or where the kernel chooses. */
static int listen_in_range(struct tcp_hub *hub, struct tcp_lane *lane, union ip_sockaddr *at)
{
	int port, err = -FI_EADDRINUSE;

	if (ip_sockaddr_port(at) || !tcp_settings.port_low)
		return listen_at(hub, lane, at);
	for (port = tcp_settings.port_low;
	     port <= tcp_settings.port_high && err == -FI_EADDRINUSE; port++) {
		ip_sockaddr_set_port(at, (uint16_t)port);
		err = listen_at(hub, lane, at);
	}
	return err;
}

static void port_free(struct tcp_port *port)
{
	struct list *node;

	while ((node = port->guests.next) != &port->guests)
		tcp_guest_drop(container_of(node, struct tcp_guest, link));
	list_remove(&port->link);
	port->hub->paused_cnt -= port->rearm_ns != 0;
	tcp_lane_close(port->hub, &port->listener);
	free(port);
}

/* Opens the listener, watches it, and reads its number. Returns 0 or -FI_E* */
static int port_open(struct tcp_port *port)
{
	union ip_sockaddr at = port->requested, bound;
	socklen_t len = sizeof(bound);
	int err = listen_in_range(port->hub, &port->listener, &at);

	if (err)
		return err;
	err = sys_socket_own(port->listener.fd, &bound.sa, &len);
	if (err)
		return err;
	port->number = ip_sockaddr_port(&bound);
	return tcp_watch(port->hub, &port->listener, EPOLLIN);
}

static struct tcp_port *port_create(struct tcp_hub *hub, const union ip_sockaddr *wish, int *err)
{
	struct tcp_port *port = calloc(1, sizeof(*port));

	*err = -FI_ENOMEM;
	if (!port)
		return NULL;
	port->hub = hub;
	port->requested = *wish;
	port->listener.fd = -1;
	port->listener.kind = TCP_LANE_LISTENER;
	list_init(&port->listener.ready);
	list_init(&port->guests);
	list_add_tail(&hub->ports, &port->link);
	*err = port_open(port);
	if (!*err)
		return port;
	port_free(port);
	return NULL;
}

static struct tcp_port *port_find(struct tcp_hub *hub, const union ip_sockaddr *wish)
{
	struct tcp_port *port;

	list_for_each_entry(port, &hub->ports, link) {
		if (port->shared && ip_sockaddr_same_ip(&port->requested, wish))
			return port;
	}
	return NULL;
}

int tcp_port_join(struct tcp_wire *wire, const union ip_sockaddr *wish, bool share)
{
	bool shared = share && !ip_sockaddr_port(wish);
	struct tcp_port *port = shared ? port_find(wire->hub, wish) : NULL;
	int err = 0;

	if (!port) {
		port = port_create(wire->hub, wish, &err);
		if (!port)
			return err;
		port->shared = shared;
		port->owner = wire;
	}
	port->refs++;
	wire->port = port;
	return 0;
}

/* Frees dead guests; not while events are handled. */
static void guests_bury(struct tcp_hub *hub)
{
	struct list *node;

	while ((node = list_pop(&hub->dead_guests)))
		free(container_of(node, struct tcp_guest, link));
}

void tcp_port_leave(struct tcp_wire *wire)
{
	struct tcp_port *port = wire->port;
	struct list *node;

	if (!port)
		return;
	while ((node = wire->arrived.next) != &wire->arrived)
		tcp_guest_drop(container_of(node, struct tcp_guest, link));
	wire->port = NULL;
	if (port->owner == wire)
		port->owner = NULL;
	if (!--port->refs)
		port_free(port);
	guests_bury(wire->hub);
}

uint64_t tcp_hub_due(const struct tcp_hub *hub)
{
	uint64_t due = UINT64_MAX;
	const struct tcp_port *port;

	if (!hub->paused_cnt)
		return due;
	list_for_each_entry(port, &hub->ports, link)
		if (port->rearm_ns && port->rearm_ns < due)
			due = port->rearm_ns;
	return due;
}

void tcp_port_rest(struct tcp_port *port, uint64_t now)
{
	tcp_watch(port->hub, &port->listener, 0);
	port->hub->paused_cnt += port->rearm_ns == 0;
	port->rearm_ns = now + TCP_RETRY_NS;
}

void tcp_hub_rearm(struct tcp_hub *hub)
{
	uint64_t now = platform_now_ns();
	struct tcp_port *port;

	list_for_each_entry(port, &hub->ports, link) {
		if (!port->rearm_ns || now < port->rearm_ns)
			continue;
		if (tcp_watch(hub, &port->listener, EPOLLIN)) {
			port->rearm_ns = now + TCP_RETRY_NS;
			continue;
		}
		port->rearm_ns = 0;
		hub->paused_cnt--;
	}
}

/* ---- events ---- */

static void lane_event(struct tcp_lane *lane, uint32_t events)
{
	struct tcp_conn *conn;

	switch (lane->kind) {
	case TCP_LANE_LISTENER:
		tcp_accept(container_of(lane, struct tcp_port, listener));
		return;
	case TCP_LANE_GUEST:
		tcp_guest_event(container_of(lane, struct tcp_guest, lane));
		return;
	case TCP_LANE_CONTROL:
		conn = container_of(lane, struct tcp_conn, control);
		break;
	default:
		conn = container_of(lane, struct tcp_conn, data);
	}
	lane->revents |= events;
	list_remove(&lane->ready);
	/* The control lane first: the turn of a header on the data lane may follow from it. */
	if (lane->kind == TCP_LANE_CONTROL)
		list_insert_after(&tcp_wire_of(conn)->ready, &lane->ready);
	else
		list_add_tail(&tcp_wire_of(conn)->ready, &lane->ready);
}

/*
 * Returns true if another wire has called epoll since this wire's last poll, in the same round of
 * progress.
 */
static bool just_looked(const struct tcp_wire *wire)
{
	const struct tcp_hub *hub = wire->hub;

	return wire->seen != hub->wait_cnt && !hub->more_events &&
	       platform_now_ns() - hub->look_ns < LOOK_NS;
}

void tcp_hub_look(struct tcp_wire *wire)
{
	struct epoll_event events[EVENT_MAX];
	struct tcp_hub *hub = wire->hub;
	int cnt, i;

	if (just_looked(wire)) {
		wire->seen = hub->wait_cnt;
		return;
	}
	wire->seen = ++hub->wait_cnt;
	if (hub->wires.next->next != &hub->wires)
		hub->look_ns = platform_now_ns();
	cnt = sys_events_take(hub->epoll_fd, events, EVENT_MAX);
	hub->more_events = cnt == EVENT_MAX;
	for (i = 0; i < cnt; i++)
		lane_event(events[i].data.ptr, events[i].events);
	guests_bury(hub);
}
