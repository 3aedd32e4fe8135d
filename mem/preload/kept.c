/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Kept ranges, and their age; kept.h has the contract. Called by heap.c. It allocates nothing. */
#include "kept.h"
#include "decay.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define RANGES 128u
/* No more pages are taken away in one hold of the lock. */
#define STEP ((size_t)8 << 20)

struct range {
	uintptr_t base;
	size_t len;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* With the lock: the longest kept first. */
static struct range ranges[RANGES];
static size_t cnt;
/* Their bytes, changed with the lock. */
static _Atomic size_t total;
/* kept_gone() since the last kept_decay() */
static _Atomic size_t gone;

/* Set once, before the first range. */
static int (*purge_range)(void *addr, size_t len);
static uint64_t decay_step_ns;

/* Protects what follows; only tried. Before the other one. */
static pthread_mutex_t age_lock = PTHREAD_MUTEX_INITIALIZER;
static struct decay age;
/* when the last step was; 0: nothing has been kept */
static uint64_t stepped_ns;

void kept_start(int (*purge)(void *addr, size_t len), uint32_t decay_ms)
{
	purge_range = purge;
	decay_step_ns = decay_ms * 1000000ull / DECAY_STEPS;
}

size_t kept_len(void)
{
	return atomic_load_explicit(&total, memory_order_relaxed);
}

void kept_gone(size_t len)
{
	atomic_fetch_add_explicit(&gone, len, memory_order_relaxed);
}

static void total_add_locked(size_t len)
{
	atomic_store_explicit(&total, kept_len() + len, memory_order_relaxed);
}

static void total_take_locked(size_t len)
{
	atomic_store_explicit(&total, kept_len() - len, memory_order_relaxed);
}

/* There is room. */
static void insert_locked(size_t idx, uintptr_t base, size_t len)
{
	memmove(&ranges[idx + 1], &ranges[idx], (cnt - idx) * sizeof(ranges[0]));
	ranges[idx] = (struct range){ .base = base, .len = len };
	cnt++;
}

static void remove_locked(size_t idx)
{
	cnt--;
	memmove(&ranges[idx], &ranges[idx + 1], (cnt - idx) * sizeof(ranges[0]));
}

bool kept_add(void *addr, size_t len)
{
	bool taken = false;

	if (len < KEPT_LEAST || !decay_step_ns)
		return false;
	pthread_mutex_lock(&lock);
	if (cnt < RANGES) {
		insert_locked(cnt, (uintptr_t)addr, len);
		total_add_locked(len);
		taken = true;
	}
	pthread_mutex_unlock(&lock);
	return taken;
}

/* What is known here no more is taken for zero. */
static void forget_locked(uintptr_t base, size_t len)
{
	if (purge_range((void *)base, len))
		memset((void *)base, 0, len);
	total_take_locked(len);
	kept_gone(len);
}

/* Takes [@base, @end), which is inside a range, out of it. */
static void cut_locked(size_t idx, uintptr_t base, uintptr_t end)
{
	struct range *range = &ranges[idx];
	size_t before = base - range->base, after = range->base + range->len - end;

	total_take_locked(end - base);
	if (!before && !after) {
		remove_locked(idx);
		return;
	}
	range->len = before ? before : after;
	if (!before)
		range->base = end;
	else if (after && cnt < RANGES)
		insert_locked(idx + 1, end, after);
	else if (after)
		forget_locked(end, after);
}

/* Takes the part [@from, @to) of [@base, @end) out of the first range that has any. Returns false if none has. */
static bool take_part(uintptr_t base, uintptr_t end, uintptr_t *from, uintptr_t *to)
{
	bool taken = false;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < cnt && !taken; i++) {
		uintptr_t last = ranges[i].base + ranges[i].len;

		*from = ranges[i].base > base ? ranges[i].base : base;
		*to = last < end ? last : end;
		taken = *from < *to;
		if (taken)
			cut_locked(i, *from, *to);
	}
	pthread_mutex_unlock(&lock);
	return taken;
}

void kept_take(void *addr, size_t len, bool zero)
{
	uintptr_t base = (uintptr_t)addr, from, to;

	/* Who uses memory again has seen it given up, under a lock of jemalloc's. */
	while (kept_len() && take_part(base, base + len, &from, &to))
		if (zero)
			memset((void *)from, 0, to - from);
}

/*
 * Takes pages away from the end of a range, whose beginning is what is used first: grains of KEPT_LEAST that make up at
 * most @most bytes, or all of it. Returns the bytes.
 */
static size_t trim_range_locked(size_t idx, size_t most)
{
	struct range *range = &ranges[idx];
	uintptr_t end = range->base + range->len, at = range->base;

	if (range->len > most)
		at = (end - most + KEPT_LEAST - 1) & ~(KEPT_LEAST - 1);
	if (at >= end || purge_range((void *)at, end - at))
		return 0;
	total_take_locked(end - at);
	range->len = at - range->base;
	if (!range->len)
		remove_locked(idx);
	return end - at;
}

/* Takes away up to about STEP bytes. Returns false when no more are to go, or can. @spared: ranges that stay */
static bool trim_step(size_t keep, size_t *spared)
{
	bool more = false;

	pthread_mutex_lock(&lock);
	while (!more && *spared < cnt && kept_len() > keep) {
		size_t most = kept_len() - keep;

		more = trim_range_locked(*spared, most < STEP ? most : STEP);
		*spared += !more;
	}
	pthread_mutex_unlock(&lock);
	return more;
}

void kept_trim(size_t keep)
{
	size_t spared = 0;

	while (trim_step(keep, &spared))
		;
}

/* Returns what may be kept after as many steps as it is time for. */
static size_t steps_locked(uint64_t now_ns, size_t kept, size_t unused)
{
	uint64_t due = now_ns > stepped_ns ? (now_ns - stepped_ns) / decay_step_ns : 0;
	size_t keep = kept;

	stepped_ns += due * decay_step_ns;
	for (due = due < DECAY_STEPS ? due : DECAY_STEPS; due; due--)
		keep = decay_step(&age, unused, kept);
	return keep;
}

static void decay_locked(uint64_t now_ns, size_t dirty, size_t unused)
{
	size_t before = kept_len(), kept = dirty + before, keep;

	decay_gone(&age, atomic_exchange_explicit(&gone, 0, memory_order_relaxed));
	if (!kept || !decay_step_ns) {
		age = (struct decay){ .due = 0 };
		stepped_ns = 0;
		return;
	}
	if (!stepped_ns)
		stepped_ns = now_ns;
	keep = steps_locked(now_ns, kept, unused < kept ? unused : kept);
	keep = keep > dirty ? keep - dirty : 0;
	/* less than a grain waits until there is more of it, or nothing else */
	if (keep && keep + KEPT_LEAST > before)
		return;
	kept_trim(keep);
	decay_gone(&age, before > kept_len() ? before - kept_len() : 0);
}

void kept_decay(uint64_t now_ns, size_t dirty, size_t unused)
{
	if (pthread_mutex_trylock(&age_lock))
		return;
	decay_locked(now_ns, dirty, unused);
	pthread_mutex_unlock(&age_lock);
}

void kept_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void kept_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

void kept_fork_child(void)
{
	/* The threads that held them are not here. */
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&age_lock, NULL);
}
