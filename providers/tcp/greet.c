/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a lane comes up: a socket is connected or accepted, the connecting side names in a preamble
 * the endpoint and the lane that it wants, and the other side answers. Everything read here is
 * untrusted: anyone who can reach the port may have sent it. Called from the wire's poll and from
 * connect and sendv, on the thread that holds the endpoint's domain.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "tcp.h"
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_data.h"
#include "tcp_greet.h"
#include "tcp_hub.h"
#include "tcp_options.h"
#include "tcp_wire.h"

#define ACCEPT_MAX 16	       /* connections accepted in one poll */
#define GUEST_NS   10000000000 /* time that a guest may be silent, where there are many */

/* A data lane begins with more than the system's buffer, once its peer has been admitted. */
static void data_up(struct tcp_conn *conn)
{
	conn->data.state = TCP_LANE_UP;
	tcp_set_window(conn->data.fd, TCP_DATA_WINDOW);
}

/* Converts an errno of socket() or connect() to what wire_ops.connect returns. */
static int connect_error(struct tcp_wire *wire, int err)
{
	switch (err) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
	case EADDRNOTAVAIL: /* no local port is free */
		tcp_starved(wire->hub, "connect to a peer", err);
		return -FI_EAGAIN;
	case ENETUNREACH:
	case EAFNOSUPPORT:
	case EINVAL: /* a link-local address without its scope */
		return -FI_EHOSTUNREACH;
	default:
		return -err;
	}
}

static int lane_connect(struct tcp_conn *conn, struct tcp_lane *lane)
{
	struct tcp_wire *wire = tcp_wire_of(conn);
	int err;

	lane->fd = socket(conn->remote.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			  0);
	if (lane->fd < 0)
		return connect_error(wire, errno);
	tcp_set_connecting(lane->fd, &conn->remote);
	tcp_set_options(lane->fd);
	tcp_set_timeout(lane->fd, (unsigned int)tcp_settings.dead_ms);
	if (connect(lane->fd, &conn->remote.sa, tcp_sockaddr_len(&conn->remote)) &&
	    errno != EINPROGRESS) {
		err = connect_error(wire, errno);
		goto err_close;
	}
	err = tcp_watch(wire->hub, lane, EPOLLOUT);
	if (err)
		goto err_close;
	lane->state = TCP_LANE_CONNECTING;
	return 0;

err_close:
	tcp_lane_close(wire->hub, lane);
	return err;
}

int tcp_connect(struct wire *out, struct engine_peer *peer, const struct weft_addr *addr,
		const struct hello *hello, struct wire_conn **result)
{
	struct tcp_wire *wire = tcp_wire_from(out);
	union tcp_sockaddr remote;
	struct tcp_conn *conn;
	int err;

	if (wire->hub->forked)
		return -FI_EOPBADSTATE;
	if (!tcp_sockaddr_set(&remote, addr) || !addr->port)
		return -FI_EHOSTUNREACH;
	conn = tcp_conn_create(wire);
	if (!conn)
		return -FI_EAGAIN;
	conn->conn.peer = peer;
	conn->ours = true;
	conn->hello = *hello;
	conn->remote = remote;
	memcpy(conn->to, addr->nonce, sizeof(conn->to)); /* zero in a service address */
	err = lane_connect(conn, &conn->control);
	if (!err) {
		*result = &conn->conn;
		return 0;
	}
	tcp_conn_bury(conn);
	if (!wire->polling)
		tcp_reap(wire);
	return err;
}

void tcp_data_open(struct tcp_conn *conn)
{
	int err;

	if (conn->dead || conn->ending || conn->data.state != TCP_LANE_NONE)
		return;
	if (!conn->ours) {
		if (!conn->lane_asked)
			conn->lane_asked = tcp_control_own(conn, TCP_OP_LANE);
		tcp_conn_dirty(conn);
		if (!conn->lane_asked)
			tcp_due(conn, platform_now_ns() + TCP_RETRY_NS);
		return;
	}
	if (!conn->bulk)
		conn->bulk = calloc(1, sizeof(*conn->bulk));
	err = conn->bulk ? lane_connect(conn, &conn->data) : -FI_EAGAIN;
	if (err == -FI_EAGAIN)
		tcp_due(conn, platform_now_ns() + TCP_RETRY_NS);
	else if (err)
		tcp_conn_fail(conn, err);
}

