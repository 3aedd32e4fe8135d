/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waiting for queues and counters: their wait objects, wait sets, fi_trywait. Called by programs
 * on any thread.
 */
#include <rdma/fi_errno.h>
#include "arm.h"
#include "auto.h"
#include "cntr.h"
#include "cntr_fid.h"
#include "eq_fid.h"
#include "fabric_fid.h"
#include "guard.h"
#include "no_call.h"
#include "progress.h"
#include "refs.h"
#include "refuse.h"
#include "wait.h"
#include "waiting.h"

#define TRY_ROUNDS 64	    /* of fi_trywait, before it leaves them to the program */
#define NESTED_MAX 8u	    /* descriptors of a domain that hold its waiter */
#define NAP_NS	   1000000u /* sleep of who can't be woken */

static struct engine_waitset *set_of(struct fid_wait *fid)
{
	return container_of(fid, struct engine_waitset, fid);
}

static bool engine_cntr_moved(struct engine_cntr *cntr)
{
	return atomic_load_explicit(&cntr->value, memory_order_relaxed) != cntr->seen_value ||
	       atomic_load_explicit(&cntr->errors, memory_order_relaxed) != cntr->seen_errors;
}

/* Is there something? A counter: a change that the program has not seen. */
static bool engine_wait_ready(const struct engine_wait *w)
{
	if (w->fid->fclass == FI_CLASS_CNTR)
		return engine_cntr_moved(container_of(w->fid, struct engine_cntr, fid.fid));
	return cq_reached(&container_of(w->fid, struct engine_cq, fid.fid)->queue, 1);
}

/* A round of progress, if the object has nothing yet. */
static bool engine_wait_look(struct engine_wait *w)
{
	if (engine_wait_ready(w))
		return true;
	engine_domain_progress(w->domain);
	return engine_wait_ready(w);
}

/* Descriptors */

/* The object's descriptor, or -1. One that is asked for late may come while fi_cq_signal() looks. */
static int engine_wait_descriptor(const struct engine_wait *w)
{
	/* A:engine_wait.descriptor  what kind of descriptor it is; pairs R:engine_wait.descriptor */
	return atomic_load_explicit(&w->descriptor, memory_order_acquire);
}

static void engine_wait_ring(struct engine_wait *w)
{
	int descriptor = engine_wait_descriptor(w);

	if (w->set)
		platform_bell_ring(w->set->nest.bell);
	else if (w->nested)
		platform_nest_ring(descriptor, w->domain->waiter.bell);
	else
		platform_bell_ring(descriptor);
}

static void engine_wait_clear(struct engine_wait *w)
{
	int descriptor = engine_wait_descriptor(w);

	if (w->nested)
		platform_nest_clear(descriptor, w->domain->waiter.bell);
	else
		platform_bell_clear(descriptor);
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
		cq_watch(&container_of(w->fid, struct engine_cq, fid.fid)->queue,
			 engine_wait_written);
	else
		cq_unwatch(&container_of(w->fid, struct engine_cq, fid.fid)->queue);
}

void engine_wait_signal(struct engine_wait *w)
{
	if (engine_wait_descriptor(w) >= 0 && w->forks == platform_forks())
		engine_wait_ring(w);
	engine_waiter_ring(w->domain);
}

/* Has fi_cq_signal been called since this was asked last? */
static bool engine_wait_signaled(struct engine_wait *w)
{
	struct engine_cq *cq = container_of(w->fid, struct engine_cq, fid.fid);
	uint32_t signals;

	if (w->fid->fclass != FI_CLASS_CQ)
		return false;
	/* A:engine_cq.signals  the signal before what it tells of; pairs R:engine_cq.signals */
	signals = atomic_load_explicit(&cq->signals, memory_order_acquire);
	if (signals == cq->tried)
		return false;
	cq->tried = signals;
	return true;
}

/* In the child of a fork the descriptor is the parent's: the program's number gets one of our own. */
static int engine_wait_renew(struct engine_wait *w)
{
	int descriptor = engine_wait_descriptor(w), bell, ret;

	if (descriptor < 0 || w->forks == platform_forks())
		return 0;
	if (w->nested) {
		ret = engine_waiter_object_renew(w->domain, descriptor);
	} else {
		ret = platform_bell_open(&bell);
		if (!ret)
			ret = platform_descriptor_renew(descriptor, bell);
	}
	if (!ret)
		w->forks = platform_forks();
	return ret;
}

/* Rounds until the object has something or the wires are armed. 0 or -FI_EAGAIN */
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

