/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests of peers, from the FI_CONNREQ that reports one until the program answers it or closes
 * the passive endpoint.
 *
 * Called with the domain of the passive endpoint held, but for engine_request_take().
 *
 * Source: fi_cm(3), fi_eq(3).
 */
#include <rdma/fi_errno.h>
#include "cm.h"
#include "conns.h"
#include "domain_fid.h"
#include "events.h"
#include "guard.h"
#include "hello.h"
#include "pep_fid.h"
#include "pep_request.h"

struct engine_request *engine_request_of(const struct engine_pep *pep, fid_t handle)
{
	struct engine_request *request;

	if (pep->ep->ctx.copied)
		return NULL;
	list_for_each_entry(request, &pep->requests, link) {
		if (&request->fid == handle)
			return request;
	}
	return NULL;
}

void engine_request_free(struct engine_pep *pep, struct engine_request *request)
{
	list_remove(&request->link);
	pep->request_cnt--;
	platform_free(request);
}

/* Posts FI_CONNREQ. Returns 0, or -FI_E* and nothing is posted. */
static int engine_request_post(struct engine_pep *pep, struct engine_request *request)
{
	const struct engine_family *family = pep->fabric->family;
	struct eq_event *event;
	int ret;

	ret = request->conn->wire->ops->names(request->conn, &request->local, &request->remote);
	if (ret)
		return ret;
	request->info = family->info_copy(pep->info, &request->local, &request->remote);
	if (!request->info)
		return -FI_ENOMEM;
	request->info->handle = &request->fid;
	event = engine_cm_event(FI_CONNREQ, &pep->fid.fid, request->info, &request->hello.data);
	if (!event) {
		family->info_free(request->info);
		return -FI_ENOMEM;
	}
	engine_eq_post(pep->ep->eq, event);
	return 0;
}

/* Returns 0, or why a request is refused that the program does not see. */
static int engine_request_check(const struct engine_pep *pep, const struct hello *hello)
{
	if (pep->closing || hello->kind != HELLO_MSG || pep->request_cnt >= pep->backlog)
		return -FI_ECONNREFUSED;
	return engine_hello_authorized(pep->ep, hello) ? 0 : -FI_EKEYREJECTED;
}

static int engine_request_keep(struct engine_pep *pep, struct wire_conn *conn,
			       const struct hello *hello)
{
	struct engine_request *request = platform_alloc(sizeof(*request));
	int ret;

	if (!request)
		return -FI_ENOMEM;
	request->fid.fclass = FI_CLASS_CONNREQ;
	request->conn = conn;
	request->hello = *hello;
	ret = engine_request_post(pep, request);
	if (ret) {
		platform_free(request);
		return ret;
	}
	list_add_tail(&pep->requests, &request->link);
	pep->request_cnt++;
	return 0;
}

void engine_pep_requested(struct wire_conn *conn, const struct hello *hello)
{
	struct engine_pep *pep = conn->wire->ep->ctx.fid.fid.context;
	int ret = engine_request_check(pep, hello);

	if (!ret)
		ret = engine_request_keep(pep, conn, hello);
	if (ret)
		engine_conn_refuse(conn, ret, NULL);
}

/* Moves the request from its wire to @cm. With the domain held. */
static void engine_request_part(struct engine_request *request, struct engine_cm *cm)
{
	const struct wire_ops *ops = request->conn->wire->ops;

	ops->part(request->conn);
	cm->ops = ops;
	cm->request = request->conn;
	cm->hello = request->hello;
	cm->local = request->local;
	cm->remote = request->remote;
}

int engine_request_take(struct engine_fabric *fabric, fid_t handle, struct engine_cm *cm)
{
	struct engine_peps *peps = fabric->peps;
	struct engine_request *found = NULL;
	struct engine_pep *pep;
	int ret = -FI_EINVAL;

	platform_lock(&peps->lock);
	list_for_each_entry(pep, &peps->all, link) {
		engine_enter(pep->domain);
		found = engine_request_of(pep, handle);
		if (found) {
			engine_request_part(found, cm);
			engine_request_free(pep, found);
			ret = 0;
		}
		engine_leave(pep->domain);
		if (found)
			break;
	}
	platform_unlock(&peps->lock);
	return ret;
}

/* The program has not read this request's event: its info has no other owner. */
void engine_pep_forget(void *arg, const struct fi_eq_cm_entry *entry)
{
	struct engine_pep *pep = arg;
	struct engine_request *request;

	/* Once: what the program has freed of an earlier request may be the info of this one. */
	list_for_each_entry(request, &pep->requests, link) {
		if (request->info == entry->info) {
			pep->fabric->family->info_free(entry->info);
			return;
		}
	}
}
