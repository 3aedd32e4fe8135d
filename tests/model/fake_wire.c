/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The fake wires as the engine sees them: their lock, their bells and their tables of calls; see
 * fake_wire.h. Called by the engine and by tests.
 */
#define _GNU_SOURCE
#include <sys/eventfd.h>
#include <unistd.h>
#include "fake_conn.h"
#include "now.h"
#include "send.h"

/*
 * Rank 2: after the domain of the caller. Calls of poll call the engine, which calls the wire
 * again.
 */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void fake_enter(void)
{
	pthread_mutex_lock(&lock);
}

void fake_leave(void)
{
	pthread_mutex_unlock(&lock);
}

void fake_ring(struct fake_wire *wire)
{
	uint64_t one = 1;

	if (!wire->armed || wire->deaf)
		return;
	if (wire->bare && fake_chance(128))
		engine_wire_wake(&wire->wire);
	else if (wire->bare)
		fake_ringer_ring(wire);
	else if (write(wire->bell, &one, sizeof(one)) < 0)
		abort();
}

static int fake_bell(struct wire *base, int poll_set)
{
	struct fake_wire *wire = fake_wire_of(base);

	if (fake_knobs[wire->kind].no_bell)
		return -FI_EMFILE;
	if (wire->bell < 0)
		wire->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return wire->bell;
}

static void fake_silence(struct fake_wire *wire)
{
	uint64_t cnt;

	if (wire->polling)
		abort();
	wire->armed = wire->deaf = false;
	if (wire->bell >= 0 && read(wire->bell, &cnt, sizeof(cnt)) < 0 && errno != EAGAIN)
		abort();
}

static uint64_t fake_arm(struct wire *base)
{
	struct fake_wire *wire = fake_wire_of(base);
	struct fake_knobs *k = &fake_knobs[wire->kind];

	fake_silence(wire);
	if (fake_ready(wire) || fake_chance(k->fickle))
		return 0;
	wire->armed = true;
	wire->deaf = (!wire->bare && wire->bell < 0) || fake_chance(k->deaf);
	if (wire->deaf)
		return 1 + fake_random(2000000);
	if (fake_chance(k->spurious))
		fake_ring(wire);
	return UINT64_MAX;
}

static void fake_disarm(struct wire *base)
{
	fake_silence(fake_wire_of(base));
}

static void fake_local(struct wire *base, char *buf, size_t len)
{
	snprintf(buf, len, "fake:%u", fake_wire_of(base)->address.port);
}

#define LOCKED(type, name, params, args) \
	static type locked_##name params \
	{                                \
		type ret;                \
                                         \
		fake_enter();            \
		ret = fake_##name args;  \
		fake_leave();            \
		return ret;              \
	}
#define LOCKED_VOID(name, params, args)  \
	static void locked_##name params \
	{                                \
		fake_enter();            \
		fake_##name args;        \
		fake_leave();            \
	}

LOCKED(int, a_open,
       (struct engine_ep * ep, const struct wire_attr *attr, struct weft_addr *addr,
	struct wire **wire, char *why, size_t why_len),
       (ep, attr, addr, wire, why, why_len))
LOCKED(int, b_open,
       (struct engine_ep * ep, const struct wire_attr *attr, struct weft_addr *addr,
	struct wire **wire, char *why, size_t why_len),
       (ep, attr, addr, wire, why, why_len))
LOCKED_VOID(close, (struct wire * wire), (wire))
LOCKED(int, connect,
       (struct wire * wire, struct engine_peer *peer, const struct weft_addr *addr,
	const struct hello *hello, struct wire_conn **conn),
       (wire, peer, addr, hello, conn))
LOCKED_VOID(disconnect, (struct wire_conn * conn), (conn))
LOCKED(struct packet *, claim, (struct wire_conn * conn, size_t len, void **payload),
       (conn, len, payload))
LOCKED_VOID(publish, (struct wire_conn * conn, struct packet *packet, bool more),
	    (conn, packet, more))
