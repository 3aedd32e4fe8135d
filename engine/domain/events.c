/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writing to event queues; object/eq_fid.c reads them. Called on any thread: a queue has a lock of
 * its own. Its channel is rung while the queue has events.
 */
#include <rdma/fi_errno.h>
#include "events.h"
#include "waiting.h"

void engine_eq_wake(struct engine_eq *eq)
{
	engine_channel_ring(&eq->channel);
}

void engine_eq_post(struct engine_eq *eq, struct eq_event *event)
{
	platform_lock(&eq->lock);
	if (eq->closed) {
		eq_event_free(event);
	} else {
		eq_post(&eq->queue, event);
		engine_eq_wake(eq);
	}
	platform_unlock(&eq->lock);
}

int engine_eq_push(struct engine_eq *eq, uint32_t event, const void *buf, size_t len)
{
	struct eq_event *e = eq_event_new(event, buf, len);

	if (!e)
		return -FI_ENOMEM;
	engine_eq_post(eq, e);
	return 0;
}

int engine_eq_push_error(struct engine_eq *eq, const struct fi_eq_err_entry *err)
{
	int ret = 0;

	platform_lock(&eq->lock);
	if (!eq->closed)
		ret = eq_push_error(&eq->queue, err);
	if (!ret && !eq->closed)
		engine_eq_wake(eq);
	platform_unlock(&eq->lock);
	return ret;
}

void engine_eq_forget(struct engine_eq *eq, const struct fid *fid,
		      void (*drop)(void *arg, const struct fi_eq_cm_entry *entry), void *arg)
{
	platform_lock(&eq->lock);
	eq_forget(&eq->queue, fid, drop, arg);
	if (eq_empty(&eq->queue))
		engine_channel_clear(&eq->channel);
	platform_unlock(&eq->lock);
}
