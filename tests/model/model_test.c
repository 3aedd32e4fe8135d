/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine against the reference model: seeded random operations on 2 to 4 endpoints over the
 * fake wires. The model predicts for each receive which message it gets and everything that its
 * completion says; in the end nothing is lost, duplicated or left over, in the engine's own
 * books neither.
 *
 * A second test breaks connections all the time. What is lost with them is free within bounds:
 * each operation still completes once, what arrives arrives in order and whole, directed receives
 * fail with their source and others stay, what was stored whole stays.
 *
 * A run is a number of rounds, each with endpoints, wires and habits of its own and a seed from
 * which everything follows. A failure names the seed of its round.
 *
 *	MODEL_SEED=n	seed of the first round
 *	MODEL_OPS=n	operations in all
 *	MODEL_BREAKS=0	only the first test; 1: only the second
 *	MODEL_TRACE=1	print each operation
 */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_errno.h>
#include "fake_ends.h"
#include "peer.h"
#include "recv.h"
#include "reference.h"
#include "loop.h"
#include <cmocka.h>

#define LEN_MAX	   (64u << 10)
#define BUDGET_ALL (64u << 20)
#define RECENT	   64
#define UNTOUCHED  0xc7
#define QUIET_MAX  3000000 /* polls in which everything must have come to its end */

enum op_kind {
	OP_SEND,
	OP_RECV,
	OP_PEEK,
};

struct op {
	struct list link; /* run.ops */
	enum op_kind kind;
	int end;
	struct ref_msg msg;
	struct ref_recv recv;
	uint64_t id;
	uint64_t data;
	size_t len; /* of the message, or room of the receive */
	bool has_data;
	bool unknown; /* send: the receiver did not know us when it arrived */
	bool wants;   /* a completion when all goes well */
	bool done;    /* completed */
	bool cancelled;
	bool found;	 /* peek */
	bool rts;	 /* send: its payload stays with the sender until it is asked for */
	bool whole;	 /* send: its payload has arrived */
	bool lost;	 /* send: its payload will not come; receives that get it fail */
	bool exposed;	 /* its connection broke while it was under way: it may have failed */
	bool adrift;	 /* send: had not arrived when its connection broke: it may be lost */
	bool failed;	 /* receive: its only sender is gone */
	struct op *seen; /* peek: the message */
	struct iovec iov[ENGINE_IOV_MAX];
	uint32_t cnt;
};

static struct {
	struct fake_end ends[FAKE_ENDS_MAX];
	struct fake_end_attr attrs[FAKE_ENDS_MAX];
	int owner[FAKE_ENDS_MAX]; /* whose address vector and queues an end uses */
	int cnt;
	fi_addr_t addr[FAKE_ENDS_MAX][FAKE_ENDS_MAX]; /* [owner][of] */
	bool service[FAKE_ENDS_MAX][FAKE_ENDS_MAX];
	struct ref ref;
	struct list ops, freed;
	struct op *recent[RECENT];
	struct op *claimed[RECENT];
	uint64_t next_id;
	uint64_t sequence;
	size_t owed;	  /* completions to come */
	uint32_t hunger;  /* how much the round prefers to post receives, of 256 */
	uint32_t bigness; /* how often messages are large, of 256 */
	uint32_t chatter; /* polls per operation, of 256 */
	uint32_t breaks;  /* how often connections break, of 65536 */
	uint32_t most;	  /* receives posted and messages stored at one end */
} run;

/* What the run has seen, so that a reader can tell what it is worth. */
static struct {
	uint64_t ops, sends, full, receives, truncated, peeks, found, claims, cancels, silent;
	uint64_t packets, rendezvous, early, bytes, rounds;
	uint64_t breaks, failed_sends, failed_receives, lost;
} seen;

static uint64_t round_seed;
static bool trace;

#define FAIL(...)                                                                             \
	do {                                                                                  \
		print_error(__VA_ARGS__);                                                     \
		print_error("\nreproduce with MODEL_SEED=%llu MODEL_OPS=1 MODEL_BREAKS=%d\n", \
			    (unsigned long long)round_seed, run.breaks != 0);                 \
		fail();                                                                       \
	} while (0)

#define CHECK(cond, ...)                   \
	do {                               \
		if (!(cond))               \
			FAIL(__VA_ARGS__); \
	} while (0)

#define TRACE(...)                           \
	do {                                 \
		if (trace)                   \
			printf(__VA_ARGS__); \
	} while (0)

static uint32_t below(uint32_t n)
{
	run.sequence ^= run.sequence << 13;
	run.sequence ^= run.sequence >> 7;
	run.sequence ^= run.sequence << 17;
	return (uint32_t)((run.sequence * 0x2545f4914f6cdd1dull) >> 33) % n;
}

static bool chance(uint32_t of_256)
{
	return below(256) < of_256;
}

static struct op *op_of_msg(struct ref_msg *msg)
{
	return container_of(msg, struct op, msg);
}

static fi_addr_t addr_of(int end, int of)
{
	return run.addr[run.owner[end]][of];
}

/* Contents: each message has its own */

static uint64_t scratch[LEN_MAX / 8 + 1];

static void pattern(uint64_t id, size_t len)
{
	uint64_t word = id * 0x9e3779b97f4a7c15ull + 1;

	for (size_t i = 0; i < (len + 7) / 8; i++, word += 0xd6e8feb86659fd93ull)
		scratch[i] = word ^ word >> 29;
}

static void op_iov_alloc(struct op *op, uint32_t cnt)
{
	size_t left = op->len;

	op->cnt = cnt;
	for (uint32_t i = 0; i < cnt; i++) {
		size_t n = i + 1 == cnt ? left : below((uint32_t)left + 1);

		op->iov[i].iov_len = n;
		op->iov[i].iov_base = n ? malloc(n) : NULL;
		left -= n;
	}
}

static void op_iov_free(struct op *op)
{
	for (uint32_t i = 0; i < op->cnt; i++) {
		if (op->iov[i].iov_base)
			memset(op->iov[i].iov_base, 0x99,
			       op->iov[i].iov_len < 64 ? op->iov[i].iov_len : 64);
		free(op->iov[i].iov_base);
		op->iov[i].iov_base = NULL;
	}
	op->cnt = 0;
}