LOCKED_VOID(hold, (struct wire_conn * conn, struct packet *packet), (conn, packet))
LOCKED(int, sendv,
       (struct wire_conn * conn, const struct packet *hdr, const struct iovec *iov,
	size_t iov_cnt, struct wire_op *op),
       (conn, hdr, iov, iov_cnt, op))
LOCKED(int, get,
       (struct wire_conn * conn, const struct wire_source *from, const struct iovec *iov,
	size_t iov_cnt, struct wire_op *op),
       (conn, from, iov, iov_cnt, op))
LOCKED(int, poll, (struct wire * wire), (wire))
LOCKED_VOID(accept, (struct wire_conn * conn, const struct hello *hello), (conn, hello))
LOCKED_VOID(refuse, (struct wire_conn * conn, int err, const struct hello_data *data),
	    (conn, err, data))
LOCKED(int, check, (struct wire_conn * conn), (conn))
LOCKED(int, bell, (struct wire * wire, int poll_set), (wire, poll_set))
LOCKED(uint64_t, arm, (struct wire * wire), (wire))
LOCKED_VOID(disarm, (struct wire * wire), (wire))

static ssize_t fake_a_send(struct engine_ep *ep, struct engine_peer *peer,
			   const struct engine_msg *msg)
{
	return engine_send_on(ep, peer, msg, &fake_ops[FAKE_A]);
}

static ssize_t fake_b_send(struct engine_ep *ep, struct engine_peer *peer,
			   const struct engine_msg *msg)
{
	return engine_send_on(ep, peer, msg, &fake_ops[FAKE_B]);
}

static bool fake_a_access(struct engine_ctx *ctx, struct engine_peer *peer,
			  const struct engine_access *access)
{
	return engine_access_on(ctx, peer, access, &fake_ops[FAKE_A]);
}

static bool fake_b_access(struct engine_ctx *ctx, struct engine_peer *peer,
			  const struct engine_access *access)
{
	return engine_access_on(ctx, peer, access, &fake_ops[FAKE_B]);
}

#define OPS(letter)                                                                       \
	{                                                                                 \
		.size = sizeof(struct wire_ops), .name = "fake-" #letter,                 \
		.open = locked_##letter##_open, .close = locked_close,                    \
		.connect = locked_connect, .disconnect = locked_disconnect,               \
		.claim = locked_claim, .publish = locked_publish, .hold = locked_hold,    \
		.sendv = locked_sendv, .get = locked_get, .poll = locked_poll,            \
		.check = locked_check, .local = fake_local, .send = fake_##letter##_send, \
		.bell = locked_bell, .arm = locked_arm, .disarm = locked_disarm,          \
		.access = fake_##letter##_access, .tsend = engine_wire_tsend,             \
		.tinject = engine_wire_tinject, .tsenddata = engine_wire_tsenddata,       \
		.tinjectdata = engine_wire_tinjectdata, .accept = locked_accept,          \
		.refuse = locked_refuse,                                                  \
	}

struct wire_ops fake_ops[FAKE_KINDS] = {
	[FAKE_A] = OPS(a),
	[FAKE_B] = OPS(b),
};

void fake_ops_bare(enum fake_kind kind, bool bare)
{
	fake_ops[kind].bell = bare ? NULL : locked_bell;
}

void fake_ops_get(enum fake_kind kind, bool has_get)
{
	fake_ops[kind].get = has_get ? locked_get : NULL;
}

void fake_wires_register(void)
{
	static const struct wire_provider wires[FAKE_KINDS] = {
		[FAKE_A] = { sizeof(struct wire_provider), 1, WIRE_LAYOUT, &fake_ops[FAKE_A] },
		[FAKE_B] = { sizeof(struct wire_provider), 1, WIRE_LAYOUT, &fake_ops[FAKE_B] },
	};

	for (int i = 0; i < FAKE_KINDS; i++)
		if (wire_register(&wires[i]))
			abort();
}
