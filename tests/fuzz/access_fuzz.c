/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: one-sided operations. An endpoint that begins writes, reads, atomics and sends of
 * every completion level, and lets its memory be written and read; the other end of its connection
 * is the target, which answers and requests what the input says. Packets begin as an honest peer
 * would make them and are changed field by field. Meanwhile counters, queues and contexts are bound
 * to the endpoint, again, late, and closed before it.
 *
 * Checked: nothing crashes, each operation completes once and nothing touches its buffers
 * afterwards, nothing outside of what was granted changes, and in the end nothing is kept: no
 * operation, no reply, no held region.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "access.h"
#include "fuzz.h"
#include "liar.h"
#include "operations.h"

#define SEQS_MAX 8
#define KEY	 7 /* all of the middle of the memory */
#define KEY_READ 8 /* may be read only */
#define KEY_PART 9 /* three pieces of the middle */
#define REGION	 20000u
#define GUARD	 4096u

static struct {
	struct fake_end victim;
	struct liar liar;
	uint32_t seqs[SEQS_MAX]; /* of what the victim has said */
	uint32_t seq_cnt;
	fi_addr_t to_liar;
	struct fid_mr *mr, *read_only, *pieces;
	char *memory, *readable;
	struct fid_cntr *ends, *events, *region; /* bound late, or NULL */
	struct fid_stx *stx;
	struct fid_eq *eq;
} f;

static size_t some_len(void)
{
	static const size_t lens[] = { 8,    0,	   1,	 16,   64,    128,  129, 1000,
				       1025, 5000, 8192, 8193, 20000, 4096, 24,	 2000 };

	return lens[input_byte() % (sizeof(lens) / sizeof(lens[0]))];
}

static uint64_t some_key(void)
{
	static const uint64_t keys[] = { KEY, KEY, KEY, KEY_PART, KEY_READ, 0, UINT64_MAX };

	return keys[input_byte() % (sizeof(keys) / sizeof(keys[0]))];
}

/* Operations of the victim */

/* A write or read, whole or in pieces, to one target or several. */
static void begin_rma(bool write)
{
	size_t len = some_len();
	uint8_t how = input_byte();
	struct fuzz_op *op = op_new(len, 0);
	struct iovec iov[2];
	struct fi_rma_iov targets[3];
	struct fi_msg_rma msg = { .msg_iov = iov,
				  .iov_count = 1 + (how & 1),
				  .rma_iov = targets,
				  .rma_iov_count = 1 + (how >> 1) % 3,
				  .addr = f.to_liar,
				  .context = op,
				  .data = how };
	uint64_t flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;

	if (!op)
		return;
	iov[0] = (struct iovec){ op->buf, how & 1 ? len / 2 : len };
	iov[1] = (struct iovec){ op->buf + len / 2, len - len / 2 };
	for (size_t i = 0, left = len; i < msg.rma_iov_count; i++) {
		targets[i] = (struct fi_rma_iov){ i * 100,
						  i + 1 == msg.rma_iov_count ? left : left / 3,
						  KEY };
		left -= targets[i].len;
	}
	if (how & 8)
		flags |= FI_FENCE;
	if (write && how & 16)
		flags |= FI_REMOTE_CQ_DATA;
	if (write && how & 32 && len <= ENGINE_INJECT_MAX)
		flags |= FI_INJECT;
	op_begun(op, write ? fi_writemsg(f.victim.ep, &msg, flags)
			   : fi_readmsg(f.victim.ep, &msg, flags));
}

static void begin_atomic(void)
{
	uint8_t how = input_byte();
	size_t cnt = 1 + input_byte() % 32;
	struct fuzz_op *op = op_new(16 * cnt, 8 * cnt);
	uint64_t *words = op ? (uint64_t *)(void *)op->buf : NULL;

	if (!op)
		return;
	switch (how % 4) {
	case 0:
		op_begun(op, fi_atomic(f.victim.rma, words, cnt, NULL, f.to_liar, 0, KEY,
				       FI_UINT64, FI_SUM, op));
		break;
	case 1:
		op_begun(op, fi_fetch_atomic(f.victim.ep, words, cnt, NULL, op->result, NULL,
					     f.to_liar, 0, KEY, FI_UINT64, FI_SUM, op));
		break;
	case 2:
		op_begun(op, fi_compare_atomic(f.victim.ep, words, cnt, NULL, words + cnt, NULL,
					       op->result, NULL, f.to_liar, 0, KEY, FI_UINT64,
					       FI_CSWAP, op));
		break;
	default:
		op_begun(op, fi_fetch_atomic(f.victim.ep, NULL, cnt, NULL, op->result, NULL,
					     f.to_liar, 0, KEY, FI_UINT64, FI_ATOMIC_READ, op));
	}
}

