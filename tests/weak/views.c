/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory as threads see it: of each location all stores in their order, of each thread how far it has
 * seen in each location. runtime.c calls it for each access.
 */
#include "views.h"
#include "weak.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACTORS	  (WEAK_THREADS + 1) /* with setup() and check() */
#define LOCATIONS 80
#define STORES	  64 /* of one location */
#define CELLS	  (1u << 14)
#define NAMES	  16
#define CELL_LEN  4u

/*
 * A view: by location, the latest store that is visible; and what each thread did before it passed
 * the view on.
 */
struct view {
	double seen[LOCATIONS];
	uint32_t clock[ACTORS];
};

/* A store: of equal places in the order there are none. */
struct store {
	double place;
	uint64_t value;
	bool updates; /* is ordered right behind the one that it read */
	struct view view;
};

struct location {
	const volatile void *at;
	size_t len;
	unsigned cnt;
	struct store stores[STORES]; /* by place */
};

struct actor {
	struct view cur, acquired, released;
	const char *fence;
};

/* The thread that accessed some bytes last, and the time by its clock. */
struct cell {
	uintptr_t at;
	uint32_t epoch;
	int writer;
	uint32_t written, read[ACTORS];
};

static struct location locations[LOCATIONS];
static unsigned location_cnt;
static struct actor actors[ACTORS];
static struct view order; /* of memory_order_seq_cst */
static struct cell cells[CELLS];
static uint32_t epoch;

static struct {
	const char *name;
	uintptr_t at;
	size_t len;
} names[NAMES];
static unsigned name_cnt;
static const char *weak;
static bool weakened;

static struct actor *self(void)
{
	return &actors[weak_running()];
}

static void join(struct view *to, const struct view *from)
{
	for (unsigned i = 0; i < location_cnt; i++)
		if (from->seen[i] > to->seen[i])
			to->seen[i] = from->seen[i];
	for (unsigned i = 0; i < ACTORS; i++)
		if (from->clock[i] > to->clock[i])
			to->clock[i] = from->clock[i];
}

void views_reset(void)
{
	location_cnt = 0;
	name_cnt = 0;
	epoch++;
	memset(actors, 0, sizeof(actors));
	memset(&order, 0, sizeof(order));
	for (int i = 0; i < ACTORS; i++)
		actors[i].cur.clock[i] = 1;
}

void views_begin(int thread)
{
	join(&actors[thread].cur, &actors[WEAK_THREADS].cur);
	actors[thread].acquired = actors[thread].cur;
	actors[WEAK_THREADS].cur.clock[WEAK_THREADS]++;
}

void views_end(void)
{
	for (int i = 0; i < WEAK_THREADS; i++)
		join(&actors[WEAK_THREADS].cur, &actors[i].cur);
	for (unsigned i = 0; i < location_cnt; i++)
		actors[WEAK_THREADS].cur.seen[i] =
			locations[i].stores[locations[i].cnt - 1].place;
}

void weak_name(const char *name, const void *at, size_t len)
{
	if (name_cnt == NAMES)
		abort();
	names[name_cnt].name = name;
	names[name_cnt].at = (uintptr_t)at;
	names[name_cnt++].len = len;
}

void weak_fence_name(const char *name)
{
	self()->fence = name;
}

void views_weaken(const char *label)
{
	weak = label;
	weakened = false;
}

bool views_weakened(void)
{
	return weakened;
}

/* Whether this kind of ordering of a location is left out: R, A or F. */
static bool is_weak(char kind, const volatile void *at)
{
	if (!weak || weak[0] != kind)
		return false;
	for (unsigned i = 0; i < name_cnt; i++)
		if (!strcmp(weak + 2, names[i].name) && (uintptr_t)at >= names[i].at &&
		    (uintptr_t)at < names[i].at + names[i].len)
			return weakened = true;
	return false;
}

static bool fence_is_weak(void)
{
	const char *name = self()->fence;

	return weak && name && weak[0] == 'F' && !strcmp(weak + 2, name) && (weakened = true);
}

static bool seq_of(int mo, const volatile void *at)
{
	return mo == __ATOMIC_SEQ_CST && !is_weak('F', at);
}

