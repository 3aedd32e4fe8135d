/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Deficit round robin, over queues that are looked at in every round (hot) and now and then (cold) */
#include "schedule.h"

#include "admin.h"
#include "io.h"
#include "nvmed.h"

/* What a turn may cost, in bytes; a command costs COMMAND bytes more than it moves. */
#define QUANTUM (16 * 1024)
#define COMMAND 2048

/* Rounds without a command after which a queue is cold */
#define IDLE_ROUNDS 4096u

/* Cold queues that a round looks at, beside as many as there are hot ones */
#define COLD_LOOKS 4u

static void list_put(struct sq **list, uint32_t *cnt, struct sq *sq)
{
	sq->place = *cnt;
	list[(*cnt)++] = sq;
}

static void list_take(struct sq **list, uint32_t *cnt, struct sq *sq)
{
	struct sq *last = list[--*cnt];

	list[sq->place] = last;
	last->place = sq->place;
}

static void make_hot(struct nvmed *c, struct sq *sq)
{
	list_take(c->cold, &c->cold_cnt, sq);
	list_put(c->hot, &c->hot_cnt, sq);
	sq->is_hot = true;
	sq->idle = 0;
}

static void make_cold(struct nvmed *c, struct sq *sq)
{
	list_take(c->hot, &c->hot_cnt, sq);
	list_put(c->cold, &c->cold_cnt, sq);
	sq->is_hot = false;
	sq->deficit = 0;
}

void schedule_add(struct nvmed *c, struct sq *sq)
{
	list_put(c->cold, &c->cold_cnt, sq);
	sq->is_hot = false;
}

void schedule_remove(struct nvmed *c, struct sq *sq)
{
	if (sq->is_hot)
		list_take(c->hot, &c->hot_cnt, sq);
	else
		list_take(c->cold, &c->cold_cnt, sq);
}

static void begin(struct nvmed *c, struct sq *sq, struct command *cmd)
{
	sq->deficit -= COMMAND;
	sq->share.used += COMMAND;
	sq->share.credit -= COMMAND;
	if (sq->qid)
		io_begin(c, cmd);
	else
		admin_begin(c, cmd);
}

static bool fetch(struct nvmed *c, struct sq *sq)
{
	struct command *cmd = sq_fetch(c, sq);

	if (cmd)
		begin(c, sq, cmd);
	return cmd;
}

/* The next piece of a queue's command. Returns false if the backend has no room, or the queue is held back */
static bool advance(struct nvmed *c, struct sq *sq)
{
	uint64_t most = share_most(c, sq);
	int64_t cost;

	if (!most)
		return false;
	cost = io_advance(c, sq->current, most);
	if (cost < 0) {
		sq->blocked = true;
		return false;
	}
	share_used(c, sq, (uint64_t)cost);
	sq->deficit -= cost;
	return true;
}

/* A queue's turn. Returns whether anything moved, or will in a later turn whatever the backend does */
static bool sq_turn(struct nvmed *c, struct sq *sq)
{
	bool moved = false, wants = true;

	if (sq->stopped)
		return false;
	if (!sq->blocked && sq->deficit < QUANTUM)
		sq->deficit = sq->deficit + QUANTUM < QUANTUM ? sq->deficit + QUANTUM : QUANTUM;
	sq->blocked = false;
	while (sq->deficit > 0) {
		if (sq->current) {
			if (!advance(c, sq))
				break;
		} else if (!fetch(c, sq)) {
			wants = false;
			break;
		}
		moved = true;
	}
	sq->share.wants = wants;
	cqs_notify(c);
	return moved || sq->deficit <= 0;
}

/* A look at the next cold queue */
static bool cold_look(struct nvmed *c)
{
	struct sq *sq;

	if (c->cold_next >= c->cold_cnt)
		c->cold_next = 0;
	sq = c->cold[c->cold_next++];
	if (!sq_ready(c, sq))
		return false;
	make_hot(c, sq);
	return true;
}

bool schedule_round(struct nvmed *c)
{
	uint32_t looks = COLD_LOOKS + c->hot_cnt;
	bool moved = false;

	share_round(c);
	for (uint32_t n = c->hot_cnt; n && c->hot_cnt; n--) {
		struct sq *sq;
		bool turned;

		if (c->hot_next >= c->hot_cnt)
			c->hot_next = 0;
		sq = c->hot[c->hot_next];
		turned = sq_turn(c, sq);
		moved |= turned;
		if (turned || sq->current) {
			sq->idle = 0;
			if (sq->blocked)
				break;
			c->hot_next++;
		} else if (++sq->idle > IDLE_ROUNDS) {
			make_cold(c, sq);
		} else {
			c->hot_next++;
		}
	}
	for (uint32_t n = looks < c->cold_cnt ? looks : c->cold_cnt; n; n--)
		moved |= cold_look(c);
	return moved;
}

/* Whether the turn of a queue goes on once the backend has room: nothing of another one begins before */
static bool is_blocked(const struct nvmed *c)
{
	for (uint32_t i = 0; i < c->hot_cnt; i++)
		if (c->hot[i]->blocked && c->hot[i]->current && !c->hot[i]->stopped)
			return true;
	return false;
}

bool schedule_look(struct nvmed *c)
{
	if (is_blocked(c))
		return false;
	for (uint32_t i = 0; i < c->hot_cnt; i++)
		if (sq_ready(c, c->hot[i]))
			return true;
	for (uint32_t n = c->cold_cnt; n; n--)
		if (cold_look(c))
			return true;
	return false;
}
