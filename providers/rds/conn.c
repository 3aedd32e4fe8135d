/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Conns over RDS (conn.h): how they come up, and how they end. RDS takes what is sent to a socket that is not there
 * and says nothing of it: a hello is said until it is answered, and who has said nothing for long is dead.
 */
#include <rdma/fi_errno.h>
#include "conn.h"
#include "rds.h"

/* Beginning and end */

struct rds_conn *rds_conn_new(struct rds_wire *wire, enum rds_state state)
{
	struct rds_conn *c = platform_alloc(sizeof(*c));

	if (!c)
		return NULL;
	if (platform_random(&c->id, sizeof(c->id))) {
		platform_free(c);
		return NULL;
	}
	c->id |= !c->id;
	c->conn.wire = &wire->wire;
	c->wire = wire;
	c->state = state;
	c->fd = -1;
	list_init(&c->busy);
	list_init(&c->beat.node);
	list_add_tail(&wire->conns, &c->node);
	return c;
}

/* Opens its socket, and what it sends from. Returns 0 or -FI_E*. */
static int conn_open(struct rds_conn *c)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
	union ip_sockaddr at = c->wire->where;
	int ret;

	if (rds_forked(c->wire))
		return -FI_EOPBADSTATE;
	c->out = platform_alloc(sizeof(*c->out));
	if (!c->out)
		return -FI_ENOMEM;
	ip_sockaddr_set_port(&at, 0);
	ret = rds_socket_open(&at, &at);
	if (ret < 0)
		return ret;
	c->fd = ret;
	return sys_events_hold(c->wire->set, EPOLL_CTL_ADD, c->fd, &event);
}

void rds_conn_free(struct rds_conn *c)
{
	platform_free(c->out);
	platform_free(c);
}

void rds_conn_proven(struct rds_conn *c)
{
	c->wire->unproven -= c->unproven;
	c->unproven = false;
}

/*
 * Taken out of the set explicitly: a child of a fork may keep the socket open, and the set with it the pointer to the
 * conn. There the set is the parent's.
 */
static void conn_close(struct rds_conn *c)
{
	struct epoll_event none = { .events = 0 };

	if (c->fd < 0)
		return;
	if (!rds_forked(c->wire))
		sys_events_hold(c->wire->set, EPOLL_CTL_DEL, c->fd, &none);
	sys_socket_close(c->fd);
	c->fd = -1;
}

void rds_conn_bury(struct rds_conn *c)
{
	if (c->buried)
		return;
	c->buried = true;
	c->conn.up = false;
	rds_conn_proven(c);
	rds_beat_end(&c->beat);
	list_remove(&c->busy);
	list_remove(&c->node);
	conn_close(c);
	if (c->wire->polling)
		list_add_tail(&c->wire->grave, &c->node);
	else
		rds_conn_free(c);
}

int rds_conn_say_end(struct rds_conn *c, int err)
{
	static const uint8_t zeros[RDS_END_LEN - sizeof(struct rds_end)];
	struct rds_end end = { .err = (uint32_t)-err };
	struct iovec iov[2] = { { &end, sizeof(end) }, { (void *)zeros, sizeof(zeros) } };

	return c->state == RDS_UP ? rds_say(c, RDS_END, iov, 2) : 0;
}

void rds_conn_fail(struct rds_conn *c, int err, const struct hello_data *data)
{
	static const struct hello_data none;

	if (c->buried)
		return;
	rds_conn_bury(c);
	if (c->state == RDS_ASKING)
		engine_conn_refused(&c->conn, err ? err : -FI_ECONNREFUSED, data ? data : &none);
	else
		engine_conn_down(&c->conn, err);
}

void rds_conn_busy(struct rds_conn *c)
{
	struct rds_wire *wire = c->wire;

	if (c->buried || !list_empty(&c->busy))
		return;
	list_add_tail(&wire->busy, &c->busy);
	if (unlikely(wire->armed) && !wire->polling && !rds_forked(wire))
		engine_wire_wake(&wire->wire);
}

void rds_conn_broken(struct rds_conn *c, int err)
{
	if (!c->ended)
		c->err = err;
	c->ended = true;
	rds_conn_busy(c);
}

/* Connecting */

/* Says hello. Returns 0, or -FI_E* where it can't be said at all. */
static int hello_say(struct rds_conn *c, uint64_t now)
{
	struct rds_greeting greeting = { .id = c->id, .hello = c->mine };
	struct iovec iov = { &greeting, sizeof(greeting) };
	int ret = rds_say(c, RDS_HELLO, &iov, 1);

	c->again_ns = now + c->wait_ns;
	if (c->wait_ns < RDS_HELLO_MAX_NS)
		c->wait_ns *= 2;
	return ret == -FI_EAGAIN ? 0 : ret;
}

