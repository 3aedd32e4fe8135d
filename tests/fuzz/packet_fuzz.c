/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: an endpoint of the engine; the other end of its connection is the target, which
 * sends what the input says. Packets begin as an honest peer would make them (the target knows the
 * endpoint's ids of operations, and the next sequence number) and are changed field by field.
 * Between them the endpoint posts, sends, peeks, cancels, makes progress, and is about to sleep on
 * descriptors that it opens late.
 *
 * Checked: nothing crashes, each operation completes at most once, no receive gets more bytes than
 * its buffer has, and an honest peer beside the target is served to the end.
 */
#include <rdma/fi_errno.h>
#include "fuzz.h"
#include "liar.h"
#include "operations.h"

#define ROOM_MAX 4096
#define HONEST	 (1ull << 60) /* tag of the honest peer: nothing else wants it */

static struct {
	struct fake_end victim, honest;
	struct liar liar;
	fi_addr_t to_liar, to_victim, to_honest;
	uint64_t sent, got; /* messages of the honest peer */
} f;

static size_t some_len(void)
{
	static const size_t lens[] = { 0, 1, 8, 64, 65, 256, 257, 1024, 1025, 3000, 4096, 24 };

	return lens[input_byte() % (sizeof(lens) / sizeof(lens[0]))];
}

/* Operations of the victim */

static void post(void)
{
	size_t len = some_len();
	fi_addr_t src = input_byte() & 1 ? f.to_liar : FI_ADDR_UNSPEC;
	struct fuzz_op *op = op_new_receive(len);
	uint8_t how = input_byte();
	ssize_t ret;

	if (!op)
		return;
	if (how & 1)
		ret = fi_recv(f.victim.ep, op->buf, len, NULL, src, op);
	else
		ret = fi_trecv(f.victim.ep, op->buf, len, NULL, src, how >> 6,
			       how & 2 ? ~HONEST : 0, op);
	MUST(!ret);
}

static void send(void)
{
	size_t len = some_len();
	struct fuzz_op *op = op_new(len, 0);
	ssize_t ret;

	if (!op)
		return;
	ret = input_byte() & 1 ? fi_send(f.victim.ep, op->buf, len, NULL, f.to_liar, op)
			       : fi_tsend(f.victim.ep, op->buf, len, NULL, f.to_liar, 1, op);
	op_begun(op, ret);
}

static void peek(void)
{
	static const uint64_t flags[] = { FI_PEEK, FI_PEEK | FI_DISCARD, FI_PEEK | FI_CLAIM };
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .ignore = ~HONEST };
	struct fuzz_op *op = op_new_receive(0);
	uint64_t how = flags[input_byte() % 3];
	struct iovec iov;

	if (!op)
		return;
	/* A peek at a message that was not received reports its whole length. */
	op->len = SIZE_MAX;
	msg.context = op;
	MUST(!fi_trecvmsg(f.victim.ep, &msg, how));
	ops_read_cq(f.victim.rx_cq);
	if (op->active || !(how & FI_CLAIM))
		return;
	op = op_new_receive(ROOM_MAX); /* the same place, if nothing has taken it meanwhile */
	if (!op || op != msg.context) {
		if (op)
			op_end(op);
		return;
	}
	iov = (struct iovec){ op->buf, ROOM_MAX };
	msg.msg_iov = &iov;
	msg.iov_count = 1;
	if (fi_trecvmsg(f.victim.ep, &msg, FI_CLAIM | (input_byte() & 1 ? FI_DISCARD : 0)))
		op_end(op); /* the peek had found nothing */
	else if (op->active)
		op->len = SIZE_MAX;
}

/* As a program that asks late for a descriptor, and would sleep on it. */
static void about_to_sleep(struct fid_cq *cq)
{
	struct fid *fids[] = { &cq->fid };
	int fd = -1, ret;

	MUST(!fi_control(&cq->fid, FI_GETWAIT, &fd) && fd >= 0);
	ret = fi_trywait(f.victim.fabric, fids, 1);
	MUST(!ret || ret == -FI_EAGAIN);
}

/* The liar */

static void reopen(void)
{
	struct hello *hello = &f.liar.hello;
	struct fake_raw *old = NULL;
	uint8_t how = input_byte();

	if (how & 1)
		liar_leave(&f.liar, how & 2 ? 0 : -FI_ECONNRESET);
	else if (f.liar.raw && how & 2)
		return;
	else
		old = f.liar.raw; /* a second one, while the first may still be there */
	hello->seq = how & 4 ? input_word() : f.liar.seq;
	hello->incarnation += how & 8 ? (uint32_t)(int8_t)input_byte() : 1;
	hello->epoch = how & 16 ? 1 + (uint64_t)input_byte() : hello->epoch;
	hello->window = how & 32 ? input_word() : hello->window;
	hello->rail = how & 64 ? input_byte() % (HELLO_RAILS + 1) : 0;
	hello->data.len = how & 128 ? input_byte() * 2u : 0;
	liar_connect(&f.liar, &f.victim);
	if (old)
		fake_raw_close(old, -FI_ECONNRESET);
}

/* What the victim has sent: learn the names of its operations. */
static void harvest(void)
{
	struct packet p;
	uint64_t payload[3];

	while (f.liar.raw && fake_raw_read(f.liar.raw, &p, payload, sizeof(payload))) {
		if (p.op == PACKET_RTS)
			liar_learn(&f.liar, payload[1]);
		if (p.op == PACKET_CTS)
			liar_learn(&f.liar, p.data);
	}
}

