/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The peer that a fuzz target plays; see liar.h. Called by the targets, on one thread. */
#include "input.h"
#include "liar.h"

#define WINDOW 4096u

void liar_begin(struct liar *liar, const struct weft_addr *victim)
{
	*liar = (struct liar){ 0 };
	fake_raw_hello(&liar->hello, victim, WINDOW);
}

bool liar_connected(const struct liar *liar)
{
	return liar->raw && fake_raw_alive(liar->raw);
}

/* A life that begins with its hello. */
static void begin_incarnation(struct liar *liar)
{
	liar->raw = NULL;
	liar->seq = liar->hello.seq;
	liar->id_cnt = 0;
}

int liar_connect(struct liar *liar, const struct fake_end *victim)
{
	struct hello reply;

	begin_incarnation(liar);
	return fake_raw_open(fake_end_engine(victim), &liar->hello, &liar->raw, &reply);
}

int liar_answer(struct liar *liar, const struct fake_end *victim)
{
	begin_incarnation(liar);
	return fake_raw_answer(fake_end_engine(victim), &liar->hello, &liar->raw);
}

void liar_leave(struct liar *liar, int err)
{
	if (liar->raw)
		fake_raw_close(liar->raw, err);
	liar->raw = NULL;
}

void liar_learn(struct liar *liar, uint64_t id)
{
	liar->ids[liar->id_cnt++ % LIAR_IDS] = id;
}

uint64_t liar_id(const struct liar *liar)
{
	uint8_t which = input_byte();

	if (which < 128)
		return liar->ids[which % LIAR_IDS];
	return (uint64_t)(1 + 2 * (which & 7)) << 32 | (which >> 3 & 7);
}

void liar_distort(struct packet *p, uint8_t what)
{
	if (what & 1)
		p->epoch ^= input_byte();
	if (what & 2)
		p->seq += (uint32_t)(int8_t)input_byte();
	if (what & 4)
		p->flags = input_byte();
	if (what & 8)
		p->len = input_word();
	if (what & 16)
		p->tag = input_long();
	if (what & 32)
		p->data = input_long();
	if (what & 64)
		p->credits = (uint16_t)input_word();
	if (what & 128)
		p->op = input_byte();
}
