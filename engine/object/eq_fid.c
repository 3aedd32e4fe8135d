/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The event queue object. Called by programs on any thread: it has a lock of its own. It grows
 * as needed, so that it never overruns. Reading it while it is empty makes progress on the
 * domains of what is bound to it.
 *
 * Source: fi_eq(3). A program that did not ask for FI_WRITE may write all the same.
 */
#include <rdma/fi_errno.h>
#include "arm.h"
#include "auto.h"
#include "eq_fid.h"
#include "events.h"
#include "fabric_fid.h"
#include "guard.h"
#include "no_call.h"
#include "progress.h"
#include "refs.h"
#include "refuse.h"
#include "wait.h"
#include "wait_set_fid.h"
#include "waiting.h"

#define TRY_ROUNDS 64	    /* before it is left to the program */
#define NAP_NS	   1000000u /* sleep of who can't be woken */

/* A domain that readers drive. */
struct engine_watch {
	/* eq->watched */
	struct list link;
	struct engine_domain *domain;
	/* objects of it that are bound */
	uint32_t cnt;
	/* domain->rounds at the last look */
	uint32_t seen;
	struct engine_eq *eq;
	/* of the domain, while somebody sleeps on the queue */
	struct engine_armed armed;
};

static struct engine_eq *eq_of(struct fid_eq *fid)
{
	return container_of(fid, struct engine_eq, fid);
}

static struct engine_watch *engine_watch_of(struct engine_eq *eq,
					    const struct engine_domain *domain)
{
	struct list *node, *after;

	list_for_each(node, after, &eq->watched) {
		struct engine_watch *watch = container_of(node, struct engine_watch, link);

		if (watch->domain == domain)
			return watch;
	}
	return NULL;
}

/* What the domain has is for the queue's readers to look at. */
static void engine_watch_ring(struct engine_armed *armed)
{
	struct engine_eq *eq = container_of(armed, struct engine_watch, armed)->eq;

	platform_lock(&eq->lock);
	engine_eq_came(eq);
	platform_unlock(&eq->lock);
}

static struct engine_watch *engine_watch_new(struct engine_eq *eq, struct engine_domain *domain)
{
	struct engine_watch *watch = platform_alloc(sizeof(*watch));

	if (!watch)
		return NULL;
	watch->eq = eq;
	watch->domain = domain;
	watch->seen = atomic_load_explicit(&domain->rounds, memory_order_relaxed);
	engine_armed_init(&watch->armed, engine_watch_ring, NULL);
	list_push(&eq->watched, &watch->link);
	return watch;
}

static void engine_watch_free(struct engine_watch *watch)
{
	list_remove(&watch->link);
	platform_free(watch);
}

/* What is slept on for the queue holds the domain's waiter, unless a thread makes its progress. */
static int engine_watch_join(struct engine_watch *watch)
{
	int ret;

	if (!engine_poll_set_here(&watch->eq->poll_set) || engine_auto_needed(watch->domain))
		return 0;
	engine_enter(watch->domain);
	ret = engine_poll_set_add(&watch->eq->poll_set, watch->domain);
	engine_leave(watch->domain);
	return ret;
}

int engine_eq_watch(struct engine_eq *eq, struct engine_domain *domain)
{
	struct engine_watch *watch;
	int ret = 0;

	platform_lock(&eq->watch_lock);
	watch = engine_watch_of(eq, domain);
	if (!watch) {
		watch = engine_watch_new(eq, domain);
		ret = watch ? engine_watch_join(watch) : -FI_ENOMEM;
		if (!ret)
			engine_ref(&eq->refs);
	}
	if (!ret)
		watch->cnt++;
	else if (watch)
		engine_watch_free(watch);
	platform_unlock(&eq->watch_lock);
	return ret;
}

static void engine_eq_free(struct engine_eq *eq)
{
	engine_poll_set_close(&eq->poll_set);
	eq_fini(&eq->queue);
	platform_lock_fini(&eq->lock);
	platform_lock_fini(&eq->watch_lock);
	platform_free(eq);
}

