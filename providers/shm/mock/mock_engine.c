/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine that answers and remembers. Tests only; on the test's thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <time.h>
#include <rdma/fi_errno.h>
#include "copy.h"
#include "fault.h"
#include "mock_engine.h"
#include "shm_endpoint.h"

void __wrap_engine_conn_request(struct wire_conn *conn, const struct hello *hello);
void __wrap_engine_conn_refused(struct wire_conn *conn, int err, const struct hello_data *data);
void __wrap_engine_conn_up(struct wire_conn *conn, const struct hello *hello);
void __wrap_engine_conn_down(struct wire_conn *conn, int err);
int __wrap_engine_packet(struct engine_ep *ep, struct wire_conn *conn,
			 const struct packet *packet, const void *payload, size_t avail,
			 struct wire_dest *dest);
void __wrap_engine_payload_done(struct engine_ep *ep, struct wire_conn *conn, void *cookie);
void __wrap_engine_wire_wake(struct wire *wire);
void __wrap_engine_conns_change(struct wire *wire);
size_t __wrap_engine_offered(const struct wire_conn *conn, uint64_t id, uint64_t skip,
			     uint64_t len, struct iovec *iov);

static struct mock *mock_of(struct wire *wire)
{
	return (struct mock *)wire->ep;
}

static struct engine_peer *a_peer(struct mock *m)
{
	return (struct engine_peer *)&m->heard; /* any pointer: the wire only keeps it */
}

void mock_accept(struct mock *m, struct wire_conn *conn)
{
	conn->peer = a_peer(m);
	pshm_wire_ops.accept(conn, &m->hello);
}

void __wrap_engine_conn_request(struct wire_conn *conn, const struct hello *hello)
{
	struct mock *m = mock_of(conn->wire);

	assert_null(conn->peer);
	assert_false(conn->up);
	m->peer_data = hello->data;
	if (m->later)
		m->request = conn;
	else if (m->refuse)
		pshm_wire_ops.refuse(conn, m->refuse, NULL);
	else
		mock_accept(m, conn);
}

void __wrap_engine_conn_refused(struct wire_conn *conn, int err, const struct hello_data *data)
{
	mock_of(conn->wire)->peer_data = *data;
	__wrap_engine_conn_down(conn, err);
}

void __wrap_engine_conn_up(struct wire_conn *conn, const struct hello *hello)
{
	struct mock *m = mock_of(conn->wire);

	assert_true(conn->up);
	assert_ptr_equal(conn->peer, a_peer(m));
	m->conn = conn;
	m->heard = *hello;
	m->ups++;
}

void __wrap_engine_conn_down(struct wire_conn *conn, int err)
{
	struct mock *m = mock_of(conn->wire);

	assert_true(err <= 0);
	if (m->conn == conn)
		m->conn = NULL;
	m->downs++;
	m->down_err = err;
}

/* One thread has the domain, and is its registrar. */
void __wrap_engine_conns_change(struct wire *wire)
{
}

void __wrap_engine_wire_wake(struct wire *wire)
{
	mock_of(wire)->woken++;
}

size_t __wrap_engine_offered(const struct wire_conn *conn, uint64_t id, uint64_t skip,
			     uint64_t len, struct iovec *iov)
{
	const struct mock *m = mock_of(conn->wire);
	bool ok;
	size_t all = iov_len(m->offer, m->offer_cnt, &ok);

	if (id != m->offer_id || skip > all || len > all - skip)
		return 0;
	return iov_slice(m->offer, m->offer_cnt, skip, len, iov);
}

/* The payload of m->big is in the room, as far as there is any. */
static void big_arrived(struct mock *m)
{
	size_t len = m->big.len < m->room_len ? m->big.len : m->room_len;

	m->big_done++;
	if (m->room_iovs && !mock_is_pattern(m->room, len, m->big.tag))
		m->garbled = true;
}

static void dest_fill(struct mock *m, struct wire_dest *dest)
{
	size_t step = m->room_iovs ? m->room_len / m->room_iovs : 0;

	dest->cookie = m;
	dest->iov_cnt = m->room_iovs;
	for (uint32_t i = 0; i < m->room_iovs; i++) {
		dest->iov[i].iov_base = m->room + i * step;
		dest->iov[i].iov_len = i + 1 < m->room_iovs ? step : m->room_len - i * step;
	}
}

int __wrap_engine_packet(struct engine_ep *ep, struct wire_conn *conn,
			 const struct packet *packet, const void *payload, size_t avail,
			 struct wire_dest *dest)
{
	struct mock *m = (struct mock *)ep;

	if (m->end_in_packet) {
		m->end_in_packet->wire->ops->disconnect(m->end_in_packet);
		m->end_in_packet = NULL;
		m->conn = NULL;
		return 0;
	}
	if (m->packet_err)
		return m->packet_err;
	if (m->in_packet)
		m->in_packet();
	if (m->packets < sizeof(m->tags) / sizeof(m->tags[0]))
		m->tags[m->packets] = packet->tag;
	m->packets++;
	if (packet->tag < MOCK_BIG) {
		if (packet->tag != m->next_tag++ || avail != packet->len ||
		    !mock_is_pattern(payload, avail, packet->tag))
			m->garbled = true;
		return 0;
	}
	m->big = *packet;
	if (avail < packet->len) {
		dest_fill(m, dest);
		return 0;
	}
	if (m->room_iovs)
		memcpy(m->room, payload, avail < m->room_len ? avail : m->room_len);
	big_arrived(m);
	return 0;
}

void __wrap_engine_payload_done(struct engine_ep *ep, struct wire_conn *conn, void *cookie)
{
	struct mock *m = (struct mock *)ep;

	assert_ptr_equal(cookie, m);
	big_arrived(m);
}

