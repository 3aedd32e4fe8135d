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

#define TRY_ROUNDS    64 /* rounds of fi_trywait before it returns -FI_EAGAIN */
#define POLL_SETS_MAX 8u /* poll sets over the waiter of a domain, at most */

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

/*
 * Returns the object's descriptor, or -1. A descriptor may be opened while fi_cq_signal() reads
 * this.
 */
static int engine_wait_descriptor(const struct engine_wait *w)
{
	/*
	 * A:engine_wait.descriptor  what kind of descriptor it is; pairs R:engine_wait.descriptor
	 * F:engine_wait.descriptor  a signal before it, or the one that opens it sees the signal;
	 * pairs F:engine_cq.signals
	 */
	return atomic_load_explicit(&w->descriptor, memory_order_seq_cst);
}

static void engine_wait_ring(struct engine_wait *w)
{
	int descriptor = engine_wait_descriptor(w);

	if (w->set)
		platform_bell_ring(&w->set->poll_set.bell);
	else if (w->is_poll_set)
		platform_poll_set_ring(descriptor, &w->domain->waiter.bell);
	else
		platform_bell_ring(&w->bell);
}

static void engine_wait_clear(struct engine_wait *w)
{
	if (w->is_poll_set)
		platform_poll_set_clear(engine_wait_descriptor(w), &w->domain->waiter.bell);
	else
		platform_bell_clear(&w->bell);
}

static void engine_wait_armed_ring(struct engine_armed *armed)
{
	engine_wait_ring(container_of(armed, struct engine_wait, armed));
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
	if (engine_wait_descriptor(w) >= 0 && w->forks == platform_forks())
		engine_wait_ring(w);
	engine_waiter_ring(w->domain);
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
	 * F:engine_cq.signals  a descriptor that was opened before; pairs F:engine_wait.descriptor
	 */
	signals = atomic_load_explicit(&cq->signals, memory_order_seq_cst);
	if (signals == cq->tried)
		return false;
	cq->tried = signals;
	return true;
}

/* In the child of a fork the descriptor is the parent's: a new one takes over its number. */
static int engine_wait_renew(struct engine_wait *w)
{
	int descriptor = engine_wait_descriptor(w), ret;
	struct platform_bell bell;

	if (descriptor < 0 || w->forks == platform_forks())
		return 0;
	if (w->is_poll_set) {
		ret = engine_waiter_object_renew(w->domain, descriptor);
	} else {
		ret = platform_bell_open(&bell);
		if (!ret)
			ret = platform_descriptor_renew(descriptor,
							platform_bell_descriptor(&bell));
	}
	if (!ret)
		w->forks = platform_forks();
	return ret;
}

/* Makes rounds until the object has something or the wires are armed. Returns 0 or -FI_EAGAIN. */
static int engine_wait_arm(struct engine_wait *w)
{
	struct engine_domain *domain = w->domain;
	uint64_t ns = 0;

	for (int i = 0; i < TRY_ROUNDS && !ns; i++) {
		if (engine_wait_look(w))
			return -FI_EAGAIN;
		ns = engine_auto_needed(domain) ? UINT64_MAX : engine_waiter_arm(domain);
	}
	if (!ns)
		return -FI_EAGAIN;
	engine_armed_add(domain, &w->armed, false);
	if (!engine_auto_needed(domain))
		engine_waiter_timer(domain, ns);
	return 0;
}

/*
 * Arms the descriptor for the program to sleep on. 0, -FI_EAGAIN or another -FI_E*; with the
 * domain held.
 */
