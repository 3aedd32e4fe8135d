/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection of a MSG endpoint (cm.c). The caller holds the domain unless a comment says
 * otherwise.
 */
#ifndef WEFT_CM_H
#define WEFT_CM_H

#include "engine.h"

enum engine_cm_state {
	/* fi_connect may be called */
	CM_IDLE,
	/* Opened with a request: fi_accept may be called */
	CM_REQUESTED,
	CM_CONNECTING,
	CM_ACCEPTING,
	CM_CONNECTED,
	/* It has ended, or could not be made; for good */
	CM_ENDED,
};

struct engine_cm {
	struct engine_ep *ep;
	enum engine_cm_state state;
	/*
	 * CM_REQUESTED: the request, which belongs to no wire; its wire's ops and its hello. Owned
	 */
	struct wire_conn *request;
	const struct wire_ops *ops;
	struct hello hello;
	/* Both ends, from CM_REQUESTED or CM_CONNECTED on */
	struct weft_addr local, remote;
	/* FI_SHUTDOWN, made with the connection so that its end is reported in any case. Owned */
	struct eq_event *shutdown;
	/* Reports the end of the connection */
	struct engine_task over;
};

/*
 * engine_cm_open - make @ep, which is of kind ENGINE_EP_MSG, one that connects or accepts
 * @handle: fi_info.handle: NULL; a request that a passive endpoint of the fabric has reported;
 *	    or such an endpoint that does not listen: connections come from its address
 *
 * Without the domain held. Returns 0; -FI_EINVAL: there is no such request; or another -FI_E*.
 */
int engine_cm_open(struct engine_ep *ep, fid_t handle);

/* engine_cm_free - end the request of an endpoint that is closed, if it has one, and free ep->cm */
void engine_cm_free(struct engine_ep *ep);

/*
 * engine_cm_report_to - @ep, unless it is an RDM endpoint, reports to @eq from now on, no more
 * to ep->eq
 * @eq: NULL: to none, since it is about to end
 */
void engine_cm_report_to(struct engine_ep *ep, struct engine_eq *eq);

/*
 * engine_cm_data - the private data of a call
 * @call: its name, for the log
 * Any thread. Returns 0, or -FI_EINVAL for more than HELLO_DATA_MAX bytes, or NULL with a length.
 */
int engine_cm_data(const struct engine_family *family, const char *call, const void *param,
		   size_t len, struct hello_data *data);

/*
 * engine_cm_event - a connection event
 * @info: of FI_CONNREQ; else NULL
 * @data: copied; NULL: none
 * Returns it, owned, or NULL without memory.
 */
struct eq_event *engine_cm_event(uint32_t type, struct fid *fid, struct fi_info *info,
				 const struct hello_data *data);

#endif