void mock_open(struct mock *m)
{
	mock_open_sharing(m, NULL, 0);
}

void mock_open_sharing(struct mock *m, struct wire_share *share, uint64_t remote_events)
{
	struct wire_attr attr = { .tx_size = 64, .share = share, .remote_events = remote_events };
	char why[128] = "";

	memset(m, 0, sizeof(*m));
	assert_int_equal(pshm_wire_ops.open((struct engine_ep *)m, &attr, &m->addr, &m->wire,
					    why, sizeof(why)),
			 0);
	m->hello = (struct hello){
		.magic = HELLO_MAGIC,
		.version = HELLO_VERSION,
		.epoch = m->addr.fd + ((uint64_t)m->addr.pid << 32),
		.window = 4096,
		.addr = m->addr,
	};
	assert_int_equal(hello_check(&m->hello), 0);
}

void mock_close(struct mock *m)
{
	if (m->wire)
		m->wire->ops->close(m->wire);
	if (m->poll_set)
		platform_poll_set_close(m->poll_set);
	m->wire = NULL;
	m->conn = NULL;
	m->poll_set = 0;
}

int mock_poll_set(struct mock *m)
{
	int bell;

	if (m->poll_set)
		return m->poll_set;
	assert_int_equal(platform_poll_set_open(NULL, &m->poll_set), 0);
	bell = pshm_bell(m->wire, m->poll_set);
	assert_true(bell >= 0);
	assert_int_equal(platform_poll_set_add(m->poll_set, bell), 0);
	return m->poll_set;
}

bool mock_rings(struct mock *m)
{
	struct pollfd p = { .fd = mock_poll_set(m), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

uint64_t mock_arm_idle(struct mock *m)
{
	uint64_t end = platform_now_ns() + 10000000000, ns;

	mock_poll_set(m);
	while (!(ns = pshm_arm(m->wire))) {
		mock_poll(m, NULL);
		assert_true(platform_now_ns() < end);
	}
	return ns;
}

int mock_connect(struct mock *from, const struct weft_addr *to, struct wire_conn **conn)
{
	return from->wire->ops->connect(from->wire, a_peer(from), to, &from->hello, conn);
}

void mock_connected(struct mock *from, struct mock *to, const struct weft_addr *addr)
{
	struct wire_conn *conn;

	assert_int_equal(mock_connect(from, addr, &conn), 0);
	mock_until(from, to, from->conn && (!to || to->conn));
}

void mock_meet(struct mock *a, struct mock *b)
{
	mock_open(a);
	mock_open(b);
	mock_connected(a, b, &b->addr);
}

void mock_hide_proc(void)
{
	sys_fault_set(SYS_CALL_OPEN_FD, EACCES, 0, 0);
}

uint64_t mock_worked_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void mock_poll(struct mock *a, struct mock *b)
{
	if (a)
		a->wire->ops->poll(a->wire);
	if (b)
		b->wire->ops->poll(b->wire);
	platform_yield();
}

void mock_sweep(struct mock *a, struct mock *b)
{
	for (int i = 0; i < 1024; i++) {
		if (a)
			a->wire->ops->poll(a->wire);
		if (b)
			b->wire->ops->poll(b->wire);
	}
}

void mock_pattern(void *buf, size_t len, uint64_t tag)
{
	unsigned char *bytes = buf;

	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)(tag * 31 + i + (i >> 8) * 7);
}

bool mock_is_pattern(const void *buf, size_t len, uint64_t tag)
{
	const unsigned char *bytes = buf;

	for (size_t i = 0; i < len; i++)
		if (bytes[i] != (unsigned char)(tag * 31 + i + (i >> 8) * 7))
			return false;
	return true;
}

int mock_get(struct wire_conn *conn, uint64_t id, const void *from, const struct iovec *iov,
	     size_t iov_cnt, struct mock_op *op)
{
	struct wire_source source = { .id = id, .iov_cnt = 1 };
	bool ok;

	source.iov[0] = (struct iovec){ (void *)(uintptr_t)from, iov_len(iov, iov_cnt, &ok) };
	mock_op_init(op);
	return conn->wire->ops->get(conn, &source, iov, iov_cnt, &op->op);
}

bool mock_put(struct wire_conn *conn, uint64_t tag, uint32_t len)
{
	struct packet *packet;
	void *payload;

	packet = conn->wire->ops->claim(conn, len, &payload);
	if (!packet)
		return false;
	*packet = (struct packet){ .op = PACKET_DATA, .len = len, .tag = tag };
	mock_pattern(payload, len, tag);
	conn->wire->ops->publish(conn, packet, false);
	return true;
}

static void op_done(struct wire_op *op, int status)
{
	struct mock_op *o = (struct mock_op *)op;

	o->done++;
	o->status = status;
}

void mock_op_init(struct mock_op *op)
{
	memset(op, 0, sizeof(*op));
	op->op.done = op_done;
}

int mock_sendv(struct wire_conn *conn, uint64_t tag, void *buf, size_t len, size_t iov_cnt,
	       struct mock_op *op)
{
	struct packet hdr = { .op = PACKET_DATA, .len = (uint32_t)len, .tag = tag };
	struct iovec iov[WIRE_IOV_MAX];
	size_t step = len / iov_cnt;

	for (size_t i = 0; i < iov_cnt; i++) {
		iov[i].iov_base = (char *)buf + i * step;
		iov[i].iov_len = i + 1 < iov_cnt ? step : len - i * step;
	}
	mock_op_init(op);
	return conn->wire->ops->sendv(conn, &hdr, iov, iov_cnt, &op->op);
}