/* May its descriptor be slept on? It is armed then. 0, -FI_EAGAIN or another -FI_E*; the caller has the domain */
static int engine_wait_try_held(struct engine_wait *w)
{
	bool own = engine_wait_descriptor(w) >= 0;
	bool sleeps = own || (w->set && engine_nest_here(&w->set->nest));
	int ret = engine_wait_renew(w);

	if (ret)
		return ret;
	if (!sleeps)
		return engine_wait_look(w) ? -FI_EAGAIN : 0;
	if (engine_wait_ready(w))
		return -FI_EAGAIN;
	if (own)
		engine_wait_clear(w);
	if (engine_wait_signaled(w)) /* after that: one that comes from now on rings */
		return -FI_EAGAIN;
	return engine_wait_arm(w);
}

static int engine_wait_try(struct engine_wait *w)
{
	int ret;

	engine_use(w->domain);
	engine_domain_clock(w->domain);
	ret = engine_wait_try_held(w);
	engine_unuse(w->domain);
	return ret ? ret : engine_auto_wake(w->domain);
}

/* Objects */

#define OPEN_WAIT "fi_cq_open, fi_cntr_open or fi_eq_open with a wait object"

/* The program has closed the set, or a member has: the last one ends it. Nothing is held. */
static void engine_set_put(struct engine_waitset *set)
{
	if (atomic_fetch_sub_explicit(&set->refs, 1, memory_order_acq_rel) > 1)
		return;
	engine_nest_close(&set->nest);
	platform_lock_fini(&set->lock);
	engine_fabric_put(set->fabric);
	platform_free(set);
}

/* The wait set that a program has named; NULL: it is none of this fabric. */
static struct engine_waitset *engine_set_named(struct fid_wait *fid,
					       const struct engine_fabric *fabric)
{
	if (!fid || fid->fid.fclass != FI_CLASS_WAIT || set_of(fid)->fabric != fabric)
		return NULL;
	return set_of(fid);
}

/* What is slept on in the set holds the domain's waiter, unless a thread makes its progress. */
static int engine_set_hold(struct engine_waitset *set, struct engine_domain *domain)
{
	int ret = 0;

	if (!engine_nest_here(&set->nest) || engine_auto_needed(domain))
		return 0;
	engine_enter(domain);
	ret = engine_nest_add(&set->nest, domain);
	engine_leave(domain);
	return ret;
}

static int engine_wait_join(struct engine_wait *w, struct fid_wait *fid)
{
	struct engine_waitset *set = engine_set_named(fid, w->domain->fabric);
	int ret;

	if (!set)
		return engine_refuse(w->domain->family, FI_LOG_DOMAIN, -FI_EINVAL, OPEN_WAIT,
				     "FI_WAIT_SET, and wait_set is none of the same fabric");
	platform_lock(&set->lock);
	ret = engine_set_hold(set, w->domain);
	if (!ret) {
		w->set = set;
		engine_ref(&set->refs);
		list_push(&set->members, &w->member);
	}
	platform_unlock(&set->lock);
	return ret;
}

/* From now on the object has this descriptor; what came before it was there rings. With the domain held. */
static void engine_wait_has(struct engine_wait *w, int descriptor, bool nested)
{
	w->nested = nested;
	w->forks = platform_forks();
	/* R:engine_wait.descriptor  what kind of descriptor it is; pairs A:engine_wait.descriptor */
	atomic_store_explicit(&w->descriptor, descriptor, memory_order_release);
	if (engine_wait_ready(w))
		engine_wait_ring(w);
}

/* A nest over the domain's waiter; with the domain held. */
static int engine_wait_open_nest(struct engine_wait *w)
{
	int nest, ret = engine_waiter_object(w->domain, &nest);

	if (ret)
		return ret;
	w->domain->waiter.nested++;
	engine_wait_has(w, nest, true);
	return 0;
}

/* A bell that the domain's thread rings, unless another call was faster; the domain is not held. */
static int engine_wait_open_bell(struct engine_wait *w)
{
	bool other;
	int bell, ret = engine_auto_rings(w->domain);

	if (!ret)
		ret = platform_bell_open(&bell);
	if (ret)
		return ret;
	engine_enter(w->domain);
	other = engine_wait_descriptor(w) >= 0;
	if (!other)
		engine_wait_has(w, bell, false);
	engine_leave(w->domain);
	if (other)
		platform_bell_close(bell);
	return 0;
}

