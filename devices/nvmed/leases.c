/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Leases: their deadlines, and how they end */
#include "leases.h"

#include "nvmed.h"

#define NS_PER_MS 1000000u

void leases_init(struct leases *l, const struct window_hooks *owner_hooks,
		 const struct window_hooks *hooks, uint64_t kept)
{
	budget_init(&l->budget, NVME_LEASES, kept);
	for (uint32_t i = 0; i <= NVME_LEASES; i++) {
		l->each[i].domain.hooks = i ? hooks : owner_hooks;
		l->each[i].domain.budget = i ? &l->budget : NULL;
	}
	l->each[0].state = LEASE_RUNS;
	l->each[0].deadline = UINT64_MAX;
	l->next = UINT64_MAX;
}

struct lease *lease_get(struct nvmed *c, uint32_t index)
{
	struct lease *lease;

	if (index > NVME_LEASES)
		return NULL;
	lease = &c->leases.each[index];
	return lease->state == LEASE_RUNS ? lease : NULL;
}

uint32_t lease_index(const struct nvmed *c, const struct lease *lease)
{
	return (uint32_t)(lease - c->leases.each);
}

static void next_deadline(struct nvmed *c)
{
	c->leases.next = UINT64_MAX;
	for (uint32_t i = 1; i <= NVME_LEASES; i++) {
		const struct lease *lease = &c->leases.each[i];

		if (lease->state == LEASE_RUNS && lease->deadline < c->leases.next)
			c->leases.next = lease->deadline;
	}
}

int lease_arm(struct nvmed *c, const struct command *cmd)
{
	uint32_t index = cmd->sqe.cdw10, generation = cmd->sqe.cdw11, ms = cmd->sqe.cdw12;
	struct lease *lease;

	if (!index || index > NVME_LEASES || !ms || ms > NVME_LEASE_MS_MAX)
		return NVME_SC_INVALID_FIELD;
	lease = &c->leases.each[index];
	nvmed_clock(c);
	if (generation < lease->generation)
		return NVME_SC_INVALID_FIELD;
	if (generation == lease->generation) {
		/* One whose time has run out has ended, whether the loop has come to that or not. */
		if (lease->state != LEASE_RUNS || lease->deadline <= c->now)
			return NVME_SC_INVALID_FIELD;
	} else {
		if (lease->state != LEASE_NONE)
			return NVME_SC_SEQUENCE;
		lease->state = LEASE_RUNS;
		lease->generation = generation;
		lease->commands = lease->bytes = 0;
		lease->told = false;
	}
	lease->deadline = c->now + (uint64_t)ms * NS_PER_MS;
	next_deadline(c);
	return 0;
}

/* First, no doorbell is taken any more, and submission queues go as soon as nothing of them is under way. */
static void lease_stop(struct nvmed *c, struct lease *lease)
{
	if (lease->state != LEASE_RUNS)
		return;
	lease->state = LEASE_ENDS;
	c->leases.ending++;
	for (uint32_t i = 1; i <= c->config.queue_cnt; i++)
		if (c->sqs[i] && c->sqs[i]->lease == lease)
			sq_stop(c, c->sqs[i], NVME_SC_ABORT_SQ_DELETED);
	c->chores = true;
}

/* Submission queues are gone: completion queues go, then the memory, then its files. */
static void lease_advance(struct nvmed *c, struct lease *lease)
{
	if (lease->sq_cnt)
		return;
	for (uint32_t i = 1; lease->cq_cnt && i <= c->config.queue_cnt; i++)
		if (c->cqs[i] && c->cqs[i]->lease == lease)
			cq_destroy(c, c->cqs[i]);
	domain_clear(&lease->domain);
	if (lease->domain.leaving)
		return;
	lease->state = LEASE_NONE;
	c->leases.ending--;
	if (lease->told)
		event_raise(c, NVME_EVENT(NVME_EVENT_TYPE_VENDOR, NVME_EVENT_LEASE_ENDED,
					  NVME_LOG_LEASES));
}

int lease_end(struct nvmed *c, const struct command *cmd, uint32_t *result)
{
	uint32_t index = cmd->sqe.cdw10, generation = cmd->sqe.cdw11;
	struct lease *lease;

	if (!index || index > NVME_LEASES)
		return NVME_SC_INVALID_FIELD;
	lease = &c->leases.each[index];
	if (!lease->generation || generation > lease->generation)
		return NVME_SC_INVALID_FIELD;
	if (generation < lease->generation || lease->state == LEASE_NONE)
		return 0;
	lease_stop(c, lease);
	next_deadline(c);
	lease_advance(c, lease);
	if (lease->state == LEASE_NONE)
		return 0;
	lease->told = true;
	*result = NVME_UNDER_WAY;
	return 0;
}

void leases_due(struct nvmed *c)
{
	if (c->now < c->leases.next)
		return;
	for (uint32_t i = 1; i <= NVME_LEASES; i++) {
		struct lease *lease = &c->leases.each[i];

		if (lease->state != LEASE_RUNS || lease->deadline > c->now)
			continue;
		lease->told = true;
		lease_stop(c, lease);
	}
	next_deadline(c);
}

void leases_lost(struct nvmed *c)
{
	for (uint32_t i = 1; i <= NVME_LEASES; i++) {
		struct lease *lease = &c->leases.each[i];

		lease->told |= lease->state == LEASE_RUNS;
		lease_stop(c, lease);
	}
	next_deadline(c);
}

void leases_reset(struct nvmed *c)
{
	for (uint32_t i = 1; i <= NVME_LEASES; i++)
		lease_stop(c, &c->leases.each[i]);
	next_deadline(c);
}

bool leases_advance(struct nvmed *c)
{
	for (uint32_t i = 1; c->leases.ending && i <= NVME_LEASES; i++)
		if (c->leases.each[i].state == LEASE_ENDS)
			lease_advance(c, &c->leases.each[i]);
	return c->leases.ending;
}
