/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Op tables that call those of the family with the domain's lock held (safe.c). */
#ifndef WEFT_SAFE_H
#define WEFT_SAFE_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

extern struct fi_ops_msg engine_safe_msg_ops;
extern struct fi_ops_tagged engine_safe_tagged_ops;
extern struct fi_ops_rma engine_safe_rma_ops;
extern struct fi_ops_atomic engine_safe_atomic_ops;

#endif