/*
 * A program may put each of these into several sets of its own, and the kernel bounds how many such
 * ways may lead to a socket. A domain with many has a thread that rings them.
 */
static int engine_wait_open_descriptor(struct engine_wait *w)
{
	struct engine_domain *domain = w->domain;
	bool there, nests;
	int ret = 0;

	engine_enter(domain);
	there = engine_wait_descriptor(w) >= 0;
	nests = !there && !engine_auto_needed(domain) && domain->waiter.nested < NESTED_MAX;
	if (nests)
		ret = engine_wait_open_nest(w);
	engine_leave(domain);
	return there || nests ? ret : engine_wait_open_bell(w);
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

/* Does another member of the set hold the domain's waiter in it? */
static bool engine_set_shares(const struct engine_wait *w)
{
	struct list *node, *after;

	list_for_each(node, after, &w->set->members)
		if (container_of(node, struct engine_wait, member)->domain == w->domain)
			return true;
	return false;
}

void engine_wait_forget(struct engine_wait *w)
{
	list_remove(&w->member);
	if (w->set && !engine_set_shares(w))
		engine_nest_remove(&w->set->nest, w->domain);
	engine_armed_forget(w->domain, &w->armed);
	engine_poll_forget(w);
	if (w->nested)
		w->domain->waiter.nested--;
}

void engine_wait_close(struct engine_wait *w)
{
	if (w->set)
		engine_set_put(w->set);
	if (engine_wait_descriptor(w) < 0)
		return;
	if (w->nested)
		platform_nest_close(engine_wait_descriptor(w));
	else
		platform_bell_close(engine_wait_descriptor(w));
}

enum fi_wait_obj engine_wait_told(enum fi_wait_obj obj, const struct engine_waitset *set)
{
	if (set)
		obj = set->obj;
	return obj == FI_WAIT_UNSPEC ? FI_WAIT_FD : obj;
}

/* One whose way of waiting is ours has a descriptor once it is asked for; one in a set has the set's. */
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
	*(enum fi_wait_obj *)arg = engine_wait_told(w->obj, w->set);
	return 0;
}

/* Wait sets */

int engine_waitset_join(struct engine_eq *eq, struct fid_wait *fid)
{
	struct engine_waitset *set = engine_set_named(fid, eq->fabric);
	int ret = 0;

	if (!set)
		return engine_refuse(eq->fabric->family, FI_LOG_EQ, -FI_EINVAL, OPEN_WAIT,
				     "FI_WAIT_SET, and wait_set is none of the same fabric");
	platform_lock(&set->lock);
	if (engine_nest_here(&set->nest))
		ret = engine_eq_join(eq, &set->nest);
	if (!ret) {
		eq->set = set;
		engine_ref(&set->refs);
		list_push(&set->eqs, &eq->member);
	}
	platform_unlock(&set->lock);
	return ret;
}

void engine_waitset_leave(struct engine_eq *eq)
{
	platform_lock(&eq->set->lock);
	list_remove(&eq->member);
	engine_eq_part(eq, &eq->set->nest);
	platform_unlock(&eq->set->lock);
	engine_set_put(eq->set);
	eq->set = NULL;
}

/* Have what the set is slept on by; with its lock. In the child of a fork all members enter it again. */
static int engine_set_open(struct engine_waitset *set)
{
	struct list *node, *after;
	int ret;

	if (engine_nest_here(&set->nest))
		return 0;
	ret = engine_nest_open(&set->nest);
	list_for_each(node, after, &set->members)
		if (!ret)
			ret = engine_set_hold(
				set, container_of(node, struct engine_wait, member)->domain);
	list_for_each(node, after, &set->eqs)
		if (!ret)
			ret = engine_eq_join(container_of(node, struct engine_eq, member),
					     &set->nest);
	return ret;
}

/* One round over the set's domains: has a member something? A counter's change is told once. */
static bool engine_set_look(struct engine_waitset *set)
{
	struct list *node, *after;
	bool any = false;

	platform_lock(&set->lock);
	list_for_each(node, after, &set->members) {
		struct engine_wait *w = container_of(node, struct engine_wait, member);

		engine_use(w->domain);
		if (engine_wait_look(w)) {
			any = true;
			if (w->fid->fclass == FI_CLASS_CNTR)
				engine_cntr_seen(
					container_of(w->fid, struct engine_cntr, fid.fid));
		}
		engine_unuse(w->domain);
	}
	list_for_each(node, after, &set->eqs)
		any |= engine_eq_look(container_of(node, struct engine_eq, member));
	platform_unlock(&set->lock);
	return any;
}

