/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where one peer answers the other, most polls find something at the same socket. So the control lane that
 * packets were last read from is read at once: a system call less for each message than asking epoll first.
 * After HITS_MIN such reads epoll does not watch the lane any more. A lane that is watched costs the kernel
 * work with each segment that arrives, on the sender's core if that is on the same host.
 *
 * Other sockets are looked at in every ASK_POLLS-th poll. A wire whose packets come from several conns in
 * turns, or on data lanes, has no hot conn. Called from poll and before a thread sleeps.
 */
#include "net_socket.h"
#include "tcp_control.h"
#include "tcp_hot.h"
#include "tcp_hub.h"

#define ASK_POLLS 8u   /* of which one asks epoll */
#define VAIN_MAX  256u /* polls since the hot conn had something: then all ask epoll */
#define HITS_MIN  64u  /* reads that found something, until epoll stops watching */
#define SPIN_MIN  4u /* polls in vain before each of these: a program that sleeps makes fewer */

/*
 * Invariant: while a thread may sleep (wire->armed), every lane that is up is watched. tcp_arm() watches the
 * hot one before it sets that.
 */
static void unwatch(struct tcp_wire *wire, struct tcp_lane *lane)
{
	/* So a program that sleeps on a descriptor without fi_trywait is still woken. */
	wire->hot.hits = wire->hot.vain > SPIN_MIN ? wire->hot.hits + 1 : 0;
	if (wire->hot.hits < HITS_MIN || wire->armed || lane->events != EPOLLIN)
		return;
	wire->hot.hits = 0;
	tcp_watch(wire->hub, lane, 0);
}

bool tcp_hot_read(struct tcp_wire *wire, int *moved)
{
	struct tcp_conn *conn = wire->hot.conn;
	int cnt;

	if (!conn || wire->tick % ASK_POLLS == 0)
		return false;
	/* A lane that the kernel would not watch again stays hot. */
	if (wire->hot.vain >= VAIN_MAX && tcp_hot_watch(wire))
		return false;
	if (conn->control.state != TCP_LANE_UP)
		return false;
	wire->hot.vain++;
	cnt = tcp_control_read(conn);
	*moved += cnt;
	if (!cnt || wire->hot.conn != conn || conn->control.state != TCP_LANE_UP)
		return true;
	unwatch(wire, &conn->control);
	wire->hot.vain = 0;
	return true;
}

void tcp_hot_lane(struct tcp_conn *conn, const struct tcp_lane *lane)
{
	struct tcp_wire *wire = tcp_wire_of(conn);
	bool again = lane == wire->hot.last;

	if (!again && !tcp_hot_watch(wire))
		return;
	wire->hot.conn = again && lane == &conn->control ? conn : NULL;
	wire->hot.last = lane;
	wire->hot.vain = 0;
}

bool tcp_hot_watch(struct tcp_wire *wire)
{
	struct tcp_lane *lane = wire->hot.conn ? &wire->hot.conn->control : NULL;

	wire->hot.hits = 0;
	if (!lane || lane->events || lane->state != TCP_LANE_UP)
		return true;
	return !tcp_watch(wire->hub, lane, EPOLLIN);
}

void tcp_hot_forget(struct tcp_conn *conn)
{
	struct tcp_wire *wire = tcp_wire_of(conn);

	if (wire->hot.last == &conn->control || wire->hot.last == &conn->data)
		wire->hot.last = NULL;
	if (wire->hot.conn == conn)
		wire->hot.conn = NULL;
}