static int connect_to(struct rds_conn *c, const struct weft_addr *addr)
{
	int ret;

	if (!ip_sockaddr_set(&c->peer, addr) ||
	    c->peer.sa.sa_family != c->wire->where.sa.sa_family)
		return -FI_EHOSTUNREACH;
	ret = conn_open(c);
	if (ret)
		return ret == -FI_EOPBADSTATE ? ret : -FI_EAGAIN;
	c->wait_ns = RDS_HELLO_NS;
	c->heard_ns = platform_now_ns();
	/* What RDS does not take at all leads nowhere. */
	return hello_say(c, c->heard_ns) ? -FI_EHOSTUNREACH : 0;
}

int rds_connect(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		const struct hello *hello, struct wire_conn **conn)
{
	struct rds_conn *c = rds_conn_new(rds_wire_of(wire), RDS_ASKING);
	int ret;

	if (!c)
		return -FI_EAGAIN;
	c->conn.peer = peer;
	c->mine = *hello;
	ret = connect_to(c, addr);
	if (ret) {
		rds_conn_bury(c);
		return ret;
	}
	rds_conn_busy(c);
	*conn = &c->conn;
	return 0;
}

void rds_accept(struct wire_conn *conn, const struct hello *hello)
{
	struct rds_conn *c = rds_conn_of(conn);
	int ret = conn_open(c);

	c->mine = *hello;
	c->state = RDS_ACCEPTED;
	c->heard_ns = platform_now_ns();
	if (ret)
		rds_conn_broken(c, ret);
	rds_conn_busy(c);
}

void rds_refuse(struct wire_conn *conn, int err, const struct hello_data *data)
{
	struct rds_conn *c = rds_conn_of(conn);

	rds_refusal_say(c->wire, &c->peer, c->peer_id, err, data);
	rds_conn_bury(c);
}

void rds_disconnect(struct wire_conn *conn)
{
	struct rds_conn *c = rds_conn_of(conn);

	rds_conn_say_end(c, -FI_ECONNRESET);
	rds_conn_bury(c);
}

int rds_check(struct wire_conn *conn)
{
	struct rds_conn *c = rds_conn_of(conn);

	if (rds_forked(c->wire))
		return -FI_EOPBADSTATE;
	/* It may have said something that this side has not received. */
	if (platform_now_ns() - c->heard_ns <= RDS_DEAD_NS || rds_socket_waiting(c->fd))
		return 0;
	return -FI_ETIMEDOUT;
}

/* Progress */

void rds_conn_up(struct rds_conn *c)
{
	int ret;

	c->beat.fd = c->fd;
	c->beat.to = c->peer;
	c->beat.id = c->peer_id;
	ret = rds_beat_begin(&c->beat);
	if (ret) {
		rds_conn_fail(c, ret, NULL);
		return;
	}
	c->state = RDS_UP;
	c->conn.up = true;
	engine_conn_up(&c->conn, &c->hello);
}

static int answer_turn(struct rds_conn *c)
{
	struct rds_greeting greeting = { .id = c->id, .hello = c->mine };
	struct iovec iov = { &greeting, sizeof(greeting) };
	int ret = rds_say(c, RDS_ANSWER, &iov, 1);

	if (ret == -FI_EAGAIN)
		return 0;
	if (ret)
		rds_conn_fail(c, ret, NULL);
	else
		rds_conn_up(c);
	return 1;
}

static int ask_turn(struct rds_conn *c)
{
	uint64_t now = platform_now_ns();
	int err = 0;

	/* Its answer may have come, and this side has not run since. */
	if (now - c->heard_ns > RDS_DEAD_NS && !rds_socket_waiting(c->fd))
		err = -FI_ECONNREFUSED;
	else if (now >= c->again_ns)
		err = hello_say(c, now);
	if (err)
		rds_conn_fail(c, err, NULL);
	return err != 0;
}

static int up_turn(struct rds_conn *c, bool *idle)
{
	int moved = rds_sent_report(c), ret;

	if (c->buried)
		return moved;
	ret = rds_moves_go(c);
	if (ret && ret != -FI_EAGAIN) {
		rds_conn_fail(c, ret, NULL);
		return moved + 1;
	}
	*idle = !ret && !c->sent.first;
	return moved;
}

int rds_conn_turn(struct rds_conn *c)
{
	bool idle = false;
	int moved = 0;

	if (c->ended) {
		rds_conn_fail(c, c->err, NULL);
		return 1;
	}
	if (c->state == RDS_ASKING)
		moved = ask_turn(c);
	else if (c->state == RDS_ACCEPTED)
		moved = answer_turn(c);
	else
		moved = up_turn(c, &idle);
	if (!idle)
		rds_conn_busy(c);
	return moved;
}
