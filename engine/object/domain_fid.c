/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The domain object: what endpoints, queues and address vectors share, and the lock for programs
 * that do not serialize their calls.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include "access.h"
#include "auto.h"
#include "av_fid.h"
#include "cntr_fid.h"
#include "coll.h"
#include "cq_fid.h"
#include "domain_fid.h"
#include "domain_ops.h"
#include "ep_fid.h"
#include "eq_fid.h"
#include "fabric_fid.h"
#include "guard.h"
#include "mr_fid.h"
#include "no_call.h"
#include "poll_fid.h"
#include "forked.h"
#include "refs.h"
#include "refuse.h"
#include "registrar.h"
#include "sep_fid.h"
#include "srx_fid.h"
#include "trigger.h"
#include "waiting.h"
#include "yield.h"

static void engine_domain_free(struct engine_domain *domain)
{
	engine_mrs_close(domain);
	pool_fini(&domain->rx_pool);
	pool_fini(&domain->work_pool);
	engine_channel_close(&domain->channel);
	platform_lock_fini(&domain->lock);
	platform_free(domain);
}

static int engine_domain_close(struct fid *fid)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid.fid);
	struct engine_fabric *fabric = domain->fabric;
	uint64_t open = (uint64_t)atomic_load_explicit(&domain->refs, memory_order_relaxed);
	int ret;

	ret = engine_left(domain, FI_LOG_DOMAIN, "fi_close of a domain");
	if (ret)
		return ret;
	engine_regions_hold(domain);
	open += domain->mr->pool.used;
	engine_leave(domain);
	if (open)
		return engine_refuse_value(
			domain->family, FI_LOG_DOMAIN, -FI_EBUSY, "fi_close of a domain",
			"that many objects of it are open; close those first", open);
	engine_forked_close(domain);
	engine_auto_stop(domain);
	if (domain->eq)
		engine_eq_drop(domain->eq, domain);
	engine_domain_free(domain);
	/* Last: afterwards the provider's module may be unloaded. */
	engine_fabric_put(fabric);
	return 0;
}

static int engine_ep2_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			   uint64_t flags, void *context)
{
	if (flags)
		return engine_refuse_value(
			container_of(domain, struct engine_domain, fid)->family, FI_LOG_EP_CTRL,
			-FI_EBADFLAGS, "fi_endpoint2", "no flags are valid", flags);
	return engine_ep_open(domain, info, ep, context);
}

static int engine_no_xpu(struct fid_domain *domain, struct fi_xpu_attr *attr,
			 struct fid_xpu_ctx **ctx, void *context)
{
	return -FI_ENOSYS;
}

struct engine_eq *engine_domain_eq(struct engine_domain *domain)
{
	struct engine_eq *eq;

	engine_enter(domain);
	eq = domain->eq;
	engine_leave(domain);
	return eq;
}

#define DOMAIN_BIND "fi_domain_bind"

/* Registrations are synchronous: FI_REG_MR is refused. */
static int engine_domain_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid.fid);
	struct engine_eq *eq, *drop = NULL;
	int ret;

	if (!target || target->fclass != FI_CLASS_EQ)
		return engine_refuse(domain->family, FI_LOG_DOMAIN, -FI_EINVAL, DOMAIN_BIND,
				     "only an event queue can be bound to a domain");
	if (flags)
		return engine_refuse_value(
			domain->family, FI_LOG_DOMAIN, -FI_EBADFLAGS, DOMAIN_BIND,
			"no flags; registration is never asynchronous", flags);
	eq = container_of(target, struct engine_eq, fid.fid);
	if (eq->fabric != domain->fabric)
		return engine_refuse(domain->family, FI_LOG_DOMAIN, -FI_EINVAL, DOMAIN_BIND,
				     "a queue of another fabric");
	/* The queue's lock ranks before the domain. */
	ret = engine_eq_watch(eq, domain);
	if (ret)
		return ret;
	engine_enter(domain);
	if (domain->eq)
		drop = eq;
	if (domain->eq && domain->eq != eq)
		ret = -FI_EINVAL;
	domain->eq = domain->eq ? domain->eq : eq;
	engine_leave(domain);
	if (drop)
		engine_eq_drop(drop, domain);
	return ret ? engine_refuse(domain->family, FI_LOG_DOMAIN, ret, DOMAIN_BIND,
				   "another queue is bound, which the domain keeps")
		   : 0;
}

