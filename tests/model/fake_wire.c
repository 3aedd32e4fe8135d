/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The contract's calls of the fake wires; see fake_wire.h. Called by the engine and by tests, with
 * the wires' lock, or takes it. Delivery is in fake_poll.c.
 *
 * A packet that is sent is in a lane of the end that will receive it. What sendv borrows is read on
 * delivery, unless the wire took a copy first; when the sender's end is closed, its borrowed data
 * are lost, and everything behind them in that lane.
 */
#define _GNU_SOURCE
#include <sys/eventfd.h>
#include <unistd.h>
#include "copy.h"
#include "fake_conn.h"
#include "now.h"
#include "send.h"

struct list fake_wires = { &fake_wires, &fake_wires };
struct fake_knobs fake_knobs[FAKE_KINDS];
struct fake_watch fake_watch;

/*
 * Rank 2: after the domain of the caller. Calls of poll call the engine, which calls the wire
 * again.
 */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static uint64_t sequence = 1;
static uint32_t host = 1;
static uint16_t next_port = 1;
static uint16_t listen_port; /* 0: the next */
static uint32_t telling;     /* calls of engine_conn_down() that have not returned */

void fake_enter(void)
{
	pthread_mutex_lock(&lock);
}

void fake_leave(void)
{
	pthread_mutex_unlock(&lock);
}

void fake_seed(uint64_t seed)
{
	sequence = seed * 2 + 1;
	if (list_empty(&fake_wires))
		next_port = 1;
}

uint32_t fake_random(uint32_t n)
{
	sequence ^= sequence << 13;
	sequence ^= sequence >> 7;
	sequence ^= sequence << 17;
	return (uint32_t)((sequence * 0x2545f4914f6cdd1dull) >> 33) % n;
}

void fake_host(uint32_t number)
{
	host = number;
}

void fake_listen_at(const struct weft_addr *service)
{
	listen_port = service->port;
}

void fake_knobs_default(struct fake_knobs *knobs)
{
	*knobs = (struct fake_knobs){
		.claim_max = 1024,
		.eager_max = 8192,
		.claim_room = 256,
		.sendv_room = 64,
		.burst = 64,
		.move = 256,
		.get_now = 256,
		.has_get = true,
	};
}

static uint16_t some_chance(void)
{
	static const uint16_t chances[] = { 0, 0, 8, 64, 128, 224, 256 };

	return chances[fake_random(sizeof(chances) / sizeof(chances[0]))];
}

void fake_knobs_random(struct fake_knobs *knobs)
{
	static const uint32_t claims[] = { 64, 65, 128, 200, 256, 257, 1000, 2048 };

	*knobs = (struct fake_knobs){
		.claim_max = claims[fake_random(sizeof(claims) / sizeof(claims[0]))],
		.claim_room = 1 + fake_random(fake_chance(128) ? 4 : 200),
		.sendv_room = 1 + fake_random(fake_chance(128) ? 3 : 40),
		.burst = 1 + fake_random(fake_chance(128) ? 4 : 64),
		.move = (uint16_t)(40 + fake_random(217)),
		.stall = (uint16_t)(fake_chance(128) ? 0 : fake_random(40)),
		.refuse = (uint16_t)(fake_chance(128) ? 0 : fake_random(160)),
		.split = some_chance(),
		.buffer = some_chance(),
		.get_now = some_chance(),
		.get_later = some_chance(),
		.get_fails = some_chance(),
		.has_get = fake_chance(160),
		.proof = some_chance(),
	};
	if (fake_chance(128))
		knobs->waits_min = WIRE_REQUEST_MAX + 1 +
				   fake_random(fake_chance(128) ? 1000 : 49152);
	knobs->eager_max = knobs->claim_max;
	if (fake_chance(200))
		knobs->eager_max += fake_random(fake_chance(128) ? 8192 : 49152);
}

void *fake_alloc(size_t len)
{
	void *p = calloc(1, len ? len : 1);

	if (!p)
		abort();
	return p;
}

static struct fake_wire *wire_of(struct wire *wire)
{
	return container_of(wire, struct fake_wire, wire);
}

/* Ends */