/* The bytes of a receive that got @msg: the message as far as there is room, nothing else. */
static void check_bytes(struct op *op, struct op *msg)
{
	static uint8_t got[LEN_MAX];
	size_t len = msg->len < op->len ? msg->len : op->len;
	size_t rest = op->len - len < 64 ? op->len - len : 64;

	copy_from_iov(got, op->iov, op->cnt, 0, len + rest);
	pattern(msg->id, len);
	CHECK(!memcmp(got, scratch, len), "receive %llu: message %llu has other bytes",
	      (unsigned long long)op->id, (unsigned long long)msg->id);
	for (size_t i = len; i < len + rest; i++)
		CHECK(got[i] == UNTOUCHED, "receive %llu: written behind its message",
		      (unsigned long long)op->id);
}

/* What the wires hand over */

static int end_of(const struct engine_ep *ep)
{
	for (int i = 0; i < run.cnt; i++)
		if (run.ends[i].ep && fake_end_engine(&run.ends[i]) == ep)
			return i;
	FAIL("an endpoint that is not ours");
	return 0;
}

static int end_named(const struct weft_addr *address)
{
	for (int i = 0; i < run.cnt; i++)
		if (addr_same(address, &run.ends[i].name))
			return i;
	FAIL("a peer that is none of our ends");
	return 0;
}

/* How many messages have left @from for @to, by its own books. */
static size_t left_for(int from, int to, uint64_t seq)
{
	return (uint32_t)(seq - run.ref.pairs[from][to].first_seq);
}

/* A new connection goes on behind what its sender has given up: nothing else may be left out. */
static void resume(int to, int from, const struct engine_peer *peer)
{
	struct ref_pair *p = &run.ref.pairs[from][to];
	size_t turn = left_for(from, to, peer->rx_seq);

	for (; run.breaks && p->turn < turn && p->turn < p->cnt; p->turn++)
		CHECK(op_of_msg(p->msgs[p->turn])->adrift, "%d to %d: message %llu is left out",
		      from, to, (unsigned long long)op_of_msg(p->msgs[p->turn])->id);
}

static void saw_header(int to, int from, const struct packet *packet,
		       const struct engine_peer *peer, bool whole)
{
	struct ref_msg *msg;
	struct op *op;

	if (packet->op != PACKET_EAGER && packet->op != PACKET_RTS)
		return;
	resume(to, from, peer);
	msg = ref_header(&run.ref, from, to, packet->seq);
	CHECK(msg, "%d to %d: sequence %u was never sent, or came twice", from, to,
	      packet->seq);
	op = op_of_msg(msg);
	seen.packets++;
	seen.rendezvous += packet->op == PACKET_RTS;
	seen.early += msg != run.ref.pairs[from][to].msgs[run.ref.pairs[from][to].turn];
	TRACE("%d to %d: header of %llu\n", from, to, (unsigned long long)op->id);
	CHECK(!!(packet->flags & PACKET_TAGGED) == msg->tagged && packet->tag == msg->tag &&
		      !!(packet->flags & PACKET_CQ_DATA) == op->has_data &&
		      (!op->has_data || packet->data == op->data) &&
		      (packet->op == PACKET_RTS || packet->len == op->len),
	      "%d to %d: sequence %u is not message %llu", from, to, packet->seq,
	      (unsigned long long)op->id);
	op->unknown = addr_of(to, from) == FI_ADDR_NOTAVAIL;
	op->rts = packet->op == PACKET_RTS;
	op->whole = whole && !op->rts;
	ref_turns(&run.ref, from, to);
}

static void on_packet(const struct wire_conn *conn, const struct packet *packet, bool whole)
{
	saw_header(end_of(conn->wire->ep), end_named(&conn->peer->address), packet, conn->peer,
		   whole);
}

static void on_payload(const struct wire_conn *conn, const struct packet *packet)
{
	int from = end_named(&conn->peer->address), to = end_of(conn->wire->ep);

	if (packet->op == PACKET_EAGER)
		op_of_msg(run.ref.pairs[from][to].msgs[left_for(from, to, packet->seq)])
			->whole = true;
}

int __real_engine_packet(struct engine_ep *ep, struct wire_conn *conn,
			 const struct packet *packet, const void *payload, size_t avail,
			 struct wire_dest *dest);
int __wrap_engine_packet(struct engine_ep *ep, struct wire_conn *conn,
			 const struct packet *packet, const void *payload, size_t avail,
			 struct wire_dest *dest);

/* Packets of an endpoint to itself take the engine's own wire. */
int __wrap_engine_packet(struct engine_ep *ep, struct wire_conn *conn,
			 const struct packet *packet, const void *payload, size_t avail,
			 struct wire_dest *dest)
{
	if (conn->wire->ops == &loop_wire_ops)
		saw_header(end_of(ep), end_of(ep), packet, conn->peer, true);
	return __real_engine_packet(ep, conn, packet, payload, avail, dest);
}

static void on_matched(struct ref_recv *recv, struct ref_msg *msg)
{
	struct op *r = container_of(recv, struct op, recv), *m = op_of_msg(msg);

	TRACE("receive %llu gets message %llu\n", (unsigned long long)r->id,
	      (unsigned long long)m->id);
	r->wants |= m->len > r->len || m->lost; /* errors are told always */
	run.owed += r->wants;
}

/* Connections that break */

static void lose_stored(int at, int from)
{
	struct list *node, *after;

	list_for_each(node, after, &run.ops) {
		struct op *op = container_of(node, struct op, link);

		if (op->kind != OP_SEND || op->end != from || op->msg.to != at || op->whole)
			continue;
		if (op->msg.state == REF_STORED || op->msg.state == REF_CLAIMED) {
			op->lost = true;
			seen.lost++;
		}
		if (op->msg.state == REF_MATCHED)
			container_of(op->msg.recv, struct op, recv)->exposed = true;
	}
}

/* Endpoint @at has given up its connection to @peer. */
static void on_failed(int at, int peer, uint64_t tx_seq, bool directed)
{
	struct list *node, *after;

	TRACE("%d: connection to %d broke\n", at, peer);
	seen.breaks++;
	ref_cut_sender(&run.ref, at, peer, left_for(at, peer, tx_seq));
	ref_cut_receiver(&run.ref, peer, at);
	lose_stored(at, peer);
	list_for_each(node, after, &run.ops) {
		struct op *op = container_of(node, struct op, link);

		if (op->kind == OP_SEND && op->end == at && op->msg.to == peer) {
			op->exposed |= !op->done;
			op->adrift |= op->msg.state == REF_SENT;
		}
		if (!directed || op->kind != OP_RECV || op->end != at ||
		    op->recv.from != peer || !op->recv.posted)
			continue;
		ref_cancel(&run.ref, at, &op->recv);
		op->failed = op->wants = true;
		run.owed++;
	}
}

