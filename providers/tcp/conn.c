/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A conn of the TCP wire from its creation to its end. Called by the other files of the wire, and
 * by the engine to disconnect and to check that the peer is alive, on the thread that holds the
 * endpoint's domain.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "tcp.h"
#include "tcp_bell.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_greet.h"
#include "tcp_hot.h"
#include "tcp_hub.h"
#include "tcp_lane.h"
#include "tcp_prove.h"
#include "tcp_session.h"
#include "tcp_wire.h"

#define CHECK_NS       250000000u /* time between looks at the kernel's state of a connection */
#define RETRANSMIT_MIN 3	  /* unanswered retransmissions of a peer that may be dead */
#define PROBE_MIN      2

struct tcp_conn *tcp_conn_create(struct tcp_wire *wire)
{
	struct tcp_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->conn.wire = &wire->wire;
	conn->control.kind = TCP_LANE_CONTROL;
	conn->control.fd = -1;
	conn->data.kind = TCP_LANE_DATA;
	conn->data.fd = -1;
	list_init(&conn->control.ready);
	list_init(&conn->data.ready);
	list_init(&conn->known);
	list_init(&conn->dirty);
	list_init(&conn->finished);
	list_init(&conn->timed);
	list_init(&conn->telling);
	list_init(&conn->waiting);
	list_add_tail(&wire->conns, &conn->link);
	return conn;
}