struct fake_conn *fake_conn_new(struct fake_wire *wire, struct engine_peer *peer)
{
	struct fake_conn *c = fake_alloc(sizeof(*c));

	c->conn.wire = &wire->wire;
	c->conn.peer = peer;
	c->wire = wire;
	for (int i = 0; i < FAKE_LANES; i++)
		list_init(&c->lanes[i]);
	list_init(&c->flowing);
	list_init(&c->gets);
	c->done_last = &c->done_first;
	list_add_tail(&wire->conns, &c->link);
	return c;
}

void fake_item_free(struct fake_item *item)
{
	free(item->bytes);
	free(item);
}

static void items_free(struct list *items)
{
	struct list *node;

	while ((node = list_pop(items)))
		fake_item_free(container_of(node, struct fake_item, link));
}

void fake_op_done(struct fake_conn *c, struct wire_op *op, int status)
{
	op->next = NULL;
	op->wire_private = (uint64_t)status;
	*c->done_last = op;
	c->done_last = &op->next;
	fake_ring(c->wire);
}

static void item_copy(struct fake_item *item)
{
	size_t at = 0;

	item->bytes = fake_alloc(item->packet.len);
	for (uint32_t i = 0; i < item->iov_cnt && at < item->packet.len; i++) {
		size_t n = item->iov[i].iov_len;

		if (n > item->packet.len - at)
			n = item->packet.len - at;
		if (n)
			memcpy(item->bytes + at, item->iov[i].iov_base, n);
		at += n;
	}
}

/* The rest of a lane, from a node on, never arrives. */
static void lane_cut(struct list *lane, struct list *node)
{
	while (node != lane) {
		struct list *next = node->next;

		list_remove(node);
		fake_item_free(container_of(node, struct fake_item, link));
		node = next;
	}
}

/* @c can't read the sender's memory any more, and reports nothing to it. */
static void sender_gone(struct fake_conn *c, bool orderly)
{
	bool copy = orderly && fake_chance(128);
	struct list *node, *after;

	list_for_each(node, after, &c->flowing) {
		struct fake_item *item = container_of(node, struct fake_item, link);

		if (copy && !item->bytes)
			item_copy(item);
		item->op = NULL;
		item->from = NULL;
		if (!orderly || !item->bytes) {
			list_remove(node);
			fake_item_free(item);
		}
	}
	for (int i = 0; i < FAKE_LANES; i++) {
		for (node = c->lanes[i].next; node != &c->lanes[i]; node = node->next) {
			struct fake_item *item = container_of(node, struct fake_item, link);

			if (copy && !item->bytes)
				item_copy(item);
			item->op = NULL;
			item->from = NULL;
			if (!item->bytes || (!orderly && fake_chance(64))) {
				lane_cut(&c->lanes[i], node);
				break;
			}
		}
	}
}

void fake_conn_part(struct fake_conn *c, int err, bool orderly)
{
	struct fake_conn *other = c->other;

	if (c->connreq) {
		c->connreq->from = NULL;
		if (fake_chance(128)) {
			list_remove(&c->connreq->link);
			free(c->connreq);
		}
		c->connreq = NULL;
	}
	if (!other)
		return;
	other->other = NULL;
	c->other = NULL;
	sender_gone(other, orderly);
	if (!other->ending) {
		other->ending = true;
		other->end_err = err;
	}
	fake_ring(other->wire);
}

void fake_conn_bury(struct fake_conn *c)
{
	struct list *node;

	c->dead = true;
	c->done_first = NULL;
	c->done_last = &c->done_first;
	for (int i = 0; i < FAKE_LANES; i++)
		items_free(&c->lanes[i]);
	items_free(&c->flowing);
	while ((node = list_pop(&c->gets)))
		free(container_of(node, struct fake_get, link));
	if (c->claimed)
		fake_item_free(c->claimed);
	c->claimed = NULL;
	if (c->raw)
		c->raw->conn = NULL;
	list_remove(&c->link);
	if (c->wire->polling)
		list_add_tail(&c->wire->grave, &c->link);
	else
		free(c);
}

void fake_wire_enter(struct fake_wire *wire)
{
	wire->polling++;
}

