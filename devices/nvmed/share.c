/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Holding back queues with many commands beside queues with few */
#include "share.h"

#include <stdlib.h>

#include "nvmed.h"

#define NS_PER_S 1000000000u

/* Over so long a rate is measured; an old one counts for seven eighths beside it. */
#define RATE_NS 1000000u

/* What a device takes for a piece is measured anew so often, while few are under way. */
#define SAMPLE_NS 4000000000u

/* Time is shared anew so often; an old usage counts for seven eighths: a queue that has the processor in turns with others
 * is one that uses the device. */
#define PERIOD_NS 16000000u

/* Of a usage so many times as much is kept, since a queue that has to wait uses less. */
#define KEPT 4u

/* Less than this in a period is nothing. */
#define USAGE_MIN 512u

/* What a queue may save up: a slice or two */
#define CREDIT_MAX 16384

/* Samples that are off by more than that were interrupted. */
#define SLICE_NS_MAX 1000000u

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* @a * @b / @c of numbers that may be large */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t c)
{
	return (uint64_t)((__uint128_t)a * b / c);
}

/* What the hot queues are: whether some want more than others, and how much these have under way */
static void window_set(struct nvmed *c)
{
	struct share *s = &c->share;
	uint64_t least = UINT64_MAX, all = 0;
	uint64_t peaks = 0;
	uint32_t cnt = 0, wanting = 0;

	for (uint32_t i = 0; i < c->hot_cnt; i++) {
		const struct sq *sq = c->hot[i];

		if (!sq->qid)
			continue;
		cnt++;
		if (sq->share.wants) {
			wanting++;
		} else if (sq->share.peak) {
			least = min(least, sq->share.peak);
			peaks += sq->share.peak;
		}
	}
	if (cnt < 2 || !wanting || least == UINT64_MAX) {
		s->limit = UINT64_MAX;
		return;
	}
	if (s->limit == UINT64_MAX) {
		s->rate_at = nvmed_clock(c);
		s->moved = 0;
	}
	if (c->now >= s->sample_due) {
		s->sample_cnt = 0;
		s->sample_at = c->now;
		s->sample_due = c->now + SAMPLE_NS;
	}
	if (s->sample_cnt == SHARE_SAMPLES)
		all = 2 * scale(s->rate, s->base_ns, NS_PER_S);
	least = max(least, NVME_PAGE);
	s->few = peaks + wanting * least;
	s->limit = max(all / cnt, least);
}