static int engine_wait_try_held(struct engine_wait *w)
{
	bool own = engine_wait_descriptor(w) >= 0;
	bool sleeps = own || (w->set && engine_poll_set_here(&w->set->poll_set));
	int ret = engine_wait_renew(w);

	if (ret)
		return ret;
	if (!sleeps)
		return engine_wait_look(w) ? -FI_EAGAIN : 0;
	if (engine_wait_ready(w))
		return -FI_EAGAIN;
	if (own)
		engine_wait_clear(w);
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

/* Objects */

/*
 * Sets the object's descriptor, which rings at once if the object has something. With the domain
 * held.
 */
static void engine_wait_has(struct engine_wait *w, int descriptor, bool is_poll_set)
{
	w->is_poll_set = is_poll_set;
	w->forks = platform_forks();
	/* R:engine_wait.descriptor  what kind of descriptor it is; pairs A:engine_wait.descriptor */
	atomic_store_explicit(&w->descriptor, descriptor, memory_order_seq_cst);
	if (engine_wait_ready(w))
		engine_wait_ring(w);
}

/* Opens a poll set over the domain's waiter; with the domain held. */
static int engine_wait_open_poll_set(struct engine_wait *w)
{
	int poll_set, ret = engine_waiter_object(w->domain, &poll_set);

	if (ret)
		return ret;
	w->domain->waiter.poll_sets++;
	engine_wait_has(w, poll_set, true);
	return 0;
}

/*
 * Opens a bell for the domain's thread to ring, unless another call does meanwhile; the domain is
 * not held.
 */
static int engine_wait_open_bell(struct engine_wait *w)
{
	int descriptor, ret = engine_auto_rings(w->domain);
	struct platform_bell bell;
	bool taken;

	if (!ret)
		ret = platform_bell_open(&bell);
	if (ret)
		return ret;
	descriptor = platform_bell_descriptor(&bell);
	engine_enter(w->domain);
	taken = descriptor >= 0 && engine_wait_descriptor(w) < 0;
	if (taken) {
		w->bell = bell;
		engine_wait_has(w, descriptor, false);
	}
	engine_leave(w->domain);
	if (!taken)
		platform_bell_close(&bell);
	return descriptor < 0 ? -FI_ENOSYS : 0;
}

/*
 * A program may put each of these descriptors into several poll sets of its own, and the kernel
 * bounds the number of paths from poll sets to a socket. A domain with many descriptors has a
 * thread that rings them.
 */
static int engine_wait_open_descriptor(struct engine_wait *w)
{
	struct engine_domain *domain = w->domain;
	bool there, opens_poll_set;
	int ret = 0;

	engine_enter(domain);
	there = engine_wait_descriptor(w) >= 0;
	opens_poll_set = !there && !engine_auto_needed(domain) &&
			 domain->waiter.poll_sets < POLL_SETS_MAX;
	if (opens_poll_set)
		ret = engine_wait_open_poll_set(w);
	engine_leave(domain);
	return there || opens_poll_set ? ret : engine_wait_open_bell(w);
}

int engine_wait_open(struct engine_wait *w, struct fid *fid, struct engine_domain *domain,
		     enum fi_wait_obj obj, struct fid_wait *set)
{
	*w = (struct engine_wait){ .fid = fid, .domain = domain, .obj = obj, .descriptor = -1 };
	list_init(&w->member);
	engine_armed_init(&w->armed, engine_wait_armed_ring, engine_wait_watch);
	list_init(&w->polled);
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
			domain->family, FI_LOG_DOMAIN, -FI_ENOSYS, OPEN_WAIT,
			"wait_obj is FI_WAIT_NONE, _UNSPEC, _FD, _YIELD or _SET", obj);
	}
	return engine_refuse_value(domain->family, FI_LOG_DOMAIN, -FI_EINVAL, OPEN_WAIT,
				   "no such wait_obj", obj);
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
	if (w->is_poll_set)
		w->domain->waiter.poll_sets--;
}

void engine_wait_close(struct engine_wait *w)
{
	if (w->set)
		engine_set_put(w->set);
	if (engine_wait_descriptor(w) < 0)
		return;
	if (w->is_poll_set)
		platform_poll_set_close(engine_wait_descriptor(w));
	else
		platform_bell_close(&w->bell);
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
	if (w->obj == FI_WAIT_UNSPEC && engine_wait_descriptor(w) < 0)
		ret = engine_wait_open_descriptor(w);
	if (!ret && engine_wait_descriptor(w) < 0)
		ret = -FI_ENODATA;
	if (!ret)
		*descriptor = engine_wait_descriptor(w);
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