void fake_wire_leave(struct fake_wire *wire)
{
	struct list *node;

	if (--wire->polling)
		return;
	while ((node = list_pop(&wire->grave)))
		free(container_of(node, struct fake_conn, link));
}

/* Reports the end of a conn. @data: of a refusal; else NULL */
static void report_end(struct fake_conn *c, int err, const struct hello_data *data)
{
	fake_conn_part(c, -FI_ECONNRESET, false);
	c->dead = true;
	telling++;
	if (data)
		engine_conn_refused(&c->conn, err, data);
	else
		engine_conn_down(&c->conn, err);
	telling--;
	if (fake_watch.ended && c->conn.peer)
		fake_watch.ended(&c->conn, err);
	fake_conn_bury(c);
}

void fake_conn_down(struct fake_conn *c, int err)
{
	report_end(c, err, NULL);
}

void fake_conn_refused(struct fake_conn *c, int err, const struct hello_data *data)
{
	report_end(c, err, data);
}

/* The contract */

/* Where a fake-b listens: as it is asked, or somewhere at its host. Returns 0 or -FI_EADDRINUSE. */
static int listen_somewhere(const struct weft_addr *bind, struct weft_addr *addr)
{
	static const uint8_t nowhere[sizeof(addr->ip)];
	bool six = bind && bind->family == ADDR_FAMILY_INET6;
	bool here = !bind || bind->family != (six ? ADDR_FAMILY_INET6 : ADDR_FAMILY_INET) ||
		    !memcmp(bind->ip, nowhere, sizeof(nowhere));
	struct list *node, *after;

	addr->family = six ? ADDR_FAMILY_INET6 : ADDR_FAMILY_INET;
	if (here) {
		memcpy(addr->ip, six ? "\xfd\0\0" : "\x0a\0\0", 3);
		addr->ip[six ? 15 : 3] = (uint8_t)host;
	} else {
		memcpy(addr->ip, bind->ip, sizeof(addr->ip));
		addr->scope = bind->scope;
	}
	addr->port = listen_port ? listen_port : bind && bind->port ? bind->port : next_port++;
	listen_port = 0;
	list_for_each(node, after, &fake_wires) {
		struct fake_wire *other = container_of(node, struct fake_wire, link);

		if (other->kind == FAKE_B && other->address.family == addr->family &&
		    other->address.port == addr->port &&
		    !memcmp(other->address.ip, addr->ip, sizeof(addr->ip)))
			return -FI_EADDRINUSE;
	}
	return 0;
}

static int fake_open(enum fake_kind kind, struct engine_ep *ep, struct weft_addr *addr,
		     struct wire **out)
{
	struct fake_wire *wire = fake_alloc(sizeof(*wire));

	wire->kind = kind;
	wire->wire.ep = ep;
	list_init(&wire->conns);
	list_init(&wire->grave);
	list_init(&wire->connreqs);
	wire->address = *addr;
	wire->bell = -1;
	list_add_tail(&fake_wires, &wire->link);
	*out = &wire->wire;
	return 0;
}

static bool is_local_service(const struct weft_addr *addr)
{
	return addr && addr->kind == ADDR_SERVICE && addr->family == ADDR_FAMILY_LOCAL;
}

static int fake_a_open(struct engine_ep *ep, const struct wire_attr *attr,
		       struct weft_addr *addr, struct wire **wire, char *why, size_t why_len)
{
	addr->pid = 1 + host;
	addr->ns_hash = host;
	addr->fd = next_port++;
	if (is_local_service(attr->bind) && attr->bind->ip[0]) {
		addr->family = ADDR_FAMILY_LOCAL;
		memcpy(addr->ip, attr->bind->ip, sizeof(addr->ip));
	}
	return fake_open(FAKE_A, ep, addr, wire);
}

static int fake_b_open(struct engine_ep *ep, const struct wire_attr *attr,
		       struct weft_addr *addr, struct wire **wire, char *why, size_t why_len)
{
	struct weft_addr at = *addr;
	int ret = listen_somewhere(attr->bind, &at);

	if (ret) {
		snprintf(why, why_len, "port %u is in use", at.port);
		return ret;
	}
	*addr = at;
	return fake_open(FAKE_B, ep, addr, wire);
}

