/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a lane comes up on the side that accepts: a socket is a guest until its preamble has arrived,
 * then a request that the engine answers, or the data lane of a conn. Everything read here is
 * untrusted: any process that can reach the port may have sent it. Called from the wire's poll, and
 * by the engine for its answers, on the thread that holds the endpoint's domain.
 */
#include "net_socket.h"
#include "tcp.h"
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_data.h"
#include "tcp_greet.h"
#include "tcp_hub.h"
#include "tcp_idle.h"
#include "tcp_lane.h"
#include "tcp_options.h"
#include "tcp_prove.h"
#include "tcp_session.h"
#include "tcp_shown.h"
#include "tcp_wire.h"

#define ACCEPT_MAX 16	       /* connections accepted in one poll */
#define GUEST_NS   1000000000u /* time that a guest may be silent, where others wait */

void tcp_guest_drop(struct tcp_guest *guest)
{
	struct tcp_hub *hub = guest->port->hub;

	tcp_lane_close(hub, &guest->lane);
	list_remove(&guest->link);
	list_add_tail(&hub->dead_guests, &guest->link);
	guest->port->guest_cnt--;
}

bool tcp_say_answer(struct tcp_lane *lane, const struct tcp_answer *answer)
{
	uint8_t seal[TCP_KEY_LEN];
	struct iovec iov[2] = { { seal, tcp_prove_seal(lane, answer, seal) },
				{ (void *)(uintptr_t)answer, sizeof(*answer) } };

	return tcp_lane_sendv(lane, iov, 2) == (ssize_t)(iov[0].iov_len + iov[1].iov_len);
}

static void send_refusal(struct tcp_lane *lane, int err, const struct hello_data *data)
{
	struct tcp_answer answer = { .magic = TCP_ANSWER_MAGIC,
				     .version = TCP_VERSION,
				     .err = (uint16_t)-err };

	if (data)
		answer.hello.data = *data;
	if (tcp_say_answer(lane, &answer))
		tcp_lane_shut(lane);
}

void tcp_guest_refuse(struct tcp_guest *guest, int err)
{
	send_refusal(&guest->lane, err, NULL);
	tcp_guest_drop(guest);
}

void tcp_conn_refuse(struct wire_conn *out, int err, const struct hello_data *data)
{
	struct tcp_conn *conn = tcp_conn_from(out);
	struct tcp_wire *wire = tcp_wire_of(conn);

	if (conn->control.fd >= 0 && !wire->hub->forked)
		send_refusal(&conn->control, err, data);
	tcp_conn_bury(conn);
	if (!wire->polling)
		tcp_reap(wire);
}

/* The socket is new: its buffer has room for the answer. Where it has not, the lane is closed. */
void tcp_conn_accept(struct wire_conn *out, const struct hello *hello)
{
	struct tcp_conn *conn = tcp_conn_from(out);
	struct tcp_answer answer = { .magic = TCP_ANSWER_MAGIC,
				     .version = TCP_VERSION,
				     .hello = *hello };
	struct tcp_lane *lane = &conn->control;

	memcpy(answer.cookie, conn->cookie, sizeof(answer.cookie));
	/* First: a peer that has gone resets the socket at the answer, and its address goes with it. */
	tcp_session_begin(conn, hello);
	if (lane->fd >= 0 && !tcp_wire_of(conn)->hub->forked && !tcp_say_answer(lane, &answer))
		tcp_lane_close(tcp_wire_of(conn)->hub, lane);
	tcp_prove_end(lane);
	list_remove(&conn->link);
	list_add_tail(&tcp_wire_of(conn)->conns, &conn->link);
	conn->accepted = true;
	tcp_conn_dirty(conn);
}

void tcp_conn_accepted(struct tcp_conn *conn)
{
	conn->accepted = false;
	if (conn->control.fd < 0) { /* closed by request_event() */
		tcp_conn_down(conn, -FI_ECONNRESET);
		return;
	}
	tcp_conn_up(conn, &conn->hello);
}

/*
 * An address that is valid on its link alone names that by the peer's number of it, which says
 * nothing here. What counts is the link that the socket came over. Then it is the address that the
 * program has of the peer, and the one that the peer can be asked at.
 */
static void link_here(struct weft_addr *addr, int fd)
{
	union ip_sockaddr said, from = { 0 };
	socklen_t len = sizeof(from);

	if (ip_sockaddr_set(&said, addr) && ip_sockaddr_of_link(&said) &&
	    !sys_socket_peer(fd, &from.sa, &len) && ip_sockaddr_of_link(&from))
		addr->scope = from.in6.sin6_scope_id;
}

/*
 * Passes the guest to the engine as a request. Whatever can fail does so before: an accepted conn
 * comes up.
 */
static void admit_control(struct tcp_wire *wire, struct tcp_guest *guest)
{
	struct tcp_conn *conn;

	if (wire->closing) {
		tcp_guest_refuse(guest, -FI_ECONNREFUSED);
		return;
	}
	conn = tcp_conn_create(wire);
	if (!conn) {
		tcp_guest_refuse(guest, -FI_ENOMEM);
		return;
	}
	conn->hello = guest->preamble.hello;
	link_here(&conn->hello.addr, guest->lane.fd);
	memcpy(conn->cookie, guest->preamble.cookie, sizeof(conn->cookie));
	conn->session.control.turn = guest->preamble.turn;
	conn->peer_epoch = conn->hello.epoch;
	tcp_watch_move(wire->hub, &guest->lane, &conn->control);
	conn->control.state = TCP_LANE_REQUESTED;
	tcp_guest_drop(guest);
	list_remove(&conn->link);
	list_add_tail(&wire->requests, &conn->link);
	engine_conn_request(&conn->conn, &conn->hello);
	if (conn->accepted && !conn->dead)
		tcp_conn_accepted(conn);
}