/* The program has closed the queue, or nothing of a domain is bound to it any more: the last one ends it. */
static void engine_eq_put(struct engine_eq *eq)
{
	struct engine_fabric *fabric = eq->fabric;

	if (atomic_fetch_sub_explicit(&eq->refs, 1, memory_order_acq_rel) > 1)
		return;
	engine_eq_free(eq);
	engine_fabric_put(fabric);
}

void engine_eq_drop(struct engine_eq *eq, struct engine_domain *domain)
{
	struct engine_watch *watch;
	bool last;

	platform_lock(&eq->watch_lock);
	watch = engine_watch_of(eq, domain);
	last = !--watch->cnt;
	if (last) {
		engine_enter(domain);
		engine_poll_set_remove(&eq->poll_set, domain);
		engine_armed_forget(domain, &watch->armed);
		engine_leave(domain);
		engine_watch_free(watch);
	}
	platform_unlock(&eq->watch_lock);
	if (last)
		engine_eq_put(eq);
}

/*
 * A domain that the program has driven since the last look needs no round of ours, and to claim it
 * from its callers is dear (guard.h).
 */
static void engine_watch_drive(struct engine_watch *watch)
{
	struct engine_domain *domain = watch->domain;
	uint32_t rounds = atomic_load_explicit(&domain->rounds, memory_order_relaxed);

	if (rounds != watch->seen) {
		watch->seen = rounds;
		return;
	}
	engine_enter(domain);
	engine_domain_progress(domain);
	watch->seen = atomic_load_explicit(&domain->rounds, memory_order_relaxed);
	engine_leave(domain);
}

static void engine_eq_progress(struct engine_eq *eq)
{
	struct list *node, *after;

	platform_lock(&eq->watch_lock);
	list_for_each(node, after, &eq->watched)
		engine_watch_drive(container_of(node, struct engine_watch, link));
	platform_unlock(&eq->watch_lock);
}

static bool engine_eq_is_empty(struct engine_eq *eq)
{
	bool empty;

	platform_lock(&eq->lock);
	empty = eq_empty(&eq->queue);
	platform_unlock(&eq->lock);
	return empty;
}

bool engine_eq_look(struct engine_eq *eq)
{
	if (!engine_eq_is_empty(eq))
		return true;
	engine_eq_progress(eq);
	return !engine_eq_is_empty(eq);
}

/* Sleeping: the bell in its poll set rings from the first event to the last, and when it is rung for other reasons. */

static void engine_eq_went(struct engine_eq *eq)
{
	if (!eq->rung || !eq_empty(&eq->queue))
		return;
	eq->rung = false;
	platform_bell_clear(eq->poll_set.bell);
}

/* Have what is slept on; with watch_lock. In the child of a fork the domains enter it again. */
static int engine_eq_poll_set(struct engine_eq *eq)
{
	struct list *node, *after;
	int ret;

	if (engine_poll_set_here(&eq->poll_set))
		return 0;
	platform_lock(&eq->lock);
	ret = engine_poll_set_open(&eq->poll_set);
	eq->rung = false;
	if (!ret && !eq_empty(&eq->queue))
		engine_eq_came(eq);
	platform_unlock(&eq->lock);
	list_for_each(node, after, &eq->watched)
		if (!ret)
			ret = engine_watch_join(container_of(node, struct engine_watch, link));
	return ret;
}

/* Rounds until the queue has something or the wires of the domain are armed. 0, -FI_EAGAIN or another -FI_E* */
static int engine_watch_arm(struct engine_watch *watch)
{
	struct engine_domain *domain = watch->domain;
	uint64_t ns = 0;

	if (engine_auto_needed(domain))
		return engine_auto_wake(domain);
	engine_enter(domain);
	engine_domain_clock(domain);
	for (int i = 0; i < TRY_ROUNDS && !ns; i++) {
		engine_domain_progress(domain);
		ns = engine_waiter_arm(domain);
	}
	watch->seen = atomic_load_explicit(&domain->rounds, memory_order_relaxed);
	if (ns) {
		engine_armed_add(domain, &watch->armed, false);
		engine_waiter_timer(domain, ns);
	}
	engine_leave(domain);
	return ns ? 0 : -FI_EAGAIN;
}