static void connreq_refuse(struct fake_connreq *connreq, int err)
{
	if (connreq->from) {
		connreq->from->connreq = NULL;
		connreq->from->answered = true;
		connreq->from->answer_err = err;
		fake_ring(connreq->from->wire);
	}
	list_remove(&connreq->link);
	free(connreq);
}

static void fake_close(struct wire *base)
{
	struct fake_wire *wire = wire_of(base);
	struct list *node;

	while (!list_empty(&wire->connreqs))
		connreq_refuse(container_of(wire->connreqs.next, struct fake_connreq, link),
			       -FI_ECONNREFUSED);
	while ((node = wire->conns.next) != &wire->conns) {
		struct fake_conn *c = container_of(node, struct fake_conn, link);

		if (c->requested) {
			fake_refuse(&c->conn, -FI_ECONNREFUSED, NULL);
			continue;
		}
		fake_conn_part(c, 0, true);
		fake_conn_bury(c);
	}
	list_remove(&wire->link);
	if (wire->bell >= 0)
		close(wire->bell);
	free(wire);
}

static bool reaches(const struct fake_wire *from, const struct fake_wire *to,
		    const struct weft_addr *addr)
{
	if (to->kind != from->kind)
		return false;
	if (is_local_service(addr))
		return to->address.family == ADDR_FAMILY_LOCAL &&
		       !memcmp(to->address.ip, addr->ip, sizeof(addr->ip));
	if (from->kind == FAKE_A)
		return !memcmp(to->address.nonce, addr->nonce, sizeof(addr->nonce));
	return to->address.family == addr->family && to->address.port == addr->port &&
	       !memcmp(to->address.ip, addr->ip, sizeof(addr->ip));
}

static int fake_connect(struct wire *base, struct engine_peer *peer,
			const struct weft_addr *addr, const struct hello *hello,
			struct wire_conn **out)
{
	struct fake_wire *wire = wire_of(base);
	struct list *node, *after;
	bool far = false, gone;
	struct fake_conn *c;

	if (wire->kind == FAKE_A && !is_local_service(addr)) {
		far = addr->kind != ADDR_NONCE || addr->ns_hash != wire->address.ns_hash;
		/* Like shared memory: sometimes it takes a look to see that it is not there. */
		if (far && fake_chance(128))
			return -FI_EHOSTUNREACH;
	}
	if (wire->kind == FAKE_B && (!addr->family || addr->family == ADDR_FAMILY_LOCAL))
		return -FI_EHOSTUNREACH;
	if (fake_chance(fake_knobs[wire->kind].refuse))
		return -FI_EAGAIN;
	c = fake_conn_new(wire, peer);
	gone = wire->kind == FAKE_A && !far;
	list_for_each(node, after, &fake_wires) {
		struct fake_wire *to = container_of(node, struct fake_wire, link);

		if (far || !reaches(wire, to, addr))
			continue;
		c->connreq = fake_alloc(sizeof(*c->connreq));
		c->connreq->from = c;
		c->connreq->hello = *hello;
		list_add_tail(&to->connreqs, &c->connreq->link);
		fake_ring(to);
	}
	if (!c->connreq && gone && fake_chance(fake_knobs[FAKE_A].proof)) {
		fake_conn_bury(c);
		return -FI_ECONNREFUSED;
	}
	if (!c->connreq) { /* no endpoint listens there */
		c->answered = true;
		c->answer_err = far ? -FI_EHOSTUNREACH : -FI_ECONNREFUSED;
		fake_ring(wire);
	}
	*out = &c->conn;
	return 0;
}

static void fake_disconnect(struct wire_conn *conn)
{
	struct fake_conn *c = fake_conn_of(conn);

	if (c->dead)
		abort();
	if (fake_watch.dropped && c->known && !telling)
		fake_watch.dropped(conn);
	fake_conn_part(c, -FI_ECONNRESET, false);
	fake_conn_bury(c);
}

/* A call on a conn that may be used; aborts otherwise. */
static struct fake_conn *usable(struct wire_conn *conn)
{
	struct fake_conn *c = fake_conn_of(conn);

