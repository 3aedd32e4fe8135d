/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait sets, and fi_trywait. Called by programs on any thread.
 */
#include <rdma/fi_errno.h>
#include "arm.h"
#include "auto.h"
#include "cntr_fid.h"
#include "eq_fid.h"
#include "fabric_fid.h"
#include "forked.h"
#include "guard.h"
#include "no_call.h"
#include "refs.h"
#include "refuse.h"
#include "sleep.h"
#include "wait_obj.h"
#include "wait_set_fid.h"
#include "waiting.h"

static struct engine_waitset *set_of(struct fid_wait *fid)
{
	return container_of(fid, struct engine_waitset, fid);
}

void engine_set_put(struct engine_waitset *set)
{
	if (atomic_fetch_sub_explicit(&set->refs, 1, memory_order_acq_rel) > 1)
		return;
	engine_fork_lock_close(&set->fork_lock);
	engine_channel_close(&set->channel);
	platform_lock_fini(&set->lock);
	engine_fabric_put(set->fabric);
	platform_free(set);
}

/* Returns the wait set of that handle, or NULL if it is not one of this fabric. */
static struct engine_waitset *engine_set_named(struct fid_wait *fid,
					       const struct engine_fabric *fabric)
{
	if (!fid || fid->fid.fclass != FI_CLASS_WAIT || set_of(fid)->fabric != fabric)
		return NULL;
	return set_of(fid);
}

int engine_wait_obj_join(struct engine_wait_obj *w, struct fid_wait *fid)
{
	struct engine_waitset *set = engine_set_named(fid, w->base.domain->fabric);
	int ret;

	if (!set)
		return engine_refuse(w->base.domain->family, FI_LOG_DOMAIN, -FI_EINVAL,
				     OPEN_WAIT,
				     "FI_WAIT_SET, and wait_set is not one of the same fabric");
	platform_lock(&set->lock);
	ret = engine_channel_hold(&set->channel, w->base.domain);
	if (!ret) {
		w->set = set;
		w->base.channel = &set->channel;
		engine_ref(&set->refs);
		list_add_tail(&set->members, &w->member);
	}
	platform_unlock(&set->lock);
	return ret;
}

/* Returns true if another member has the same domain: its channel stays in that of the set. */
static bool engine_set_shares(const struct engine_wait_obj *w)
{
	const struct engine_wait_obj *other;

	list_for_each_entry(other, &w->set->members, member)
		if (other->base.domain == w->base.domain)
			return true;
	return false;
}

void engine_wait_obj_leave_set(struct engine_wait_obj *w)
{
	list_remove(&w->member);
	if (w->set && !engine_set_shares(w))
		engine_channel_remove(&w->set->channel, w->base.domain);
}

int engine_waitset_join(struct engine_eq *eq, struct fid_wait *fid)
{
	struct engine_waitset *set = engine_set_named(fid, eq->fabric);
	int ret = 0;

	if (!set)
		return engine_refuse(eq->fabric->family, FI_LOG_EQ, -FI_EINVAL, OPEN_WAIT,
				     "FI_WAIT_SET, and wait_set is not one of the same fabric");
	platform_lock(&set->lock);
	if (engine_channel_is_local(&set->channel))
		ret = engine_eq_join(eq, &set->channel);
	if (!ret) {
		eq->set = set;
		engine_ref(&set->refs);
		list_add_tail(&set->eqs, &eq->member);
	}
	platform_unlock(&set->lock);
	return ret;
}

void engine_waitset_leave(struct engine_eq *eq)
{
	platform_lock(&eq->set->lock);
	list_remove(&eq->member);
	engine_eq_leave(eq, &eq->set->channel);
	platform_unlock(&eq->set->lock);
	engine_set_put(eq->set);
	eq->set = NULL;
}

