/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Passive endpoints. Each has a domain that no program sees, with one endpoint that listens:
 * readers of its event queue drive that domain, as they do others. A request of a peer stays
 * with it (pep_request.c), from the FI_CONNREQ on, until the program answers: fi_endpoint takes it
 * away for fi_accept, fi_reject refuses it. What is unanswered when it is closed is refused.
 *
 * Called on any thread. The lock of a fabric's list of passive endpoints comes before their
 * domains; an endpoint's requests are those of its domain.
 *
 * Source: fi_cm(3), fi_endpoint(3).
 */
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "auth.h"
#include "cm.h"
#include "conns.h"
#include "ctx.h"
#include "domain_fid.h"
#include "ep_fid.h"
#include "ep_wires.h"
#include "eq_fid.h"
#include "events.h"
#include "forked.h"
#include "guard.h"
#include "no_call.h"
#include "nosys.h"
#include "pep_fid.h"
#include "pep_request.h"
#include "refs.h"
#include "refuse.h"

/*
 * Requests that wait for an answer, at most: default of FI_BACKLOG. Each holds a descriptor: no
 * more than a part of those that the process may have.
 */
#define BACKLOG		 1024u
#define DESCRIPTORS_PART 4u

int engine_peps_open(struct engine_fabric *fabric)
{
	struct engine_peps *peps;

	if (!fabric->family->info_copy)
		return 0;
	peps = platform_alloc(sizeof(*peps));
	if (!peps)
		return -FI_ENOMEM;
	platform_lock_init(&peps->lock);
	list_init(&peps->all);
	engine_fork_lock_open(&peps->fork_lock, &peps->lock, fabric, ENGINE_HOLD_WATCH);
	fabric->peps = peps;
	return 0;
}

void engine_peps_close(struct engine_fabric *fabric)
{
	struct engine_peps *peps = fabric->peps;

	if (!peps)
		return;
	engine_fork_lock_close(&peps->fork_lock);
	platform_lock_fini(&peps->lock);
	platform_free(peps);
}

/* With the domain held. */
static int engine_pep_give(struct engine_pep *pep, struct weft_addr *address)
{
	struct engine_ep *ep = pep->ep;

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	*address = ep->wire_cnt ? ep->address : ep->bind;
	engine_wires_close(ep);
	return 0;
}

int engine_pep_take(struct engine_fabric *fabric, fid_t handle, struct weft_addr *address)
{
	struct engine_peps *peps = fabric->peps;
	struct engine_pep *pep;
	int ret = -FI_EINVAL;

	platform_lock(&peps->lock);
	list_for_each_entry(pep, &peps->all, link) {
		if (&pep->fid.fid != handle)
			continue;
		engine_enter(pep->domain);
		ret = engine_pep_give(pep, address);
		engine_leave(pep->domain);
		break;
	}
	platform_unlock(&peps->lock);
	return ret;
}

/* Slots */

static struct engine_pep *pep_of(struct fid *fid)
{
	return container_of(fid, struct engine_pep, fid.fid);
}

static int engine_pep_refuse(const struct engine_pep *pep, int err, const char *call,
			     const char *why)
{
	return engine_refuse(pep->fabric->family, FI_LOG_EP_CTRL, err, call, why);
}

static int engine_pep_reject(struct fid_pep *fid, fid_t handle, const void *param, size_t len)
{
	struct engine_pep *pep = pep_of(&fid->fid);
	struct engine_request *request;
	struct hello_data data;
	int ret = engine_cm_data(pep->fabric->family, "fi_reject", param, len, &data);

	if (ret)
		return ret;
	engine_enter(pep->domain);
	request = engine_request_of(pep, handle);
	if (request) {
		engine_conn_refuse(request->conn, -FI_ECONNREFUSED, &data);
		engine_request_free(pep, request);
	}
	engine_leave(pep->domain);
	return request ? 0
		       : engine_pep_refuse(pep, -FI_EINVAL, "fi_reject",
					   "no request of the endpoint, or it was answered");
}

static int engine_pep_listen(struct fid_pep *fid)
{
	struct engine_pep *pep = pep_of(&fid->fid);

	if (pep->ep->enabled)
		return engine_pep_refuse(pep, -FI_EOPBADSTATE, "fi_listen",
					 "the endpoint listens already");
	if (!pep->ep->eq)
		return engine_pep_refuse(pep, -FI_ENOEQ, "fi_listen",
					 "no event queue is bound; fi_pep_bind comes first");
	return engine_ep_enable(pep->ep);
}

