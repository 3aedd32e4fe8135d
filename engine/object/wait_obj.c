/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait objects of queues and counters. Called by programs on any thread.
 */
#include <rdma/fi_errno.h>
#include "arm.h"
#include "auto.h"
#include "cntr.h"
#include "guard.h"
#include "poll_fid.h"
#include "progress.h"
#include "refuse.h"
#include "wait_obj.h"
#include "wait_set_fid.h"
#include "waiting.h"

#define QUEUE_CHANNELS_MAX 8u /* channels of queues over the one of a domain, at most */

static bool engine_cntr_moved(struct engine_cntr *cntr)
{
	return atomic_load_explicit(&cntr->value, memory_order_relaxed) != cntr->seen_value ||
	       atomic_load_explicit(&cntr->errors, memory_order_relaxed) != cntr->seen_errors;
}

/* A counter is ready if it has a change that the program has not read. */
bool engine_wait_obj_ready(const struct engine_wait_obj *w)
{
	if (w->fid->fclass == FI_CLASS_CNTR)
		return engine_cntr_moved(container_of(w->fid, struct engine_cntr, fid.fid));
	return cq_reached(&container_of(w->fid, struct engine_cq, fid.fid)->queue, 1);
}

bool engine_wait_obj_check(struct engine_wait_obj *w)
{
	if (engine_wait_obj_ready(w))
		return true;
	engine_domain_progress(w->base.domain);
	return engine_wait_obj_ready(w);
}

/* Descriptors */

static void engine_wait_obj_written(struct cq *queue)
{
	struct engine_cq *cq = container_of(queue, struct engine_cq, queue);

	engine_wait_wake(&cq->wait.base);
}

static void engine_wait_obj_watch(struct engine_wait *wait, bool on)
{
	struct engine_wait_obj *w = container_of(wait, struct engine_wait_obj, base);

	if (w->fid->fclass == FI_CLASS_CNTR)
		engine_cntr_watch(container_of(w->fid, struct engine_cntr, fid.fid), on);
	else if (on)
		cq_watch(&container_of(w->fid, struct engine_cq, fid.fid)->queue, CQ_SLEEPERS,
			 engine_wait_obj_written);
	else
		cq_unwatch(&container_of(w->fid, struct engine_cq, fid.fid)->queue, CQ_SLEEPERS);
}

/*
 * R:engine_signals.cnt  what the program did before; pairs A:engine_signals.cnt
 * F:engine_signals.cnt  the count before the channel is looked for; pairs F:engine_channel.opened
 * A thread reads the count after it has announced that it sleeps: it sees the signal, or is woken.
 */
static void engine_signals_add(struct engine_signals *signals)
{
	atomic_fetch_add_explicit(&signals->cnt, 1, memory_order_seq_cst);
}

void engine_wait_obj_signal(struct engine_wait_obj *w, struct engine_signals *signals)
{
	engine_signals_add(signals);
	if (w->set)
		engine_signals_add(&w->set->signals);
	engine_channel_ring(w->base.channel);
	engine_channel_ring(&w->base.domain->channel);
}

/* Returns true if fi_cq_signal was called since the last call of this function. */
static bool engine_wait_obj_signaled(struct engine_wait_obj *w)
{
	struct engine_cq *cq = container_of(w->fid, struct engine_cq, fid.fid);
	uint32_t signals;

	if (w->fid->fclass != FI_CLASS_CQ)
		return false;
	signals = engine_signals_cnt(&cq->signals);
	if (signals == cq->signals_tried)
		return false;
	cq->signals_tried = signals;
	return true;
}

/* Opens the queue's own channel, also anew in the child of a fork; with the domain held. */
static int engine_wait_obj_open_channel(struct engine_wait_obj *w)
{
	bool over_domain = w->own.kind == ENGINE_CHANNEL_QUEUE;

	return engine_channel_open(&w->own, over_domain ? w->base.domain : NULL);
}