static void packet(void)
{
	static uint8_t payload[ROOM_MAX], rest[1 << 20];
	struct packet p = { .op = (uint8_t)(1 + input_byte() % 6),
			    .epoch = (uint16_t)f.liar.hello.epoch,
			    .seq = f.liar.seq };
	uint64_t id = liar_id(&f.liar);
	struct packet_rts rts;
	struct packet_cts cts;
	size_t avail;
	uint8_t what;

	if (!liar_connected(&f.liar))
		reopen();
	if (!liar_connected(&f.liar))
		return;
	switch (p.op) {
	case PACKET_RTS:
		rts = (struct packet_rts){ .len = some_len(), .id = 1 + input_byte() };
		p.flags = input_byte() % 8;
		p.len = sizeof(rts);
		p.tag = input_byte() % 4;
		memcpy(payload, &rts, sizeof(rts));
		break;
	case PACKET_CTS:
		cts = (struct packet_cts){ .len = some_len() };
		p.len = sizeof(cts);
		p.tag = id;
		p.data = input_byte();
		memcpy(payload, &cts, sizeof(cts));
		break;
	case PACKET_DATA:
		p.len = (uint32_t)some_len();
		p.tag = id;
		p.data = input_byte() & 1 ? some_len() : 0;
		break;
	case PACKET_FIN:
		p.tag = id;
		p.data = input_byte() & 1 ? some_len() : 0;
		break;
	default:
		p.len = p.op == PACKET_EAGER ? (uint32_t)some_len() : 0;
		p.flags = input_byte() % 4;
		p.tag = p.flags & PACKET_TAGGED ? input_byte() % 4 : 0;
	}
	what = input_byte();
	if (!(input_byte() & 3)) /* mostly it stays as it is */
		liar_distort(&p, what);
	avail = p.len < ROOM_MAX ? p.len : ROOM_MAX;
	if (input_byte() & 1)
		avail = avail * input_byte() / 256;
	/* A rest that the engine believes in is at most what it may be: the liar's packet is refused otherwise. */
	if (!fake_raw_send(f.liar.raw, &p, payload, avail,
			   input_byte() & 1 && p.len - avail <= sizeof(rest) ? rest : NULL) &&
	    (p.op == PACKET_EAGER || p.op == PACKET_RTS) && p.seq == f.liar.seq)
		f.liar.seq++;
}

/* The honest peer */

static void honest(void)
{
	f.sent += !fi_tinject(f.honest.ep, "honest", 7, f.to_victim, HONEST);
	fake_end_progress(&f.honest);
}

static void begin(void)
{
	static const size_t budgets[] = { 0, 300, 5000, 64 << 20 };
	struct fake_end_attr attr = { .family = FAKE_FAMILY_B,
				      .threading = FI_THREAD_DOMAIN,
				      .format = FI_CQ_FORMAT_TAGGED,
				      .tx_size = 16 };
	struct fake_knobs k;

	attr.budget = budgets[input_byte() % 4];
	fake_ends_begin(1);
	fake_knobs_default(&k);
	k.get_now = 0;
	k.get_later = input_byte();
	k.get_fails = input_byte() / 2;
	k.move = 128 + input_byte() / 2;
	fake_knobs_set(FAKE_B, &k);
	fake_end_open(&f.victim, &attr, NULL);
	fake_end_open(&f.honest, &attr, NULL);
	f.to_victim = fake_end_insert(&f.honest, &f.victim.name);
	f.to_honest = fake_end_insert(&f.victim, &f.honest.name);
	liar_begin(&f.liar, &f.victim.name);
	f.to_liar = fake_end_insert(&f.victim, &f.liar.hello.addr);
}

static void end(void)
{
	static char buf[8];

	/* Everything that is left can be cancelled or has completed; then the honest peer is served. */
	liar_leave(&f.liar, -FI_ECONNRESET);
	for (uint32_t i = 0; i < OPS_MAX; i++)
		op_cancel(f.victim.ep, op_at(i));
	for (int i = 0; i < 2 * OPS_MAX; i++) {
		ops_read_cq(f.victim.rx_cq);
		ops_read_cq(f.victim.tx_cq);
	}
	for (uint32_t i = 0; i < OPS_MAX; i++)
		MUST(!op_at(i)->active || !op_at(i)->receive);
	for (int i = 0; f.got < f.sent; i++) {
		struct fi_cq_tagged_entry e;

		MUST(i < 100000);
		MUST(!fi_trecv(f.victim.ep, buf, sizeof(buf), NULL, f.to_honest, HONEST, 0, &f));
		while (fi_cq_read(f.victim.rx_cq, &e, 1) != 1) {
			fake_end_progress(&f.honest);
			MUST(++i < 100000);
		}
		MUST(!strcmp(buf, "honest"));
		f.got++;
	}
	fake_end_close(&f.victim);
	fake_end_close(&f.honest);
	ops_begin();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	memset(&f, 0, sizeof(f));
	input_begin(data, len);
	begin();
	while (input_left()) {
		switch (input_byte() % 16) {
		case 0:
			post();
			break;
		case 1:
			send();
			break;
		case 2:
			peek();
			break;
		case 3:
			op_cancel(f.victim.ep, op_at(input_byte()));
			break;
		case 4:
			reopen();
			break;
		case 5:
			honest();
			break;
		case 6:
			if (f.liar.raw)
				fake_raw_finish(f.liar.raw);
			break;
		case 8:
			about_to_sleep(f.victim.rx_cq);
			about_to_sleep(f.victim.tx_cq);
			/* fallthrough */
		case 7:
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