static int engine_pep_setname(struct fid *fid, void *addr, size_t len)
{
	return engine_ep_setname(&pep_of(fid)->ep->ctx.fid.fid, addr, len);
}

static int engine_pep_getname(struct fid *fid, void *addr, size_t *len)
{
	return engine_ep_getname(&pep_of(fid)->ep->ctx.fid.fid, addr, len);
}

/* Programs name the event that they wait for as a flag, as libfabric's sockets allows. */
static int engine_pep_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	struct engine_pep *pep = pep_of(fid);

	if (!target || target->fclass != FI_CLASS_EQ)
		return engine_pep_refuse(
			pep, -FI_EINVAL, "fi_pep_bind",
			"only an event queue can be bound to a passive endpoint");
	return engine_ep_bind(&pep->ep->ctx.fid.fid, target, flags & ~(uint64_t)FI_CONNREQ);
}

static int engine_pep_control(struct fid *fid, int command, void *arg)
{
	struct engine_pep *pep = pep_of(fid);
	int backlog;

	if (command != FI_BACKLOG)
		return -FI_ENOSYS;
	if (!arg)
		return engine_pep_refuse(pep, -FI_EINVAL, "FI_BACKLOG", "NULL");
	memcpy(&backlog, arg, sizeof(backlog));
	if (backlog < 1)
		return engine_pep_refuse(pep, -FI_EINVAL, "FI_BACKLOG", "a number from 1 on");
	engine_enter(pep->domain);
	pep->backlog = (uint32_t)backlog;
	engine_leave(pep->domain);
	return 0;
}

static ssize_t engine_pep_no_cancel(struct fid *fid, void *context)
{
	return -FI_ENOSYS;
}

static int engine_pep_getopt(struct fid *fid, int level, int name, void *val, size_t *len)
{
	const size_t most = HELLO_DATA_MAX;
	size_t room;

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	if (!len || (*len && !val))
		return engine_pep_refuse(pep_of(fid), -FI_EINVAL, "fi_getopt",
					 "NULL for the value or its length");
	room = *len;
	*len = sizeof(most);
	if (room < sizeof(most))
		return -FI_ETOOSMALL;
	memcpy(val, &most, sizeof(most));
	return 0;
}

static int engine_pep_setopt(struct fid *fid, int level, int name, const void *val, size_t len)
{
	return -FI_ENOPROTOOPT;
}

static ssize_t engine_pep_no_left(struct fid_ep *ep)
{
	return -FI_ENOSYS;
}

/*
 * Removes what the event queue has of the endpoint. Its wire refuses the requests when it is
 * closed.
 */
static void engine_pep_end(struct engine_pep *pep)
{
	engine_enter(pep->domain);
	pep->closing = true;
	if (pep->ep->eq)
		engine_eq_forget(pep->ep->eq, &pep->fid.fid, engine_pep_forget, pep);
	while (!list_empty(&pep->requests))
		engine_request_free(
			pep, container_of(pep->requests.next, struct engine_request, link));
	engine_leave(pep->domain);
}

static void engine_pep_free(struct engine_pep *pep)
{
	if (pep->info)
		pep->fabric->family->info_free(pep->info);
	if (pep->ep)
		engine_ep_close(&pep->ep->ctx.fid.fid);
	if (pep->domain)
		pep->domain->fid.fid.ops->close(&pep->domain->fid.fid);
	platform_free(pep);
}

static int engine_pep_close(struct fid *fid)
{
	struct engine_pep *pep = pep_of(fid);
	struct engine_peps *peps = pep->fabric->peps;
	int ret = engine_left(pep->domain, FI_LOG_EP_CTRL, "fi_close of a passive endpoint");

	if (ret)
		return ret;
	platform_lock(&peps->lock);
	list_remove(&pep->link);
	platform_unlock(&peps->lock);
	engine_pep_end(pep);
	engine_pep_free(pep);
	return 0;
}

static struct fi_ops engine_pep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = engine_pep_close,
	.bind = engine_pep_bind,
	.control = engine_pep_control,
	.ops_open = engine_no_ops_open,
	.tostr = engine_no_tostr,
	.ops_set = engine_no_ops_set,
};

