/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Results of the operations: packets and breaks that the wires report are reported to the model,
 * completions are compared with it. Called by the model test and by the fake wires.
 */
#include "loop.h"
#include "recv.h"
#include "run.h"

/* Contents: each message has its own */

static uint64_t scratch[LEN_MAX / 8 + 1];

static void pattern(uint64_t id, size_t len)
{
	uint64_t word = id * 0x9e3779b97f4a7c15ull + 1;

	for (size_t i = 0; i < (len + 7) / 8; i++, word += 0xd6e8feb86659fd93ull)
		scratch[i] = word ^ word >> 29;
}

void pattern_into(struct op *op)
{
	pattern(op->id, op->len);
	copy_to_iov(op->iov, op->cnt, 0, scratch, op->len);
}

void op_iov_alloc(struct op *op, uint32_t cnt)
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

void op_iov_free(struct op *op)
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

void check_bytes(struct op *op, struct op *msg)
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

/* A new connection continues behind what its sender has given up: nothing else may be left out. */
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

	if (packet->op != PACKET_EAGER && packet->op != PACKET_RTS && !engine_is_request(packet))
		return;
	resume(to, from, peer);
	msg = ref_header(&run.ref, from, to, packet->seq);
	CHECK(msg, "%d to %d: sequence %u was never sent, or came twice", from, to, packet->seq);
	op = op_of_msg(msg);
	seen.packets++;
	seen.rendezvous += packet->op == PACKET_RTS;
	seen.early += msg != run.ref.pairs[from][to].msgs[run.ref.pairs[from][to].turn];
	TRACE("%d to %d: header of %llu\n", from, to, (unsigned long long)op->id);
	op->unknown = addr_of(to, from) == FI_ADDR_NOTAVAIL;
	CHECK(msg->access == engine_is_request(packet),
	      "%d to %d: sequence %u is another kind of operation", from, to, packet->seq);
	if (msg->access) {
		if (op->access.fenced)
			access_fenced(op);
		ref_turns(&run.ref, from, to);
		return;
	}
	CHECK(!!(packet->flags & PACKET_TAGGED) == msg->tagged && packet->tag == msg->tag &&
		      !!(packet->flags & PACKET_CQ_DATA) == op->has_data &&
		      (!op->has_data || packet->data == op->data) &&
		      (packet->op == PACKET_RTS || packet->len == op->len),
	      "%d to %d: sequence %u is not message %llu", from, to, packet->seq,
	      (unsigned long long)op->id);
	op->rts = packet->op == PACKET_RTS;
	op->whole = whole && !op->rts;
	ref_turns(&run.ref, from, to);
}

/* A write without credit that may not be held: the engine will handle it again in its turn. */
static bool has_to_wait(const struct wire_conn *conn, const struct packet *packet)
{
	uint32_t least = conn->wire->ops->waits_min;

	return least && packet->len >= least && packet->op == PACKET_WRITE &&
	       !(packet->flags & ~PACKET_ACKED) && packet->seq != conn->peer->rx_seq;
}

static void on_packet(const struct wire_conn *conn, const struct packet *packet, bool whole)
{
	if (has_to_wait(conn, packet)) {
		seen.waits++;
		return;
	}
	saw_header(end_of(conn->wire->ep), end_named(&conn->peer->address), packet, conn->peer,
		   whole);
}

static void on_payload(const struct wire_conn *conn, const struct packet *packet)
{
	int from = end_named(&conn->peer->address), to = end_of(conn->wire->ep);

	if (packet->op == PACKET_EAGER)
		op_of_msg(run.ref.pairs[from][to].msgs[left_for(from, to, packet->seq)])->whole =
			true;
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
	r->wants |= m->len > r->len || m->lost; /* errors are always reported */
	run.credit_due += r->wants;
}

static void on_carried(struct ref_msg *msg)
{
	access_carried(op_of_msg(msg));
}

/* Connections that break */