static bool acquires(int mo, const volatile void *at)
{
	return (mo == __ATOMIC_ACQUIRE || mo == __ATOMIC_CONSUME || mo == __ATOMIC_ACQ_REL ||
		mo == __ATOMIC_SEQ_CST) &&
	       !is_weak('A', at);
}

static bool releases(int mo, const volatile void *at)
{
	return (mo == __ATOMIC_RELEASE || mo == __ATOMIC_ACQ_REL || mo == __ATOMIC_SEQ_CST) &&
	       !is_weak('R', at);
}

static uint64_t real_value(const volatile void *at, size_t len)
{
	uint64_t value = 0;

	memcpy(&value, (const void *)(uintptr_t)at, len);
	return value;
}

static struct location *location_of(const volatile void *at, size_t len)
{
	struct location *l;

	for (unsigned i = 0; i < location_cnt; i++)
		if (locations[i].at == at)
			return &locations[i];
	if (location_cnt == LOCATIONS) {
		fprintf(stderr, "weak: too many locations\n");
		exit(1);
	}
	l = &locations[location_cnt++];
	l->at = at;
	l->len = len;
	l->cnt = 1;
	memset(&l->stores[0], 0, sizeof(l->stores[0]));
	l->stores[0].value = real_value(at, len);
	return l;
}

static unsigned idx_of(const struct location *l)
{
	return (unsigned)(l - locations);
}

/* The first store that the thread may see or stand behind. */
static unsigned first_seen(const struct location *l, bool seq)
{
	double least = self()->cur.seen[idx_of(l)];
	unsigned i = l->cnt - 1;

	if (seq && order.seen[idx_of(l)] > least)
		least = order.seen[idx_of(l)];
	while (i && l->stores[i].place > least)
		i--;
	return i;
}

static void saw(struct location *l, const struct store *s, bool acquire)
{
	struct actor *me = self();

	if (me->cur.seen[idx_of(l)] < s->place)
		me->cur.seen[idx_of(l)] = s->place;
	join(&me->acquired, &s->view);
	if (acquire)
		join(&me->cur, &s->view);
	join(&me->acquired, &me->cur);
}

uint64_t views_load(const volatile void *at, size_t len, int mo)
{
	bool seq = seq_of(mo, at), acquire = acquires(mo, at);
	struct location *l;
	struct store *s;

	weak_step(VIEWS_LOAD, at, seq);
	l = location_of(at, len);
	/* the latest first: an execution that waits for it ends soon */
	s = &l->stores[l->cnt - 1 - weak_choose(l->cnt - first_seen(l, seq))];
	saw(l, s, acquire);
	return s->value;
}

/* Puts a store behind the one at @behind. */
static struct store *insert(struct location *l, unsigned behind, uint64_t value)
{
	double place = l->stores[behind].place;
	struct store *s;

	if (l->cnt == STORES)
		abort();
	place = behind + 1 == l->cnt ? place + 1 : (place + l->stores[behind + 1].place) / 2;
	s = &l->stores[behind + 1];
	memmove(s + 1, s, (l->cnt - behind - 1) * sizeof(*s));
	l->cnt++;
	memset(s, 0, sizeof(*s));
	s->place = place;
	s->value = value;
	memcpy((void *)(uintptr_t)l->at, &l->stores[l->cnt - 1].value, l->len);
	return s;
}

/* The view that a store passes on. */
static void stored(struct location *l, struct store *s, bool release, bool seq)
{
	struct actor *me = self();
	int who = weak_running();

	me->cur.seen[idx_of(l)] = s->place;
	join(&s->view, release ? &me->cur : &me->released);
	s->view.seen[idx_of(l)] = s->place;
	join(&me->acquired, &me->cur);
	if (seq && order.seen[idx_of(l)] < s->place)
		order.seen[idx_of(l)] = s->place;
	if (release)
		me->cur.clock[who]++;
}

