/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Op tables of calls that an object does not support: -FI_ENOSYS. Transfers answer -FI_EOPBADSTATE
 * before fi_enable, and in the child of a fork. The tables are not const, since the pointers in
 * fids are not.
 */
#ifndef WEFT_NOSYS_H
#define WEFT_NOSYS_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

extern struct fi_ops_rma engine_no_rma_ops;
extern struct fi_ops_atomic engine_no_atomic_ops;
extern struct fi_ops_collective engine_no_collective_ops;
extern struct fi_ops_msg engine_no_msg_ops;
extern struct fi_ops_tagged engine_no_tagged_ops;
extern struct fi_ops_cm engine_no_cm_ops; /* for objects without an address */

/* Slots of struct fi_ops_cm that only endpoints with connections have. */
int engine_no_cm_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen);
int engine_no_cm_connect(struct fid_ep *ep, const void *addr, const void *param,
			 size_t paramlen);
int engine_no_cm_listen(struct fid_pep *pep);
int engine_no_cm_accept(struct fid_ep *ep, const void *param, size_t paramlen);
int engine_no_cm_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen);
int engine_no_cm_shutdown(struct fid_ep *ep, uint64_t flags);
/* and that of endpoints that may be members of groups */
int engine_no_cm_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		      void *context);

#endif