static void begin_send(void)
{
	static const uint64_t levels[] = { 0, FI_DELIVERY_COMPLETE, FI_TRANSMIT_COMPLETE,
					   FI_FENCE };
	size_t len = some_len();
	struct fuzz_op *op = op_new(len, 0);
	struct iovec iov = { op ? op->buf : NULL, len };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = f.to_liar, .tag = 1, .context = op
	};

	if (op)
		op_begun(op, fi_tsendmsg(f.victim.ep, &msg,
					 FI_COMPLETION | levels[input_byte() % 4]));
}

static void begin_recv(void)
{
	size_t len = some_len();
	struct fuzz_op *op = op_new_receive(len);

	if (op)
		op_begun(op, fi_trecv(f.victim.ep, op->buf, len, NULL, FI_ADDR_UNSPEC, 0, ~0ull,
				      op));
}

/* Binds and closes of the victim, under traffic */

static void bind_late(struct fid_cntr **cntr, uint64_t flags)
{
	if (!*cntr)
		MUST(!fi_cntr_open(f.victim.domain, NULL, cntr, NULL));
	MUST(!fi_ep_bind(f.victim.ep, &(*cntr)->fid, flags));
}

static void region_count(void)
{
	if (f.region) {
		MUST(!fi_close(&f.region->fid));
		f.region = NULL;
		return;
	}
	MUST(!fi_cntr_open(f.victim.domain, NULL, &f.region, NULL));
	MUST(!fi_mr_bind(f.mr, &f.region->fid, FI_REMOTE_READ | FI_REMOTE_WRITE));
	MUST(!fi_mr_bind(f.pieces, &f.region->fid, FI_REMOTE_WRITE));
}

static void share(void)
{
	if (f.stx) {
		MUST(!fi_close(&f.stx->fid));
		f.stx = NULL;
		return;
	}
	MUST(!fi_stx_context(f.victim.domain, NULL, &f.stx, NULL));
	MUST(!fi_ep_bind(f.victim.ep, &f.stx->fid, 0));
}

static void tell(void)
{
	if (f.eq) {
		MUST(!fi_close(&f.eq->fid));
		f.eq = NULL;
		return;
	}
	MUST(!fi_eq_open(f.victim.fabric, NULL, &f.eq, NULL));
	MUST(!fi_ep_bind(f.victim.ep, &f.eq->fid, 0));
}

static void arrange(void)
{
	switch (input_byte() % 8) {
	case 0:
		bind_late(&f.ends, FI_WRITE | FI_READ);
		break;
	case 1:
		bind_late(&f.ends, FI_SEND);
		break;
	case 2:
		bind_late(&f.events, FI_REMOTE_READ | FI_REMOTE_WRITE);
		break;
	case 3:
		bind_late(&f.events, FI_RECV);
		break;
	case 4:
		region_count();
		break;
	case 5:
		share();
		break;
	case 6:
		tell();
		break;
	default:
		MUST(!fi_ep_bind(f.victim.ep, &f.victim.tx_cq->fid, FI_TRANSMIT));
		MUST(!fi_ep_bind(f.victim.ep, &f.victim.rx_cq->fid, FI_RECV));
		MUST(!fi_ep_bind(f.victim.ep, &f.victim.av->fid, 0));
		MUST(!fi_enable(f.victim.ep));
	}
}

/* Some of it before the endpoint, some after. */
static void arranged_close(void)
{
	if (f.stx)
		share();
	if (f.eq)
		tell();
	fake_end_stop(&f.victim);
	if (f.ends)
		MUST(!fi_close(&f.ends->fid));
	if (f.events)
		MUST(!fi_close(&f.events->fid));
	if (f.region)
		region_count();
}

