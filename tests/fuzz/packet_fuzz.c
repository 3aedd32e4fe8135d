/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: an endpoint of the engine, and on the other end of its connection somebody who
 * sends what the input says. Packets begin as an honest peer would make them (the target knows
 * what the endpoint calls its operations, and what the next sequence number is) and are changed
 * field by field; between them the endpoint posts, sends, peeks, cancels and makes progress.
 *
 * Checked: nothing crashes, each operation completes at most once, no receive gets more than it
 * has room for, an honest peer beside the liar is served to the end.
 */
#include <rdma/fi_errno.h>
#include "fake_ends.h"
#include "fuzz.h"

#define OPS_MAX	 64
#define IDS_MAX	 8
#define ROOM_MAX 4096
#define HONEST	 (1ull << 60) /* tag of the honest peer: nothing else wants it */

struct fuzz_op {
	bool active, receive;
	size_t len;
	char *buf;
};

/* What the target knows, and where in the input it is. */
static struct {
	const uint8_t *data;
	size_t len, at;
	struct fake_end victim, honest;
	struct fake_raw *raw;
	struct hello hello, reply;
	uint32_t seq;
	uint64_t ids[IDS_MAX]; /* that the victim has named: sends and receives */
	uint32_t id_cnt;
	fi_addr_t to_raw, to_victim, to_honest;
	struct fuzz_op ops[OPS_MAX];
	uint64_t sent, got; /* messages of the honest peer */
} f;

#define MUST(cond)                                                                 \
	do {                                                                       \
		if (!(cond)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                   \
		}                                                                  \
	} while (0)

static uint8_t byte(void)
{
	return f.at < f.len ? f.data[f.at++] : 0;
}

static uint32_t word(void)
{
	uint32_t v = byte();

	v |= (uint32_t)byte() << 8;
	v |= (uint32_t)byte() << 16;
	return v | (uint32_t)byte() << 24;
}

static size_t some_len(void)
{
	static const size_t lens[] = { 0, 1, 8, 64, 65, 256, 257, 1024, 1025, 3000, 4096, 24 };

	return lens[byte() % (sizeof(lens) / sizeof(lens[0]))];
}

/* Operations of the victim */

static struct fuzz_op *op_new(size_t len, bool receive)
{
	for (int i = 0; i < OPS_MAX; i++) {
		struct fuzz_op *op = &f.ops[i];

		if (op->active)
			continue;
		*op = (struct fuzz_op){ .active = true, .receive = receive, .len = len };
		op->buf = calloc(1, len ? len : 1);
		MUST(op->buf);
		return op;
	}
	return NULL;
}

static void op_end(struct fuzz_op *op)
{
	op->active = false;
	free(op->buf);
}

static void complete(void *context, uint64_t flags, size_t len)
{
	struct fuzz_op *op = context;

	MUST(op >= f.ops && op < f.ops + OPS_MAX && op->active);
	MUST(!!(flags & FI_RECV) == op->receive);
	/* What a peek says of a message that nobody has received is its whole length. */
	MUST(!op->receive || op->len == SIZE_MAX || len <= op->len);
	op_end(op);
}

static void read_cq(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &e, 1)) == 1)
		complete(e.op_context, e.flags, e.len);
	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &err, 0) == 1)
		complete(err.op_context, err.flags, err.len);
}

static void post(void)
{
	size_t len = some_len();
	fi_addr_t src = byte() & 1 ? f.to_raw : FI_ADDR_UNSPEC;
	struct fuzz_op *op = op_new(len, true);
	uint8_t how = byte();
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
	struct fuzz_op *op = op_new(len, false);
	ssize_t ret;

	if (!op)
		return;
	ret = byte() & 1 ? fi_send(f.victim.ep, op->buf, len, NULL, f.to_raw, op)
			 : fi_tsend(f.victim.ep, op->buf, len, NULL, f.to_raw, 1, op);
	MUST(!ret || ret == -FI_EAGAIN);
	if (ret)
		op_end(op);
}