/* Opens the channel; with the set's lock. In the child of a fork all members are added again. */
static int engine_set_open(struct engine_waitset *set)
{
	struct engine_wait_obj *w;
	struct engine_eq *eq;
	int ret;

	if (engine_channel_is_local(&set->channel))
		return 0;
	ret = engine_channel_open(&set->channel, NULL);
	list_for_each_entry(w, &set->members, member)
		if (!ret)
			ret = engine_channel_hold(&set->channel, w->base.domain);
	list_for_each_entry(eq, &set->eqs, member)
		if (!ret)
			ret = engine_eq_join(eq, &set->channel);
	return ret;
}

/*
 * Makes a round in each domain. Returns true if a member has something; a counter's change counts
 * once.
 */
static bool engine_set_check(struct engine_waitset *set)
{
	struct engine_wait_obj *w;
	struct engine_eq *eq;
	bool any = false;

	engine_fork_lock_give_way(&set->fork_lock);
	platform_lock(&set->lock);
	list_for_each_entry(w, &set->members, member) {
		engine_use(w->base.domain);
		if (engine_wait_obj_check(w)) {
			any = true;
			if (w->fid->fclass == FI_CLASS_CNTR)
				engine_cntr_seen(
					container_of(w->fid, struct engine_cntr, fid.fid));
		}
		engine_unuse(w->base.domain);
	}
	list_for_each_entry(eq, &set->eqs, member)
		any |= engine_eq_check(eq);
	platform_unlock(&set->lock);
	return any;
}

/* Prepares to sleep on the set. With its lock. */
static int engine_set_arm(struct engine_waitset *set)
{
	struct engine_wait_obj *w;
	struct engine_eq *eq;
	int ret = 0;

	/* The bell stays rung while other threads sleep on the set: they have to see it. */
	if (set->channel.asleep <= 1)
		engine_channel_clear(&set->channel);
	list_for_each_entry(w, &set->members, member) {
		ret = engine_wait_obj_trywait(w);
		if (ret)
			return ret;
	}
	list_for_each_entry(eq, &set->eqs, member) {
		ret = engine_eq_trywait(eq);
		if (ret)
			return ret;
	}
	return 0;
}

/* No thread sleeps on the set any more; with its lock. */
static void engine_set_disarm(struct engine_waitset *set)
{
	struct engine_wait_obj *w;
	struct engine_eq *eq;

	list_for_each_entry(w, &set->members, member) {
		engine_use(w->base.domain);
		engine_wait_drop(&w->base, false);
		engine_unuse(w->base.domain);
	}
	list_for_each_entry(eq, &set->eqs, member)
		engine_eq_awake(eq);
}

/* A thread has slept, or is cancelled in its sleep. */
static void engine_set_slept(void *arg)
{
	struct engine_waitset *set = arg;

	platform_lock(&set->lock);
	if (!engine_channel_leave(&set->channel) && !engine_channel_exported(&set->channel))
		engine_set_disarm(set);
	platform_unlock(&set->lock);
}

/* @before: signals when the wait began */
static void engine_set_sleep(struct engine_waitset *set, struct engine_sleeper *sleeper,
			     uint32_t before)
{
	struct platform_wakers on;
	int ret;

	platform_lock(&set->lock);
	ret = engine_set_open(set);
	engine_channel_enter(&set->channel, &on);
	if (!ret)
		ret = engine_set_arm(set);
	/* A signal before this rang what engine_set_arm() may have silenced. */
	if (!ret && engine_signals_there(&set->signals, before))
		ret = -FI_EAGAIN;
	platform_unlock(&set->lock);
	/* The timers of the domains are in the channel too. */
	on.cancelled = engine_set_slept;
	on.arg = set;
	engine_sleeper_sleep(sleeper, &on, ret);
	engine_set_slept(set);
}

