/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine's half of the wire contract, as the tests of the TCP wire want it.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>
#include "mock_engine.h"
#include "tcp_conn.h"
#include "tcp_control.h"
#include "tcp_data.h"
#include "tcp_greet.h"
#include "tcp_hub.h"
#include "tcp_session.h"

static uint64_t clock_end_ns;

/* The linker has the wire call these. */
void __wrap_engine_conn_request(struct wire_conn *conn, const struct hello *hello);
void __wrap_engine_conn_refused(struct wire_conn *conn, int err, const struct hello_data *data);
void __wrap_engine_conn_up(struct wire_conn *conn, const struct hello *hello);
void __wrap_engine_conn_down(struct wire_conn *conn, int err);
int __wrap_engine_packet(struct engine_ep *ep, struct wire_conn *conn,
			 const struct packet *packet, const void *payload, size_t avail,
			 struct wire_dest *dest);
void __wrap_engine_payload_done(struct engine_ep *ep, struct wire_conn *conn, void *cookie);

void __wrap_engine_wire_wake(struct wire *wire);
bool __wrap_engine_conn_busy(const struct wire_conn *conn);
bool __wrap_engine_conn_awaited(const struct wire_conn *conn);

static struct side *side_of(struct wire *wire)
{
	return (struct side *)wire->ep;
}

void side_accept(struct side *side, struct wire_conn *conn)
{
	conn->peer = (struct engine_peer *)side;
	tcp_conn_accept(conn, &side->hello);
}

void __wrap_engine_conn_request(struct wire_conn *conn, const struct hello *hello)
{
	struct side *side = side_of(conn->wire);

	assert_null(conn->peer);
	assert_false(conn->up);
	side->peer_data = hello->data;
	if (side->later) {
		side->request = conn;
		return;
	}
	if (side->refuse) {
		tcp_conn_refuse(conn, side->refuse, NULL);
		return;
	}
	if (side->yield)
		tcp_disconnect(side->yield);
	side->yield = NULL;
	side_accept(side, conn);
}

void __wrap_engine_conn_refused(struct wire_conn *conn, int err, const struct hello_data *data)
{
	side_of(conn->wire)->peer_data = *data;
	__wrap_engine_conn_down(conn, err);
}

void __wrap_engine_wire_wake(struct wire *wire)
{
	side_of(wire)->woken++;
}

bool __wrap_engine_conn_busy(const struct wire_conn *conn)
{
	return side_of(conn->wire)->busy;
}

bool __wrap_engine_conn_awaited(const struct wire_conn *conn)
{
	return side_of(conn->wire)->awaits;
}

void __wrap_engine_conn_up(struct wire_conn *conn, const struct hello *hello)
{
	struct side *side = side_of(conn->wire);

	assert_true(conn->up);
	assert_non_null(conn->peer);
	side->peer_epoch = hello->epoch;
	side->peer_data = hello->data;
	side->conns[side->conn_cnt++ % SIDE_CONN_MAX] = conn;
}

void __wrap_engine_conn_down(struct wire_conn *conn, int err)
{
	struct side *side = side_of(conn->wire);

	assert_true(err <= 0);
	side->downs++;
	side->last_err = err;
	side->last_down = conn;
	if (side->on_down)
		side->on_down(side, conn, err);
}

int __wrap_engine_packet(struct engine_ep *ep, struct wire_conn *conn,
			 const struct packet *packet, const void *payload, size_t avail,
			 struct wire_dest *dest)
{
	struct side *side = (struct side *)ep;
	struct got *got = &side->got[side->got_cnt];
	uint8_t *bytes;

	assert_true(conn->up);
	assert_true(avail <= packet->len);
	if (side->reject)
		return side->reject;
	if (packet->len > 64u << 20)
		return -FI_EINVAL;
	if (avail < packet->len && side->got_cnt < (int)side->turn)
		return -FI_EAGAIN;
	assert_true(side->got_cnt < SIDE_GOT_MAX);
	side->got_cnt++;
	got->packet = *packet;
	got->conn = conn;
	bytes = got->bytes = malloc(packet->len + 1);
	assert_non_null(bytes);
	if (avail == packet->len) {
		/* the payload of a packet starts where its first field may be loaded */
		assert_int_equal((uintptr_t)payload % 8, 0);
		memcpy(bytes, payload, avail);
		got->payload = bytes;
		if (side->on_packet)
			side->on_packet(side, conn, packet);
		return 0;
	}
	if (side->scatter.active) {
		memcpy(dest->iov, side->scatter.iov, sizeof(dest->iov));
		dest->iov_cnt = side->scatter.cnt;
		dest->cookie = &side->scatter;
		return 0;
	}
	dest->iov[0].iov_base = bytes;
	dest->iov[0].iov_len = packet->len;
	dest->iov_cnt = 1;
	dest->cookie = got;
	return 0;
}

void __wrap_engine_payload_done(struct engine_ep *ep, struct wire_conn *conn, void *cookie)
{
	struct side *side = (struct side *)ep;
	struct got *got = cookie;

	if (cookie == &side->scatter) {
		side->scattered++;
		return;
	}
	assert_ptr_equal(got->conn, conn);
	got->payload = got->bytes;
	if (side->on_packet)
		side->on_packet(side, conn, &got->packet);
}

