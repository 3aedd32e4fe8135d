/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What passive endpoints (pep_fid.c) and their requests (pep_request.c) share. The caller holds
 * the domain of the passive endpoint.
 */
#ifndef WEFT_PEP_REQUEST_H
#define WEFT_PEP_REQUEST_H

#include "engine.h"

/* The passive endpoints of a fabric. */
struct engine_peps {
	/* Protects @all; before the domains */
	struct platform_lock lock;
	struct engine_fork_lock fork_lock;
	/* struct engine_pep */
	struct list all;
};

struct engine_pep {
	struct fid_pep fid;
	struct engine_fabric *fabric;
	/* Link in fabric->peps */
	struct list link;
	/* Both owned; @ep is the only one of the domain */
	struct engine_domain *domain;
	struct engine_ep *ep;
	/* What the info of a request is a copy of; owned */
	struct fi_info *info;
	/* struct engine_request that the program has not answered */
	struct list requests;
	uint32_t request_cnt, backlog;
	/* It is being closed, and takes no more of them */
	bool closing;
};

/* A request that waits for its answer. */
struct engine_request {
	/* fi_info.handle */
	struct fid fid;
	struct list link;
	struct wire_conn *conn;
	struct hello hello;
	/* Both ends, read while the socket has them: its requester may go before it is answered */
	struct weft_addr local, remote;
	/*
	 * As posted with FI_CONNREQ, and owned by who has read that: compared, and freed with
	 * the event
	 */
	struct fi_info *info;
};

/*
 * engine_request_of - the request that @handle names, or NULL if it is none of @pep
 * @handle: untrusted
 *
 * The child of a fork has none: they are its parent's to answer.
 */
struct engine_request *engine_request_of(const struct engine_pep *pep, fid_t handle);

/* engine_request_free - forget a request that was answered */
void engine_request_free(struct engine_pep *pep, struct engine_request *request);

/* engine_pep_requested - ep->requested: keep and report a request, or refuse it; from poll() */
void engine_pep_requested(struct wire_conn *conn, const struct hello *hello);

/*
 * engine_pep_forget - free the info of an FI_CONNREQ that is removed from the event queue
 * @arg: the passive endpoint
 */
void engine_pep_forget(void *arg, const struct fi_eq_cm_entry *entry);

#endif
