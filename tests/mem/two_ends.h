/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two endpoints over shared memory in one domain of this process, with a queue for both, and its registered memory
 * (<weft/mem.h>). For tests in one thread.
 */
#ifndef WEFT_MEM_TWO_ENDS_H
#define WEFT_MEM_TWO_ENDS_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <weft/mem.h>

struct two_ends {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep, *peer;
	/* the peer's address */
	fi_addr_t to;
	struct weft_mem_ops *mem;
};

/* two_ends_open - for messages and RMA; @mr_mode: as in the hints. Returns 0 or -1 */
int two_ends_open(struct two_ends *e, int mr_mode);

/* two_ends_close - returns 0 when all is closed */
int two_ends_close(struct two_ends *e);

#endif