/* May the queue be slept on? With watch_lock. */
static int engine_eq_arm(struct engine_eq *eq)
{
	struct list *node, *after;
	int ret = engine_eq_poll_set(eq);

	if (ret)
		return ret;
	platform_lock(&eq->lock);
	engine_eq_went(eq); /* those who sleep already want an event, which rings */
	platform_unlock(&eq->lock);
	list_for_each(node, after, &eq->watched) {
		ret = engine_watch_arm(container_of(node, struct engine_watch, link));
		if (ret)
			return ret;
	}
	return engine_eq_is_empty(eq) ? 0 : -FI_EAGAIN;
}

int engine_eq_trywait(struct engine_eq *eq)
{
	bool sleeps = atomic_load_explicit(&eq->given, memory_order_relaxed) ||
		      (eq->set && engine_poll_set_here(&eq->set->poll_set));
	int ret;

	if (!sleeps)
		return engine_eq_look(eq) ? -FI_EAGAIN : 0;
	if (!engine_eq_is_empty(eq))
		return -FI_EAGAIN;
	platform_lock(&eq->watch_lock);
	ret = engine_eq_arm(eq);
	platform_unlock(&eq->watch_lock);
	return ret;
}

static void engine_eq_disarm(struct engine_eq *eq)
{
	struct list *node, *after;

	list_for_each(node, after, &eq->watched) {
		struct engine_watch *watch = container_of(node, struct engine_watch, link);

		engine_enter(watch->domain);
		engine_armed_drop(watch->domain, &watch->armed, false);
		engine_leave(watch->domain);
	}
}

void engine_eq_awake(struct engine_eq *eq)
{
	platform_lock(&eq->watch_lock);
	if (!eq->asleep)
		engine_eq_disarm(eq);
	platform_unlock(&eq->watch_lock);
}

int engine_eq_join(struct engine_eq *eq, struct engine_poll_set *poll_set)
{
	int ret;

	platform_lock(&eq->watch_lock);
	ret = engine_eq_poll_set(eq);
	platform_unlock(&eq->watch_lock);
	return ret ? ret : platform_poll_set_add(poll_set->poll_set, eq->poll_set.poll_set);
}

void engine_eq_part(struct engine_eq *eq, struct engine_poll_set *poll_set)
{
	if (engine_poll_set_here(poll_set) && engine_poll_set_here(&eq->poll_set))
		platform_poll_set_remove(poll_set->poll_set, eq->poll_set.poll_set);
}

#define EQ_READ "fi_eq_read, fi_eq_sread or fi_eq_readerr"

static ssize_t engine_eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len,
			      uint64_t flags)
{
	struct engine_eq *eq = eq_of(fid);
	ssize_t ret;

	if (!event || (len && !buf))
		return engine_refuse(eq->fabric->family, FI_LOG_EQ, -FI_EINVAL, EQ_READ,
				     "NULL for the event, or where it is to go");
	if (flags & ~FI_PEEK)
		return engine_refuse_value(eq->fabric->family, FI_LOG_EQ, -FI_EBADFLAGS,
					   EQ_READ, "the only flag is FI_PEEK", flags);
	if (engine_eq_is_empty(eq))
		engine_eq_progress(eq);
	platform_lock(&eq->lock);
	ret = eq_take(&eq->queue, event, buf, len, flags);
	engine_eq_went(eq);
	platform_unlock(&eq->lock);
	return ret;
}

static ssize_t engine_eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct engine_eq *eq = eq_of(fid);
	ssize_t ret;

	if (!buf)
		return engine_refuse(eq->fabric->family, FI_LOG_EQ, -FI_EINVAL, EQ_READ,
				     "NULL where the error is to go");
	if (flags & ~FI_PEEK)
		return engine_refuse_value(eq->fabric->family, FI_LOG_EQ, -FI_EBADFLAGS,
					   EQ_READ, "the only flag is FI_PEEK", flags);
	platform_lock(&eq->lock);
	ret = eq_take_error(&eq->queue, buf, flags);
	engine_eq_went(eq);
	platform_unlock(&eq->lock);
	return ret;
}