static void on_conn_ended(const struct wire_conn *conn, int err)
{
	const struct engine_peer *peer = conn->peer;

	/* An endpoint that has given up its peer is idle; without, it was an attempt or a second route. */
	if (peer->state == PEER_IDLE)
		on_failed(end_of(peer->ep), end_named(&peer->address), peer->tx_seq, err);
}

static void on_conn_dropped(const struct wire_conn *conn)
{
	const struct engine_peer *peer = conn->peer;

	on_failed(end_of(peer->ep), end_named(&peer->address), peer->tx_seq, true);
}

/* Completions */

static uint64_t flags_of(const struct op *op)
{
	if (op->kind == OP_SEND)
		return FI_SEND | (op->msg.tagged ? FI_TAGGED : FI_MSG);
	return FI_RECV | (op->recv.tagged ? FI_TAGGED : FI_MSG);
}

static void op_done(struct op *op, int owner, bool tx)
{
	CHECK(run.owner[op->end] == owner, "operation %llu completes in another queue",
	      (unsigned long long)op->id);
	CHECK(run.attrs[owner].one_cq || tx == (op->kind == OP_SEND),
	      "operation %llu completes in the wrong queue", (unsigned long long)op->id);
	CHECK(!op->done, "operation %llu completes twice", (unsigned long long)op->id);
	CHECK(op->wants, "operation %llu completes and should not", (unsigned long long)op->id);
	op->done = true;
	run.owed--;
}

static void check_source(struct op *op, struct op *msg, fi_addr_t src)
{
	fi_addr_t addr = addr_of(op->end, msg->msg.from);

	CHECK(src == addr || (src == FI_ADDR_NOTAVAIL && msg->unknown),
	      "receive %llu: source %llu, not %llu", (unsigned long long)op->id,
	      (unsigned long long)src, (unsigned long long)addr);
}

static void check_received(struct op *op, const struct fi_cq_tagged_entry *e,
			   enum fi_cq_format format, const fi_addr_t *src)
{
	struct op *msg = op->kind == OP_PEEK ? op->seen
			 : op->recv.msg	     ? op_of_msg(op->recv.msg)
					     : NULL;
	void *buf = op->kind == OP_PEEK || !op->cnt ? NULL : op->iov[0].iov_base;

	CHECK(msg, "receive %llu completes without a message", (unsigned long long)op->id);
	CHECK(op->kind == OP_PEEK || msg->len <= op->len, "receive %llu is not truncated",
	      (unsigned long long)op->id);
	if (src)
		check_source(op, msg, *src);
	if (format == FI_CQ_FORMAT_CONTEXT)
		return;
	CHECK(e->flags == (flags_of(op) | (msg->has_data ? FI_REMOTE_CQ_DATA : 0)),
	      "receive %llu: flags %llx", (unsigned long long)op->id,
	      (unsigned long long)e->flags);
	CHECK(e->len == msg->len, "receive %llu: %zu bytes, not %zu",
	      (unsigned long long)op->id, e->len, msg->len);
	if (format == FI_CQ_FORMAT_MSG)
		return;
	CHECK(e->buf == buf, "receive %llu: another buffer", (unsigned long long)op->id);
	CHECK(!msg->has_data || e->data == msg->data, "receive %llu: other data",
	      (unsigned long long)op->id);
	if (format == FI_CQ_FORMAT_TAGGED && msg->msg.tagged)
		CHECK(e->tag == msg->msg.tag, "receive %llu: tag %llx, not %llx",
		      (unsigned long long)op->id, (unsigned long long)e->tag,
		      (unsigned long long)msg->msg.tag);
}

static void on_completion(int owner, bool tx, const struct fi_cq_tagged_entry *e,
			  const fi_addr_t *src)
{
	enum fi_cq_format format = run.attrs[owner].format;
	struct op *op = e->op_context;

	TRACE("completion of %llu\n", (unsigned long long)op->id);
	op_done(op, owner, tx);
	CHECK(!op->cancelled, "operation %llu was cancelled", (unsigned long long)op->id);
	if (op->kind == OP_SEND) {
		CHECK(format == FI_CQ_FORMAT_CONTEXT || e->flags == flags_of(op),
		      "send %llu: flags %llx", (unsigned long long)op->id,
		      (unsigned long long)e->flags);
		op_iov_free(op);
		return;
	}
	CHECK(op->kind == OP_RECV || op->found, "peek %llu found nothing",
	      (unsigned long long)op->id);
	check_received(op, e, format, src);
	if (op->kind == OP_RECV) {
		CHECK(!op->failed && !op_of_msg(op->recv.msg)->lost,
		      "receive %llu should have failed", (unsigned long long)op->id);
		check_bytes(op, op_of_msg(op->recv.msg));
		op_iov_free(op);
	}
}

static void check_truncated(struct op *op, const struct fi_cq_err_entry *e)
{
	struct op *msg = op->recv.msg ? op_of_msg(op->recv.msg) : NULL;

	CHECK(op->kind == OP_RECV && msg && msg->len > op->len && !op->failed && !msg->lost,
	      "operation %llu: error %d", (unsigned long long)op->id, e->err);
	CHECK(e->err == FI_ETRUNC && e->len == op->len && e->olen == msg->len - op->len,
	      "receive %llu: error %d, %zu bytes and %zu more", (unsigned long long)op->id,
	      e->err, e->len, e->olen);
	CHECK(e->flags == (flags_of(op) | (msg->has_data ? FI_REMOTE_CQ_DATA : 0)),
	      "receive %llu: flags %llx", (unsigned long long)op->id,
	      (unsigned long long)e->flags);
	CHECK(!msg->msg.tagged || e->tag == msg->msg.tag, "receive %llu: another tag",
	      (unsigned long long)op->id);
	CHECK(!msg->has_data || e->data == msg->data, "receive %llu: other data",
	      (unsigned long long)op->id);
	check_source(op, msg, e->src_addr);
	check_bytes(op, msg);
	seen.truncated++;
}

/* The connection of an operation broke: is that so, and does it name the other side? */
static void check_failed(struct op *op, const struct fi_cq_err_entry *e)
{
	struct op *msg = op->recv.msg ? op_of_msg(op->recv.msg) : NULL;

	CHECK(e->err == FI_ECONNRESET || e->err == FI_ETIMEDOUT, "operation %llu: error %d",
	      (unsigned long long)op->id, e->err);
	if (op->kind == OP_SEND) {
		CHECK(op->exposed, "send %llu: error %d", (unsigned long long)op->id, e->err);
		seen.failed_sends++;
		return;
	}
	CHECK(op->failed || op->exposed || (msg && msg->lost), "receive %llu: error %d",
	      (unsigned long long)op->id, e->err);
	if (msg)
		check_source(op, msg, e->src_addr);
	else
		CHECK(e->src_addr == addr_of(op->end, op->recv.from),
		      "receive %llu: another source", (unsigned long long)op->id);
	seen.failed_receives++;
}

