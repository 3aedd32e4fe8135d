/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait sets and fi_trywait in the kernel, which has no descriptors: in the place of a wait set, a queue or counter has
 * a function of its consumer (struct kofi_wait of kofi.h), by which its bell calls. The domain's thread
 * makes the rounds in which that is rung. Process context.
 */
#include <rdma/fi_errno.h>
#include "auto.h"
#include "cq_fid.h"
#include "refuse.h"
#include "wait_obj.h"
#include "wait_set_fid.h"
#include "waiting.h"

int engine_wait_obj_join(struct engine_wait_obj *w, struct fid_wait *set)
{
	struct engine_domain *domain = w->base.domain;
	int ret;

	if (!set || set->fid.fclass != FI_CLASS_WAIT)
		return engine_refuse(domain->family, FI_LOG_DOMAIN, -FI_EINVAL, OPEN_WAIT,
				     "FI_WAIT_SET, and wait_set is not of kofi_wait_init()");
	ret = engine_auto_rings(domain);
	if (ret)
		return ret;
	w->own.kind = ENGINE_CHANNEL_CALL;
	ret = engine_channel_open(&w->own, NULL);
	if (!ret)
		platform_bell_calls(&w->own.bell, set);
	return ret;
}

static int wait_try(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return engine_wait_obj_trywait(
			&container_of(fid, struct engine_cq, fid.fid)->wait);
	case FI_CLASS_CNTR:
		return engine_wait_obj_trywait(
			&container_of(fid, struct engine_cntr, fid.fid)->wait);
	default:
		return -FI_EINVAL;
	}
}

int engine_trywait(struct fid_fabric *fabric, struct fid **fids, int cnt)
{
	const struct engine_family *family =
		container_of(fabric, struct engine_fabric, fid)->family;

	if (cnt < 0 || (cnt && !fids))
		return engine_refuse(family, FI_LOG_FABRIC, -FI_EINVAL, "fi_trywait",
				     "NULL for the objects, or a negative count");
	for (int i = 0; i < cnt; i++) {
		int ret = fids[i] ? wait_try(fids[i]) : -FI_EINVAL;

		if (ret == -FI_EINVAL)
			return engine_refuse_value(
				family, FI_LOG_FABRIC, ret, "fi_trywait",
				"the object of that index is no completion queue or counter",
				(uint64_t)i);
		if (ret)
			return ret;
	}
	return 0;
}