static void peek(void)
{
	static const uint64_t flags[] = { FI_PEEK, FI_PEEK | FI_DISCARD, FI_PEEK | FI_CLAIM };
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .ignore = ~HONEST };
	struct fuzz_op *op = op_new(0, true);
	uint64_t how = flags[byte() % 3];
	struct iovec iov;

	if (!op)
		return;
	op->len = SIZE_MAX;
	msg.context = op;
	MUST(!fi_trecvmsg(f.victim.ep, &msg, how));
	read_cq(f.victim.rx_cq);
	if (op->active || !(how & FI_CLAIM))
		return;
	op = op_new(ROOM_MAX, true); /* the same place, if nothing has taken it meanwhile */
	if (!op || op != msg.context) {
		if (op)
			op_end(op);
		return;
	}
	iov = (struct iovec){ op->buf, ROOM_MAX };
	msg.msg_iov = &iov;
	msg.iov_count = 1;
	if (fi_trecvmsg(f.victim.ep, &msg, FI_CLAIM | (byte() & 1 ? FI_DISCARD : 0)))
		op_end(op); /* the peek had found nothing */
	else if (op->active)
		op->len = SIZE_MAX;
}

static void cancel(void)
{
	struct fuzz_op *op = &f.ops[byte() % OPS_MAX];
	ssize_t ret = fi_cancel(&f.victim.ep->fid, op);

	MUST(ret == -FI_ENOENT || (!ret && op->active));
}

/* The liar */

static void reopen(void)
{
	uint8_t how = byte();

	if (f.raw && how & 1)
		fake_raw_close(f.raw, how & 2 ? 0 : -FI_ECONNRESET);
	else if (f.raw && how & 2)
		return;
	f.hello.seq = how & 4 ? word() : f.seq;
	f.hello.life += how & 8 ? (uint32_t)(int8_t)byte() : 1;
	f.hello.epoch = how & 16 ? 1 + (uint64_t)byte() : f.hello.epoch;
	f.hello.window = how & 32 ? word() : f.hello.window;
	f.seq = f.hello.seq;
	f.id_cnt = 0;
	if (how & 1 || !f.raw) {
		f.raw = NULL;
		fake_raw_open(fake_end_engine(&f.victim), &f.hello, &f.raw, &f.reply);
	} else {
		/* A second one, while the first may still be there. */
		struct fake_raw *old = f.raw;

		f.raw = NULL;
		fake_raw_open(fake_end_engine(&f.victim), &f.hello, &f.raw, &f.reply);
		fake_raw_close(old, -FI_ECONNRESET);
	}
}

/* What the victim has sent: learn the names of its operations. */
static void harvest(void)
{
	struct packet p;
	uint64_t payload[3];

	while (f.raw && fake_raw_read(f.raw, &p, payload, sizeof(payload))) {
		if (p.op == PACKET_RTS)
			f.ids[f.id_cnt++ % IDS_MAX] = payload[1];
		if (p.op == PACKET_CTS)
			f.ids[f.id_cnt++ % IDS_MAX] = p.data;
	}
}

/* Change some fields of a packet. */
static void distort(struct packet *p)
{
	uint8_t what = byte();

	if (byte() & 3) /* mostly it stays as it is */
		return;
	if (what & 1)
		p->epoch ^= byte();
	if (what & 2)
		p->seq += (uint32_t)(int8_t)byte();
	if (what & 4)
		p->flags = byte();
	if (what & 8)
		p->len = word();
	if (what & 16)
		p->tag = (uint64_t)word() << 32 | word();
	if (what & 32)
		p->data = (uint64_t)word() << 32 | word();
	if (what & 64)
		p->credits = (uint16_t)word();
	if (what & 128)
		p->op = byte();
}

/* What the victim may call an operation: a name that it has told, or one that is easy to guess. */
static uint64_t some_id(void)
{
	uint8_t which = byte();

	if (which < 128)
		return f.ids[which % IDS_MAX];
	return (uint64_t)(1 + 2 * (which & 7)) << 32 | (which >> 3 & 7);
}