static void on_error(int owner, bool tx, const struct fi_cq_err_entry *e)
{
	struct op *op = e->op_context;

	TRACE("error %d of %llu\n", e->err, (unsigned long long)op->id);
	if (op->exposed && !op->wants) { /* an error is told always */
		op->wants = true;
		run.owed++;
	}
	op_done(op, owner, tx);
	if (op->cancelled)
		CHECK(e->err == FI_ECANCELED, "operation %llu: error %d",
		      (unsigned long long)op->id, e->err);
	else if (op->kind == OP_PEEK)
		CHECK(e->err == FI_ENOMSG && !op->found, "peek %llu: error %d",
		      (unsigned long long)op->id, e->err);
	else if (e->err != FI_ETRUNC)
		check_failed(op, e);
	else
		check_truncated(op, e);
	op_iov_free(op);
}

static size_t entry_len(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	default:
		return sizeof(struct fi_cq_tagged_entry);
	}
}

static void read_error(int owner, bool tx, struct fid_cq *cq, bool must)
{
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_readerr(cq, &err, 0);

	CHECK(ret == 1 || (!must && ret == -FI_EAGAIN), "fi_cq_readerr: %zd", ret);
	if (ret == 1)
		on_error(owner, tx, &err);
}

static void read_cq(int owner, bool tx)
{
	struct fid_cq *cq = tx ? run.ends[owner].tx_cq : run.ends[owner].rx_cq;
	size_t len = entry_len(run.attrs[owner].format);
	struct fi_cq_tagged_entry e = { 0 };
	fi_addr_t src[8];
	char buf[8 * sizeof(e)];
	size_t cnt = 1 + below(8);
	uint32_t how = below(16);
	bool from = how < 8;
	ssize_t ret;

	memset(buf, 0x5a, sizeof(buf));
	if (how < 8)
		ret = fi_cq_readfrom(cq, buf, cnt, src);
	else if (how < 14)
		ret = fi_cq_read(cq, buf, cnt);
	else if (how == 14)
		ret = fi_cq_sread(cq, buf, cnt, NULL, 0);
	else
		ret = -FI_EAVAIL;
	if (ret == -FI_EAVAIL) {
		read_error(owner, tx, cq, how != 15);
		return;
	}
	if (ret == -FI_EAGAIN)
		return;
	CHECK(ret > 0 && (size_t)ret <= cnt, "fi_cq_read: %zd", ret);
	for (ssize_t i = 0; i < ret; i++) {
		memcpy(&e, buf + (size_t)i * len, len);
		on_completion(owner, tx, &e, from ? &src[i] : NULL);
	}
}

static void poke(int end)
{
	int owner = run.owner[end];

	read_cq(owner, true);
	if (!run.attrs[owner].one_cq)
		read_cq(owner, false);
}

/* Operations */

static struct op *op_new(enum op_kind kind, int end)
{
	struct op *op = calloc(1, sizeof(*op));

	if (!op)
		abort();
	op->kind = kind;
	op->end = end;
	op->id = ++run.next_id;
	list_push(&run.ops, &op->link);
	return op;
}

/* The operation did not come about. */
static void op_drop(struct op *op)
{
	op_iov_free(op);
	list_remove(&op->link);
	free(op);
}

static uint64_t some_tag(void)
{
	return below(4) | (uint64_t)below(2) << 40;
}

static uint64_t some_ignore(void)
{
	static const uint64_t masks[] = {
		0,
		0,
		0,
		UINT64_MAX,
		UINT64_MAX,
		1,
		3,
		1ull << 40,
		1ull << 40 | 1,
		2,
		1ull << 40 | 3,
	};

	return masks[below(sizeof(masks) / sizeof(masks[0]))];
}

static size_t some_len(int end)
{
	const struct wire_ops *w = fake_end_engine(&run.ends[end])->wires[0].ops;
	uint32_t edges[] = { w->claim_max, w->eager_max, ENGINE_INJECT_MAX, ENGINE_HELD_SMALL };
	uint32_t n;

	if (chance(run.bigness))
		return chance(16) ? 1 + below(LEN_MAX - 1) : 1 + below(8192);
	switch (below(8)) {
	case 0:
		return 0;
	case 1:
		n = edges[below(4)] + below(3);
		return n ? n - 1 : 0;
	case 2:
		return w->claim_max + below(w->eager_max - w->claim_max + 2);
	case 3:
		return below(1024);
	default:
		return below(40);
	}
}

static int some_dest(int end)
{
	int dest = (int)below((uint32_t)run.cnt);

	return addr_of(end, dest) == FI_ADDR_NOTAVAIL ? -1 : dest;
}

enum send_call {
	CALL_SEND,
	CALL_SENDV,
	CALL_SENDMSG,
	CALL_INJECT,
	CALL_SENDDATA,
	CALL_INJECTDATA,
	SEND_CALLS,
};

static ssize_t send_tagged(struct fid_ep *ep, struct op *op, fi_addr_t dest,
			   enum send_call call, uint64_t flags)
{
	struct fi_msg_tagged msg = { .msg_iov = op->iov,
				     .iov_count = op->cnt,
				     .addr = dest,
				     .tag = op->msg.tag,
				     .context = op,
				     .data = op->data };
	void *buf = op->iov[0].iov_base;

	switch (call) {
	case CALL_SEND:
		return fi_tsend(ep, buf, op->len, NULL, dest, op->msg.tag, op);
	case CALL_SENDV:
		return fi_tsendv(ep, op->iov, NULL, op->cnt, dest, op->msg.tag, op);
	case CALL_SENDMSG:
		return fi_tsendmsg(ep, &msg, flags);
	case CALL_INJECT:
		return fi_tinject(ep, buf, op->len, dest, op->msg.tag);
	case CALL_SENDDATA:
		return fi_tsenddata(ep, buf, op->len, NULL, op->data, dest, op->msg.tag, op);
	default:
		return fi_tinjectdata(ep, buf, op->len, op->data, dest, op->msg.tag);
	}
}