/* Reads the address of one end of a socket. Returns 0 or -FI_E*. */
static int socket_name(int fd, bool remote, struct weft_addr *addr)
{
	union tcp_sockaddr sock = { 0 };
	socklen_t len = sizeof(sock);

	if (remote ? getpeername(fd, &sock.sa, &len) : getsockname(fd, &sock.sa, &len))
		return -errno;
	*addr = (struct weft_addr){ .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	tcp_sockaddr_get(&sock, addr);
	return 0;
}

int tcp_names(struct wire_conn *out, struct weft_addr *local, struct weft_addr *remote)
{
	int fd = tcp_conn_from(out)->control.fd;
	int err = socket_name(fd, false, local);

	return err ? err : socket_name(fd, true, remote);
}

void tcp_part(struct wire_conn *out)
{
	struct tcp_conn *conn = tcp_conn_from(out);

	if (conn->control.fd >= 0)
		tcp_watch(tcp_wire_of(conn)->hub, &conn->control, 0);
	conn->control.revents = 0;
	list_remove(&conn->control.ready);
	list_remove(&conn->link);
	conn->conn.wire = NULL;
}

int tcp_join(struct wire_conn *out, struct wire *to)
{
	struct tcp_conn *conn = tcp_conn_from(out);
	struct tcp_wire *wire = tcp_wire_from(to);
	int err = 0;

	if (wire->hub->forked)
		return -FI_EOPBADSTATE;
	if (conn->control.fd >= 0) /* else the requester has given up */
		err = tcp_watch(wire->hub, &conn->control, EPOLLIN);
	if (err)
		return err;
	conn->conn.wire = to;
	list_add_tail(&wire->requests, &conn->link);
	return 0;
}

/* No refusal is sent: in the child of a fork the socket belongs to the parent. */
void tcp_drop(struct wire_conn *out)
{
	struct tcp_conn *conn = tcp_conn_from(out);

	tcp_prove_end(&conn->control);
	tcp_lane_insecure(&conn->control);
	if (conn->control.fd >= 0)
		close(conn->control.fd);
	free(conn->out);
	free(conn);
}

void tcp_conn_bury(struct tcp_conn *conn)
{
	struct tcp_wire *wire = tcp_wire_of(conn);

	if (conn->dead)
		return;
	conn->dead = true;
	conn->conn.up = false;
	tcp_hot_forget(conn);
	if (conn->lost && !wire->hub->forked) {
		tcp_lane_reset(&conn->control);
		tcp_lane_reset(&conn->data);
	}
	tcp_lane_close(wire->hub, &conn->control);
	tcp_lane_close(wire->hub, &conn->data);
	list_remove(&conn->known);
	list_remove(&conn->dirty);
	list_remove(&conn->finished);
	list_remove(&conn->timed);
	list_remove(&conn->telling);
	list_remove(&conn->waiting);
	list_remove(&conn->link);
	list_add_tail(&wire->dead_conns, &conn->link);
	tcp_session_end(conn);
}

void tcp_conn_down(struct tcp_conn *conn, int err)
{
	struct tcp_wire *wire = tcp_wire_of(conn);

	if (conn->dead)
		return;
	conn->lost |= err && conn->conn.up;
	tcp_conn_bury(conn);
	if (!wire->closing)
		engine_conn_down(&conn->conn, err);
}

void tcp_conn_dirty(struct tcp_conn *conn)
{
	if (!list_empty(&conn->dirty))
		return;
	list_add_tail(&tcp_wire_of(conn)->dirty, &conn->dirty);
	tcp_wake(tcp_wire_of(conn));
}

void tcp_conn_fail(struct tcp_conn *conn, int err)
{
	if (!conn->err)
		conn->err = err;
	tcp_conn_dirty(conn);
}

void tcp_lane_ended(struct tcp_conn *conn, struct tcp_lane *lane, int err)
{
	struct tcp_lane *other = lane == &conn->control ? &conn->data : &conn->control;

	if (tcp_session_broken(conn, lane, err))
		return;
	tcp_watch(tcp_wire_of(conn)->hub, lane, 0);
	lane->state = TCP_LANE_ENDED;
	lane->write_failed = true;
	if (!conn->err)
		conn->err = err ? err : -FI_ECONNRESET;
	/* Data that the peer sent on the other lane before it ended is still read. */
	if (other->state != TCP_LANE_UP) {
		tcp_conn_down(conn, tcp_conn_end(conn));
		return;
	}
	if (!conn->ending) {
		conn->end_ns = platform_now_ns() + TCP_END_NS;
		tcp_due(conn, conn->end_ns);
	}
	conn->ending = true;
}

int tcp_conn_end(const struct tcp_conn *conn)
{
	const struct tcp_bulk *bulk = conn->bulk;
	bool whole = !conn->flow.left && !(bulk && (bulk->flow.left || bulk->header_len)) &&
		     conn->session.data.in == conn->session.bye_len;

	return conn->bye_received && whole ? 0 : conn->err;
}

void tcp_conn_timer(struct tcp_conn *conn, uint64_t now)
{
	if (conn->ending) {
		if (now >= conn->end_ns)
			tcp_conn_down(conn, tcp_conn_end(conn));
		else
			tcp_due(conn, conn->end_ns);
		return;
	}
	if (conn->open_due) {
		conn->open_due = false;
		tcp_data_open(conn);
	}
	if (conn->session.on)
		tcp_session_timer(conn, now);
}

/* Returns true if the peer's kernel has acknowledged everything that was sent. */
static bool lane_acknowledged(const struct tcp_lane *lane)
{
	int unsent = 0;

	return lane->fd < 0 || lane->write_failed || ioctl(lane->fd, SIOCOUTQ, &unsent) ||
	       !unsent;
}

bool tcp_conn_drained(struct tcp_conn *conn)
{
	struct tcp_bulk *bulk = conn->bulk;

	if (tcp_session_unsettled(conn))
		return false;
	if (conn->control.state != TCP_LANE_UP || conn->control.write_failed)
		return true;
	if (bulk && bulk->written != bulk->queued && !conn->data.write_failed)
		return false;
	if (!conn->bye_sent) {
		conn->bye_sent = tcp_control_own(conn, TCP_OP_BYE, 0, bulk ? bulk->out_len : 0);
		if (!conn->bye_sent)
			return true; /* no memory: the peer sees a broken connection */
	}
	tcp_control_flush(conn);
	if (conn->head != conn->tail)
		return conn->control.write_failed;
	if (!conn->shut) {
		if (!tcp_lane_shut(&conn->control) || !tcp_lane_shut(&conn->data))
			return false;
		conn->shut = true;
	}
	return lane_acknowledged(&conn->control) && lane_acknowledged(&conn->data);
}

/*
 * Sends a TCP_OP_BYE, by which the peer sees an orderly end, if that does not block and cuts no
 * packet off in the middle.
 */
void tcp_disconnect(struct wire_conn *out)
{
	struct tcp_conn *conn = tcp_conn_from(out);
	struct tcp_wire *wire = tcp_wire_of(conn);

	if (conn->dead)
		return;
	if (conn->conn.up && !conn->lost && !wire->hub->forked)
		tcp_conn_drained(conn);
	tcp_conn_bury(conn);
	if (!wire->polling)
		tcp_reap(wire);
}

/*
 * TCP_USER_TIMEOUT would also end a connection to a live peer that does not read for that long, as
 * a process that computes. So silence is judged here: data is retransmitted, or a closed window is
 * probed, and no acknowledgement comes back. Where nothing is under way, keepalive detects a dead
 * peer.
 */
static int lane_check(const struct tcp_lane *lane)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (lane->fd < 0 || (lane->state != TCP_LANE_UP && lane->state != TCP_LANE_GREETING))
		return 0;
	if (getsockopt(lane->fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return 0;
	if (info.tcpi_last_ack_recv < (unsigned int)tcp_settings.dead_ms)
		return 0;
	if (info.tcpi_unacked && info.tcpi_retransmits >= RETRANSMIT_MIN)
		return -FI_ETIMEDOUT;
	return info.tcpi_probes >= PROBE_MIN ? -FI_ETIMEDOUT : 0;
}

int tcp_check(struct wire_conn *out)
{
	struct tcp_conn *conn = tcp_conn_from(out);
	uint64_t now = platform_now_ns();
	int err;

	if (tcp_wire_of(conn)->hub->forked)
		return -FI_EOPBADSTATE;
	if (now - conn->check_ns < CHECK_NS)
		return 0;
	conn->check_ns = now;
	err = lane_check(&conn->control);
	err = err ? err : lane_check(&conn->data);
	conn->lost |= err;
	return err;
}