static void packet(void)
{
	static uint8_t payload[ROOM_MAX], rest[1 << 20];
	struct packet p = { .op = (uint8_t)(1 + byte() % 6),
			    .epoch = (uint16_t)f.hello.epoch,
			    .seq = f.seq };
	uint64_t id = some_id();
	struct packet_rts rts;
	struct packet_cts cts;
	size_t avail;

	if (!f.raw || !fake_raw_alive(f.raw))
		reopen();
	if (!f.raw || !fake_raw_alive(f.raw))
		return;
	switch (p.op) {
	case PACKET_RTS:
		rts = (struct packet_rts){ .len = some_len(), .id = 1 + byte() };
		p.flags = byte() % 8;
		p.len = sizeof(rts);
		p.tag = byte() % 4;
		memcpy(payload, &rts, sizeof(rts));
		break;
	case PACKET_CTS:
		cts = (struct packet_cts){ .len = some_len() };
		p.len = sizeof(cts);
		p.tag = id;
		p.data = byte();
		memcpy(payload, &cts, sizeof(cts));
		break;
	case PACKET_DATA:
		p.len = (uint32_t)some_len();
		p.tag = id;
		p.data = byte() & 1 ? some_len() : 0;
		break;
	case PACKET_FIN:
		p.tag = id;
		p.data = byte() & 1 ? some_len() : 0;
		break;
	default:
		p.len = p.op == PACKET_EAGER ? (uint32_t)some_len() : 0;
		p.flags = byte() % 4;
		p.tag = p.flags & PACKET_TAGGED ? byte() % 4 : 0;
	}
	distort(&p);
	avail = p.len < ROOM_MAX ? p.len : ROOM_MAX;
	if (byte() & 1)
		avail = avail * byte() / 256;
	/* A rest that the engine believes in is at most what it may be: the liar's packet is refused otherwise. */
	if (!fake_raw_send(f.raw, &p, payload, avail,
			   byte() & 1 && p.len - avail <= sizeof(rest) ? rest : NULL) &&
	    (p.op == PACKET_EAGER || p.op == PACKET_RTS) && p.seq == f.seq)
		f.seq++;
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

	attr.budget = budgets[byte() % 4];
	fake_ends_begin(1);
	fake_knobs_default(&k);
	k.get_now = 0;
	k.get_later = byte();
	k.get_fails = byte() / 2;
	k.move = 128 + byte() / 2;
	fake_knobs_set(FAKE_B, &k);
	fake_end_open(&f.victim, &attr, NULL);
	fake_end_open(&f.honest, &attr, NULL);
	f.to_victim = fake_end_insert(&f.honest, &f.victim.name);
	f.to_honest = fake_end_insert(&f.victim, &f.honest.name);
	f.hello = (struct hello){ .magic = HELLO_MAGIC,
				  .version = HELLO_VERSION,
				  .epoch = 0x1234567890,
				  .window = 4096,
				  .addr = f.honest.name };
	memset(f.hello.addr.nonce, 0x66, sizeof(f.hello.addr.nonce));
	f.hello.addr.port = 6666;
	f.to_raw = fake_end_insert(&f.victim, &f.hello.addr);
}

static void end(void)
{
	static char buf[8];
	struct fuzz_op *op;

	/* Everything that is left can be cancelled or has completed; then the honest peer is served. */
	if (f.raw)
		fake_raw_close(f.raw, -FI_ECONNRESET);
	for (int i = 0; i < OPS_MAX; i++)
		fi_cancel(&f.victim.ep->fid, &f.ops[i]);
	for (int i = 0; i < 2 * OPS_MAX; i++) {
		read_cq(f.victim.rx_cq);
		read_cq(f.victim.tx_cq);
	}
	for (op = f.ops; op < f.ops + OPS_MAX; op++)
		MUST(!op->active || !op->receive);
	for (int i = 0; f.got < f.sent; i++) {
		struct fi_cq_tagged_entry e;

		MUST(i < 100000);
		MUST(!fi_trecv(f.victim.ep, buf, sizeof(buf), NULL, f.to_honest, HONEST, 0,
			       f.ops));
		while (fi_cq_read(f.victim.rx_cq, &e, 1) != 1) {
			fake_end_progress(&f.honest);
			MUST(++i < 100000);
		}
		MUST(!strcmp(buf, "honest"));
		f.got++;
	}
	fake_end_close(&f.victim);
	fake_end_close(&f.honest);
	for (op = f.ops; op < f.ops + OPS_MAX; op++)
		if (op->active)
			op_end(op);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	memset(&f, 0, sizeof(f));
	f.data = data;
	f.len = len;
	begin();
	while (f.at < f.len) {
		switch (byte() % 16) {
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
			cancel();
			break;
		case 4:
			reopen();
			break;
		case 5:
			honest();
			break;
		case 6:
			if (f.raw)
				fake_raw_finish(f.raw);
			break;
		case 7:
		case 8:
			read_cq(f.victim.rx_cq);
			read_cq(f.victim.tx_cq);
			harvest();
			break;
		default:
			packet();
		}
	}
	end();
	return 0;
}