static ssize_t send_untagged(struct fid_ep *ep, struct op *op, fi_addr_t dest,
			     enum send_call call, uint64_t flags)
{
	struct fi_msg msg = { .msg_iov = op->iov,
			      .iov_count = op->cnt,
			      .addr = dest,
			      .context = op,
			      .data = op->data };
	void *buf = op->iov[0].iov_base;

	switch (call) {
	case CALL_SEND:
		return fi_send(ep, buf, op->len, NULL, dest, op);
	case CALL_SENDV:
		return fi_sendv(ep, op->iov, NULL, op->cnt, dest, op);
	case CALL_SENDMSG:
		return fi_sendmsg(ep, &msg, flags);
	case CALL_INJECT:
		return fi_inject(ep, buf, op->len, dest);
	case CALL_SENDDATA:
		return fi_senddata(ep, buf, op->len, NULL, op->data, dest, op);
	default:
		return fi_injectdata(ep, buf, op->len, op->data, dest);
	}
}

static uint64_t some_send_flags(struct op *op)
{
	uint64_t flags = 0;

	if (chance(128))
		flags |= FI_COMPLETION;
	if (chance(64))
		flags |= FI_MORE;
	if (chance(64))
		flags |= chance(128) ? FI_INJECT_COMPLETE : FI_TRANSMIT_COMPLETE;
	if (chance(64))
		flags |= FI_REMOTE_CQ_DATA;
	if (op->len <= ENGINE_INJECT_MAX && chance(64))
		flags |= FI_INJECT;
	return flags;
}

/* Will there be a completion of a call without flags of its own? */
static bool wants_by_default(int end, uint64_t op_flags)
{
	const struct fake_end_attr *a = &run.attrs[end];

	return !(a->bind_flags & FI_SELECTIVE_COMPLETION) || op_flags & FI_COMPLETION;
}

static void try_send(int end)
{
	const struct fake_end_attr *a = &run.attrs[end];
	enum send_call call = (enum send_call)below(SEND_CALLS);
	int dest = some_dest(end);
	bool inject = call == CALL_INJECT || call == CALL_INJECTDATA;
	uint64_t flags = 0;
	struct op *op;
	ssize_t ret;

	if (dest < 0 || run.ref.stored_cnt[dest] > run.most)
		return;
	op = op_new(OP_SEND, end);
	op->len = some_len(end);
	if (inject)
		op->len %= ENGINE_INJECT_MAX + 1;
	op->msg = (struct ref_msg){ .from = end, .to = dest, .tagged = chance(170) };
	op->msg.tag = op->msg.tagged ? some_tag() : 0;
	op->data = op->id * 0x9e3779b97f4a7c15ull;
	op->has_data = call == CALL_SENDDATA || call == CALL_INJECTDATA;
	op->wants = !inject && wants_by_default(end, a->tx_op_flags);
	op_iov_alloc(op, call == CALL_SENDV || call == CALL_SENDMSG ? 1 + below(ENGINE_IOV_MAX)
								    : 1);
	pattern(op->id, op->len);
	copy_to_iov(op->iov, op->cnt, 0, scratch, op->len);
	if (call == CALL_SENDMSG) {
		flags = some_send_flags(op);
		op->has_data = flags & FI_REMOTE_CQ_DATA;
		op->wants = !(a->bind_flags & FI_SELECTIVE_COMPLETION) || flags & FI_COMPLETION;
		inject = flags & FI_INJECT;
	} else if (a->tx_op_flags & FI_INJECT) {
		inject = true;
	}
	ret = (op->msg.tagged ? send_tagged : send_untagged)(run.ends[end].ep, op,
							     addr_of(end, dest), call, flags);
	TRACE("%d: send %llu to %d, %zu bytes, call %d: %zd\n", end, (unsigned long long)op->id,
	      dest, op->len, call, ret);
	if (ret == -FI_EAGAIN ||
	    (ret == -FI_EMSGSIZE && inject && op->len > ENGINE_INJECT_MAX)) {
		op_drop(op);
		seen.full++;
		return;
	}
	seen.ops++;
	seen.sends++;
	seen.bytes += op->len;
	CHECK(!ret, "send %llu: %zd", (unsigned long long)op->id, ret);
	ref_send(&run.ref, &op->msg);
	run.owed += op->wants;
	if (inject)
		op_iov_free(op);
	run.recent[below(RECENT)] = op;
}

static ssize_t recv_call(struct op *op, fi_addr_t src, uint32_t call, uint64_t flags)
{
	struct fid_ep *ep = run.ends[op->end].ep;
	struct fi_msg_tagged tmsg = { .msg_iov = op->iov,
				      .iov_count = op->cnt,
				      .addr = src,
				      .tag = op->recv.tag,
				      .ignore = op->recv.ignore,
				      .context = op };
	struct fi_msg msg = {
		.msg_iov = op->iov, .iov_count = op->cnt, .addr = src, .context = op
	};
	void *buf = op->iov[0].iov_base;

	if (op->recv.tagged) {
		if (call == 0)
			return fi_trecv(ep, buf, op->len, NULL, src, op->recv.tag,
					op->recv.ignore, op);
		if (call == 1)
			return fi_trecvv(ep, op->iov, NULL, op->cnt, src, op->recv.tag,
					 op->recv.ignore, op);
		return fi_trecvmsg(ep, &tmsg, flags);
	}
	if (call == 0)
		return fi_recv(ep, buf, op->len, NULL, src, op);
	if (call == 1)
		return fi_recvv(ep, op->iov, NULL, op->cnt, src, op);
	return fi_recvmsg(ep, &msg, flags);
}

/* Whom a receive is for: sets recv.from, returns what the call is given. */
static fi_addr_t some_source(struct op *op)
{
	bool directed = !run.attrs[op->end].caps || run.attrs[op->end].caps & FI_DIRECTED_RECV;
	int of = (int)below((uint32_t)run.cnt);
	fi_addr_t addr = addr_of(op->end, of);

	op->recv.from = REF_ANYONE;
	if (chance(128))
		return FI_ADDR_UNSPEC;
	if (addr == FI_ADDR_NOTAVAIL)
		return directed ? FI_ADDR_UNSPEC : addr;
	if (directed)
		op->recv.from = of;
	return addr;
}

static void some_want(struct op *op)
{
	op->recv.tagged = chance(170);
	if (op->recv.tagged) {
		op->recv.tag = some_tag();
		op->recv.ignore = some_ignore();
	}
}