/* May the set be slept on? With its lock. */
static int engine_set_arm(struct engine_waitset *set)
{
	struct list *node, *after;
	int ret = 0;

	/* Those who sleep on it already have to see that it rang. */
	if (engine_nest_here(&set->nest) && set->asleep <= 1)
		platform_bell_clear(set->nest.bell);
	list_for_each(node, after, &set->members) {
		ret = engine_wait_try(container_of(node, struct engine_wait, member));
		if (ret)
			return ret;
	}
	list_for_each(node, after, &set->eqs) {
		ret = engine_eq_trywait(container_of(node, struct engine_eq, member));
		if (ret)
			return ret;
	}
	return 0;
}

/* Nobody sleeps on the set any more; with its lock. */
static void engine_set_disarm(struct engine_waitset *set)
{
	struct list *node, *after;

	list_for_each(node, after, &set->members) {
		struct engine_wait *w = container_of(node, struct engine_wait, member);

		engine_use(w->domain);
		engine_armed_drop(w->domain, &w->armed, false);
		engine_unuse(w->domain);
	}
	list_for_each(node, after, &set->eqs)
		engine_eq_awake(container_of(node, struct engine_eq, member));
}

static void engine_set_sleep(struct engine_waitset *set, uint64_t end_ns)
{
	uint64_t now, ns = NAP_NS;
	int on[1], cnt = 0, ret;

	platform_lock(&set->lock);
	set->asleep++;
	ret = engine_set_open(set);
	if (!ret) {
		on[0] = set->nest.nest;
		cnt = 1;
		ns = UINT64_MAX; /* the timers of the domains ring there too */
		ret = engine_set_arm(set);
	}
	platform_unlock(&set->lock);
	now = platform_now_ns();
	if (end_ns <= now)
		ns = 0;
	else if (end_ns != UINT64_MAX && end_ns - now < ns)
		ns = end_ns - now;
	if (ret != -FI_EAGAIN && ns) /* without descriptors, a nap */
		platform_sleep(on, ret ? 0 : cnt, ret && ns > NAP_NS ? NAP_NS : ns);
	platform_lock(&set->lock);
	if (!--set->asleep && !set->given)
		engine_set_disarm(set);
	platform_unlock(&set->lock);
}

static int engine_waitset_wait(struct fid_wait *fid, int timeout)
{
	struct engine_waitset *set = set_of(fid);
	uint64_t end_ns = engine_end_ns(timeout);
	struct engine_spin spin = { 0 };
	int ret = 0;

	while (!engine_set_look(set)) {
		if (engine_over(end_ns)) {
			ret = -FI_ETIMEDOUT;
			break;
		}
		if (!engine_spin(&spin, &set->patience))
			engine_set_sleep(set, end_ns);
	}
	engine_spin_end(&spin, &set->patience);
	return ret;
}

static int engine_set_try(struct engine_waitset *set)
{
	int ret = 0;

	platform_lock(&set->lock);
	if (set->given)
		ret = engine_set_open(set);
	if (!ret)
		ret = engine_set_arm(set);
	platform_unlock(&set->lock);
	return ret;
}

/* Has a queue or counter in it something already? With its lock; an event queue's own bell rings. */
static bool engine_set_ready(struct engine_waitset *set)
{
	struct list *node, *after;
	bool any = false;

	list_for_each(node, after, &set->members) {
		struct engine_wait *w = container_of(node, struct engine_wait, member);

		engine_enter(w->domain);
		any |= engine_wait_ready(w);
		engine_leave(w->domain);
	}
	return any;
}

/* As of a queue: what its members had before rings. */
int engine_waitset_give(struct engine_waitset *set, int *descriptor)
{
	int ret = 0;

	platform_lock(&set->lock);
	if (!set->given) {
		ret = set->obj == FI_WAIT_UNSPEC ? engine_set_open(set) : -FI_ENODATA;
		set->given = !ret;
		if (!ret && engine_set_ready(set))
			platform_bell_ring(set->nest.bell);
	}
	if (!ret)
		*descriptor = set->nest.nest;
	platform_unlock(&set->lock);
	return ret;
}

static int engine_waitset_control(struct fid *fid, int command, void *arg)
{
	struct engine_waitset *set = container_of(fid, struct engine_waitset, fid.fid);

	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAIT)
		return engine_waitset_give(set, arg);
	if (command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	*(enum fi_wait_obj *)arg = engine_wait_told(set->obj, set);
	return 0;
}