static ssize_t engine_eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len,
			       uint64_t flags)
{
	const struct engine_family *family = eq_of(fid)->fabric->family;
	int ret;

	if (len && !buf)
		return engine_refuse(family, FI_LOG_EQ, -FI_EINVAL, "fi_eq_write",
				     "NULL for the event");
	if (flags)
		return engine_refuse_value(family, FI_LOG_EQ, -FI_EBADFLAGS, "fi_eq_write",
					   "there are no flags", flags);
	ret = engine_eq_push(eq_of(fid), event, buf, len);
	return ret ? ret : (ssize_t)len;
}

/* Several threads may: the last one that is awake disarms. */
static void engine_eq_sleep(struct engine_eq *eq, uint64_t end_ns)
{
	uint64_t now, ns;
	int ret, on;

	platform_lock(&eq->watch_lock);
	eq->asleep++;
	ret = engine_eq_arm(eq);
	on = eq->poll_set.poll_set;
	platform_unlock(&eq->watch_lock);
	now = platform_now_ns();
	ns = ret ? NAP_NS : UINT64_MAX; /* without descriptors, a nap */
	if (end_ns <= now)
		ns = 0;
	else if (end_ns != UINT64_MAX && end_ns - now < ns)
		ns = end_ns - now;
	if (ret != -FI_EAGAIN && ns)
		platform_sleep(&on, ret ? 0 : 1, ns);
	platform_lock(&eq->watch_lock);
	/* Who sleeps on the descriptor, or on the set, relies on the wires that are armed. */
	if (!--eq->asleep && !eq->set && !atomic_load_explicit(&eq->given, memory_order_relaxed))
		engine_eq_disarm(eq);
	platform_unlock(&eq->watch_lock);
}

static ssize_t engine_eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len,
			       int timeout, uint64_t flags)
{
	struct engine_eq *eq = eq_of(fid);
	uint64_t end_ns = engine_end_ns(timeout);
	struct engine_spin spin = { 0 };
	ssize_t ret;

	if (eq->wait == FI_WAIT_NONE)
		return engine_refuse(eq->fabric->family, FI_LOG_EQ, -FI_ENOSYS, "fi_eq_sread",
				     "the queue has no wait object; open it with wait_obj "
				     "FI_WAIT_UNSPEC or FI_WAIT_FD, or use fi_eq_read");
	while ((ret = engine_eq_read(fid, event, buf, len, flags)) == -FI_EAGAIN) {
		if (engine_over(end_ns))
			break;
		if (!engine_spin(&spin, &eq->spin_budget))
			engine_eq_sleep(eq, end_ns);
	}
	engine_spin_end(&spin, &eq->spin_budget);
	return ret;
}

static const char *engine_eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data,
				      char *buf, size_t len)
{
	return engine_strerror(prov_errno, buf, len);
}

/* One whose way of waiting is ours has a descriptor once it is asked for: what it has rings. */
static int engine_eq_give(struct engine_eq *eq, int *descriptor)
{
	int ret;

	if (eq->set)
		return engine_waitset_give(eq->set, descriptor);
	if (eq->wait != FI_WAIT_FD && eq->wait != FI_WAIT_UNSPEC)
		return -FI_ENODATA;
	platform_lock(&eq->watch_lock);
	ret = engine_eq_poll_set(eq);
	if (!ret) {
		atomic_store_explicit(&eq->given, true, memory_order_relaxed);
		*descriptor = eq->poll_set.poll_set;
	}
	platform_unlock(&eq->watch_lock);
	return ret;
}

static int engine_eq_control(struct fid *fid, int command, void *arg)
{
	struct engine_eq *eq = container_of(fid, struct engine_eq, fid.fid);

	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAIT)
		return engine_eq_give(eq, arg);
	*(enum fi_wait_obj *)arg = engine_wait_obj(eq->wait, eq->set);
	return 0;
}