static struct fi_ops_ep engine_pep_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = engine_pep_no_cancel,
	.getopt = engine_pep_getopt,
	.setopt = engine_pep_setopt,
	.tx_ctx = engine_no_tx_ctx,
	.rx_ctx = engine_no_rx_ctx,
	.rx_size_left = engine_pep_no_left,
	.tx_size_left = engine_pep_no_left,
	.export_xpu = engine_no_export,
};

static struct fi_ops_cm engine_pep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = engine_pep_setname,
	.getname = engine_pep_getname,
	.getpeer = engine_no_cm_getpeer,
	.connect = engine_no_cm_connect,
	.listen = engine_pep_listen,
	.accept = engine_no_cm_accept,
	.reject = engine_pep_reject,
	.shutdown = engine_no_cm_shutdown,
	.join = engine_no_cm_join,
};

static uint32_t engine_pep_backlog(void)
{
	uint32_t part = platform_descriptor_max() / DESCRIPTORS_PART;

	if (part > BACKLOG)
		return BACKLOG;
	return part ? part : 1;
}

/* Opens the domain of a passive endpoint, which the program's calls enter on any thread. */
static int engine_pep_domain(struct engine_pep *pep, const struct fi_info *info)
{
	struct fi_domain_attr attr = { .threading = FI_THREAD_SAFE,
				       .control_progress = FI_PROGRESS_MANUAL,
				       .data_progress = FI_PROGRESS_MANUAL };
	struct fi_info own = { .domain_attr = &attr, .ep_attr = info->ep_attr };
	struct fid_domain *domain;
	int ret;

	if (info->domain_attr) /* with automatic progress, requests are reported without a call */
		attr.data_progress = info->domain_attr->data_progress;
	if (info->domain_attr && engine_auth_known(pep->fabric->fid.api_version)) {
		attr.auth_key = info->domain_attr->auth_key;
		attr.auth_key_size = info->domain_attr->auth_key_size;
	}
	ret = engine_domain_open(&pep->fabric->fid, &own, &domain, NULL);
	if (!ret)
		pep->domain = container_of(domain, struct engine_domain, fid);
	return ret;
}

/* Makes what listens. Returns 0 or -FI_E*; the caller frees @pep in any case. */
static int engine_pep_fill(struct engine_pep *pep, struct fi_info *info)
{
	int ret = engine_pep_domain(pep, info);

	if (!ret)
		ret = engine_ep_create(pep->domain, info, FI_CLASS_EP, pep, &pep->ep);
	if (ret)
		return ret;
	engine_ep_plain(pep->ep);
	pep->ep->kind = ENGINE_EP_PASSIVE;
	pep->ep->requested = engine_pep_requested;
	pep->info = pep->fabric->family->info_copy(info, NULL, NULL);
	return pep->info ? 0 : -FI_ENOMEM;
}

#define PEP_OPEN "fi_passive_ep"

int engine_pep_open(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **out,
		    void *context)
{
	struct engine_fabric *fabric = container_of(fid, struct engine_fabric, fid);
	struct engine_pep *pep;
	int ret;

	if (!fabric->peps)
		return -FI_ENOSYS;
	if (!info || !out)
		return engine_refuse(fabric->family, FI_LOG_EP_CTRL, -FI_EINVAL, PEP_OPEN,
				     "NULL for the fi_info, or where the endpoint is to go");
	if (!info->ep_attr || info->ep_attr->type != FI_EP_MSG)
		return engine_refuse(fabric->family, FI_LOG_EP_CTRL, -FI_EINVAL, PEP_OPEN,
				     "ep_attr.type is FI_EP_MSG");
	pep = platform_alloc(sizeof(*pep));
	if (!pep)
		return -FI_ENOMEM;
	pep->fabric = fabric;
	pep->backlog = engine_pep_backlog();
	list_init(&pep->requests);
	ret = engine_pep_fill(pep, info);
	if (ret) {
		engine_pep_free(pep);
		return ret;
	}
	pep->fid.fid.fclass = FI_CLASS_PEP;
	pep->fid.fid.context = context;
	pep->fid.fid.ops = &engine_pep_fi_ops;
	pep->fid.ops = &engine_pep_ep_ops;
	pep->fid.cm = &engine_pep_cm_ops;
	platform_lock(&fabric->peps->lock);
	list_add_tail(&fabric->peps->all, &pep->link);
	platform_unlock(&fabric->peps->lock);
	*out = &pep->fid;
	return 0;
}
