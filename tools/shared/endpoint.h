/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One reliable-datagram endpoint with the objects it needs: fabric, domain, address
 * vector and one completion queue for both directions. One thread.
 */
#ifndef WEFT_TOOLS_ENDPOINT_H
#define WEFT_TOOLS_ENDPOINT_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

struct endpoint {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	/* of a connected endpoint (connection.h), which has no address vector */
	struct fid_eq *eq;
};

/*
 * endpoint_open_queue - open the fabric, the domain and the completion queue
 * @info:  what fi_getinfo answered; borrowed for the call
 * @wait:  how the queue can be waited for
 *
 * Prints the reason of a failure. Returns 0 or a negative fi_errno, and endpoint_close() closes what is open.
 */
int endpoint_open_queue(struct endpoint *end, struct fi_info *info, enum fi_wait_obj wait);

/*
 * endpoint_open - open and enable an endpoint
 * @info:  as for endpoint_open_queue
 * @wait:  likewise
 *
 * The completion queue has room for all that the endpoint can have in flight, in
 * FI_CQ_FORMAT_TAGGED. Prints the reason of a failure.
 * Returns 0 or a negative fi_errno, with nothing left open.
 */
int endpoint_open(struct endpoint *end, struct fi_info *info, enum fi_wait_obj wait);

/*
 * endpoint_close - close all; one that was never opened and is zero is allowed
 */
void endpoint_close(struct endpoint *end);

/*
 * fabric_complain - print what failed and why
 * @rc:  negative fi_errno
 *
 * Returns @rc.
 */
int fabric_complain(const char *what, int rc);

/*
 * fabric_close - close one object, and complain when it refuses
 */
void fabric_close(struct fid *fid, const char *what);

#endif