/* What is bound to it keeps it, and is told by nobody: its events go nowhere. */
static int engine_eq_close(struct fid *fid)
{
	struct engine_eq *eq = container_of(fid, struct engine_eq, fid.fid);

	if (eq->set)
		engine_waitset_leave(eq);
	platform_lock(&eq->lock);
	eq->closed = true;
	platform_unlock(&eq->lock);
	engine_eq_put(eq);
	return 0;
}

static struct fi_ops engine_eq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_eq_close,
	.bind = engine_no_bind,
	.control = engine_eq_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

static struct fi_ops_eq engine_eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = engine_eq_read,
	.readerr = engine_eq_readerr,
	.write = engine_eq_write,
	.sread = engine_eq_sread,
	.strerror = engine_eq_strerror,
};

#define EQ_OPEN "fi_eq_open"

static int engine_eq_attr_check(const struct engine_fabric *fabric,
				const struct fi_eq_attr *attr)
{
	if (!attr)
		return 0;
	if (attr->flags & ~(FI_WRITE | FI_AFFINITY))
		return engine_refuse_value(fabric->family, FI_LOG_EQ, -FI_EBADFLAGS, EQ_OPEN,
					   "flags are FI_WRITE and FI_AFFINITY", attr->flags);
	switch (attr->wait_obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_UNSPEC:
	case FI_WAIT_YIELD:
	case FI_WAIT_FD:
	case FI_WAIT_SET:
		return 0;
	case FI_WAIT_MUTEX_COND:
	case FI_WAIT_POLLFD:
		return engine_refuse_value(
			fabric->family, FI_LOG_EQ, -FI_ENOSYS, EQ_OPEN,
			"wait_obj is FI_WAIT_NONE, _UNSPEC, _FD, _YIELD or _SET",
			attr->wait_obj);
	}
	return engine_refuse_value(fabric->family, FI_LOG_EQ, -FI_EINVAL, EQ_OPEN,
				   "no such wait_obj", attr->wait_obj);
}

/* An empty queue that nothing waits for, with one reference, owned; NULL without memory. */
static struct engine_eq *engine_eq_new(struct engine_fabric *fabric, enum fi_wait_obj wait,
				       void *context)
{
	struct engine_eq *eq = platform_alloc(sizeof(*eq));

	if (!eq)
		return NULL;
	eq->fabric = fabric;
	eq->wait = wait;
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &engine_eq_fi_ops;
	eq->fid.ops = &engine_eq_ops;
	platform_lock_init(&eq->lock);
	eq_init(&eq->queue);
	platform_lock_init(&eq->watch_lock);
	list_init(&eq->watched);
	eq->queue.api_version = fabric->fid.api_version;
	engine_ref(&eq->refs);
	return eq;
}

int engine_eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr, struct fid_eq **out,
		   void *context)
{
	struct engine_fabric *fabric = container_of(fid, struct engine_fabric, fid);
	struct engine_eq *eq;
	int ret;

	if (!out)
		return engine_refuse(fabric->family, FI_LOG_EQ, -FI_EINVAL, EQ_OPEN,
				     "NULL where the queue is to go");
	ret = engine_eq_attr_check(fabric, attr);
	if (ret)
		return ret;
	eq = engine_eq_new(fabric, attr ? attr->wait_obj : FI_WAIT_NONE, context);
	if (!eq)
		return -FI_ENOMEM;
	if (eq->wait == FI_WAIT_FD) {
		atomic_init(&eq->given, true);
		ret = engine_poll_set_open(&eq->poll_set);
	} else if (eq->wait == FI_WAIT_SET) {
		ret = engine_waitset_join(
			eq, attr->wait_set); /* last: others look at it from here on */
	}
	if (ret) {
		engine_eq_free(eq);
		return ret;
	}
	engine_ref(&fabric->refs);
	*out = &eq->fid;
	return 0;
}