static void op_room(struct op *op, uint32_t cnt)
{
	op_iov_alloc(op, cnt);
	for (uint32_t i = 0; i < op->cnt; i++)
		if (op->iov[i].iov_base)
			memset(op->iov[i].iov_base, UNTOUCHED, op->iov[i].iov_len);
}

static void post(struct op *op, fi_addr_t src, uint32_t call)
{
	const struct fake_end_attr *a = &run.attrs[op->end];
	uint64_t flags = call == 2 && chance(128) ? FI_COMPLETION : 0;
	ssize_t ret;

	op->wants = wants_by_default(op->end, a->rx_op_flags);
	if (call == 2)
		op->wants = !(a->bind_flags & FI_SELECTIVE_COMPLETION) || flags;
	ret = recv_call(op, src, call, flags);
	TRACE("%d: receive %llu from %d, tag %llx/%llx, %zu bytes: %zd\n", op->end,
	      (unsigned long long)op->id, op->recv.from, (unsigned long long)op->recv.tag,
	      (unsigned long long)op->recv.ignore, op->len, ret);
	CHECK(!ret, "receive %llu: %zd", (unsigned long long)op->id, ret);
	seen.ops++;
	seen.receives++;
	ref_post(&run.ref, op->end, &op->recv);
	run.recent[below(RECENT)] = op;
}

static void try_recv(int end)
{
	uint32_t call = below(3);
	struct op *op;
	fi_addr_t src;

	if (run.ref.posted_cnt[end] > run.most)
		return;
	op = op_new(OP_RECV, end);
	some_want(op);
	src = some_source(op);
	op->len = chance(200) ? some_len(end) + 64 : some_len(end);
	if (op->len > LEN_MAX)
		op->len = LEN_MAX;
	op_room(op, call ? 1 + below(ENGINE_IOV_MAX) : 1);
	post(op, src, call);
}

static void try_peek(int end)
{
	struct op *op = op_new(OP_PEEK, end);
	uint32_t slot = below(RECENT);
	struct ref_msg *msg;
	uint64_t flags = FI_PEEK;
	fi_addr_t src;
	ssize_t ret;

	some_want(op);
	src = some_source(op);
	if (chance(80))
		flags |= FI_DISCARD;
	else if (chance(128) && !run.claimed[slot])
		flags |= FI_CLAIM;
	op->wants = true;
	run.owed++;
	msg = ref_fits(&run.ref, end, &op->recv);
	ret = recv_call(op, src, 2, flags);
	CHECK(!ret, "peek %llu: %zd", (unsigned long long)op->id, ret);
	seen.ops++;
	seen.peeks++;
	if (!msg) /* it lets messages arrive, and looks again */
		msg = ref_fits(&run.ref, end, &op->recv);
	TRACE("%d: peek %llu: %s\n", end, (unsigned long long)op->id,
	      msg ? "found" : "nothing");
	if (!msg)
		return;
	op->found = true;
	seen.found++;
	op->seen = op_of_msg(msg);
	if (flags & FI_DISCARD) {
		ref_take(&run.ref, msg, REF_DISCARDED);
	} else if (flags & FI_CLAIM) {
		ref_take(&run.ref, msg, REF_CLAIMED);
		run.claimed[slot] = op;
	}
}

/* Receive or drop what a peek has claimed: the context is that of the peek. */
static void use_claim(uint32_t slot)
{
	struct op *op = run.claimed[slot], *msg;
	bool discard = chance(80);
	ssize_t ret;

	if (!op || !op->done) /* its context is in use until the peek has completed */
		return;
	msg = op->seen;
	run.claimed[slot] = NULL;
	op->done = false;
	if (discard) {
		run.owed++;
		ret = recv_call(op, FI_ADDR_UNSPEC, 2, FI_CLAIM | FI_DISCARD);
		msg->msg.state = REF_DISCARDED;
	} else {
		op->kind = OP_RECV;
		op->len = chance(200) ? msg->len : some_len(op->end);
		op_room(op, 1 + below(ENGINE_IOV_MAX));
		ref_give(&run.ref, &op->recv, &msg->msg);
		ret = recv_call(op, FI_ADDR_UNSPEC, 2, FI_CLAIM);
	}
	TRACE("%d: claim %llu: %zd\n", op->end, (unsigned long long)op->id, ret);
	CHECK(!ret, "claim %llu: %zd", (unsigned long long)op->id, ret);
	seen.ops++;
	seen.claims++;
}

static void now_cancelled(struct op *op)
{
	op->cancelled = true;
	run.owed += op->kind == OP_RECV || !op->wants;
	op->wants = true;
}

static void try_cancel(void)
{
	struct op *op = run.recent[below(RECENT)];
	ssize_t ret;

	if (!op || op->done || op->cancelled || op->kind == OP_PEEK)
		return;
	ret = fi_cancel(&run.ends[op->end].ep->fid, op);
	seen.ops++;
	seen.cancels += !ret;
	TRACE("%d: cancel %llu: %zd\n", op->end, (unsigned long long)op->id, ret);
	if (op->kind == OP_RECV) {
		bool posted = ref_cancel(&run.ref, op->end, &op->recv);

		CHECK(ret == (posted ? 0 : -FI_ENOENT), "cancel %llu: %zd",
		      (unsigned long long)op->id, ret);
		if (posted)
			now_cancelled(op);
		return;
	}
	CHECK(ret == 0 || ret == -FI_ENOENT, "cancel %llu: %zd", (unsigned long long)op->id,
	      ret);
	if (ret)
		return;
	CHECK(ref_unsend(&run.ref, &op->msg), "send %llu is cancelled and has arrived",
	      (unsigned long long)op->id);
	now_cancelled(op);
}

static struct weft_addr name_for(int owner, int of)
{
	struct weft_addr name = run.ends[of].name;

	if (run.service[owner][of])
		addr_to_service(&name);
	return name;
}

static void try_vector(void)
{
	int owner = run.owner[below((uint32_t)run.cnt)], of = (int)below((uint32_t)run.cnt);
	struct weft_addr name = name_for(owner, of);
	fi_addr_t *addr = &run.addr[owner][of], again;

	if (*addr == FI_ADDR_NOTAVAIL) {
		*addr = fake_end_insert(&run.ends[owner], &name);
		return;
	}
	if (chance(128)) {
		CHECK(fake_end_insert(&run.ends[owner], &name) == *addr,
		      "inserted again, it is elsewhere");
		return;
	}
	/* What is under way stays what it is, and the same address finds it again. */
	again = *addr;
	CHECK(!fi_av_remove(run.ends[owner].av, &again, 1, 0), "fi_av_remove");
	if (fi_av_lookup(run.ends[owner].av, again, &name, &(size_t){ sizeof(name) })) {
		name = name_for(owner, of);
		*addr = fake_end_insert(&run.ends[owner], &name);
	}
}