/* Members that there are keep it, and what is slept on, until they are closed. */
static int engine_waitset_close(struct fid *fid)
{
	engine_set_put(container_of(fid, struct engine_waitset, fid.fid));
	return 0;
}

static struct fi_ops engine_waitset_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_waitset_close,
	.bind = engine_no_bind,
	.control = engine_waitset_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

static struct fi_ops_wait engine_waitset_ops = {
	.size = sizeof(struct fi_ops_wait),
	.wait = engine_waitset_wait,
};

#define WAIT_OPEN "fi_wait_open"

static int engine_waitset_check(const struct engine_fabric *fabric,
				const struct fi_wait_attr *attr)
{
	if (attr->flags)
		return engine_refuse_value(fabric->family, FI_LOG_FABRIC, -FI_EBADFLAGS,
					   WAIT_OPEN, "there are no flags", attr->flags);
	switch (attr->wait_obj) {
	case FI_WAIT_UNSPEC:
	case FI_WAIT_YIELD:
	case FI_WAIT_FD:
		return 0;
	case FI_WAIT_MUTEX_COND:
	case FI_WAIT_POLLFD:
		return engine_refuse_value(fabric->family, FI_LOG_FABRIC, -FI_ENOSYS, WAIT_OPEN,
					   "wait_obj is FI_WAIT_UNSPEC, _FD or _YIELD",
					   attr->wait_obj);
	case FI_WAIT_NONE:
	case FI_WAIT_SET:
		break;
	}
	return engine_refuse_value(fabric->family, FI_LOG_FABRIC, -FI_EINVAL, WAIT_OPEN,
				   "wait_obj is FI_WAIT_UNSPEC, _FD or _YIELD", attr->wait_obj);
}

int engine_waitset_open(struct fid_fabric *fid, struct fi_wait_attr *attr,
			struct fid_wait **out)
{
	struct engine_fabric *fabric = container_of(fid, struct engine_fabric, fid);
	struct engine_waitset *set;
	int ret;

	if (!attr || !out)
		return engine_refuse(fabric->family, FI_LOG_FABRIC, -FI_EINVAL, WAIT_OPEN,
				     "NULL for the attributes, or where the set is to go");
	ret = engine_waitset_check(fabric, attr);
	if (ret)
		return ret;
	set = platform_alloc(sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->given = attr->wait_obj == FI_WAIT_FD;
	if (set->given)
		ret = engine_nest_open(&set->nest);
	if (ret) {
		platform_free(set);
		return ret;
	}
	set->fid.fid.fclass = FI_CLASS_WAIT;
	set->fid.fid.ops = &engine_waitset_fi_ops;
	set->fid.ops = &engine_waitset_ops;
	set->fabric = fabric;
	set->obj = attr->wait_obj;
	platform_lock_init(&set->lock);
	list_init(&set->members);
	list_init(&set->eqs);
	engine_ref(&set->refs);
	engine_ref(&fabric->refs);
	*out = &set->fid;
	return 0;
}

/* fi_trywait */

static int engine_try(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return engine_wait_try(&container_of(fid, struct engine_cq, fid.fid)->wait);
	case FI_CLASS_CNTR:
		return engine_wait_try(&container_of(fid, struct engine_cntr, fid.fid)->wait);
	case FI_CLASS_EQ:
		return engine_eq_trywait(container_of(fid, struct engine_eq, fid.fid));
	case FI_CLASS_WAIT:
		return engine_set_try(container_of(fid, struct engine_waitset, fid.fid));
	default:
		return -FI_EINVAL;
	}
}

#define TRYWAIT "fi_trywait"

int engine_trywait(struct fid_fabric *fid, struct fid **fids, int cnt)
{
	const struct engine_fabric *fabric = container_of(fid, struct engine_fabric, fid);

	if (cnt < 0 || (cnt && !fids))
		return engine_refuse(fabric->family, FI_LOG_FABRIC, -FI_EINVAL, TRYWAIT,
				     "NULL for the objects, or less than none");
	for (int i = 0; i < cnt; i++) {
		int ret = fids[i] ? engine_try(fids[i]) : -FI_EINVAL;

		if (ret == -FI_EINVAL)
			return engine_refuse_value(
				fabric->family, FI_LOG_FABRIC, ret, TRYWAIT,
				"the object of that index is no queue, counter or wait set",
				(uint64_t)i);
		if (ret)
			return ret;
	}
	return 0;
}