static void rate_add(struct share *s, uint64_t now, uint64_t len)
{
	uint64_t rate;

	s->moved += len;
	if (now - s->rate_at < RATE_NS)
		return;
	rate = scale(s->moved, NS_PER_S, now - s->rate_at);
	s->rate = s->rate ? (7 * s->rate + rate) / 8 : rate;
	s->rate_at = now;
	s->moved = 0;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The time of a piece that has begun since the device was to be measured */
static void sample_add(struct share *s, uint64_t ns)
{
	s->samples[s->sample_cnt++] = (uint32_t)min(ns, UINT32_MAX);
	if (s->sample_cnt < SHARE_SAMPLES)
		return;
	qsort(s->samples, SHARE_SAMPLES, sizeof(s->samples[0]), by_value);
	s->base_ns = s->samples[SHARE_SAMPLES / 2];
}

void share_began(struct nvmed *c, struct sq *sq, struct piece *p)
{
	struct sq_share *q = &sq->share;

	p->began = c->piece_bytes < c->share.few ? c->now : UINT64_MAX;
	q->under += p->len;
	if (q->under > q->peak)
		q->peak = q->under;
	else
		q->peak -= (q->peak - q->under) / 64;
}

void share_ended(struct nvmed *c, struct sq *sq, const struct piece *p)
{
	sq->share.under -= p->len;
	if (c->share.limit == UINT64_MAX)
		return;
	rate_add(&c->share, c->now, p->len);
	if (c->share.sample_cnt < SHARE_SAMPLES && p->began >= c->share.sample_at &&
	    p->began != UINT64_MAX)
		sample_add(&c->share, c->now - p->began);
}

/* A queue with nothing under way may always begin a piece: that of an operation without data may be longer. */
static uint64_t window_most(const struct nvmed *c, const struct sq *sq)
{
	uint64_t limit = c->share.limit, under = sq->share.under;

	if (limit == UINT64_MAX)
		return limit;
	if (!under)
		return limit;
	return under + NVME_PAGE <= limit ? limit - under : 0;
}

/* It rises fast and falls slowly: over a while in which queues have the processor in turns. */
static void usage_add(struct sq_share *q)
{
	if (q->used > q->usage)
		q->usage = (q->usage + q->used) / 2;
	else
		q->usage = (7 * q->usage + q->used) / 8;
	q->used = 0;
}

/* Share time anew: an equal part for those that want it, of the others what they use. */
static void time_share(struct nvmed *c)
{
	const uint64_t whole = scale(c->share.speed, PERIOD_NS, NS_PER_S);
	uint32_t cnt = 0, wanting = 0;
	uint64_t kept = 0;

	c->share.due = c->now + PERIOD_NS;
	for (uint32_t i = 1; i <= c->config.queue_cnt; i++) {
		struct sq *sq = c->sqs[i];

		if (!sq)
			continue;
		usage_add(&sq->share);
		cnt += sq->share.usage >= USAGE_MIN;
	}
	for (uint32_t i = 1; i <= c->config.queue_cnt; i++) {
		struct sq *sq = c->sqs[i];

		if (!sq || sq->share.usage < USAGE_MIN)
			continue;
		if (sq->share.wants || sq->share.was_held)
			wanting++;
		else if (whole)
			kept += min(SHARE_ONE / cnt,
				    scale(KEPT * sq->share.usage, SHARE_ONE, whole));
		sq->share.was_held = false;
	}
	c->share.allowed = SHARE_ONE;
	if (cnt > 1 && wanting && kept)
		c->share.allowed = (SHARE_ONE - kept) / wanting;
}

static uint64_t time_most(struct nvmed *c, struct sq *sq)
{
	const struct share *s = &c->share;
	struct sq_share *q = &sq->share;
	uint64_t add;

	if (!q->wants || c->hot_cnt < 2)
		return UINT64_MAX;
	nvmed_clock(c);
	if (s->allowed == SHARE_ONE || !s->speed)
		return UINT64_MAX;
	add = scale(scale(s->speed, min(c->now - q->filled, PERIOD_NS), NS_PER_S), s->allowed,
		    SHARE_ONE);
	q->filled = c->now;
	q->credit = q->credit + (int64_t)add < CREDIT_MAX ? q->credit + (int64_t)add
							  : CREDIT_MAX;
	return q->credit > 0 ? NVME_PAGE : 0;
}

static void time_used(struct nvmed *c, struct sq *sq, uint64_t cost)
{
	struct share *s = &c->share;
	uint64_t began = c->now, ns, speed;

	sq->share.used += cost;
	if (!sq->share.wants || c->hot_cnt < 2)
		return;
	sq->share.credit -= (int64_t)cost;
	ns = nvmed_clock(c) - began;
	if (!ns || ns > SLICE_NS_MAX)
		return;
	speed = scale(cost, NS_PER_S, ns);
	s->speed = s->speed ? (63 * s->speed + speed) / 64 : speed;
}

void share_init(struct nvmed *c)
{
	c->share = (struct share){ .limit = UINT64_MAX, .allowed = SHARE_ONE };
}

void share_round(struct nvmed *c)
{
	if (!c->backend->ops->depth) {
		if (c->now >= c->share.due)
			time_share(c);
		return;
	}
	window_set(c);
	if (c->share.limit != UINT64_MAX)
		nvmed_clock(c);
}

uint64_t share_most(struct nvmed *c, struct sq *sq)
{
	uint64_t most = c->backend->ops->depth ? window_most(c, sq) : time_most(c, sq);

	most &= ~(uint64_t)(NVME_PAGE - 1);
	sq->share.held = !most;
	sq->share.was_held |= !most;
	return most;
}

void share_used(struct nvmed *c, struct sq *sq, uint64_t cost)
{
	if (!c->backend->ops->depth)
		time_used(c, sq, cost);
}

bool share_waits(const struct nvmed *c, const struct sq *sq)
{
	return sq->share.held && c->backend->ops->depth;
}