static void try_break(void)
{
	static const int errs[] = { -FI_ECONNRESET, -FI_ETIMEDOUT, 0 };
	int a = (int)below((uint32_t)run.cnt), b = (int)below((uint32_t)run.cnt);

	if (a != b)
		fake_break(fake_end_engine(&run.ends[a]), fake_end_engine(&run.ends[b]),
			   errs[below(3)]);
}

static void step(void)
{
	int end = (int)below((uint32_t)run.cnt);
	uint32_t what = below(256);

	if (what < 10)
		try_peek(end);
	else if (what < 18)
		use_claim(below(RECENT));
	else if (what < 28)
		try_cancel();
	else if (what < 30)
		try_vector();
	else if (chance(run.hunger))
		try_recv(end);
	else
		try_send(end);
	if (below(65536) < run.breaks)
		try_break();
	while (chance(run.chatter))
		poke((int)below((uint32_t)run.cnt));
}

/* A round */

static void some_attr(struct fake_end_attr *a, enum fake_family family)
{
	static const size_t tx_sizes[] = { 1, 2, 8, 64, 0 };
	static const size_t budgets[] = { 0,	     64 * 255,	64 * 257,
					  64 * 1000, 64 * 4096, BUDGET_ALL };

	*a = (struct fake_end_attr){
		.family = family,
		.threading = chance(128) ? FI_THREAD_DOMAIN : FI_THREAD_SAFE,
		.format = (enum fi_cq_format)(FI_CQ_FORMAT_CONTEXT + below(4)),
		.bind_flags = chance(100) ? FI_SELECTIVE_COMPLETION : 0,
		.tx_size = tx_sizes[below(5)],
		.budget = budgets[below(6)],
		.one_cq = chance(100),
	};
	if (chance(60))
		a->caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_SOURCE;
	if (chance(60))
		a->tx_op_flags |= FI_COMPLETION;
	if (chance(30))
		a->tx_op_flags |= FI_INJECT;
	if (chance(60))
		a->rx_op_flags |= FI_COMPLETION;
}

static void round_ends(void)
{
	enum fake_family family = (enum fake_family)below(FAKE_FAMILIES);

	run.cnt = 2 + (int)below(FAKE_ENDS_MAX - 1);
	for (int i = 0; i < run.cnt; i++) {
		bool shares = i && chance(60);
		int with = shares ? run.owner[below((uint32_t)i)] : i;
		struct fake_end_attr *a = &run.attrs[i];

		some_attr(a, family);
		if (shares) {
			a->threading = run.attrs[with].threading;
			a->format = run.attrs[with].format;
			a->one_cq = run.attrs[with].one_cq;
		}
		run.owner[i] = with;
		fake_host(family == FAKE_FAMILY_AB ? 1 + below(2) : 1);
		fake_end_open(&run.ends[i], a, shares ? &run.ends[with] : NULL);
		TRACE("end %d: family %d, tx_size %zu, budget %zu, with %d\n", i, family,
		      a->tx_size, a->budget, with);
	}
}

/* Put addresses into the vectors, and begin some sequences where they wrap around. */
static void round_addresses(void)
{
	for (int i = 0; i < run.cnt; i++) {
		for (int k = 0; k < run.cnt; k++) {
			struct weft_addr name;

			if (run.owner[i] != i)
				continue;
			run.service[i][k] = run.attrs[i].family != FAKE_FAMILY_A && chance(100);
			run.addr[i][k] = FI_ADDR_NOTAVAIL;
			name = name_for(i, k);
			if (chance(220))
				run.addr[i][k] = fake_end_insert(&run.ends[i], &name);
		}
	}
	for (int i = 0; i < run.cnt; i++) {
		for (int k = 0; k < run.cnt; k++) {
			struct engine_peer *peer;

			if (addr_of(i, k) == FI_ADDR_NOTAVAIL || chance(160))
				continue;
			peer = engine_peer_at(fake_end_engine(&run.ends[i]), addr_of(i, k));
			assert_non_null(peer);
			peer->tx_seq = UINT32_MAX - below(20);
			run.ref.pairs[i][k].first_seq = peer->tx_seq;
		}
	}
}

static void round_begin(uint64_t seed, bool breaks)
{
	struct fake_knobs knobs;

	memset(&run, 0, sizeof(run));
	round_seed = seed;
	run.sequence = seed * 0x9e3779b97f4a7c15ull | 1;
	list_init(&run.ops);
	list_init(&run.freed);
	ref_init(&run.ref);
	run.ref.matched = on_matched;
	fake_ends_begin(seed);
	fake_watch.packet = on_packet;
	fake_watch.payload = on_payload;
	fake_watch.ended = on_conn_ended;
	fake_watch.dropped = on_conn_dropped;
	for (int i = 0; i < FAKE_KINDS; i++) {
		fake_knobs_random(&knobs);
		fake_knobs_set((enum fake_kind)i, &knobs);
	}
	run.hunger = 64 + below(160);
	run.bigness = chance(128) ? 0 : below(128);
	run.chatter = 40 + below(200);
	run.breaks = breaks ? 1 + below(2000) : 0;
	run.most = 1 + below(chance(128) ? 8 : 300);
	round_ends();
	round_addresses();
}

/* Give every stored message a receive. */
static void drain_stored(int end)
{
	for (int tagged = 0; tagged < 2; tagged++) {
		if (list_empty(&run.ref.stored[end][tagged]))
			continue;
		struct op *op = op_new(OP_RECV, end);

		op->recv = (struct ref_recv){ .from = REF_ANYONE,
					      .tagged = tagged,
					      .ignore = UINT64_MAX };
		if (!tagged)
			op->recv.ignore = 0;
		op->len = chance(240) ? LEN_MAX : some_len(end);
		op_room(op, 1);
		post(op, FI_ADDR_UNSPEC, 0);
	}
}

/* Has everything that was begun come to its end? */
static bool quiet(void)
{
	if ((run.owed && !run.breaks) || fake_under_way())
		return false;
	for (uint32_t i = 0; i < RECENT; i++)
		if (run.claimed[i])
			return false;
	for (int i = 0; i < run.cnt; i++) {
		struct engine_ep *ep = fake_end_engine(&run.ends[i]);

		if (ep->tx_pool.used || ep->rx_pool.used != run.ref.posted_cnt[i] ||
		    ep->ctl_pool.used || run.ref.stored_cnt[i])
			return false;
		for (int k = 0; k < run.cnt; k++)
			if (run.ref.pairs[i][k].turn != run.ref.pairs[i][k].cnt &&
			    (!run.breaks || i == k))
				return false;
	}
	return true;
}

