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
#include "wait.h"
#include "wait_set_fid.h"
#include "waiting.h"

#define TRY_ROUNDS	   64 /* rounds of fi_trywait before it returns -FI_EAGAIN */
#define QUEUE_CHANNELS_MAX 8u /* channels of queues over the one of a domain, at most */

static bool engine_cntr_moved(struct engine_cntr *cntr)
{
	return atomic_load_explicit(&cntr->value, memory_order_relaxed) != cntr->seen_value ||
	       atomic_load_explicit(&cntr->errors, memory_order_relaxed) != cntr->seen_errors;
}

/* A counter is ready if it has a change that the program has not read. */
bool engine_wait_ready(const struct engine_wait *w)
{
	if (w->fid->fclass == FI_CLASS_CNTR)
		return engine_cntr_moved(container_of(w->fid, struct engine_cntr, fid.fid));
	return cq_reached(&container_of(w->fid, struct engine_cq, fid.fid)->queue, 1);
}

bool engine_wait_look(struct engine_wait *w)
{
	if (engine_wait_ready(w))
		return true;
	engine_domain_progress(w->domain);
	return engine_wait_ready(w);
}

/* Descriptors */

static void engine_wait_ring(struct engine_armed *armed)
{
	struct engine_wait *w = container_of(armed, struct engine_wait, armed);

	engine_channel_ring(w->set ? &w->set->channel : &w->channel);
}

static void engine_wait_written(struct cq *queue)
{
	struct engine_cq *cq = container_of(queue, struct engine_cq, queue);

	engine_armed_wake(cq->domain, &cq->wait.armed);
}

static void engine_wait_watch(struct engine_armed *armed, bool on)
{
	struct engine_wait *w = container_of(armed, struct engine_wait, armed);

	if (w->fid->fclass == FI_CLASS_CNTR)
		engine_cntr_watch(container_of(w->fid, struct engine_cntr, fid.fid), on);
	else if (on)
		cq_watch(&container_of(w->fid, struct engine_cq, fid.fid)->queue, CQ_SLEEPERS,
			 engine_wait_written);
	else
		cq_unwatch(&container_of(w->fid, struct engine_cq, fid.fid)->queue, CQ_SLEEPERS);
}

void engine_wait_signal(struct engine_wait *w)
{
	engine_channel_ring(&w->channel);
	engine_channel_ring(&w->domain->channel);
}

/* Returns true if fi_cq_signal was called since the last call of this function. */
static bool engine_wait_signaled(struct engine_wait *w)
{
	struct engine_cq *cq = container_of(w->fid, struct engine_cq, fid.fid);
	uint32_t signals;

	if (w->fid->fclass != FI_CLASS_CQ)
		return false;
	/*
	 * A:engine_cq.signals  what the program did before the signal; pairs R:engine_cq.signals
	 * F:engine_cq.signals  a channel that was opened before; pairs F:engine_channel.opened
	 */
	signals = atomic_load_explicit(&cq->signals, memory_order_seq_cst);
	if (signals == cq->tried)
		return false;
	cq->tried = signals;
	return true;
}

/* Opens the queue's own channel, also anew in the child of a fork; with the domain held. */
static int engine_wait_open_channel(struct engine_wait *w)
{
	bool over_domain = w->channel.kind == ENGINE_CHANNEL_QUEUE;

	return engine_channel_open(&w->channel, over_domain ? w->domain : NULL);
}

/* Makes rounds until the object has something or the wires are armed. Returns 0 or -FI_EAGAIN. */
static int engine_wait_arm(struct engine_wait *w)
{
	struct engine_domain *domain = w->domain;
	uint64_t ns = 0;

	for (int i = 0; i < TRY_ROUNDS && !ns; i++) {
		if (engine_wait_look(w))
			return -FI_EAGAIN;
		ns = engine_auto_needed(domain) ? UINT64_MAX : engine_wires_arm(domain);
	}
	if (!ns)
		return -FI_EAGAIN;
	engine_armed_add(domain, &w->armed, false);
	if (!engine_auto_needed(domain))
		engine_domain_timer(domain, ns);
	return 0;
}

/*
 * Arms the descriptor for the program to sleep on. 0, -FI_EAGAIN or another -FI_E*; with the
 * domain held.
 */
static int engine_wait_try_held(struct engine_wait *w)
{
	bool own = engine_channel_opened(&w->channel);
	bool sleeps = own || (w->set && engine_channel_here(&w->set->channel));
	int ret = own ? engine_wait_open_channel(w) : 0;

	if (ret)
		return ret;
	if (!sleeps)
		return engine_wait_look(w) ? -FI_EAGAIN : 0;
	if (engine_wait_ready(w))
		return -FI_EAGAIN;
	engine_channel_clear(&w->channel);
	if (engine_wait_signaled(w)) /* checked after arming: a later signal rings */
		return -FI_EAGAIN;
	return engine_wait_arm(w);
}

int engine_wait_try(struct engine_wait *w)
{
	int ret;

	engine_use(w->domain);
	engine_domain_clock(w->domain);
	ret = engine_wait_try_held(w);
	engine_unuse(w->domain);
	return ret ? ret : engine_auto_wake(w->domain);
}

int engine_wait_hold(struct engine_channel *channel, struct engine_domain *domain)
{
	int ret;

	if (!engine_channel_here(channel) || engine_auto_needed(domain))
		return 0;
	engine_enter(domain);
	ret = engine_channel_add(channel, domain);
	engine_leave(domain);
	return ret;
}

/* Objects */

