/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writes of all sizes and messages from each member to each, as many under way as there is room
 * for: some travel with their header, some behind it, some are asked for, and they overtake each
 * other. Every byte is looked at. storm.h has the contract; called by the members.
 */
#include "storm.h"
#include "seeded.h"

#define STRIPE	 STORM_STRIPE
#define SMALL	 4096 /* bytes up to which writes keep their order */
#define MSGS	 24   /* from each to each in a round */
#define MSG_MAX	 60000
#define OPS	 16384
#define LANES	 STORM_MEMBERS
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* What a member has in a round. */
struct load {
	int round;
	uint64_t random;
	uint8_t *stripes, *junk, *inbox;
	size_t at[LANES]; /* bytes of each target's stripe that were written */
	int msgs[LANES];
	struct storm_op *ops;
	int op_cnt;
};

static uint32_t draw(struct load *l, uint32_t below)
{
	return (uint32_t)seeded_below(&l->random, below);
}

static uint8_t byte_of(int from, int to, int round, size_t at)
{
	return (uint8_t)((at * 2654435761u >> 11) + at + (size_t)(from * 7 + to * 31 + round));
}

static struct storm_op *next_op(struct member *m, struct load *l)
{
	CHECK(m, l->op_cnt < OPS);
	return &l->ops[l->op_cnt++];
}

/* A message is neither read nor written. */
static struct storm_op *message_op(struct member *m, struct load *l, int to, uint64_t kind)
{
	struct storm_op *op = next_op(m, l);

	*op = (struct storm_op){ .to = to, .kind = FI_MSG | kind };
	m->under_way++;
	return op;
}

static void write_at(struct member *m, struct load *l, int to, const uint8_t *from, size_t at,
		     size_t len)
{
	struct storm_op *op = next_op(m, l);
	ssize_t ret;

	storm_begin(m, op, to, FI_RMA | FI_WRITE);
	STORM_POST(m, ret,
		   fi_write(m->rma, from, len, NULL, m->addrs[to],
			    (uint64_t)m->rank * STRIPE + at, STORM_KEY, op));
	CHECK(m, !ret);
}

/* The next piece of a stripe; a small one twice, and what is written last has to stay. */
static void write_piece(struct member *m, struct load *l, int to)
{
	static const size_t sizes[] = { 8,    100,  256,   257,	  1000,	 SMALL,
					8192, 8193, 16385, 30000, 65536, 200000 };
	size_t len = sizes[draw(l, COUNT(sizes))], at = l->at[to];

	if (len > STRIPE - at)
		len = STRIPE - at;
	if (len <= SMALL)
		write_at(m, l, to, l->junk, at, len);
	write_at(m, l, to, l->stripes + (size_t)to * STRIPE + at, at, len);
	l->at[to] += len;
}

/* It begins with its sender's rank, and is a part of that one's stripe. */
static void send_message(struct member *m, struct load *l, int to)
{
	static const size_t sizes[] = { 16, 250, 5000, 20000, MSG_MAX };
	struct storm_op *op = message_op(m, l, to, FI_SEND);
	ssize_t ret;

	STORM_POST(m, ret,
		   fi_send(m->ep, l->stripes + (size_t)to * STRIPE,
			   sizes[draw(l, COUNT(sizes))], NULL, m->addrs[to], op));
	CHECK(m, !ret);
	l->msgs[to]++;
}

static void prepare(struct member *m, struct load *l)
{
	l->op_cnt = 0;
	memset(l->at, 0, sizeof(l->at));
	memset(l->msgs, 0, sizeof(l->msgs));
	memset(l->inbox, 0xff, (size_t)LANES * MSGS * MSG_MAX);
	for (int to = 0; to < LANES; to++) {
		for (size_t i = 0; i < STRIPE; i++)
			l->stripes[(size_t)to * STRIPE + i] = byte_of(m->rank, to, l->round, i);
		l->stripes[(size_t)to * STRIPE] = (uint8_t)m->rank;
	}
	for (int i = 0; i < LANES * MSGS; i++) {
		struct storm_op *op = message_op(m, l, 0, FI_RECV);

		CHECK(m, !fi_recv(m->ep, l->inbox + (size_t)i * MSG_MAX, MSG_MAX, NULL,
				  FI_ADDR_UNSPEC, op));
	}
}

static void check(struct member *m, struct load *l)
{
	int from_each[LANES] = { 0 };

	for (int from = 0; from < LANES; from++) {
		const uint8_t *at = m->region + (size_t)from * STRIPE;

		CHECK(m, at[0] == from);
		for (size_t i = 1; i < STRIPE; i++)
			CHECK(m, at[i] == byte_of(from, m->rank, l->round, i));
	}
	for (int i = 0; i < LANES * MSGS; i++) {
		const uint8_t *at = l->inbox + (size_t)i * MSG_MAX;

		CHECK(m, at[0] < LANES);
		from_each[at[0]]++;
		for (size_t k = 1; k < 16; k++)
			CHECK(m, at[k] == byte_of(at[0], m->rank, l->round, k));
	}
	for (int from = 0; from < LANES; from++)
		CHECK(m, from_each[from] == MSGS);
}

/* One step towards some target: false when there is nothing left to do for any. */
static bool step(struct member *m, struct load *l)
{
	int first = (int)draw(l, LANES);

	for (int k = 0; k < LANES; k++) {
		int to = (first + k) % LANES;
		bool written = l->at[to] == STRIPE;

		if (l->msgs[to] < MSGS && (written || !draw(l, 4)))
			send_message(m, l, to);
		else if (!written)
			write_piece(m, l, to);
		else
			continue;
		return true;
	}
	return false;
}

void storm_all_sizes(struct member *m)
{
	struct load l = { .random = m->attr->seed * 8191 + (uint64_t)m->rank };
	int turns = STORM_SANITIZED ? 2 : 2 * m->attr->rounds;

	l.stripes = malloc((size_t)LANES * STRIPE);
	l.inbox = malloc((size_t)LANES * MSGS * MSG_MAX);
	l.ops = calloc(OPS, sizeof(*l.ops));
	l.junk = malloc(SMALL);
	CHECK(m, l.stripes && l.inbox && l.ops && l.junk);
	memset(l.junk, 0xee, SMALL);
	for (l.round = 0; l.round < turns; l.round++) {
		prepare(m, &l);
		storm_meet(m);
		while (step(m, &l))
			storm_turn(m);
		storm_finish(m);
		storm_meet(m);
		check(m, &l);
		storm_meet(m);
	}
	free(l.stripes);
	free(l.inbox);
	free(l.ops);
	free(l.junk);
}
