/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The controller as a whole: making and ending it, and what waits for other things to end */
#include "nvmed.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "io.h"

/* Descriptors that windows can't have */
#define KEPT_OF_ALL    128u
#define KEPT_OF_A_PAIR 12u

uint64_t nvmed_clock(struct nvmed *c)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	c->now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	return c->now;
}

/* What the process needs beside windows: a pair's page, its eventfds, a session with its endpoint; messages under way */
static uint64_t descriptors_kept(const struct nvmed_config *config)
{
	uint64_t granules = config->cmb_len ? config->cmb_len / config->granule : 0;

	return KEPT_OF_ALL + KEPT_OF_A_PAIR * (config->queue_cnt + 1ull) + granules;
}

static int pieces_init(struct nvmed *c)
{
	uint32_t depth = c->backend->ops->depth;

	if (!depth)
		return 0;
	c->piece_pool = calloc(depth, sizeof(*c->piece_pool));
	if (!c->piece_pool)
		return -ENOMEM;
	for (uint32_t i = 0; i < depth; i++)
		piece_put(c, &c->piece_pool[i]);
	return 0;
}

static int tables_init(struct nvmed *c)
{
	uint32_t cnt = c->config.queue_cnt + 1;

	c->bells = calloc(cnt, sizeof(*c->bells));
	c->sqs = calloc(cnt, sizeof(struct sq *));
	c->cqs = calloc(cnt, sizeof(struct cq *));
	c->hot = calloc(cnt, sizeof(struct sq *));
	c->cold = calloc(cnt, sizeof(struct sq *));
	if (!c->bells || !c->sqs || !c->cqs || !c->hot || !c->cold)
		return -ENOMEM;
	return vectors_init(&c->vectors, cnt);
}

static void tables_fini(struct nvmed *c)
{
	vectors_fini(&c->vectors);
	free(c->bells);
	free(c->sqs);
	free(c->cqs);
	free(c->hot);
	free(c->cold);
	free(c->piece_pool);
}

int nvmed_create(const struct nvmed_config *config, struct backend *backend,
		 struct nvmed **created)
{
	struct nvmed *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	c->config = *config;
	c->backend = backend;
	c->blocks = backend->len / config->block;
	c->epoll = -1;
	c->started = nvmed_clock(c);
	share_init(c);
	leases_init(&c->leases, backend->hooks,
		    backend->pairs ? backend->pairs->hooks : backend->hooks,
		    descriptors_kept(config));
	ret = tables_init(c);
	if (!ret)
		ret = pieces_init(c);
	if (ret)
		goto err_tables;
	ret = backend->memory ? cmb_init_device(&c->cmb, backend->memory, config->granule)
			      : cmb_init(&c->cmb, config->cmb_len, config->granule);
	if (ret)
		goto err_tables;
	ret = registers_init(c);
	if (ret)
		goto err_cmb;
	features_reset(c);
	*created = c;
	return 0;

err_cmb:
	cmb_fini(&c->cmb);
err_tables:
	tables_fini(c);
	free(c);
	return ret;
}

uint64_t nvmed_due(struct nvmed *c)
{
	const struct backend_ops *ops = c->backend->ops;

	uint64_t next = ops->due ? ops->due(c->backend, c->now) : UINT64_MAX;

	if (c->losses != c->backend->losses) {
		c->losses = c->backend->losses;
		leases_lost(c);
	}
	return next;
}

/* For pieces under way, of which a device may never tell */
static void nvmed_wait(struct nvmed *c)
{
	nvmed_clock(c);
	nvmed_due(c);
	nvmed_reap(c);
}

void nvmed_destroy(struct nvmed *c)
{
	registers_write(c, NVME_REG_CC, 4, 0);
	while (nvmed_chores(c), c->regs.state != REGISTERS_DISABLED)
		nvmed_wait(c);
	domain_clear(&c->leases.each[0].domain);
	while (c->leases.each[0].domain.leaving)
		nvmed_wait(c);
	for (uint32_t i = 0; i <= c->config.queue_cnt; i++)
		doorbells_close(&c->bells[i]);
	backend_close(c->backend);
	registers_fini(c);
	cmb_fini(&c->cmb);
	tables_fini(c);
	free(c);
}

/* A submission queue that was stopped, once nothing of it is under way */
static bool queues_advance(struct nvmed *c)
{
	bool left = false;

	for (uint32_t i = 0; i <= c->config.queue_cnt; i++) {
		struct sq *sq = c->sqs[i];
		struct command *deleter;

		if (!sq || !sq->deleting)
			continue;
		if (sq->under_way ||
		    (sq->direct && !c->backend->pairs->delete_sq(c->backend, sq->qid))) {
			left = true;
			continue;
		}
		deleter = sq->deleter;
		sq_destroy(c, sq);
		if (!deleter)
			continue;
		deleter->held = false;
		command_end(c, deleter, NVME_SC_SUCCESS, 0);
	}
	return left;
}

void nvmed_chores(struct nvmed *c)
{
	bool left;

	if (!c->chores)
		return;
	c->chores = false;
	left = queues_advance(c);
	left |= leases_advance(c);
	left |= registers_advance(c);
	events_tell(c);
	left |= c->events.pending_cnt && c->events.request_cnt;
	c->chores |= left;
	cqs_notify(c);
}

static void piece_done(void *arg, struct piece *p)
{
	struct nvmed *c = arg;

	if (p->owner) {
		io_piece_done(c, p);
		return;
	}
	piece_put(c, p);
	registers_flushed(c);
}

uint32_t nvmed_reap(struct nvmed *c)
{
	uint32_t cnt;

	if (!c->backend->ops->depth)
		return 0;
	c->backend->ops->submit(c->backend);
	if (c->share.limit != UINT64_MAX)
		nvmed_clock(c);
	cnt = c->backend->ops->reap(c->backend, piece_done, c);
	if (cnt)
		cqs_notify(c);
	return cnt;
}