	if (c->dead || !conn->up || c->claimed) {
		fprintf(stderr, "fake wire: a call on a conn that is %s\n",
			c->dead	   ? "dead"
			: conn->up ? "claimed"
				   : "not up");
		abort();
	}
	return c;
}

static uint32_t lane_cnt(const struct list *lane)
{
	uint32_t cnt = 0;

	for (const struct list *n = lane->next; n != lane; n = n->next)
		cnt++;
	return cnt;
}

static bool no_room(struct fake_conn *c, enum fake_lane lane)
{
	struct fake_knobs *k = fake_knobs_of(c);
	uint32_t cnt = c->other ? lane_cnt(&c->other->lanes[lane]) : 0;

	if (lane == FAKE_SENDV && c->other)
		cnt += lane_cnt(&c->other->flowing);
	return cnt >= (lane == FAKE_SENDV ? k->sendv_room : k->claim_room) ||
	       fake_chance(k->refuse);
}

static struct packet *fake_claim(struct wire_conn *conn, size_t len, void **payload)
{
	struct fake_conn *c = usable(conn);

	if (len > fake_knobs_of(c)->claim_max && len > WIRE_REQUEST_MAX)
		abort();
	if (no_room(c, FAKE_CLAIMED))
		return NULL;
	c->claimed = fake_alloc(sizeof(*c->claimed));
	c->claimed->bytes = fake_alloc(len);
	c->claimed->written = len;
	*payload = c->claimed->bytes;
	/* Nothing may depend on the former contents. */
	memset(&c->claimed->packet, 0xa5, sizeof(c->claimed->packet));
	return &c->claimed->packet;
}

static void send_item(struct fake_conn *c, struct fake_item *item, enum fake_lane lane)
{
	if (c->raw) {
		if (!item->bytes)
			item_copy(item);
		if (item->op)
			fake_op_done(c, item->op, 0);
		item->op = NULL;
		list_add_tail(&c->raw->out, &item->link);
	} else if (c->other) {
		list_add_tail(&c->other->lanes[lane], &item->link);
		fake_ring(c->other->wire);
	} else {
		fake_item_free(item); /* the other end has closed, which a later poll reports */
	}
}

static void fake_publish(struct wire_conn *conn, struct packet *packet, bool more)
{
	struct fake_conn *c = fake_conn_of(conn);
	struct fake_item *item = c->claimed;

	if (!item || packet != &item->packet || packet->len != item->written)
		abort();
	c->claimed = NULL;
	item->written = 0;
	send_item(c, item, FAKE_CLAIMED);
}

/* When it arrives is whimsical anyway. */
static void fake_hold(struct wire_conn *conn, struct packet *packet)
{
	fake_publish(conn, packet, true);
}

static int fake_sendv(struct wire_conn *conn, const struct packet *hdr, const struct iovec *iov,
		      size_t iov_cnt, struct wire_op *op)
{
	struct fake_conn *c = usable(conn);
	struct fake_item *item;
	bool ok;

	if (iov_cnt > WIRE_IOV_MAX || iov_len(iov, iov_cnt, &ok) < hdr->len || !op->done)
		abort();
	if (no_room(c, FAKE_SENDV))
		return -FI_EAGAIN;
	item = fake_alloc(sizeof(*item));
	item->packet = *hdr;
	item->from = c;
	item->op = op;
	item->iov_cnt = (uint32_t)iov_cnt;
	memcpy(item->iov, iov, iov_cnt * sizeof(*iov));
	if (fake_chance(fake_knobs_of(c)->buffer)) {
		item_copy(item);
		item->op = NULL;
		fake_op_done(c, op, 0);
	}
	send_item(c, item, FAKE_SENDV);
	return 0;
}

static void scribble(const struct iovec *iov, uint32_t iov_cnt)
{
	for (uint32_t i = 0; i < iov_cnt; i++)
		if (iov[i].iov_len)
			memset(iov[i].iov_base, 0xdd, iov[i].iov_len);
}

