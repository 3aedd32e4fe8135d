/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Random operations of the model test: each is made by a call of the public interface and, on
 * success, reported to the model. Called by model_test.c.
 */
#include "cancel.h"
#include "guard.h"
#include "run.h"
#include "recv.h"

struct op *op_new(enum op_kind kind, int end)
{
	struct op *op = calloc(1, sizeof(*op));

	if (!op)
		abort();
	op->kind = kind;
	op->end = end;
	op->id = ++run.next_id;
	list_init(&op->data_link);
	list_add_tail(&run.ops, &op->link);
	return op;
}

void op_drop(struct op *op)
{
	op_iov_free(op);
	access_free(op);
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

int some_dest(int end)
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
	static const uint64_t levels[] = { FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
					   FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE };
	uint64_t flags = 0;

	if (chance(128))
		flags |= FI_COMPLETION;
	if (chance(64))
		flags |= FI_MORE;
	if (chance(64))
		flags |= levels[below(4)];
	if (chance(4))
		flags |= FI_FENCE;
	if (chance(64))
		flags |= FI_REMOTE_CQ_DATA;
	if (op->len <= ENGINE_INJECT_MAX && chance(64))
		flags |= FI_INJECT;
	return flags;
}

bool wants_by_default(int end, uint64_t op_flags)
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
	pattern_into(op);
	if (call == CALL_SENDMSG) {
		flags = some_send_flags(op);
		op->has_data = flags & FI_REMOTE_CQ_DATA;
		op->wants = !(a->bind_flags & FI_SELECTIVE_COMPLETION) || flags & FI_COMPLETION;
		inject = flags & FI_INJECT;
		op->level = flags &
			    (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE);
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
	run.credit_due += op->wants;
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

/* Source of a receive: sets recv.from, returns the argument of the call. */
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
	run.credit_due++;
	msg = ref_fits(&run.ref, end, &op->recv);
	ret = recv_call(op, src, 2, flags);
	CHECK(!ret, "peek %llu: %zd", (unsigned long long)op->id, ret);
	seen.ops++;
	seen.peeks++;
	if (!msg) /* it lets messages arrive, and looks again */
		msg = ref_fits(&run.ref, end, &op->recv);
	TRACE("%d: peek %llu: %s\n", end, (unsigned long long)op->id, msg ? "found" : "nothing");
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

/* The context of the claim is that of the peek. */
void use_claim(uint32_t slot)
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
		run.credit_due++;
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
	run.credit_due += op->kind == OP_RECV || !op->wants;
	op->wants = true;
}

/*
 * Returns true if it was still posted. fi_cancel does not report that: programs also call it for
 * operations that have ended.
 */
static int cancelled(struct fid_ep *ep, struct op *op)
{
	struct engine_ctx *ctx = engine_ctx_of(ep);
	int ret;

	engine_enter(ctx->domain);
	ret = engine_cancel(ctx, op);
	engine_leave(ctx->domain);
	return ret;
}

static void try_cancel(void)
{
	struct op *op = run.recent[below(RECENT)];
	ssize_t ret;

	if (!op || op->done || op->cancelled || op->kind == OP_PEEK)
		return;
	ret = cancelled(run.ends[op->end].ep, op);
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
	if (op->kind == OP_ACCESS)
		run.memory[op->end].errors[access_cntr(op)]++;
	now_cancelled(op);
}

struct weft_addr name_for(int owner, int of)
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

void step(void)
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
	else if (chance(run.reach))
		try_access(end);
	else if (chance(run.hunger))
		try_recv(end);
	else
		try_send(end);
	if (below(65536) < run.breaks)
		try_break();
	while (chance(run.chatter))
		poke((int)below((uint32_t)run.cnt));
}

void receive_stored(int end)
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

void cancel_posted(void)
{
	struct op *op;

	list_for_each_entry(op, &run.ops, link) {
		if (op->kind != OP_RECV || !op->recv.posted)
			continue;
		CHECK(!fi_cancel(&run.ends[op->end].ep->fid, op), "cancel %llu",
		      (unsigned long long)op->id);
		ref_cancel(&run.ref, op->end, &op->recv);
		now_cancelled(op);
	}
}
