/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The poll set object: which queues and counters of a domain have something. Called by programs on
 * any thread; the calls hold the domain. An object that is closed is removed from its sets.
 */
#include <rdma/fi_errno.h>
#include "cntr.h"
#include "cntr_fid.h"
#include "forked.h"
#include "guard.h"
#include "no_call.h"
#include "poll_fid.h"
#include "progress.h"
#include "refs.h"
#include "refuse.h"
#include "wait_obj.h"

struct engine_poll {
	struct fid_poll fid;
	struct engine_domain *domain;
	/* struct poll_member.link */
	struct list members;
};

/* An object in a set. */
struct poll_member {
	/* Link in set->members */
	struct list link;
	/* Link in wait->polled */
	struct list polled;
	struct engine_wait_obj *wait;
};

static struct engine_poll *poll_of(struct fid_poll *fid)
{
	return container_of(fid, struct engine_poll, fid);
}

/* Returns the wait object of @fid, or NULL if a poll set does not accept it. */
static struct engine_wait_obj *engine_poll_wait(struct fid *fid)
{
	if (!fid)
		return NULL;
	if (fid->fclass == FI_CLASS_CQ)
		return &container_of(fid, struct engine_cq, fid.fid)->wait;
	if (fid->fclass == FI_CLASS_CNTR)
		return &container_of(fid, struct engine_cntr, fid.fid)->wait;
	return NULL;
}

static void engine_member_free(struct poll_member *m)
{
	list_remove(&m->link);
	list_remove(&m->polled);
	platform_free(m);
}

void engine_poll_forget(struct engine_wait_obj *w)
{
	while (!list_empty(&w->polled))
		engine_member_free(container_of(w->polled.next, struct poll_member, polled));
}

static struct poll_member *engine_member_of(struct engine_poll *poll,
					    const struct engine_wait_obj *w)
{
	struct poll_member *m;

	list_for_each_entry(m, &poll->members, link) {
		if (m->wait == w)
			return m;
	}
	return NULL;
}

/* A counter is ready if it has changed since fi_poll last reported it. */
static bool engine_member_ready(struct poll_member *m)
{
	struct engine_cntr *cntr;

	if (m->wait->fid->fclass == FI_CLASS_CQ)
		return cq_reached(&container_of(m->wait->fid, struct engine_cq, fid.fid)->queue,
				  1);
	cntr = container_of(m->wait->fid, struct engine_cntr, fid.fid);
	return atomic_load_explicit(&cntr->value, memory_order_relaxed) != cntr->polled_value ||
	       atomic_load_explicit(&cntr->errors, memory_order_relaxed) != cntr->polled_errors;
}

static int engine_poll_poll(struct fid_poll *fid, void **contexts, int cnt)
{
	struct engine_poll *poll = poll_of(fid);
	struct poll_member *m;
	int n = 0;

	if (cnt < 0 || (cnt && !contexts))
		return engine_refuse(poll->domain->family, FI_LOG_DOMAIN, -FI_EINVAL, "fi_poll",
				     "NULL for the contexts, or a negative count");
	engine_use(poll->domain);
	engine_domain_progress(poll->domain);
	list_for_each_entry(m, &poll->members, link) {
		if (n == cnt)
			break;
		if (!engine_member_ready(m))
			continue;
		contexts[n++] = m->wait->fid->context;
		if (m->wait->fid->fclass == FI_CLASS_CNTR)
			engine_cntr_polled(
				container_of(m->wait->fid, struct engine_cntr, fid.fid));
	}
	engine_unuse(poll->domain);
	return n;
}

static int engine_poll_add(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct engine_poll *poll = poll_of(fid);
	struct engine_wait_obj *w = engine_poll_wait(event_fid);
	struct poll_member *m;
	int ret = 0;

	if (flags)
		return engine_refuse_value(poll->domain->family, FI_LOG_DOMAIN, -FI_EBADFLAGS,
					   "fi_poll_add", "no flags are valid", flags);
	if (!w || w->base.domain != poll->domain)
		return engine_refuse(poll->domain->family, FI_LOG_DOMAIN, -FI_EINVAL,
				     "fi_poll_add",
				     "no completion queue or counter of the set's domain");
	engine_enter(poll->domain);
	if (!engine_member_of(poll, w)) {
		m = platform_alloc(sizeof(*m));
		if (m) {
			m->wait = w;
			list_add_tail(&poll->members, &m->link);
			list_add_tail(&w->polled, &m->polled);
		} else {
			ret = -FI_ENOMEM;
		}
	}
	engine_leave(poll->domain);
	return ret;
}

/* An object that is not in the set was removed from it when it was closed: success. */
static int engine_poll_del(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct engine_poll *poll = poll_of(fid);
	struct engine_wait_obj *w = engine_poll_wait(event_fid);
	struct poll_member *m;

	if (flags)
		return engine_refuse_value(poll->domain->family, FI_LOG_DOMAIN, -FI_EBADFLAGS,
					   "fi_poll_del", "no flags are valid", flags);
	engine_enter(poll->domain);
	m = w ? engine_member_of(poll, w) : NULL;
	if (m)
		engine_member_free(m);
	engine_leave(poll->domain);
	return w ? 0
		 : engine_refuse(poll->domain->family, FI_LOG_DOMAIN, -FI_EINVAL, "fi_poll_del",
				 "no completion queue or counter");
}

/* The set is closed with its members: they are removed. */
static int engine_poll_close(struct fid *fid)
{
	struct engine_poll *poll = container_of(fid, struct engine_poll, fid.fid);
	struct engine_domain *domain = poll->domain;
	int ret = engine_left(domain, FI_LOG_DOMAIN, "fi_close of a poll set");

	if (ret)
		return ret;
	engine_enter(domain);
	while (!list_empty(&poll->members))
		engine_member_free(container_of(poll->members.next, struct poll_member, link));
	engine_leave(domain);
	platform_free(poll);
	engine_unref(&domain->refs);
	return 0;
}

static struct fi_ops engine_poll_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_poll_close,
	.bind = engine_no_bind,
	.control = engine_no_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

static struct fi_ops_poll engine_poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = engine_poll_poll,
	.poll_add = engine_poll_add,
	.poll_del = engine_poll_del,
};

int engine_poll_open(struct fid_domain *fid, struct fi_poll_attr *attr, struct fid_poll **out)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid);
	struct engine_poll *poll;

	if (!out)
		return engine_refuse(domain->family, FI_LOG_DOMAIN, -FI_EINVAL, "fi_poll_open",
				     "NULL where the set is to go");
	if (attr && attr->flags)
		return engine_refuse_value(domain->family, FI_LOG_DOMAIN, -FI_EBADFLAGS,
					   "fi_poll_open", "no flags are valid", attr->flags);
	poll = platform_alloc(sizeof(*poll));
	if (!poll)
		return -FI_ENOMEM;
	poll->fid.fid.fclass = FI_CLASS_POLL;
	poll->fid.fid.ops = &engine_poll_fi_ops;
	poll->fid.ops = &engine_poll_ops;
	poll->domain = domain;
	list_init(&poll->members);
	engine_ref(&domain->refs);
	*out = &poll->fid;
	return 0;
}