/* The liar */

static void reopen(void)
{
	uint8_t how = input_byte();

	liar_leave(&f.liar, how & 2 ? 0 : -FI_ECONNRESET);
	f.liar.hello.seq = how & 4 ? input_word() : f.liar.seq;
	f.liar.hello.incarnation++;
	f.seq_cnt = 0;
	liar_connect(&f.liar, &f.victim);
}

/* What the victim has said: learn the names of its operations. */
static void harvest(void)
{
	struct packet p;
	uint64_t payload[3];

	while (f.liar.raw && fake_raw_read(f.liar.raw, &p, payload, sizeof(payload))) {
		switch (p.op) {
		case PACKET_RTS:
			liar_learn(&f.liar, payload[1]);
			break;
		case PACKET_READ:
		case PACKET_ATOMIC:
			liar_learn(&f.liar, payload[0]);
			break;
		case PACKET_CTS:
			liar_learn(&f.liar, p.data);
			break;
		default:
			break;
		}
		f.seqs[f.seq_cnt++ % SEQS_MAX] = p.seq;
	}
}

static uint32_t some_seq(void)
{
	uint8_t which = input_byte();

	return f.seqs[which % SEQS_MAX] + (which >> 3) % 4;
}

/* A list of targets whose bytes are @len together, mostly. Returns the length of the list. */
static size_t make_targets(uint8_t *at, size_t len)
{
	struct packet_targets targets = { .cnt = 1 + input_byte() % PACKET_TARGET_MAX };
	uint8_t how = input_byte();

	for (uint32_t i = 0; i < targets.cnt; i++) {
		targets.target[i] = (struct packet_target){
			input_byte() * 8u, i + 1 == targets.cnt ? len : len / 2 & ~7ull, KEY
		};
		len -= targets.target[i].len;
	}
	if (how & 1)
		targets.target[targets.cnt - 1].key = some_key();
	if (how & 2)
		targets.target[0].len = input_long();
	if (how & 4)
		targets.target[0].addr = input_long();
	memcpy(at, &targets, packet_targets_len(targets.cnt));
	return packet_targets_len(targets.cnt);
}

/* A request, whose struct is in @payload. Returns the length of both. */
static size_t make_request(struct packet *p, uint8_t *payload, size_t own, size_t bytes,
			   size_t carried)
{
	uint8_t how = input_byte();

	if (how & 1 || p->op == PACKET_RTS) {
		p->flags |= PACKET_TARGETS;
		own += make_targets(payload + own, bytes);
		if (how & 2)
			p->flags |= PACKET_CQ_DATA;
	} else {
		p->tag = 8u * input_byte();
		p->data = some_key();
	}
	if (how & 4)
		p->seq += 1 + input_byte() % 4;
	return own + carried;
}

static size_t make_atomic(struct packet *p, uint8_t *payload)
{
	static const uint8_t types[] = { FI_UINT64,	 FI_INT8,
					 FI_UINT32,	 FI_DOUBLE,
					 FI_LONG_DOUBLE, FI_DOUBLE_COMPLEX,
					 FI_UINT128,	 200 };
	static const size_t sizes[] = { 8, 1, 4, 8, 16, 16, 16, 8 };
	struct packet_atomic a = { .kind = input_byte() % 4,
				   .op = input_byte() % 24,
				   .cnt = 1 + input_byte() % 64 };
	uint8_t type = input_byte() % sizeof(types);
	size_t bytes = a.cnt * sizes[type], sets = a.kind == 2 ? 2 : a.op != FI_ATOMIC_READ;

	a.datatype = types[type];
	a.id = a.kind ? liar_id(&f.liar) | 1ull << 32 : 0;
	memcpy(payload, &a, sizeof(a));
	for (size_t i = 0; i < sets * bytes; i++)
		payload[sizeof(a) + packet_targets_len(PACKET_TARGET_MAX) + i] = (uint8_t)i;
	return make_request(p, payload, sizeof(a), bytes, sets * bytes);
}

static size_t make_read(struct packet *p, uint8_t *payload)
{
	struct packet_read r = { .id = liar_id(&f.liar), .len = some_len() };

	memcpy(payload, &r, sizeof(r));
	return make_request(p, payload, sizeof(r), r.len, 0);
}

