/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes that send each other large messages, in pieces and into pieces, of which the last
 * ones are sometimes too few. After a send a process computes for a while, and polls now and then,
 * before it only polls. All arrives as it was sent, and no byte beside it is written.
 *
 *	away_test PROVIDER [MESSAGES]	SURVIVE_SEED, SURVIVE_ROUNDS
 */
#include "node.h"

#define TEST_SECS  120
#define LEN_MAX	   (6u << 20)
#define PIECES	   4u
#define GAP	   64u /* bytes between pieces that belong to none */
#define ROOM	   (LEN_MAX + LEN_MAX / 4 + PIECES * GAP)
#define AWAY_NS	   400000u
#define NOBODYS	   0xee
#define CONTEXT(i) ((void *)(uintptr_t)((i) + 1))

enum gate { GATE_NAMED, GATE_OVER = 2 };

struct scene {
	struct stage stage;
	char names[2][NODE_NAME];
	uint64_t seed, messages;
};

static const char *provider;

/* A message as one of the two has it. */
struct parts {
	uint8_t *room;
	struct iovec iov[PIECES];
	size_t cnt, len;
};

/* Cuts memory into so many bytes in pieces. */
static void cut(struct parts *p, size_t len, uint64_t *seed)
{
	size_t at = 0, left = len;

	memset(p->room, NOBODYS, ROOM);
	p->cnt = 1 + seeded_below(seed, PIECES);
	p->len = len;
	for (size_t i = 0; i < p->cnt; i++) {
		size_t piece = i + 1 < p->cnt ? seeded_below(seed, left + 1) : left;

		p->iov[i] = (struct iovec){ p->room + at, piece };
		at += piece + GAP;
		left -= piece;
	}
}

static void fill(struct parts *p, uint8_t *flat, uint64_t id)
{
	node_pattern(flat, p->len, id);
	for (size_t i = 0; i < p->cnt; flat += p->iov[i++].iov_len)
		memcpy(p->iov[i].iov_base, flat, p->iov[i].iov_len);
}

/* Returns true if the first @len bytes have arrived, and nothing else was written. */
static bool filled(const struct parts *p, uint8_t *flat, size_t len, uint64_t id)
{
	const uint8_t *beside = p->room;
	size_t at = 0;

	for (size_t i = 0; i < p->cnt; i++) {
		const uint8_t *base = p->iov[i].iov_base;

		for (; beside < base; beside++)
			if (*beside != NOBODYS)
				return false;
		memcpy(flat + at, base, p->iov[i].iov_len);
		at += p->iov[i].iov_len;
		beside = base + p->iov[i].iov_len;
	}
	for (; at > len; at--)
		if (flat[at - 1] != NOBODYS)
			return false;
	for (; beside < p->room + ROOM; beside++)
		if (*beside != NOBODYS)
			return false;
	return node_is_pattern(flat, len, id);
}

/* Computes, and makes progress @polls times meanwhile. Returns what node_turn() brought at last */
static ssize_t away(struct node *n, uint64_t ns, uint64_t polls)
{
	ssize_t turn = -FI_EAGAIN;

	for (uint64_t i = 0; i <= polls && turn == -FI_EAGAIN; i++) {
		uint64_t end = node_now_ns() + ns / (polls + 1);

		while (node_now_ns() < end)
			;
		turn = node_turn(n);
	}
	return turn;
}

/* The one operation that is under way. */
static ssize_t over(struct node *n, ssize_t turn)
{
	NODE_UNTIL(n->stage, turn != -FI_EAGAIN, (turn = node_turn(n)) != -FI_EAGAIN);
	return turn;
}