/* Checks a preamble of which the first 8 bytes, or all, have arrived. Returns 0 or -FI_E*. */
static int preamble_check(const struct tcp_preamble *p, uint32_t len)
{
	if (p->magic != TCP_MAGIC)
		return -FI_EINVAL;
	if (p->version != TCP_VERSION)
		return -FI_ENOPROTOOPT;
	if (p->lane < TCP_LANE_CONTROL || p->lane > TCP_LANE_PROBE || p->reserved)
		return -FI_EINVAL;
	if (len < sizeof(*p))
		return 0;
	if (tcp_session_misnamed(p))
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
		tcp_guest_refuse(guest, -FI_ECONNREFUSED);
		return;
	}
	guest->arrived = true;
	list_remove(&guest->link);
	list_add_tail(&host->arrived, &guest->link);
	tcp_wake(host); /* no socket reports the guest any more */
}

/*
 * What comes before the preamble, where a secret is to be proved. Returns true when the preamble may
 * be read; the guest may be gone otherwise.
 */
static bool guest_proved(struct tcp_guest *guest)
{
	struct tcp_hub *hub = guest->port->hub;
	uint32_t len;
	int ret;

	if (!guest->lane.proof)
		return true;
	ret = tcp_prove_accepting(hub, &guest->lane, &guest->preamble, &len);
	if (ret == -FI_ENOPROTOOPT)
		tcp_log_foreign(hub, "the peer that connects from", guest->lane.fd);
	if (ret < 0)
		tcp_guest_drop(guest);
	else if (len)
		guest->len = len;
	return ret > 0;
}

void tcp_guest_event(struct tcp_guest *guest)
{
	struct tcp_hub *hub = guest->port->hub;
	int whole, err = 0;

	if (guest->arrived || guest->lane.fd < 0 || !guest_proved(guest))
		return;
	whole = tcp_greet_fill(&guest->lane, &guest->preamble, sizeof(guest->preamble),
			       &guest->len);
	if (whole < 0) {
		tcp_shown_failed(hub, &guest->lane, whole);
		tcp_guest_drop(guest);
		return;
	}
	if (guest->len >= offsetof(struct tcp_preamble, turn)) {
		if (!hub->secret &&
		    tcp_prove_stranger(hub, &guest->lane, &guest->preamble, NULL)) {
			tcp_guest_drop(guest);
			return;
		}
		err = preamble_check(&guest->preamble, guest->len);
	}
	if (err) {
		tcp_log_foreign(hub, "the peer that connects from", guest->lane.fd);
		tcp_guest_refuse(guest, err);
	} else if (whole) {
		guest_arrive(guest);
	}
}

void tcp_guest_admit(struct tcp_guest *guest, struct tcp_wire *wire)
{
	if (!tcp_session_admit(wire, guest))
		admit_control(wire, guest);
}

/* Returns how many connections the kernel has for the port that are not accepted; 0: unknown. */
static uint32_t waiting_cnt(const struct tcp_port *port)
{
	struct sys_socket_state state;

	return sys_socket_state(port->listener.fd, &state) ? 0 : state.unacked;
}

/*
 * Returns the time that a guest keeps its place without a word: GUEST_NS, divided by how often the
 * places have to be filled anew to serve all who wait now. So the last of the kernel's queue is
 * served after about GUEST_NS, however many strangers are before it.
 */
static uint64_t guest_patience(const struct tcp_port *port)
{
	uint64_t ns = GUEST_NS / (1 + waiting_cnt(port) / TCP_GUEST_MAX);

	return ns > TCP_RETRY_NS ? ns : TCP_RETRY_NS;
}

/* Drops the guest that has been silent for longest. Returns false where none has been for long enough. */
static bool guest_yield(struct tcp_port *port, uint64_t now)
{
	struct tcp_guest *oldest;

	if (list_empty(&port->guests))
		return false;
	oldest = container_of(port->guests.next, struct tcp_guest, link);
	if (now - oldest->since_ns < guest_patience(port))
		return false;
	tcp_guest_drop(oldest);
	return true;
}

/* Makes room for one more guest without a preamble. Returns false when there is none. */
static bool guest_room(struct tcp_port *port, uint64_t now)
{
	return port->guest_cnt < TCP_GUEST_MAX || guest_yield(port, now);
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
	if (tcp_prove_expect(port->hub, &guest->lane) ||
	    tcp_watch(port->hub, &guest->lane, EPOLLIN)) {
		tcp_prove_end(&guest->lane);
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
		fd = sys_socket_accept(port->listener.fd);
		if (tcp_idle_short(fd) && waiting_cnt(port) && guest_yield(port, now))
			continue;
		if (tcp_idle_short(fd) || fd == -FI_ENOBUFS || fd == -FI_ENOMEM) {
			if (!tcp_idle_short(fd) || !tcp_idle_ask(port->hub, ACCEPT_MAX))
				tcp_starved(port->hub, "accept a peer's connection", fd);
			tcp_port_rest(port, now);
			return;
		}
		if (fd == -FI_EAGAIN)
			return;
		if (fd < 0)
			continue; /* that connection has ended already */
		sys_socket_private(fd);
		port->hub->shortage_logged = false;
		tcp_idle_made(port->hub, fd);
		tcp_set_options(fd);
		tcp_set_accepted(port->hub, fd);
		if (!guest_create(port, fd, now)) {
			sys_socket_close(fd);
			return;
		}
	}
}