void fake_pull(const struct wire_source *from, const struct iovec *iov, size_t iov_cnt)
{
	size_t skip = 0;

	for (size_t i = 0; i < iov_cnt; i++) {
		copy_from_iov(iov[i].iov_base, from->iov, from->iov_cnt, skip, iov[i].iov_len);
		skip += iov[i].iov_len;
	}
}

static int fake_get(struct wire_conn *conn, const struct wire_source *from,
		    const struct iovec *iov, size_t iov_cnt, struct wire_op *op)
{
	struct fake_conn *c = usable(conn);
	struct fake_knobs *k = fake_knobs_of(c);
	struct fake_get *get;

	if (!k->has_get)
		abort();
	if (fake_chance(k->get_now) && c->other) {
		fake_pull(from, iov, iov_cnt);
		return 1;
	}
	if (!fake_chance(k->get_later) || (!c->other && !c->raw)) {
		scribble(iov, (uint32_t)iov_cnt);
		return -FI_EOPNOTSUPP;
	}
	get = fake_alloc(sizeof(*get));
	get->op = op;
	get->from = *from;
	get->iov_cnt = (uint32_t)iov_cnt;
	memcpy(get->iov, iov, iov_cnt * sizeof(*iov));
	get->status = fake_chance(k->get_fails) ? -FI_EIO : 0;
	if (!get->status && fake_chance(k->get_fails))
		get->status = -FI_EBUSY;
	if (get->status)
		scribble(iov, (uint32_t)iov_cnt);
	list_add_tail(&c->gets, &get->link);
	fake_ring(c->wire);
	return 0;
}

static int fake_check(struct wire_conn *conn)
{
	struct fake_conn *c = fake_conn_of(conn);

	if (c->ending && c->end_err && fake_chance(128))
		return c->end_err;
	return 0;
}

/* Sleeping */

void fake_ring(struct fake_wire *wire)
{
	uint64_t one = 1;

	if (wire->armed && !wire->deaf && write(wire->bell, &one, sizeof(one)) < 0)
		abort();
}

static int fake_bell(struct wire *base, int poll_set)
{
	struct fake_wire *wire = wire_of(base);

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
	struct fake_wire *wire = wire_of(base);
	struct fake_knobs *k = &fake_knobs[wire->kind];

	fake_silence(wire);
	if (fake_ready(wire) || fake_chance(k->fickle))
		return 0;
	wire->armed = true;
	wire->deaf = wire->bell < 0 || fake_chance(k->deaf);
	if (wire->deaf)
		return 1 + fake_random(2000000);
	if (fake_chance(k->spurious))
		fake_ring(wire);
	return UINT64_MAX;
}

static void fake_disarm(struct wire *base)
{
	fake_silence(wire_of(base));
}

static void fake_local(struct wire *base, char *buf, size_t len)
{
	snprintf(buf, len, "fake:%u", wire_of(base)->address.port);
}

/* The same with the lock */

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

static ssize_t fake_a_tsend(struct engine_ctx *ctx, struct engine_peer *peer, const void *buf,
			    size_t len, uint64_t tag, void *context)
{
	return engine_tsend_on(ctx, peer, buf, len, tag, context, &fake_ops[FAKE_A]);
}

static ssize_t fake_b_tsend(struct engine_ctx *ctx, struct engine_peer *peer, const void *buf,
			    size_t len, uint64_t tag, void *context)
{
	return engine_tsend_on(ctx, peer, buf, len, tag, context, &fake_ops[FAKE_B]);
}

static ssize_t fake_a_tinject(struct engine_ctx *ctx, struct engine_peer *peer, const void *buf,
			      size_t len, uint64_t tag)
{
	return engine_tinject_on(ctx, peer, buf, len, tag, &fake_ops[FAKE_A]);
}

static ssize_t fake_b_tinject(struct engine_ctx *ctx, struct engine_peer *peer, const void *buf,
			      size_t len, uint64_t tag)
{
	return engine_tinject_on(ctx, peer, buf, len, tag, &fake_ops[FAKE_B]);
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
		.access = fake_##letter##_access, .tsend = fake_##letter##_tsend,         \
		.tinject = fake_##letter##_tinject, .accept = locked_accept,              \
		.refuse = locked_refuse,                                                  \
	}