static struct side *side_new(const struct wire_attr *attr)
{
	struct side *side = calloc(1, sizeof(*side));
	char why[128] = "";
	static uint64_t epoch = 100;

	assert_non_null(side);
	side->got = calloc(SIDE_GOT_MAX, sizeof(*side->got));
	assert_non_null(side->got);
	side->addr.version = ADDR_VERSION;
	side->addr.kind = ADDR_NONCE;
	memcpy(side->addr.nonce, &epoch, sizeof(epoch));
	if (tcp_open((struct engine_ep *)side, attr, &side->addr, &side->wire, why, sizeof(why)))
		fail_msg("open: %s", why);
	side->hello = (struct hello){ .magic = HELLO_MAGIC,
				      .version = HELLO_VERSION,
				      .epoch = epoch++,
				      .addr = side->addr };
	return side;
}

struct side *side_open_in(const struct weft_addr *bind, const void *domain)
{
	struct weft_addr loop = { .family = ADDR_FAMILY_INET, .ip = { 127, 0, 0, 1 } };
	struct wire_attr attr = { .bind = bind ? bind : &loop,
				  .tx_size = 64,
				  .domain = domain,
				  .by_nonce = domain != NULL };

	return side_new(&attr);
}

struct side *side_open_dialing(const struct weft_addr *bind)
{
	struct wire_attr attr = { .bind = bind, .tx_size = 64, .dials = true };

	return side_new(&attr);
}

struct side *side_open(const struct weft_addr *bind)
{
	return side_open_in(bind, NULL);
}

void side_close(struct side *side)
{
	int i;

	if (side->wire)
		tcp_close(side->wire);
	for (i = 0; i < side->got_cnt; i++)
		free(side->got[i].bytes);
	free(side->got);
	free(side);
}

int side_poll(struct side *side)
{
	return tcp_poll(side->wire);
}

struct wire_conn *side_connect(struct side *from, struct side *to)
{
	struct wire_conn *conn;

	assert_int_equal(tcp_connect(from->wire, (struct engine_peer *)to, &to->addr,
				     &from->hello, &conn),
			 0);
	assert_false(conn->up);
	return conn;
}

void pair_up(struct side *a, struct side *b, struct wire_conn **a_conn,
	     struct wire_conn **b_conn)
{
	int b_cnt = b->conn_cnt;

	*a_conn = side_connect(a, b);
	DRIVE(a, b, (*a_conn)->up && b->conn_cnt > b_cnt);
	*b_conn = b->conns[b_cnt % SIDE_CONN_MAX];
}

void pair_up_data(struct side *a, struct side *b, struct wire_conn **a_conn,
		  struct wire_conn **b_conn, struct iovec *iov)
{
	struct sent sent = { 0 };

	pair_up(a, b, a_conn, b_conn);
	assert_int_equal(send_bulk(*a_conn, 0, iov, 1, &sent), 0);
	DRIVE(a, b, sent.done && tcp_conn_from(*b_conn)->data.state == TCP_LANE_UP);
}

int break_unheard(struct tcp_conn *conn, struct tcp_lane *lane)
{
	int old = dup(lane->fd);

	assert_true(old >= 0);
	tcp_watch(tcp_wire_of(conn)->hub, lane, 0);
	assert_true(tcp_session_broken(conn, lane, -FI_ECONNRESET));
	return old;
}

void pattern(uint8_t *bytes, size_t len, uint32_t seq)
{
	uint64_t x = seq * 0x9e3779b97f4a7c15u + 1;
	size_t i;

	for (i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		bytes[i] = (uint8_t)x;
	}
}

bool publish(struct wire_conn *conn, uint32_t seq, size_t len, bool more)
{
	struct packet *packet;
	void *payload;

	packet = tcp_claim(conn, len, &payload);
	if (!packet)
		return false;
	*packet = (struct packet){
		.op = PACKET_EAGER, .len = (uint32_t)len, .seq = seq, .tag = seq * 3ull
	};
	pattern(payload, len, seq);
	tcp_publish(conn, packet, more);
	return true;
}

bool payload_right(const struct got *got)
{
	uint8_t *want = malloc(got->packet.len + 1);
	bool right;

	assert_non_null(want);
	pattern(want, got->packet.len, got->packet.seq);
	right = got->payload && !memcmp(want, got->payload, got->packet.len);
	free(want);
	return right;
}

void sent_done(struct wire_op *op, int status)
{
	struct sent *sent = container_of(op, struct sent, op);

	sent->done++;
	sent->status = status;
}

void start_clock(void)
{
	clock_end_ns = platform_now_ns() + 20000000000u;
}

bool expired(void)
{
	return platform_now_ns() > clock_end_ns;
}

int send_bulk(struct wire_conn *conn, uint32_t seq, struct iovec *iov, size_t cnt,
	      struct sent *sent)
{
	struct packet packet = { .op = PACKET_DATA, .seq = seq };
	size_t i;

	for (i = 0; i < cnt; i++)
		packet.len += (uint32_t)iov[i].iov_len;
	sent->op.done = sent_done;
	return tcp_sendv(conn, &packet, iov, cnt, &sent->op);
}
