/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One of the members is killed while all work on the memory of all: operations to it end, with
 * an error, and the sums of those that live on are exact. storm.h has the contract; called by
 * the members.
 */
#include <unistd.h>
#include "storm.h"

#define WORD_ALL   0  /* added to by everyone */
#define WORD_SUM   8  /* by the surviving members */
#define WORD_FETCH 16 /* the same, fetching */
#define WORD_GREET 24
#define LARGE	   100000u
#define LARGE_AT   4096u /* a place for each member's */
#define WINDOW	   256
#define ROUNDS	   (STORM_SANITIZED ? 20 : 200)
#define SEEN_MAX   (1u << 20)

struct tally {
	_Atomic uint64_t posted[STORM_MEMBERS][STORM_MEMBERS]; /* to WORD_ALL, [from][to] */
	_Atomic uint64_t ended[STORM_MEMBERS]; /* of the victim's, well, by target */
	_Atomic uint64_t sums[STORM_MEMBERS],
		fetches[STORM_MEMBERS];		       /* of the survivors, by target */
	_Atomic uint8_t seen[STORM_MEMBERS][SEEN_MAX]; /* fetched, by target */
};

const size_t storm_death_shared = sizeof(struct tally);
const size_t storm_death_region = LARGE_AT + 4096 * (STORM_MEMBERS * LARGE / 4096 + 1);

struct fetch {
	struct storm_op op;
	uint64_t value;
	bool fetch;
};

/* The next one that is free; what it had fetched is noted. */
static struct fetch *fetch_next(struct member *m, struct fetch *all, int *at)
{
	struct tally *tally = (struct tally *)m->shared->room;
	struct fetch *f = &all[(*at)++ % WINDOW];

	while (!f->op.done)
		storm_turn(m);
	if (f->fetch && !f->op.err && f->op.to != m->attr->victim) {
		CHECK(m, f->value < SEEN_MAX);
		CHECK(m, !atomic_exchange(&tally->seen[f->op.to][f->value], 1));
	}
	if (m->rank == m->attr->victim && f->op.kind && !f->op.err)
		atomic_fetch_add(&tally->ended[f->op.to], 1);
	f->fetch = false;
	return f;
}

/* Operations to the victim may be refused once it is dead. */
static void posted(struct member *m, struct storm_op *op, int to, ssize_t ret)
{
	if (!ret)
		return;
	CHECK(m, to == m->attr->victim && atomic_load(&m->shared->dead));
	m->failed++;
	op->done = true;
	m->under_way--;
	if (op->kind & FI_READ)
		m->reads--;
	else
		m->writes--;
}

static const uint64_t one = 1;

static void add(struct member *m, struct fetch *f, int to, uint64_t word)
{
	ssize_t ret;

	storm_begin(m, &f->op, to, FI_ATOMIC | FI_WRITE);
	STORM_POST(m, ret,
		   fi_atomic(m->rma, &one, 1, NULL, m->addrs[to], word, STORM_KEY, FI_UINT64,
			     FI_SUM, &f->op));
	posted(m, &f->op, to, ret);
}

static void fetch_add(struct member *m, struct fetch *f, int to, uint64_t word)
{
	ssize_t ret;

	f->fetch = word == WORD_FETCH;
	storm_begin(m, &f->op, to, FI_ATOMIC | FI_READ);
	STORM_POST(m, ret,
		   fi_fetch_atomic(m->ep, &one, 1, NULL, &f->value, NULL, m->addrs[to], word,
				   STORM_KEY, FI_UINT64, FI_SUM, &f->op));
	posted(m, &f->op, to, ret);
}

/* A large one with the victim, whose memory is not checked. */
static void large(struct member *m, struct fetch *f, uint8_t *buf, bool read)
{
	uint64_t at = LARGE_AT + (uint64_t)m->rank * LARGE;
	int to = m->attr->victim;
	ssize_t ret;

	storm_begin(m, &f->op, to, FI_RMA | (read ? FI_READ : FI_WRITE));
	if (read)
		STORM_POST(m, ret,
			   fi_read(m->ep, buf + LARGE, LARGE, NULL, m->addrs[to], at, STORM_KEY,
				   &f->op));
	else
		STORM_POST(m, ret,
			   fi_write(m->rma, buf, LARGE, NULL, m->addrs[to], at, STORM_KEY,
				    &f->op));
	posted(m, &f->op, to, ret);
}

static void victim_lives(struct member *m, struct fetch *all)
{
	struct tally *tally = (struct tally *)m->shared->room;
	int at = 0;

	for (int round = 0;; round++) {
		for (int to = 0; to < STORM_MEMBERS; to++) {
			atomic_fetch_add(&tally->posted[m->rank][to], 2);
			add(m, fetch_next(m, all, &at), to, WORD_ALL);
			fetch_add(m, fetch_next(m, all, &at), to, WORD_ALL);
		}
		if (round == ROUNDS / 4)
			storm_die(m);
	}
}

