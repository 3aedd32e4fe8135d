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
	/* Bits of an address that select the receive context of a scalable endpoint */
	uint32_t rx_ctx_bits;
	/* Bound endpoints, by struct engine_ep.av_link */
	struct list eps;
	/* struct engine_av_set */
	struct list sets;
	/* Number of sets that were ever made */
	uint64_t set_cnt;
	/* Flags of fi_av_open: FI_EVENT, FI_READ, FI_AV_USER_ID */
	uint64_t flags;
	/* FI_EVENT: event queue that reports the end of insertions; NULL until bound */
	struct engine_eq *eq;
	/* A named vector: memory that its processes share; else NULL */
	struct platform_shared *shared;
	/* A named vector: this process's view of @shared; else NULL */
	struct av_view *view;
	/*
	 * pull - of a named vector: take over the changes of other processes; the caller holds
	 * the domain
	 */
	void (*pull)(struct engine_av *av);
};

#endif