/* Logs once that a peer has another protocol or version, and what to do. */
static void log_foreign(struct tcp_hub *hub, const char *what, int fd)
{
	union tcp_sockaddr peer = { 0 };
	socklen_t len = sizeof(peer);
	char name[80];

	if (hub->foreign_logged)
		return;
	hub->foreign_logged = true;
	getpeername(fd, &peer.sa, &len);
	tcp_sockaddr_str(&peer, name, sizeof(name));
	FI_WARN(&tcp_provider, FI_LOG_EP_CTRL,
		"%s %s speaks another protocol or version: install the same Weft there\n", what,
		name);
}

/* ---- the connecting side ---- */

static int say_preamble(struct tcp_conn *conn, struct tcp_lane *lane)
{
	struct tcp_preamble preamble = {
		.magic = TCP_MAGIC,
		.version = TCP_VERSION,
		.lane = lane->kind,
		.cookie = lane == &conn->data ? conn->cookie : 0,
		.hello = conn->hello,
	};
	socklen_t len = sizeof(int);
	int err = 0;
	ssize_t n;

	memcpy(preamble.to, conn->to, sizeof(preamble.to));
	if (getsockopt(lane->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (err)
		return -err;
	tcp_set_timeout(lane->fd, 0);
	tcp_set_connected(lane->fd);
	n = send(lane->fd, &preamble, sizeof(preamble), MSG_NOSIGNAL);
	if (n != sizeof(preamble)) /* an empty send buffer has room for a preamble */
		return n < 0 ? -errno : -FI_EIO;
	lane->state = TCP_LANE_GREETING;
	return tcp_watch(tcp_wire_of(conn)->hub, lane, EPOLLIN);
}

/*
 * Reads into @room until it is full. Returns 1 when it is, 0 when more has to arrive, or -FI_E*.
 */
static int fill(int fd, void *room, size_t room_len, uint32_t *len)
{
	ssize_t n = recv(fd, (char *)room + *len, room_len - *len, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!n)
		return -FI_ECONNRESET;
	*len += (uint32_t)n;
	return *len == room_len;
}

static int answer_error(const struct tcp_answer *answer)
{
	/*
	 * The preamble came back: no process listens, and the kernel connected the socket to
	 * itself.
	 */
	if (answer->magic == TCP_MAGIC)
		return -FI_ECONNREFUSED;
	if (answer->magic != TCP_ANSWER_MAGIC || answer->version != TCP_VERSION)
		return -FI_ENOPROTOOPT;
	return answer->err < FI_ERRNO_MAX ? -(int)answer->err : -FI_EOTHER;
}

static int control_answered(struct tcp_conn *conn)
{
	struct tcp_answer answer;
	int err;

	memcpy(&answer, conn->part, sizeof(answer));
	err = answer_error(&answer);
	if (!err)
		err = hello_check(&answer.hello);
	if (err)
		return err;
	conn->part_len = 0;
	conn->cookie = answer.cookie;
	conn->peer_epoch = answer.hello.epoch;
	conn->control.state = TCP_LANE_UP;
	conn->conn.up = true;
	engine_conn_up(&conn->conn, &answer.hello);
	return 0;
}

static int data_answered(struct tcp_conn *conn)
{
	int err = answer_error(&conn->bulk->answer);

	if (err)
		return err;
	data_up(conn);
	tcp_data_flush(conn);
	return 0;
}

int tcp_greet_event(struct tcp_conn *conn, struct tcp_lane *lane)
{
	struct tcp_bulk *bulk = conn->bulk;
	int err;

	if (lane->state == TCP_LANE_CONNECTING) {
		err = say_preamble(conn, lane);
		if (err)
			tcp_conn_down(conn, err);
		return 0;
	}
	if (lane->state != TCP_LANE_GREETING)
		return 0;
	if (lane == &conn->control)
		err = fill(lane->fd, conn->part, sizeof(struct tcp_answer), &conn->part_len);
	else
		err = fill(lane->fd, &bulk->answer, sizeof(bulk->answer), &bulk->answer_len);
	if (!err)
		return 0;
	if (err > 0)
		err = lane == &conn->control ? control_answered(conn) : data_answered(conn);
	if (err == -FI_ENOPROTOOPT)
		log_foreign(tcp_wire_of(conn)->hub, "the peer at", lane->fd);
	if (err)
		tcp_conn_down(conn, err);
	return 1;
}

/* ---- the accepting side ---- */

void tcp_guest_drop(struct tcp_guest *guest)
{
	struct tcp_hub *hub = guest->port->hub;

	tcp_lane_close(hub, &guest->lane);
	list_remove(&guest->link);
	list_add_tail(&hub->dead_guests, &guest->link);
	guest->port->guest_cnt--;
}

static void refuse(struct tcp_guest *guest, int err)
{
	struct tcp_answer answer = { .magic = TCP_ANSWER_MAGIC,
				     .version = TCP_VERSION,
				     .err = (uint16_t)-err };

	if (send(guest->lane.fd, &answer, sizeof(answer), MSG_NOSIGNAL) > 0)
		shutdown(guest->lane.fd, SHUT_WR);
	tcp_guest_drop(guest);
}

static void admit_control(struct tcp_wire *wire, struct tcp_guest *guest)
{
	struct tcp_answer answer = { .magic = TCP_ANSWER_MAGIC, .version = TCP_VERSION };
	const struct hello *hello = &guest->preamble.hello;
	struct engine_peer *peer = NULL;
	struct tcp_conn *conn;
	int err;

	if (wire->closing) {
		refuse(guest, -FI_ECONNREFUSED);
		return;
	}
	conn = tcp_conn_create(wire);
	/*
	 * All that can fail comes before the engine is asked: a conn that it accepts has to come
	 * up.
	 */
	if (!conn || platform_random(&conn->cookie, sizeof(conn->cookie)))
		err = -FI_ENOMEM;
	else
		err = tcp_control_room(conn)
			      ? engine_accept(&wire->wire, hello, &peer, &answer.hello)
			      : -FI_ENOMEM;
	if (err) {
		if (conn)
			tcp_conn_bury(conn);
		refuse(guest, err);
		return;
	}
	answer.cookie = conn->cookie;
	conn->conn.peer = peer;
	conn->hello = answer.hello;
	conn->peer_epoch = hello->epoch;
	conn->conn.up = true;
	tcp_watch_move(wire->hub, &guest->lane, &conn->control);
	conn->control.state = TCP_LANE_UP;
	tcp_guest_drop(guest);
	tcp_control_raw(conn, &answer, sizeof(answer));
	tcp_conn_dirty(conn);
	engine_conn_up(&conn->conn, hello);
}

static struct tcp_conn *find_conn(struct tcp_wire *wire, const struct tcp_preamble *preamble)
{
	struct list *node, *after;
	struct tcp_conn *conn;

	list_for_each(node, after, &wire->conns) {
		conn = container_of(node, struct tcp_conn, link);
		if (conn->cookie == preamble->cookie &&
		    conn->peer_epoch == preamble->hello.epoch && !conn->ours && conn->conn.up &&
		    conn->data.state == TCP_LANE_NONE)
			return conn;
	}
	return NULL;
}

static void admit_data(struct tcp_wire *wire, struct tcp_guest *guest)
{
	struct tcp_answer answer = { .magic = TCP_ANSWER_MAGIC, .version = TCP_VERSION };
	struct tcp_conn *conn = find_conn(wire, &guest->preamble);

	if (conn && !conn->bulk)
		conn->bulk = calloc(1, sizeof(*conn->bulk));
	if (!conn || !conn->bulk) {
		refuse(guest, conn ? -FI_ENOMEM : -FI_ECONNRESET);
		return;
	}
	tcp_watch_move(wire->hub, &guest->lane, &conn->data);
	tcp_guest_drop(guest);
	data_up(conn);
	if (send(conn->data.fd, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer)) {
		tcp_lane_ended(conn, &conn->data, -FI_ECONNRESET);
		return;
	}
	tcp_data_flush(conn);
}

/* Checks a preamble of which the first 8 bytes, or all, have arrived. Returns 0 or -FI_E*. */
static int preamble_check(const struct tcp_preamble *p, uint32_t len)
{
	if (p->magic != TCP_MAGIC)
		return -FI_EINVAL;
	if (p->version != TCP_VERSION)
		return -FI_ENOPROTOOPT;
	if ((p->lane != TCP_LANE_CONTROL && p->lane != TCP_LANE_DATA) || p->reserved)
		return -FI_EINVAL;
	if (len < sizeof(*p))
		return 0;
	if (p->lane == TCP_LANE_CONTROL && p->cookie)
		return -FI_EINVAL;
	return hello_check(&p->hello);
}

/* Returns the wire that the preamble names among those at the port, or NULL if it is not there. */
static struct tcp_wire *guest_host(const struct tcp_guest *guest)
{
	static const uint8_t anyone[ADDR_NONCE_LEN];
	const uint8_t *to = guest->preamble.to;
	struct list *node, *after;

	if (!memcmp(to, anyone, sizeof(anyone)))
		return guest->port->owner;
	list_for_each(node, after, &guest->port->hub->wires) {
		struct tcp_wire *wire = container_of(node, struct tcp_wire, link);

		if (wire->port == guest->port && !memcmp(to, wire->nonce, sizeof(wire->nonce)))
			return wire;
	}
	return NULL;
}

/* The wire admits the guest in its own poll; what else arrives stays in the socket until then. */
static void guest_arrive(struct tcp_guest *guest)
{
	struct tcp_wire *host = guest_host(guest);

	if (!host) {
		refuse(guest, -FI_ECONNREFUSED);
		return;
	}
	guest->arrived = true;
	list_remove(&guest->link);
	list_add_tail(&host->arrived, &guest->link);
	tcp_wake(host); /* no socket reports the guest any more */
}

void tcp_guest_event(struct tcp_guest *guest)
{
	int whole, err = 0;

	if (guest->arrived || guest->lane.fd < 0)
		return;
	whole = fill(guest->lane.fd, &guest->preamble, sizeof(guest->preamble), &guest->len);
	if (whole < 0) {
		tcp_guest_drop(guest);
		return;
	}
	if (guest->len >= offsetof(struct tcp_preamble, cookie))
		err = preamble_check(&guest->preamble, guest->len);
	if (err) {
		log_foreign(guest->port->hub, "the peer that connects from", guest->lane.fd);
		refuse(guest, err);
	} else if (whole) {
		guest_arrive(guest);
	}
}

void tcp_guest_admit(struct tcp_guest *guest, struct tcp_wire *wire)
{
	if (guest->preamble.lane == TCP_LANE_CONTROL)
		admit_control(wire, guest);
	else
		admit_data(wire, guest);
}

/* Makes room for one more guest without a preamble. Returns false when there is none. */
static bool guest_room(struct tcp_port *port, uint64_t now)
{
	struct tcp_guest *oldest;

	if (port->guest_cnt < TCP_GUEST_MAX)
		return true;
	if (list_empty(&port->guests))
		return false;
	oldest = container_of(port->guests.next, struct tcp_guest, link);
	if (now - oldest->since_ns < GUEST_NS)
		return false;
	tcp_guest_drop(oldest);
	return true;
}

static bool guest_create(struct tcp_port *port, int fd, uint64_t now)
{
	struct tcp_guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return false;
	guest->port = port;
	guest->lane.fd = fd;
	guest->lane.kind = TCP_LANE_GUEST;
	list_init(&guest->lane.ready);
	guest->since_ns = now;
	if (tcp_watch(port->hub, &guest->lane, EPOLLIN)) {
		free(guest);
		return false;
	}
	list_add_tail(&port->guests, &guest->link);
	port->guest_cnt++;
	return true;
}

void tcp_accept(struct tcp_port *port)
{
	uint64_t now = platform_now_ns();
	int fd, i;

	for (i = 0; i < ACCEPT_MAX; i++) {
		if (!guest_room(port, now)) {
			tcp_port_rest(port, now);
			return;
		}
		fd = accept4(port->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			       errno == ENOMEM)) {
			tcp_starved(port->hub, "accept a peer's connection", errno);
			tcp_port_rest(port, now);
			return;
		}
		if (fd < 0 && errno == EAGAIN)
			return;
		if (fd < 0)
			continue; /* that connection has ended already */
		port->hub->shortage_logged = false;
		tcp_set_options(fd);
		tcp_set_accepted(port->hub, fd);
		if (!guest_create(port, fd, now)) {
			close(fd);
			return;
		}
	}
}