struct wire_ops fake_ops[FAKE_KINDS] = {
	[FAKE_A] = OPS(a),
	[FAKE_B] = OPS(b),
};

void fake_knobs_set(enum fake_kind kind, const struct fake_knobs *knobs)
{
	fake_knobs[kind] = *knobs;
	fake_ops[kind].claim_max = knobs->claim_max;
	fake_ops[kind].eager_max = knobs->eager_max;
	fake_ops[kind].has_get = knobs->has_get;
	fake_ops[kind].waits_min = knobs->waits_min;
	fake_ops[kind].polls_after_send = true;
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

/* What tests do to them */

/* Returns true if one of the two has a conn to the other that was not accepted yet. */
static bool being_made(const struct engine_ep *a, const struct engine_ep *b)
{
	struct list *w, *wafter, *node, *after;
	const struct engine_ep *to, *from;

	list_for_each(w, wafter, &fake_wires) {
		struct fake_wire *wire = container_of(w, struct fake_wire, link);

		to = wire->wire.ep;
		list_for_each(node, after, &wire->connreqs) {
			struct fake_connreq *connreq = container_of(node, struct fake_connreq,
								    link);

			from = connreq->from ? connreq->from->wire->wire.ep : NULL;
			if ((to == a && from == b) || (to == b && from == a))
				return true;
		}
	}
	return false;
}

int fake_break(struct engine_ep *a, struct engine_ep *b, int err)
{
	struct list *w, *wafter, *node, *after;
	int cnt = 0;

	fake_enter();
	if (being_made(a, b)) /* it would live on, and an endpoint that closes ends all */
		err = err ? err : -FI_ECONNRESET;
	list_for_each(w, wafter, &fake_wires) {
		struct fake_wire *wire = container_of(w, struct fake_wire, link);

		if (wire->wire.ep != a)
			continue;
		list_for_each(node, after, &wire->conns) {
			struct fake_conn *c = container_of(node, struct fake_conn, link);
			struct fake_conn *other = c->other;

			if (!other || other->wire->wire.ep != b)
				continue;
			c->ending = true;
			c->end_err = err;
			fake_conn_part(c, err, !err);
			sender_gone(c, !err);
			fake_ring(wire);
			cnt++;
		}
	}
	fake_leave();
	return cnt;
}

void fake_stop(struct engine_ep *from, struct engine_ep *to, bool stop)
{
	struct list *w, *wafter, *node, *after;

	fake_enter();
	list_for_each(w, wafter, &fake_wires) {
		struct fake_wire *wire = container_of(w, struct fake_wire, link);

		if (wire->wire.ep != to)
			continue;
		list_for_each(node, after, &wire->conns) {
			struct fake_conn *c = container_of(node, struct fake_conn, link);

			if (c->other && c->other->wire->wire.ep == from)
				c->stopped = stop;
		}
		fake_ring(wire);
	}
	fake_leave();
}

uint32_t fake_under_way(void)
{
	struct list *w, *wafter, *node, *after;
	uint32_t cnt = 0;

	list_for_each(w, wafter, &fake_wires) {
		struct fake_wire *wire = container_of(w, struct fake_wire, link);

		cnt += lane_cnt(&wire->connreqs);
		list_for_each(node, after, &wire->conns) {
			struct fake_conn *c = container_of(node, struct fake_conn, link);

			for (int i = 0; i < FAKE_LANES; i++)
				cnt += lane_cnt(&c->lanes[i]);
			cnt += lane_cnt(&c->flowing) + lane_cnt(&c->gets);
			cnt += (c->done_first != NULL) + c->ending + c->answered;
		}
	}
	return cnt;
}

uint32_t fake_armed_cnt(void)
{
	struct list *w, *wafter;
	uint32_t cnt = 0;

	fake_enter();
	list_for_each(w, wafter, &fake_wires)
		cnt += container_of(w, struct fake_wire, link)->armed;
	fake_leave();
	return cnt;
}

uint32_t fake_conn_cnt(void)
{
	struct list *w, *wafter;
	uint32_t cnt = 0;

	list_for_each(w, wafter, &fake_wires)
		cnt += lane_cnt(&container_of(w, struct fake_wire, link)->conns);
	return cnt;
}