static void complain(void)
{
	print_error("%zu completions are owed, %u packets are under way\n", run.owed,
		    fake_under_way());
	for (int i = 0; i < run.cnt; i++) {
		struct engine_ep *ep = fake_end_engine(&run.ends[i]);

		print_error("%d: tx %u, rx %u of %zu posted, ctl %u, held %u, stored %zu\n", i,
			    ep->tx_pool.used, ep->rx_pool.used, run.ref.posted_cnt[i],
			    ep->ctl_pool.used, ep->held_pool.used, run.ref.stored_cnt[i]);
		for (int k = 0; k < run.cnt; k++)
			print_error("   to %d: %zu of %zu arrived\n", k,
				    run.ref.pairs[i][k].turn, run.ref.pairs[i][k].cnt);
	}
	FAIL("it does not come to rest");
}

/* The credit that one side has is what the other side allows, and all of the window is somewhere. */
static void check_credit(int from, int to)
{
	struct engine_peer *p = fake_end_peer(&run.ends[from], &run.ends[to].name);
	struct engine_peer *q = fake_end_peer(&run.ends[to], &run.ends[from].name);

	if (!p || !q || !p->up || !q->up)
		return;
	CHECK(p->credit == q->allowed && q->allowed + q->owed == q->window,
	      "%d to %d: credit %u, allowed %u, owed %u, window %u", from, to, p->credit,
	      q->allowed, q->owed, q->window);
}

static void cancel_posted(void)
{
	struct list *node, *after;

	list_for_each(node, after, &run.ops) {
		struct op *op = container_of(node, struct op, link);

		if (op->kind != OP_RECV || !op->recv.posted)
			continue;
		CHECK(!fi_cancel(&run.ends[op->end].ep->fid, op), "cancel %llu",
		      (unsigned long long)op->id);
		ref_cancel(&run.ref, op->end, &op->recv);
		now_cancelled(op);
	}
}

static void round_free(void)
{
	struct list *node;

	for (int i = run.cnt; i-- > 0;)
		fake_end_close(&run.ends[i]);
	while ((node = list_pop(&run.ops))) {
		struct op *op = container_of(node, struct op, link);

		/* Receives that were told to be silent have their bytes all the same. */
		if (op->kind == OP_RECV && !op->done && op->recv.msg && !op->exposed)
			check_bytes(op, op_of_msg(op->recv.msg));
		seen.silent += !op->wants;
		CHECK(op->done == op->wants, "operation %llu is not done",
		      (unsigned long long)op->id);
		list_push(&run.freed, node);
	}
	while ((node = list_pop(&run.freed))) {
		struct op *op = container_of(node, struct op, link);

		op_iov_free(op);
		free(op);
	}
	ref_fini(&run.ref);
}

static void round_end(void)
{
	for (uint32_t i = 0; !quiet(); i++) {
		if (i == QUIET_MAX)
			complain();
		for (int k = 0; k < run.cnt; k++) {
			drain_stored(k);
			poke(k);
		}
		use_claim(i % RECENT);
	}
	/* The wire of an endpoint to itself may still have credits. */
	for (uint32_t i = 0; i < 200; i++)
		poke((int)(i % (uint32_t)run.cnt));
	for (int i = 0; i < run.cnt; i++) {
		CHECK(!fake_end_engine(&run.ends[i])->held_pool.used, "messages are left over");
		for (int k = 0; k < run.cnt; k++)
			check_credit(i, k);
	}
	cancel_posted();
	for (uint32_t i = 0; run.owed; i++) {
		if (i == QUIET_MAX)
			complain();
		poke((int)(i % (uint32_t)run.cnt));
	}
	/* Errors of operations that were to be silent. */
	for (uint32_t i = 0; run.breaks && i < run.next_id; i++)
		poke((int)(i % (uint32_t)run.cnt));
	round_free();
}

static uint64_t from_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static void report(void)
{
	if (seen.breaks)
		printf("%llu connections broke: %llu sends and %llu receives failed, %llu stored messages were lost\n",
		       (unsigned long long)seen.breaks, (unsigned long long)seen.failed_sends,
		       (unsigned long long)seen.failed_receives, (unsigned long long)seen.lost);
	printf("%llu operations in %llu rounds: %llu sends (%llu times no room), %llu receives (%llu truncated)\n",
	       (unsigned long long)seen.ops, (unsigned long long)seen.rounds,
	       (unsigned long long)seen.sends, (unsigned long long)seen.full,
	       (unsigned long long)seen.receives, (unsigned long long)seen.truncated);
	printf("%llu peeks (%llu found), %llu claims, %llu cancelled, %llu without completion\n",
	       (unsigned long long)seen.peeks, (unsigned long long)seen.found,
	       (unsigned long long)seen.claims, (unsigned long long)seen.cancels,
	       (unsigned long long)seen.silent);
	printf("%llu messages arrived (%llu rendezvous, %llu before their turn), %llu bytes\n",
	       (unsigned long long)seen.packets, (unsigned long long)seen.rendezvous,
	       (unsigned long long)seen.early, (unsigned long long)seen.bytes);
}

static void run_rounds(bool breaks)
{
	uint64_t seed = from_env("MODEL_SEED", 1);
	uint64_t ops = from_env("MODEL_OPS", 20000);

	if (from_env("MODEL_BREAKS", breaks) != breaks)
		skip();
	memset(&seen, 0, sizeof(seen));
	printf("MODEL_SEED=%llu MODEL_OPS=%llu\n", (unsigned long long)seed,
	       (unsigned long long)ops);
	while (seen.ops < ops) {
		round_begin(seed, breaks);
		for (uint32_t left = 200 + below(6000); left; left--)
			step();
		round_end();
		seen.rounds++;
		seed = seed * 0xd6e8feb86659fd93ull + 0x9e3779b97f4a7c15ull;
	}
	report();
}

static void every_receive_gets_what_the_model_says(void **state)
{
	run_rounds(false);
}

static void what_a_broken_connection_takes_along_is_told(void **state)
{
	run_rounds(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_receive_gets_what_the_model_says),
		cmocka_unit_test(what_a_broken_connection_takes_along_is_told),
	};

	trace = getenv("MODEL_TRACE") != NULL;
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
