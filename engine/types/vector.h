/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An address vector.
 */
#ifndef WEFT_ENGINE_VECTOR_H
#define WEFT_ENGINE_VECTOR_H

#include <rdma/fi_domain.h>
#include "av.h"
#include "family.h"
#include "list.h"

struct engine_av {
	struct fid_av fid;
	struct engine_domain *domain;
	struct av_table table;
	uint32_t
		rx_ctx_bits; /* of an address that say which receive context of a scalable endpoint */
	struct list eps;		/* bound endpoints, struct engine_ep.av_link */
	struct list sets;		/* struct engine_av_set */
	uint64_t set_cnt;		/* ever made */
	uint64_t flags;			/* of fi_av_open: FI_EVENT, FI_READ, FI_AV_USER_ID */
	struct engine_eq *eq;		/* FI_EVENT: where insertions end; NULL until bound */
	struct platform_shared *shared; /* one with a name: what processes share, */
	struct av_view *view;		/* and our view of it; else NULL */
	/* pull - one with a name: take over what other processes changed; the caller holds the domain */
	void (*pull)(struct engine_av *av);
};

#endif