static int engine_waitset_wait(struct fid_wait *fid, int timeout)
{
	struct engine_waitset *set = set_of(fid);
	uint32_t before = engine_signals_cnt(&set->signals);
	struct engine_sleeper sleeper;
	int ret = 0;

	engine_sleeper_init(&sleeper, &set->channel, timeout);
	sleeper.patient = set->obj == FI_WAIT_YIELD;
	while (!engine_set_check(set) && !engine_signals_obey(&set->signals, before)) {
		if (sleeper.interrupted || engine_sleeper_over(&sleeper)) {
			ret = sleeper.interrupted ? -FI_EINTR : -FI_ETIMEDOUT;
			break;
		}
		if (!engine_sleeper_spins(&sleeper))
			engine_set_sleep(set, &sleeper, before);
	}
	engine_sleeper_end(&sleeper);
	return ret;
}

static int engine_set_trywait(struct engine_waitset *set)
{
	int ret = 0;

	platform_lock(&set->lock);
	if (engine_channel_exported(&set->channel))
		ret = engine_set_open(set);
	if (!ret)
		ret = engine_set_arm(set);
	platform_unlock(&set->lock);
	return ret;
}

/*
 * Returns true if a queue or counter of the set has something. With its lock; an event queue rings
 * itself.
 */
static bool engine_set_ready(struct engine_waitset *set)
{
	struct engine_wait_obj *w;
	bool any = false;

	list_for_each_entry(w, &set->members, member) {
		engine_enter(w->base.domain);
		any |= engine_wait_obj_ready(w);
		engine_leave(w->base.domain);
	}
	return any;
}

/* As for a queue: what the members had before the descriptor was opened rings it. */
int engine_waitset_get_wait(struct engine_waitset *set, int *descriptor)
{
	int ret = 0;

	platform_lock(&set->lock);
	if (!engine_channel_exported(&set->channel)) {
		ret = set->obj == FI_WAIT_UNSPEC ? engine_set_open(set) : -FI_ENODATA;
		if (!ret && engine_set_ready(set))
			engine_channel_ring(&set->channel);
	}
	if (!ret)
		*descriptor = engine_channel_export(&set->channel);
	platform_unlock(&set->lock);
	return ret;
}

static int engine_waitset_control(struct fid *fid, int command, void *arg)
{
	struct engine_waitset *set = container_of(fid, struct engine_waitset, fid.fid);

	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAIT)
		return engine_waitset_get_wait(set, arg);
	if (command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	*(enum fi_wait_obj *)arg = engine_wait_obj_type(set->obj, set);
	return 0;
}

/* The set, and what threads sleep on, stays until its last member is closed. */
static int engine_waitset_close(struct fid *fid)
{
	struct engine_waitset *set = container_of(fid, struct engine_waitset, fid.fid);
	int ret = engine_fabric_left(set->fabric, FI_LOG_FABRIC, "fi_close of a wait set");

	if (!ret)
		engine_set_put(set);
	return ret;
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
					   WAIT_OPEN, "no flags are valid", attr->flags);
	return engine_wait_type_check(fabric->family, FI_LOG_FABRIC, WAIT_OPEN, attr->wait_obj,
				      true);
}

int engine_waitset_open(struct fid_fabric *fid, struct fi_wait_attr *attr, struct fid_wait **out)
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
	engine_channel_init(&set->channel, ENGINE_CHANNEL_SET);
	if (attr->wait_obj == FI_WAIT_FD) {
		ret = engine_channel_open(&set->channel, NULL);
		engine_channel_export(&set->channel);
	}
	if (ret) {
		engine_channel_close(&set->channel);
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
	engine_fork_lock_open(&set->fork_lock, &set->lock, fabric, ENGINE_HOLD_SET);
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
		return engine_wait_obj_trywait(
			&container_of(fid, struct engine_cq, fid.fid)->wait);
	case FI_CLASS_CNTR:
		return engine_wait_obj_trywait(
			&container_of(fid, struct engine_cntr, fid.fid)->wait);
	case FI_CLASS_EQ:
		return engine_eq_trywait(container_of(fid, struct engine_eq, fid.fid));
	case FI_CLASS_WAIT:
		return engine_set_trywait(container_of(fid, struct engine_waitset, fid.fid));
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
				     "NULL for the objects, or a negative count");
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
