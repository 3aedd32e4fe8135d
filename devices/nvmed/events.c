/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asynchronous events */
#include "events.h"

#include <string.h>

#include "nvmed.h"

static uint32_t event_type(uint32_t event)
{
	return event & 7;
}

static uint32_t event_page(uint32_t event)
{
	return event >> 16 & 0xff;
}

/* The first event that may be told; pending_cnt if none may */
static uint32_t first_unmasked(const struct events *e)
{
	uint32_t i = 0;

	while (i < e->pending_cnt && e->masked >> event_type(e->pending[i]) & 1)
		i++;
	return i;
}

static void request_remove(struct events *e, uint32_t i)
{
	e->request_cnt--;
	memmove(e->requests + i, e->requests + i + 1,
		(e->request_cnt - i) * sizeof(e->requests[0]));
}

void events_tell(struct nvmed *c)
{
	struct events *e = &c->events;

	while (e->request_cnt) {
		uint32_t i = first_unmasked(e), event;
		struct command *cmd = e->requests[0];

		/* A request keeps no entry while it waits: those that do could fill a small queue for ever. */
		if (i == e->pending_cnt || cmd->sq->cq->broken || !cq_reserve(c, cmd->sq->cq))
			return;
		event = e->pending[i];
		e->pending_cnt--;
		memmove(e->pending + i, e->pending + i + 1,
			(e->pending_cnt - i) * sizeof(e->pending[0]));
		e->masked |= 1u << event_type(event);
		request_remove(e, 0);
		cmd->held = false;
		command_end(c, cmd, NVME_SC_SUCCESS, event);
	}
}

void event_raise(struct nvmed *c, uint32_t event)
{
	struct events *e = &c->events;

	for (uint32_t i = 0; i < e->pending_cnt; i++)
		if (e->pending[i] == event)
			return;
	if (e->pending_cnt == EVENTS_PENDING_MAX)
		return;
	e->pending[e->pending_cnt++] = event;
	c->chores = true; /* not within the call that noticed it */
}

int event_request(struct nvmed *c, struct command *cmd)
{
	struct events *e = &c->events;

	if (e->request_cnt == EVENT_REQUESTS_MAX)
		return NVME_SC_AER_LIMIT;
	e->requests[e->request_cnt++] = cmd;
	cmd->held = true;
	cmd->sq->cq->reserved--;
	c->chores = true;
	return 0;
}

void events_read(struct nvmed *c, uint32_t page)
{
	struct events *e = &c->events;

	switch (page) {
	case NVME_LOG_ERROR:
		e->masked &= ~(1u << NVME_EVENT_TYPE_ERROR);
		break;
	case NVME_LOG_LEASES:
		e->masked &= ~(1u << NVME_EVENT_TYPE_VENDOR);
		break;
	default:
		return;
	}
	/* What is pending and would say the same is what the page has just said. */
	for (uint32_t i = 0; i < e->pending_cnt;) {
		if (event_page(e->pending[i]) != page) {
			i++;
			continue;
		}
		e->pending_cnt--;
		memmove(e->pending + i, e->pending + i + 1,
			(e->pending_cnt - i) * sizeof(e->pending[0]));
	}
}

bool events_forget(struct nvmed *c, const struct command *cmd)
{
	struct events *e = &c->events;

	for (uint32_t i = 0; i < e->request_cnt; i++) {
		if (e->requests[i] != cmd)
			continue;
		request_remove(e, i);
		return true;
	}
	return false;
}

void events_reset(struct nvmed *c)
{
	c->events.pending_cnt = 0;
	c->events.masked = 0;
}