static size_t make_rts(struct packet *p, uint8_t *payload, bool write)
{
	struct packet_rts r = { .id = liar_id(&f.liar) | 1ull << 32, .len = some_len() };

	p->flags = input_byte() & 1 ? PACKET_PULL : 0;
	memcpy(payload, &r, sizeof(r));
	if (write)
		return make_request(p, payload, sizeof(r), r.len, 0);
	p->flags |= PACKET_TAGGED | (input_byte() & 1 ? PACKET_DELIVERY : 0);
	return sizeof(r);
}

/* What an honest peer may say. Returns the length of its payload. */
static size_t make_packet(struct packet *p, uint8_t *payload)
{
	static const uint8_t ops[] = { PACKET_WRITE,  PACKET_READ,  PACKET_RESPONSE,
				       PACKET_ATOMIC, PACKET_ACK,   PACKET_NAK,
				       PACKET_RTS,    PACKET_FIN,   PACKET_CTS,
				       PACKET_DATA,   PACKET_EAGER, PACKET_RTS };
	static const uint8_t errs[] = { FI_EACCES, FI_EKEYREJECTED, FI_EINVAL, 0 };
	uint8_t which = input_byte() % sizeof(ops);
	struct packet_cts cts;
	size_t len;

	p->op = ops[which];
	switch (p->op) {
	case PACKET_WRITE:
		len = some_len();
		return make_request(p, payload, 0, len, len);
	case PACKET_READ:
		return make_read(p, payload);
	case PACKET_ATOMIC:
		return make_atomic(p, payload);
	case PACKET_RTS:
		return make_rts(p, payload, which == 6);
	case PACKET_ACK:
		p->data = some_seq();
		return 0;
	case PACKET_NAK:
		p->tag = input_byte() & 1 ? liar_id(&f.liar) : some_seq();
		p->data = errs[input_byte() % sizeof(errs)];
		return 0;
	case PACKET_FIN:
		p->tag = input_byte() & 1 ? liar_id(&f.liar) : some_seq();
		return 0;
	case PACKET_CTS:
		p->tag = liar_id(&f.liar);
		p->data = input_byte();
		cts.len = some_len();
		memcpy(payload, &cts, sizeof(cts));
		return sizeof(cts);
	case PACKET_EAGER:
		p->flags = PACKET_TAGGED |
			   (input_byte() & (PACKET_DELIVERY | PACKET_ACKED | PACKET_CQ_DATA));
		return some_len();
	default:
		p->tag = liar_id(&f.liar);
		p->data = input_byte() & 1 ? some_len() : 0;
		return some_len();
	}
}

/* how & 1: as it is; & 2: the rest follows later; & 4: never */
static void packet(void)
{
	static uint8_t payload[2 * REGION], rest[1 << 20];
	struct packet p = { .epoch = (uint16_t)f.liar.hello.epoch, .seq = f.liar.seq };
	size_t avail;
	uint8_t how;

	if (!liar_connected(&f.liar))
		reopen();
	if (!liar_connected(&f.liar))
		return;
	memset(payload, 0x55, sizeof(payload));
	p.len = (uint32_t)make_packet(&p, payload);
	how = input_byte();
	if (!(how & 1))
		liar_distort(&p, input_byte());
	avail = p.len < sizeof(payload) ? p.len : sizeof(payload);
	if (how & 6)
		avail = avail * input_byte() / 256;
	if (!fake_raw_send(f.liar.raw, &p, payload, avail,
			   how & 2 && p.len - avail <= sizeof(rest) ? rest : NULL) &&
	    p.seq == f.liar.seq &&
	    (engine_is_request(&p) || p.op == PACKET_EAGER || p.op == PACKET_RTS))
		f.liar.seq++;
}