static bool engine_wait_obj_checks(struct engine_wait *wait)
{
	return engine_wait_obj_check(container_of(wait, struct engine_wait_obj, base));
}

/*
 * Arms the descriptor for the program to sleep on. 0, -FI_EAGAIN or another -FI_E*; with the
 * domain held.
 */
static int engine_wait_obj_trywait_held(struct engine_wait_obj *w)
{
	bool own = engine_channel_opened(&w->own);
	bool sleeps = own || engine_channel_is_local(w->base.channel);
	int ret = own ? engine_wait_obj_open_channel(w) : 0;

	if (ret)
		return ret;
	if (!sleeps)
		return engine_wait_obj_check(w) ? -FI_EAGAIN : 0;
	if (engine_wait_obj_ready(w))
		return -FI_EAGAIN;
	engine_channel_clear(&w->own);
	if (engine_wait_obj_signaled(w)) {    /* checked after clearing: a later signal rings */
		engine_channel_ring(&w->own); /* for other threads that sleep on it */
		return -FI_EAGAIN;
	}
	return engine_wait_arm(&w->base, engine_wait_obj_checks);
}

int engine_wait_obj_trywait(struct engine_wait_obj *w)
{
	int ret;

	engine_use(w->base.domain);
	engine_domain_clock(w->base.domain);
	ret = engine_wait_obj_trywait_held(w);
	engine_unuse(w->base.domain);
	return ret ? ret : engine_auto_wake(w->base.domain);
}

/* Objects */

/*
 * Opens a channel for the program to sleep on, which rings at once if the object has something.
 * With the domain held.
 */
static int engine_wait_obj_open_kind(struct engine_wait_obj *w, enum engine_channel_kind kind)
{
	int ret;

	w->own.kind = kind;
	ret = engine_wait_obj_open_channel(w);
	if (!ret && kind == ENGINE_CHANNEL_QUEUE)
		w->base.domain->queue_channels++;
	if (!ret && engine_wait_obj_ready(w))
		engine_channel_ring(&w->own);
	return ret;
}

/*
 * Opens a bell for the domain's thread to ring, unless another call does meanwhile; the domain is
 * not held.
 */
static int engine_wait_obj_open_bell(struct engine_wait_obj *w)
{
	int ret = engine_auto_rings(w->base.domain);

	if (ret)
		return ret;
	engine_enter(w->base.domain);
	if (!engine_channel_opened(&w->own))
		ret = engine_wait_obj_open_kind(w, ENGINE_CHANNEL_BELL);
	engine_leave(w->base.domain);
	return ret;
}

/*
 * A program may put each of these descriptors into several poll sets of its own, and the kernel
 * bounds the number of paths from poll sets to a socket. A domain with many descriptors has a
 * thread that rings them.
 */
static int engine_wait_obj_open_descriptor(struct engine_wait_obj *w)
{
	struct engine_domain *domain = w->base.domain;
	bool there, over_domain;
	int ret = 0;

	engine_enter(domain);
	there = engine_channel_opened(&w->own);
	over_domain = !there && !engine_auto_needed(domain) &&
		      domain->queue_channels < QUEUE_CHANNELS_MAX;
	if (over_domain)
		ret = engine_wait_obj_open_kind(w, ENGINE_CHANNEL_QUEUE);
	engine_leave(domain);
	return there || over_domain ? ret : engine_wait_obj_open_bell(w);
}

int engine_wait_type_check(const struct engine_family *family, enum fi_log_subsys subsys,
			   const char *call, enum fi_wait_obj obj, bool is_set)
{
	int err = -FI_EINVAL;

	switch (obj) {
	case FI_WAIT_UNSPEC:
	case FI_WAIT_YIELD:
	case FI_WAIT_FD:
		return 0;
	case FI_WAIT_NONE:
	case FI_WAIT_SET:
		if (!is_set)
			return 0;
		break;
	case FI_WAIT_MUTEX_COND:
	case FI_WAIT_POLLFD:
		err = -FI_ENOSYS;
		break;
	}
	return engine_refuse_value(
		family, subsys, err, call,
		is_set ? "wait_obj is FI_WAIT_UNSPEC, _FD or _YIELD"
		       : "wait_obj is FI_WAIT_NONE, _UNSPEC, _FD, _YIELD or _SET",
		obj);
}