/*
 * Opens a channel for the program to sleep on, which rings at once if the object has something.
 * With the domain held.
 */
static int engine_wait_open_kind(struct engine_wait *w, enum engine_channel_kind kind)
{
	int ret;

	w->channel.kind = kind;
	ret = engine_wait_open_channel(w);
	if (!ret && kind == ENGINE_CHANNEL_QUEUE)
		w->domain->queue_channels++;
	if (!ret && engine_wait_ready(w))
		engine_channel_ring(&w->channel);
	return ret;
}

/*
 * Opens a bell for the domain's thread to ring, unless another call does meanwhile; the domain is
 * not held.
 */
static int engine_wait_open_bell(struct engine_wait *w)
{
	int ret = engine_auto_rings(w->domain);

	if (ret)
		return ret;
	engine_enter(w->domain);
	if (!engine_channel_opened(&w->channel))
		ret = engine_wait_open_kind(w, ENGINE_CHANNEL_BELL);
	engine_leave(w->domain);
	return ret;
}

/*
 * A program may put each of these descriptors into several poll sets of its own, and the kernel
 * bounds the number of paths from poll sets to a socket. A domain with many descriptors has a
 * thread that rings them.
 */
static int engine_wait_open_descriptor(struct engine_wait *w)
{
	struct engine_domain *domain = w->domain;
	bool there, over_domain;
	int ret = 0;

	engine_enter(domain);
	there = engine_channel_opened(&w->channel);
	over_domain = !there && !engine_auto_needed(domain) &&
		      domain->queue_channels < QUEUE_CHANNELS_MAX;
	if (over_domain)
		ret = engine_wait_open_kind(w, ENGINE_CHANNEL_QUEUE);
	engine_leave(domain);
	return there || over_domain ? ret : engine_wait_open_bell(w);
}

/* Opens what the program sleeps on, or joins it to @set. */
static int engine_wait_begin(struct engine_wait *w, enum fi_wait_obj obj, struct fid_wait *set)
{
	const struct engine_family *family = w->domain->family;

	switch (obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_UNSPEC:
	case FI_WAIT_YIELD:
		return 0;
	case FI_WAIT_SET:
		return engine_wait_join(w, set);
	case FI_WAIT_FD:
		return engine_wait_open_descriptor(w);
	case FI_WAIT_MUTEX_COND:
	case FI_WAIT_POLLFD:
		return engine_refuse_value(
			family, FI_LOG_DOMAIN, -FI_ENOSYS, OPEN_WAIT,
			"wait_obj is FI_WAIT_NONE, _UNSPEC, _FD, _YIELD or _SET", obj);
	}
	return engine_refuse_value(family, FI_LOG_DOMAIN, -FI_EINVAL, OPEN_WAIT,
				   "no such wait_obj", obj);
}

int engine_wait_open(struct engine_wait *w, struct fid *fid, struct engine_domain *domain,
		     enum fi_wait_obj obj, struct fid_wait *set)
{
	int ret;

	*w = (struct engine_wait){ .fid = fid, .domain = domain, .obj = obj };
	list_init(&w->member);
	engine_channel_init(&w->channel, ENGINE_CHANNEL_QUEUE);
	engine_armed_init(&w->armed, engine_wait_ring, engine_wait_watch);
	list_init(&w->polled);
	ret = engine_wait_begin(w, obj, set);
	if (ret)
		engine_channel_close(&w->channel);
	return ret;
}

void engine_wait_enter(struct engine_wait *w)
{
	if (w->set)
		platform_lock(&w->set->lock);
	engine_enter(w->domain);
}

void engine_wait_leave(struct engine_wait *w)
{
	engine_leave(w->domain);
	if (w->set)
		platform_unlock(&w->set->lock);
}

void engine_wait_forget(struct engine_wait *w)
{
	engine_wait_part(w);
	engine_armed_forget(w->domain, &w->armed);
	engine_poll_forget(w);
	if (engine_channel_opened(&w->channel) && w->channel.kind == ENGINE_CHANNEL_QUEUE)
		w->domain->queue_channels--;
}

void engine_wait_close(struct engine_wait *w)
{
	if (w->set)
		engine_set_put(w->set);
	engine_channel_close(&w->channel);
}

enum fi_wait_obj engine_wait_obj(enum fi_wait_obj obj, const struct engine_waitset *set)
{
	if (set)
		obj = set->obj;
	return obj == FI_WAIT_UNSPEC ? FI_WAIT_FD : obj;
}

/*
 * FI_GETWAIT: an object with FI_WAIT_UNSPEC opens its descriptor now; one in a set has that of the
 * set.
 */
static int engine_wait_give(struct engine_wait *w, int *descriptor)
{
	int ret = 0;

	if (w->set)
		return engine_waitset_give(w->set, descriptor);
	if (w->obj == FI_WAIT_UNSPEC && !engine_channel_opened(&w->channel))
		ret = engine_wait_open_descriptor(w);
	if (!ret && !engine_channel_opened(&w->channel))
		ret = -FI_ENODATA;
	if (!ret)
		*descriptor = engine_channel_descriptor(&w->channel);
	return ret;
}

int engine_wait_control(struct engine_wait *w, int command, void *arg)
{
	if (!arg)
		return engine_refuse(w->domain->family, FI_LOG_DOMAIN, -FI_EINVAL,
				     "fi_control of a queue or counter", "NULL");
	if (command == FI_GETWAIT)
		return engine_wait_give(w, arg);
	if (command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	*(enum fi_wait_obj *)arg = engine_wait_obj(w->obj, w->set);
	return 0;
}