static void lose_stored(int at, int from)
{
	struct op *op;

	list_for_each_entry(op, &run.ops, link) {
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
	struct op *op;

	TRACE("%d: connection to %d broke\n", at, peer);
	seen.breaks++;
	ref_cut_sender(&run.ref, at, peer, left_for(at, peer, tx_seq));
	ref_cut_receiver(&run.ref, peer, at);
	lose_stored(at, peer);
	list_for_each_entry(op, &run.ops, link) {
		if ((op->kind == OP_SEND || op->kind == OP_ACCESS) && op->end == at &&
		    op->msg.to == peer) {
			op->exposed |= !op->done;
			op->adrift |= op->msg.state == REF_SENT;
		}
		if (!directed || op->kind != OP_RECV || op->end != at ||
		    op->recv.from != peer || !op->recv.posted)
			continue;
		ref_cancel(&run.ref, at, &op->recv);
		op->failed = op->wants = true;
		run.credit_due++;
	}
}

static void on_conn_ended(const struct wire_conn *conn, int err)
{
	const struct engine_peer *peer = conn->peer;

	/* A request that was accepted takes nothing along if it does not come up. */
	if (!conn->ours && !conn->up)
		return;
	/* An endpoint that has given up its peer is idle; without, it was an attempt or a second route. */
	if (peer->state == PEER_IDLE)
		on_failed(end_of(peer->ep), end_named(&peer->address), peer->tx_seq, err);
}

static void on_conn_dropped(const struct wire_conn *conn)
{
	const struct engine_peer *peer = conn->peer;

	if (!peer->conn) /* nothing is lost with a spare conn, while the route stands */
		on_failed(end_of(peer->ep), end_named(&peer->address), peer->tx_seq, true);
}

void observe_begin(void)
{
	run.ref.matched = on_matched;
	run.ref.carried = on_carried;
	fake_watch = (struct fake_watch){
		.packet = on_packet,
		.payload = on_payload,
		.ended = on_conn_ended,
		.dropped = on_conn_dropped,
	};
}

/* Completions */

static uint64_t flags_of(const struct op *op)
{
	if (op->kind == OP_ACCESS)
		return access_flags(op);
	if (op->kind == OP_SEND)
		return FI_SEND | (op->msg.tagged ? FI_TAGGED : FI_MSG);
	return FI_RECV | (op->recv.tagged ? FI_TAGGED : FI_MSG);
}

static void op_done(struct op *op, int owner, bool tx)
{
	CHECK(run.owner[op->end] == owner, "operation %llu completes in another queue",
	      (unsigned long long)op->id);
	CHECK(run.attrs[owner].one_cq || tx == (op->kind == OP_SEND || op->kind == OP_ACCESS),
	      "operation %llu completes in the wrong queue", (unsigned long long)op->id);
	CHECK(!op->done, "operation %llu completes twice", (unsigned long long)op->id);
	CHECK(op->wants, "operation %llu completes and should not", (unsigned long long)op->id);
	op->done = true;
	run.credit_due--;
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

/* Returns true if a send has reached the level that its completion reports. */
static void check_level(const struct op *op)
{
	enum ref_msg_state state = op->msg.state;

	/* The wire to oneself loses nothing: there it is enough that it has left. */
	if (op->level && op->end != op->msg.to)
		CHECK(state != REF_SENT, "send %llu is complete and has not arrived",
		      (unsigned long long)op->id);
	if (op->level & FI_DELIVERY_COMPLETE)
		CHECK(state != REF_SENT, "send %llu is complete and not delivered",
		      (unsigned long long)op->id);
	if (op->level & FI_MATCH_COMPLETE)
		CHECK(state == REF_MATCHED || state == REF_DISCARDED,
		      "send %llu is complete and not matched", (unsigned long long)op->id);
}

static void on_completion(int owner, bool tx, const struct fi_cq_tagged_entry *e,
			  const fi_addr_t *src)
{
	enum fi_cq_format format = run.attrs[owner].format;
	struct op *op = e->op_context;

	if (!op) {
		remote_data(owner, e, format, src);
		return;
	}
	TRACE("completion of %llu\n", (unsigned long long)op->id);
	op_done(op, owner, tx);
	CHECK(!op->cancelled, "operation %llu was cancelled", (unsigned long long)op->id);
	if (op->kind == OP_SEND || op->kind == OP_ACCESS) {
		CHECK(format == FI_CQ_FORMAT_CONTEXT || e->flags == flags_of(op),
		      "send %llu: flags %llx", (unsigned long long)op->id,
		      (unsigned long long)e->flags);
		check_level(op);
		if (op->kind == OP_ACCESS)
			access_done(op);
		access_ended(op);
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

/*
 * The connection of an operation broke: checks that it did, and that the error has the other side
 * as its source.
 */
static void check_failed(struct op *op, const struct fi_cq_err_entry *e)
{
	struct op *msg = op->recv.msg ? op_of_msg(op->recv.msg) : NULL;

	/* Only an endpoint that has closed refuses to be connected to. */
	CHECK(e->err == FI_ECONNRESET || e->err == FI_ETIMEDOUT ||
		      (e->err == FI_ECONNREFUSED && run.closing),
	      "operation %llu: error %d", (unsigned long long)op->id, e->err);
	if (op->kind == OP_SEND || op->kind == OP_ACCESS) {
		CHECK(op->exposed, "send %llu: error %d", (unsigned long long)op->id, e->err);
		seen.failed_sends += op->kind == OP_SEND;
		seen.failed_accesses += op->kind == OP_ACCESS;
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

/*
 * A peer that is known to have ended has no connection that could break: operations towards it
 * fail, and so do those that wait for it alone.
 */
static void gone(struct op *op)
{
	if (op->kind == OP_SEND || op->kind == OP_ACCESS) {
		op->exposed |= !run.ends[op->msg.to].ep;
	} else if (op->kind == OP_RECV && op->recv.posted && op->recv.from >= 0 &&
		   !run.ends[op->recv.from].ep) {
		ref_cancel(&run.ref, op->end, &op->recv);
		op->failed = true;
		run.credit_due += !op->wants;
		op->wants = true;
	}
}

/* An error with the context of an endpoint: of what was injected, and refused or lost with its connection. */
static void on_nameless_error(const struct fi_cq_err_entry *e)
{
	bool broken = e->err == FI_ECONNRESET || e->err == FI_ETIMEDOUT ||
		      e->err == FI_ECONNREFUSED;

	TRACE("error %d of what was injected\n", e->err);
	CHECK(broken ? run.breaks || run.closing : run.nameless > 0, "error %d of nothing",
	      e->err);
	run.nameless -= !broken;
}

static void on_error(int owner, bool tx, const struct fi_cq_err_entry *e)
{
	struct op *op = e->op_context;

	if (!op) {
		on_nameless_error(e);
		return;
	}
	TRACE("error %d of %llu\n", e->err, (unsigned long long)op->id);
	if (e->err == FI_ECONNREFUSED && run.closing)
		gone(op);
	if (op->exposed && !op->wants) { /* an error is always reported */
		op->wants = true;
		run.credit_due++;
	}
	op_done(op, owner, tx);
	if (op->cancelled)
		CHECK(e->err == FI_ECANCELED, "operation %llu: error %d",
		      (unsigned long long)op->id, e->err);
	else if (op->kind == OP_ACCESS && op->msg.state == REF_CARRIED &&
		 e->err == op->access.refused)
		seen.refused++;
	else if (op->kind == OP_PEEK)
		CHECK(e->err == FI_ENOMSG && !op->found, "peek %llu: error %d",
		      (unsigned long long)op->id, e->err);
	else if (e->err != FI_ETRUNC)
		check_failed(op, e);
	else
		check_truncated(op, e);
	access_ended(op);
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

void poke(int end)
{
	int owner = run.owner[end];

	read_cq(owner, true);
	if (!run.attrs[owner].one_cq)
		read_cq(owner, false);
}
