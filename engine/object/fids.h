/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The slots that open objects below a fabric and a domain, each in the file named for its
 * object, and what those files share.
 */
#ifndef WEFT_FIDS_H
#define WEFT_FIDS_H

#include "engine.h"
#include "guard.h"

int engine_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **domain, void *context);
int engine_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		   void *context);
int engine_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		   void *context);
int engine_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		   void *context);
int engine_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		     struct fid_cntr **cntr, void *context);
int engine_sep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
		    void *context);
int engine_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		    void *context);
int engine_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx,
		    void *context);
int engine_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		   void *context);

/* engine_fabric_put - the program closes it, or something of it is closed: the last one ends it */
void engine_fabric_put(struct engine_fabric *fabric);

/* Op tables that take the domain's lock around those of the family (safe.c). */
extern struct fi_ops_msg engine_safe_msg_ops;
extern struct fi_ops_tagged engine_safe_tagged_ops;
extern struct fi_ops_rma engine_safe_rma_ops;
struct fi_ops_atomic;
extern struct fi_ops_atomic engine_safe_atomic_ops;

/* engine_routes - fill @routes as weft_routes_ops.list does; the caller holds the domain (routes.c) */
struct weft_route;
int engine_routes(struct engine_ep *ep, struct weft_route *routes, size_t *count);

/* engine_routes_ops - what fi_open_ops("weft_routes") of an endpoint gives (routes.c) */
extern struct weft_routes_ops engine_routes_ops;

#endif
