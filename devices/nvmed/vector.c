/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Interrupts */
#define _GNU_SOURCE
#include "vector.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "nvmed.h"

#define COALESCING_NS 100000ull

/* Longest that a write may block */
#define GUARD_NS 20000000

/* Nothing is to be done: the system call that it interrupts returns. */
static void guard_rings(int signal)
{
}

int vectors_init(struct vectors *v, uint32_t cnt)
{
	struct sigaction interrupt = { .sa_handler = guard_rings };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };

	v->each = calloc(cnt, sizeof(*v->each));
	if (!v->each)
		return -ENOMEM;
	if (sigaction(SIGALRM, &interrupt, NULL) ||
	    timer_create(CLOCK_MONOTONIC, &event, &v->guard)) {
		free(v->each);
		v->each = NULL;
		return -errno;
	}
	v->cnt = cnt;
	for (uint32_t i = 0; i < cnt; i++)
		v->each[i].fd = -1;
	return 0;
}

void vectors_fini(struct vectors *v)
{
	if (!v->each)
		return;
	timer_delete(v->guard);
	for (uint32_t i = 0; i < v->cnt; i++)
		if (v->each[i].fd >= 0)
			close(v->each[i].fd);
	free(v->each);
}

void vector_set(struct nvmed *c, uint32_t index, int fd)
{
	struct vector *v = &c->vectors.each[index];

	/* A device interrupts by itself. */
	if (c->backend->pairs && index)
		c->backend->pairs->set_vector(c->backend, index, fd);
	if (v->fd >= 0)
		close(v->fd);
	v->fd = fd;
}

static void guard_set(struct vectors *v, bool on)
{
	struct itimerspec every = { 0 };

	if (on == v->guarded)
		return;
	if (on)
		every.it_value.tv_nsec = every.it_interval.tv_nsec = GUARD_NS;
	timer_settime(v->guard, 0, &every, NULL);
	v->guarded = on;
}

void vectors_rest(struct nvmed *c)
{
	guard_set(&c->vectors, false);
}

/* A full counter is readable as it is, and needs no further count. */
static bool is_full(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return !poll(&p, 1, 0);
}

/*
 * Who shares the descriptor may fill its counter and have writes to it block, which takes the time of all others: such a
 * write is not begun. Where the counter is filled just then the guard ends it, and the vector with it.
 */
static void fire(struct nvmed *c, struct vector *v)
{
	uint64_t one = 1;

	if (v->pending) {
		v->pending = 0;
		c->vectors.waiting--;
	}
	if (v->fd < 0 || is_full(v->fd))
		return;
	guard_set(&c->vectors, true);
	if (write(v->fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		vector_set(c, (uint32_t)(v - c->vectors.each), -1);
}

void vector_fire(struct nvmed *c, uint32_t index)
{
	fire(c, &c->vectors.each[index]);
}

static bool masked(const struct nvmed *c, uint32_t index)
{
	return index < 32 && c->vectors.mask >> index & 1;
}

/* Whether a vector's entries may wait for more of them */
static bool coalesced(const struct nvmed *c, const struct vector *v, uint64_t *until)
{
	uint32_t how = feature_value(c, NVME_FEATURE_COALESCING);

	if (v->alone || !NVME_COALESCING_THR(how) || !NVME_COALESCING_TIME(how) ||
	    v->pending > NVME_COALESCING_THR(how))
		return false;
	*until = v->since + NVME_COALESCING_TIME(how) * COALESCING_NS;
	return true;
}

void vector_raise(struct nvmed *c, uint32_t index, uint32_t cnt, bool admin)
{
	struct vector *v = &c->vectors.each[index];
	uint64_t until;

	if (!v->pending) {
		c->vectors.waiting++;
		v->since = c->now;
	}
	v->pending += cnt;
	if (masked(c, index) || (!admin && coalesced(c, v, &until)))
		return;
	fire(c, v);
}

void vectors_mask(struct nvmed *c, uint32_t mask)
{
	c->vectors.mask = mask;
	for (uint32_t i = 0; i < c->vectors.cnt && i < 32; i++)
		if (!masked(c, i) && c->vectors.each[i].pending)
			fire(c, &c->vectors.each[i]);
}

uint64_t vectors_due(struct nvmed *c)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; c->vectors.waiting && i < c->vectors.cnt; i++) {
		struct vector *v = &c->vectors.each[i];
		uint64_t until;

		if (!v->pending || masked(c, i))
			continue;
		if (!coalesced(c, v, &until) || until <= c->now)
			fire(c, v);
		else if (until < next)
			next = until;
	}
	return next;
}
