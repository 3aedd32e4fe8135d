/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The completion queue object. */
#ifndef WEFT_CQ_FID_H
#define WEFT_CQ_FID_H

#include <rdma/fi_eq.h>

/* The slot of struct fi_ops_domain. */
int engine_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		   void *context);

#endif