/* Opens what the program sleeps on, or joins it to @set. */
static int engine_wait_obj_begin(struct engine_wait_obj *w, struct fid_wait *set)
{
	int ret = engine_wait_type_check(w->base.domain->family, FI_LOG_DOMAIN, OPEN_WAIT,
					 w->obj, false);

	if (ret)
		return ret;
	if (w->obj == FI_WAIT_SET)
		return engine_wait_obj_join(w, set);
	return w->obj == FI_WAIT_FD ? engine_wait_obj_open_descriptor(w) : 0;
}

int engine_wait_obj_open(struct engine_wait_obj *w, struct fid *fid,
			 struct engine_domain *domain, enum fi_wait_obj obj,
			 struct fid_wait *set)
{
	int ret;

	*w = (struct engine_wait_obj){ .fid = fid, .obj = obj };
	list_init(&w->member);
	engine_channel_init(&w->own, ENGINE_CHANNEL_QUEUE);
	engine_wait_init(&w->base, domain, &w->own, engine_wait_obj_watch);
	list_init(&w->polled);
	ret = engine_wait_obj_begin(w, set);
	if (ret)
		engine_channel_close(&w->own);
	return ret;
}

void engine_wait_obj_enter(struct engine_wait_obj *w)
{
	if (w->set)
		platform_lock(&w->set->lock);
	engine_enter(w->base.domain);
}

void engine_wait_obj_leave(struct engine_wait_obj *w)
{
	engine_leave(w->base.domain);
	if (w->set)
		platform_unlock(&w->set->lock);
}

void engine_wait_obj_forget(struct engine_wait_obj *w)
{
	engine_wait_obj_leave_set(w);
	engine_wait_forget(&w->base);
	engine_poll_forget(w);
	if (engine_channel_opened(&w->own) && w->own.kind == ENGINE_CHANNEL_QUEUE)
		w->base.domain->queue_channels--;
}

void engine_wait_obj_close(struct engine_wait_obj *w)
{
	if (w->set)
		engine_set_put(w->set);
	engine_channel_close(&w->own);
}

enum fi_wait_obj engine_wait_obj_type(enum fi_wait_obj obj, const struct engine_waitset *set)
{
	if (set)
		obj = set->obj;
	return obj == FI_WAIT_UNSPEC ? FI_WAIT_FD : obj;
}

/*
 * FI_GETWAIT: an object with FI_WAIT_UNSPEC opens its descriptor now; one in a set has that of the
 * set.
 */
static int engine_wait_obj_get_wait(struct engine_wait_obj *w, int *descriptor)
{
	int ret = 0;

	if (w->set)
		return engine_waitset_get_wait(w->set, descriptor);
	if (w->obj == FI_WAIT_UNSPEC && !engine_channel_opened(&w->own))
		ret = engine_wait_obj_open_descriptor(w);
	if (!ret && engine_channel_descriptor(&w->own) < 0)
		ret = -FI_ENODATA;
	if (!ret)
		*descriptor = engine_channel_descriptor(&w->own);
	return ret;
}

int engine_wait_obj_control(struct engine_wait_obj *w, int command, void *arg)
{
	if (!arg)
		return engine_refuse(w->base.domain->family, FI_LOG_DOMAIN, -FI_EINVAL,
				     "fi_control of a queue or counter", "NULL");
	if (command == FI_GETWAIT)
		return engine_wait_obj_get_wait(w, arg);
	if (command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	*(enum fi_wait_obj *)arg = engine_wait_obj_type(w->obj, w->set);
	return 0;
}