static void regions_open(void)
{
	uint64_t both = FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct iovec iov[3];

	f.memory = malloc(2 * GUARD + REGION);
	f.readable = malloc(REGION);
	MUST(f.memory && f.readable);
	memset(f.memory, 'g', 2 * GUARD + REGION);
	memset(f.readable, 'r', REGION);
	for (size_t i = 0; i < 3; i++)
		iov[i] = (struct iovec){ f.memory + GUARD + i * (REGION / 3), REGION / 4 };
	MUST(!fi_mr_reg(f.victim.domain, f.memory + GUARD, REGION, both, 0, KEY, 0, &f.mr,
			NULL));
	MUST(!fi_mr_reg(f.victim.domain, f.readable, REGION, FI_REMOTE_READ, 0, KEY_READ, 0,
			&f.read_only, NULL));
	MUST(!fi_mr_regv(f.victim.domain, iov, 3, both, 0, KEY_PART, 0, &f.pieces, NULL));
}

static void begin(void)
{
	struct fake_end_attr attr = { .family = FAKE_FAMILY_B,
				      .threading = FI_THREAD_DOMAIN,
				      .format = FI_CQ_FORMAT_TAGGED,
				      .tx_size = 16,
				      .budget = 1u << 18 };
	struct fake_knobs k;
	uint8_t how = input_byte();

	fake_ends_begin(1);
	fake_knobs_default(&k);
	k.get_now = how & 1 ? 256 : 0;
	k.get_later = how & 2 ? 256 : 0;
	k.get_fails = how & 4 ? 128 : 0;
	k.has_get = how & 8;
	k.move = how & 16 ? 64 : 256;
	k.refuse = how & 32 ? 64 : 0;
	fake_knobs_set(FAKE_B, &k);
	fake_end_open(&f.victim, &attr, NULL);
	regions_open();
	liar_begin(&f.liar, &f.victim.name);
	f.to_liar = fake_end_insert(&f.victim, &f.liar.hello.addr);
}

/* The connection ends: all that is under way fails with it, all that waits can be cancelled. */
static void end(void)
{
	struct engine_ep *ep = fake_end_engine(&f.victim);

	liar_leave(&f.liar, -FI_ECONNRESET);
	for (uint32_t i = 0; i < OPS_MAX; i++)
		op_cancel(f.victim.ep, op_at(i));
	/* What was injected and has not left can't be cancelled: it leaves, and fails. */
	f.liar.hello.incarnation++;
	MUST(!liar_connect(&f.liar, &f.victim));
	liar_leave(&f.liar, -FI_ECONNRESET);
	for (int i = 0; i < 4 * OPS_MAX; i++) {
		ops_read_cq(f.victim.rx_cq);
		ops_read_cq(f.victim.tx_cq);
	}
	for (uint32_t i = 0; i < OPS_MAX; i++)
		MUST(!op_at(i)->active);
	MUST(!ep->tx_pool.used && !ep->access_cnt && !ep->queued_cnt);
	MUST(!ep->reply_pool.used && !ep->landing_pool.used);
	MUST(!ep->domain->rx_pool.used);
	MUST(!fi_close(&f.mr->fid) && !fi_close(&f.read_only->fid) && !fi_close(&f.pieces->fid));
	arranged_close();
	fake_end_close(&f.victim);
	for (size_t i = 0; i < GUARD; i++)
		MUST(f.memory[i] == 'g' && f.memory[GUARD + REGION + i] == 'g');
	for (size_t i = 0; i < REGION; i++)
		MUST(f.readable[i] == 'r');
	free(f.memory);
	free(f.readable);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	memset(&f, 0, sizeof(f));
	input_begin(data, len);
	begin();
	while (input_left()) {
		uint8_t what = input_byte();

		if (what % 32 == 31) {
			arrange();
			continue;
		}
		switch (what % 16) {
		case 0:
			begin_rma(true);
			break;
		case 1:
			begin_rma(false);
			break;
		case 2:
			begin_atomic();
			break;
		case 3:
			begin_send();
			break;
		case 4:
			begin_recv();
			break;
		case 5:
			op_cancel(f.victim.ep, op_at(input_byte()));
			break;
		case 6:
			reopen();
			break;
		case 7:
			if (f.liar.raw)
				fake_raw_finish(f.liar.raw);
			break;
		case 8:
		case 9:
			ops_read_cq(f.victim.rx_cq);
			ops_read_cq(f.victim.tx_cq);
			harvest();
			break;
		default:
			packet();
		}
	}
	end();
	return 0;
}