static void send_one(struct node *n, fi_addr_t peer, struct parts *p, uint8_t *flat,
		     uint64_t id, uint64_t *seed)
{
	ssize_t ret;

	fill(p, flat, id);
	do {
		ret = fi_tsendv(n->ep, p->iov, NULL, p->cnt, peer, id, CONTEXT(id));
		NODE_CHECK(n->stage, ret != -FI_EAGAIN || node_turn(n) == -FI_EAGAIN);
		if (ret)
			node_pause(n->stage);
	} while (ret == -FI_EAGAIN);
	NODE_CHECK(n->stage, !ret);
	NODE_CHECK(n->stage,
		   over(n, away(n, seeded_below(seed, AWAY_NS), seeded_below(seed, 8))) == 1);
	NODE_CHECK(n->stage, n->entry.op_context == CONTEXT(id));
}

static void receive_one(struct node *n, fi_addr_t peer, struct parts *p, uint8_t *flat,
			uint64_t id, size_t len)
{
	ssize_t turn;

	NODE_CHECK(n->stage, !fi_trecvv(n->ep, p->iov, NULL, p->cnt, peer, id, 0, CONTEXT(id)));
	turn = over(n, -FI_EAGAIN);
	if (len <= p->len) {
		NODE_CHECK(n->stage, turn == 1 && n->entry.len == len);
		NODE_CHECK(n->stage, n->entry.op_context == CONTEXT(id));
		NODE_CHECK(n->stage, filled(p, flat, len, id));
		return;
	}
	NODE_CHECK(n->stage, turn == -FI_EAVAIL && n->error.err == FI_ETRUNC);
	NODE_CHECK(n->stage, n->error.op_context == CONTEXT(id));
	NODE_CHECK(n->stage, n->error.olen == len - p->len);
	NODE_CHECK(n->stage, filled(p, flat, p->len, id));
}

static void talk(struct node *n, struct scene *s, fi_addr_t peer, int rank)
{
	struct parts ours = { .room = malloc(ROOM) };
	uint8_t *flat = malloc(ROOM);
	uint64_t seed = s->seed;

	NODE_CHECK(s, ours.room && flat);
	/* Both roll the same dice. */
	for (uint64_t id = 0; id < s->messages; id++) {
		size_t len = seeded_below(&seed, LEN_MAX >> seeded_below(&seed, 6));
		size_t cap = len * 3 / 4 + seeded_below(&seed, len / 2 + 2);
		uint64_t mine = seeded_random(&seed) + (uint64_t)rank;

		if (id % 2 == (uint64_t)rank) {
			cut(&ours, len, &mine);
			send_one(n, peer, &ours, flat, id, &mine);
		} else {
			cut(&ours, cap, &mine);
			receive_one(n, peer, &ours, flat, id, len);
		}
	}
	free(ours.room);
	free(flat);
}

static void member(void *stage, int rank)
{
	struct node_attr attr = { .provider = provider };
	struct scene *s = stage;
	fi_addr_t peer;
	struct node n;

	NODE_CHECK(s, !node_open(&n, s, &attr));
	node_name(&n, s->names[rank]);
	stage_pass(s, GATE_NAMED + rank);
	NODE_UNTIL(s, stage_passed(s, GATE_NAMED + !rank), false);
	peer = node_knows(&n, s->names[!rank]);
	talk(&n, s, peer, rank);
	stage_pass(s, GATE_OVER);
	NODE_UNTIL(s, stage_passed(s, GATE_OVER) == 2, node_turn(&n) == 1);
	node_close(&n);
}

int main(int argc, char **argv)
{
	struct scene *s = stage_open(sizeof(*s));
	pid_t pids[2];
	bool ok = true;

	if (argc < 2)
		return 2;
	provider = argv[1];
	s->seed = node_seed();
	s->messages = node_setting("SURVIVE_ROUNDS",
				   argc > 2 ? strtoull(argv[2], NULL, 0) : 200);
	for (int i = 0; i < 2; i++)
		pids[i] = stage_start(s, i, TEST_SECS, member);
	for (int i = 0; i < 2; i++)
		ok &= stage_ended(s, pids[i], 0);
	return !ok;
}
