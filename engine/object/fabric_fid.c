/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The fabric object of a provider over the engine. Called by the core and by programs, on any
 * thread: its only state is a reference count.
 */
#include <rdma/fi_errno.h>
#include "domain_fid.h"
#include "eq_fid.h"
#include "fabric_fid.h"
#include "no_call.h"
#include "pep_fid.h"
#include "refs.h"
#include "refuse.h"
#include "wait_set_fid.h"

void engine_fabric_put(struct engine_fabric *fabric)
{
	if (atomic_fetch_sub_explicit(&fabric->refs, 1, memory_order_acq_rel) > 1)
		return;
	engine_peps_close(fabric);
	platform_free(fabric);
}

/* Objects that are open in the fabric keep it, where they may. */
static int engine_fabric_close(struct fid *fid)
{
	struct engine_fabric *fabric = container_of(fid, struct engine_fabric, fid.fid);

	/* A:fabric.refs  the ends of what was open; pairs engine_fabric_put() */
	if (fabric->family->closes_last &&
	    atomic_load_explicit(&fabric->refs, memory_order_acquire) > 1)
		return -FI_EBUSY;
	engine_fabric_put(fabric);
	return 0;
}

static int engine_domain2_open(struct fid_fabric *fabric, struct fi_info *info,
			       struct fid_domain **domain, uint64_t flags, void *context)
{
	if (flags)
		return engine_refuse_value(
			container_of(fabric, struct engine_fabric, fid)->family, FI_LOG_DOMAIN,
			-FI_EBADFLAGS, "fi_domain2", "no flags are valid", flags);
	return engine_domain_open(fabric, info, domain, context);
}

int engine_family_ops_open(const struct engine_family *family, const char *name, uint64_t flags,
			   void **ops)
{
	if (!name || !ops)
		return engine_refuse(family, FI_LOG_FABRIC, -FI_EINVAL, "fi_open_ops",
				     "NULL for the name, or where the ops are to go");
	return family->ops_open ? family->ops_open(name, flags, ops) : -FI_ENOSYS;
}

static int engine_fabric_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
				  void *context)
{
	return engine_family_ops_open(container_of(fid, struct engine_fabric, fid.fid)->family,
				      name, flags, ops);
}

static struct fi_ops engine_fabric_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_fabric_close,
	.bind = engine_no_bind,
	.control = engine_no_control,
	.ops_open = engine_fabric_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

static struct fi_ops_fabric engine_fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = engine_domain_open,
	.passive_ep = engine_pep_open,
	.eq_open = engine_eq_open,
	.wait_open = engine_waitset_open,
	.trywait = engine_trywait,
	.domain2 = engine_domain2_open,
};

void engine_define_params(const struct fi_provider *provider)
{
	fi_param_define(
		provider, ENGINE_PARAM_BUDGET, FI_PARAM_SIZE_T,
		"Eager payload that one endpoint accepts ahead of its receives, in bytes; more stays with "
		"the senders (default: %u)",
		ENGINE_BUDGET);
}

int engine_fabric_open(const struct engine_family *family, struct fi_fabric_attr *attr,
		       struct fid_fabric **out, void *context)
{
	struct engine_fabric *fabric;

	if (!attr || !out)
		return engine_refuse(family, FI_LOG_FABRIC, -FI_EINVAL, "fi_fabric",
				     "NULL for the attributes, or where the fabric is to go");
	fabric = platform_alloc(sizeof(*fabric));
	if (!fabric)
		return -FI_ENOMEM;
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = &engine_fabric_fi_ops;
	fabric->fid.ops = &engine_fabric_ops;
	fabric->fid.api_version = attr->api_version;
	fabric->family = family;
	if (engine_peps_open(fabric)) {
		platform_free(fabric);
		return -FI_ENOMEM;
	}
	engine_ref(&fabric->refs);
	*out = &fabric->fid;
	return 0;
}