void views_store(const volatile void *at, size_t len, uint64_t value, int mo)
{
	bool seq = seq_of(mo, at), release = releases(mo, at);
	unsigned first, cnt = 0, ways[STORES];
	struct location *l;

	weak_step(VIEWS_STORE, at, seq);
	l = location_of(at, len);
	first = first_seen(l, seq);
	for (unsigned i = l->cnt; i-- > first;)
		if (i + 1 == l->cnt || !l->stores[i + 1].updates)
			ways[cnt++] = i;
	stored(l, insert(l, ways[weak_choose(cnt)], value), release, seq);
}

/* Reads any store behind which there is room, and is ordered right behind it. */
uint64_t views_update(const volatile void *at, size_t len, views_next *next, uint64_t operand,
		      uint64_t compare, int mo)
{
	bool seq = seq_of(mo, at), acquire = acquires(mo, at), release = releases(mo, at);
	unsigned first, cnt = 0, ways[STORES], way;
	struct view before;
	struct location *l;
	struct store *s;
	uint64_t value, old;

	weak_step(VIEWS_UPDATE, at, seq);
	l = location_of(at, len);
	first = first_seen(l, seq);
	for (unsigned i = l->cnt; i-- > first;)
		if (i + 1 == l->cnt || !l->stores[i + 1].updates)
			ways[cnt++] = i;
	way = ways[weak_choose(cnt)];
	old = l->stores[way].value;
	saw(l, &l->stores[way], acquire);
	if (!next(old, operand, compare, &value))
		return old;
	before = l->stores[way].view;
	s = insert(l, way, value);
	s->updates = true;
	join(&s->view, &before);
	stored(l, s, release, seq);
	return old;
}

void views_fence(int mo)
{
	bool seq = mo == __ATOMIC_SEQ_CST;
	struct actor *me;

	weak_step(VIEWS_FENCE, NULL, seq);
	me = self();
	if (fence_is_weak())
		return;
	if (mo != __ATOMIC_RELEASE)
		join(&me->cur, &me->acquired);
	if (seq) {
		join(&me->cur, &order);
		join(&order, &me->cur);
	}
	if (mo != __ATOMIC_ACQUIRE)
		me->released = me->cur;
	join(&me->acquired, &me->cur);
	me->cur.clock[weak_running()]++;
}

void views_barrier(void)
{
	if (fence_is_weak())
		return;
	for (int i = 0; i < WEAK_THREADS; i++) {
		join(&actors[i].cur, &actors[i].acquired);
		join(&order, &actors[i].cur);
	}
	for (int i = 0; i < WEAK_THREADS; i++) {
		join(&actors[i].cur, &order);
		join(&actors[i].acquired, &order);
		actors[i].released = actors[i].cur;
		actors[i].cur.clock[i]++;
	}
}

/*
 * Bytes that are not atomic: no other thread may have an access to them that is unordered with this
 * one.
 */
static struct cell *cell_of(uintptr_t at)
{
	uint32_t i = (uint32_t)(at / CELL_LEN * 2654435761u) % CELLS;

	for (uint32_t tries = 0; cells[i].epoch == epoch && cells[i].at != at;
	     i = (i + 1) % CELLS)
		if (++tries == CELLS) {
			fprintf(stderr, "weak: too many bytes\n");
			exit(1);
		}
	if (cells[i].epoch != epoch) {
		memset(&cells[i], 0, sizeof(cells[i]));
		cells[i].epoch = epoch;
		cells[i].at = at;
	}
	return &cells[i];
}

void views_touch(const void *at, size_t len, bool write)
{
	struct actor *me = self();
	int who = weak_running();

	for (uintptr_t a = (uintptr_t)at & ~(uintptr_t)(CELL_LEN - 1); a < (uintptr_t)at + len;
	     a += CELL_LEN) {
		struct cell *c = cell_of(a);
		bool race = c->written > me->cur.clock[c->writer];

		for (int i = 0; write && i < ACTORS; i++)
			race |= i != who && c->read[i] > me->cur.clock[i];
		if (write) {
			c->writer = who;
			c->written = me->cur.clock[who];
		} else {
			c->read[who] = me->cur.clock[who];
		}
		if (race)
			weak_fail(
				write ? "bytes are written that another thread has not finished with"
				      : "bytes are read that another thread has not finished writing");
	}
}