static int engine_domain_control(struct fid *fid, int command, void *arg)
{
	struct engine_domain *domain = container_of(fid, struct engine_domain, fid.fid);

	if (command == FI_QUEUE_WORK || command == FI_CANCEL_WORK || command == FI_FLUSH_WORK)
		return engine_work_control(domain, command, arg);
	return engine_mr_control(domain, command, arg);
}

static int engine_domain_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
				  void *context)
{
	return engine_family_ops_open(container_of(fid, struct engine_domain, fid.fid)->family,
				      name, flags, ops);
}

static struct fi_ops engine_domain_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_domain_close,
	.bind = engine_domain_bind,
	.control = engine_domain_control,
	.ops_open = engine_domain_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

static struct fi_ops_domain engine_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = engine_av_open,
	.cq_open = engine_cq_open,
	.endpoint = engine_ep_open,
	.scalable_ep = engine_sep_open,
	.cntr_open = engine_cntr_open,
	.poll_open = engine_poll_open,
	.stx_ctx = engine_stx_open,
	.srx_ctx = engine_srx_open,
	.query_atomic = engine_query_atomic,
	.query_collective = engine_query_collective,
	.endpoint2 = engine_ep2_open,
	.xpu_ctx = engine_no_xpu,
};

/*
 * Endpoints, queues and contexts of a domain share its state. Calls need no lock only if the
 * program lets one thread at a time into all of them, and if control calls can be kept out
 * (guard.h). Setting up conns needs no thread: each end does its part in calls of its own. Source:
 * fi_domain(3), threading, progress.
 */
static void engine_domain_threads(struct engine_domain *domain,
				  const struct fi_domain_attr *attr)
{
	bool safe = attr->threading != FI_THREAD_DOMAIN, barriers;

	domain->progress.asked = attr->data_progress == FI_PROGRESS_AUTO;
	/* The domain's thread enters by a barrier whenever it wakes. */
	safe |= PLATFORM_BARRIER_BROADCASTS && domain->progress.asked;
	domain->unified = !safe && !domain->progress.asked &&
			  attr->control_progress == FI_PROGRESS_CONTROL_UNIFIED;
	barriers = !domain->unified && !platform_membarrier_open();
	atomic_init(&domain->safe, safe || (!domain->unified && !barriers));
	engine_registrar_open(domain->mr, barriers);
	platform_lock_init(&domain->lock);
}

/* Initializes a domain without objects. */
static void engine_domain_init(struct engine_domain *domain)
{
	domain->ops = &engine_progress_ops;
	list_init(&domain->eps);
	list_init(&domain->not_enabled);
	list_init(&domain->due);
	engine_works_init(domain);
	list_init(&domain->armed);
	engine_channel_init(&domain->channel, ENGINE_CHANNEL_DOMAIN);
	engine_wait_init(&domain->progress.wait, domain, NULL, NULL);
	list_init(&domain->tasks);
	pool_init(&domain->rx_pool, sizeof(struct engine_rx), 0);
	domain->yield_after = ENGINE_YIELD_MAX;
}

int engine_domain_open(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **out,
		       void *context)
{
	struct engine_fabric *fabric = container_of(fid, struct engine_fabric, fid);
	struct engine_domain *domain;
	int ret = 0;

	if (!info || !info->domain_attr || !out)
		return engine_refuse(
			fabric->family, FI_LOG_DOMAIN, -FI_EINVAL, "fi_domain",
			"NULL for the fi_info or its domain_attr, or where the domain is to go");
	domain = platform_alloc(sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	domain->family = fabric->family;
	if (engine_auth_known(fid->api_version))
		ret = engine_auth_read(info->domain_attr->auth_key,
				       info->domain_attr->auth_key_size, &domain->auth);
	if (!ret)
		ret = engine_mrs_open(domain, info->domain_attr->mr_mode);
	if (ret) {
		platform_free(domain);
		return engine_refuse(
			fabric->family, FI_LOG_DOMAIN, ret, "fi_domain",
			"domain_attr.auth_key has a length that no key has, or no memory");
	}
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->fid.fid.context = context;
	domain->fid.fid.ops = &engine_domain_fi_ops;
	domain->fid.ops = &engine_domain_ops;
	domain->fid.mr = &engine_mr_ops;
	domain->fabric = fabric;
	domain->connects = info->ep_attr && info->ep_attr->type == FI_EP_MSG;
	if (info->tx_attr)
		domain->tx_level = info->tx_attr->op_flags & ENGINE_TX_LEVELS;
	engine_domain_threads(domain, info->domain_attr);
	engine_domain_init(domain);
	engine_forked_open(domain);
	engine_ref(&fabric->refs);
	*out = &domain->fid;
	return 0;
}