static void survivor_round(struct member *m, struct fetch *all, int *at, uint8_t *buf)
{
	struct tally *tally = (struct tally *)m->shared->room;

	for (int to = 0; to < STORM_MEMBERS; to++) {
		add(m, fetch_next(m, all, at), to, WORD_ALL);
		add(m, fetch_next(m, all, at), to, WORD_SUM);
		fetch_add(m, fetch_next(m, all, at), to, WORD_FETCH);
		atomic_fetch_add(&tally->posted[m->rank][to], 1);
		atomic_fetch_add(&tally->sums[to], 1);
		atomic_fetch_add(&tally->fetches[to], 1);
	}
	if (m->failed)
		return;
	large(m, fetch_next(m, all, at), buf, false);
	large(m, fetch_next(m, all, at), buf, true);
}

static void survivor_check(struct member *m)
{
	struct tally *tally = (struct tally *)m->shared->room;
	uint64_t word, low = 0, high;

	memcpy(&word, m->region + WORD_SUM, sizeof(word));
	CHECK(m, word == atomic_load(&tally->sums[m->rank]));
	memcpy(&word, m->region + WORD_FETCH, sizeof(word));
	CHECK(m, word == atomic_load(&tally->fetches[m->rank]));
	for (uint64_t i = 0; i < word; i++) /* all, and each one once */
		CHECK(m, atomic_load(&tally->seen[m->rank][i]));
	for (int from = 0; from < STORM_MEMBERS; from++)
		if (from != m->attr->victim)
			low += atomic_load(&tally->posted[from][m->rank]);
	high = low + atomic_load(&tally->posted[m->attr->victim][m->rank]);
	low += atomic_load(&tally->ended[m->rank]);
	memcpy(&word, m->region + WORD_ALL, sizeof(word));
	CHECK(m, word >= low && word <= high);
}

/* Each has received from each: a member without a connection may still connect. */
static void greet(struct member *m, struct fetch *all)
{
	int at = 0;

	for (int i = 0; i < WINDOW; i++)
		all[i].op.done = true;
	for (int to = 0; to < STORM_MEMBERS; to++)
		if (to != m->attr->victim || !atomic_load(&m->shared->dead))
			fetch_add(m, fetch_next(m, all, &at), to, WORD_GREET);
	storm_finish(m);
	for (int i = 0; i < WINDOW; i++)
		all[i].op.kind = 0;
	storm_meet(m);
}

void storm_one_dies(struct member *m)
{
	struct fetch all[WINDOW] = { 0 };
	uint8_t *buf = calloc(2, LARGE);
	uint64_t failed;
	int at = 0;

	CHECK(m, buf);
	greet(m, all);
	if (m->rank == m->attr->victim)
		victim_lives(m, all);
	for (int round = 0; round < ROUNDS || !m->failed; round++) {
		survivor_round(m, all, &at, buf);
		if (!m->deadline && atomic_load(&m->shared->dead))
			m->deadline = storm_now() + 30;
	}
	for (int i = 0; i < WINDOW; i++)
		fetch_next(m, all, &at);
	storm_finish(m);
	/* Later operations fail, too. */
	for (int i = 0; i < 3; i++) {
		failed = m->failed;
		add(m, fetch_next(m, all, &at), m->attr->victim, WORD_ALL);
		storm_finish(m);
		CHECK(m, m->failed == failed + 1);
	}
	CHECK(m, storm_now() < m->deadline);
	m->deadline = 0;
	storm_meet(m);
	survivor_check(m);
	storm_meet(m);
	free(buf);
}

/* The address contains a process: a refusal at that address means that the process is dead. */
void storm_one_was_dead(struct member *m)
{
	struct fetch all[WINDOW] = { 0 };
	uint8_t *buf = calloc(2, LARGE);
	int at = 0;

	CHECK(m, buf);
	for (int i = 0; i < WINDOW; i++)
		all[i].op.done = true;
	if (m->rank == m->attr->victim) {
		storm_die(m);
		for (;;)
			pause();
	}
	m->deadline = storm_now() + 30;
	while (!atomic_load(&m->shared->dead))
		storm_turn(m);
	for (int i = 0; i < 3; i++) {
		add(m, fetch_next(m, all, &at), m->attr->victim, WORD_ALL);
		fetch_add(m, fetch_next(m, all, &at), m->attr->victim, WORD_FETCH);
		large(m, fetch_next(m, all, &at), buf, false);
		large(m, fetch_next(m, all, &at), buf, true);
	}
	storm_finish(m);
	CHECK(m, m->failed == 12);
	m->deadline = 0;
	storm_meet(m);
	greet(m, all);
	free(buf);
}
