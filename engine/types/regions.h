/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions, and the table of those that peers may access.
 */
#ifndef WEFT_ENGINE_REGIONS_H
#define WEFT_ENGINE_REGIONS_H

#include <rdma/fi_domain.h>
#include "mr.h"
#include "queues.h"

struct engine_ep;

/* The regions of a domain. */
struct engine_mrs {
	struct mr_table table; /* those with remote access; object: struct engine_mr */
	int mode;	       /* mr_mode of the domain; FI_MR_BASIC is written out */
	struct list bound;     /* struct engine_mr.ep_link */
	bool remote_events;    /* peers tell of all that they do to regions of this domain */
	const struct wire_ops
		*shows;		  /* of the wire over which peers look at the table, or NULL */
	struct wire_share *share; /* its own, for this domain */
};

struct engine_mr {
	struct fid_mr fid;
	struct engine_domain *domain;
	struct engine_ep
		*ep; /* FI_MR_ENDPOINT: the one that it serves; NULL: none yet, or all */
	struct engine_mr
		*base;	     /* the region that it is part of (fi_mr_attr.base_mr), or NULL */
	struct list ep_link; /* while ep is set */
	uint32_t index;	     /* in the table; 0: without remote access, and without key */
	uint32_t refs;	     /* transfers in flight */
	uint32_t subs;	     /* regions that are part of it */
	struct cntr_region reads, writes; /* what counts those of peers */
	bool enabled;
	bool closing;
	size_t iov_cnt;
	struct iovec iov[MR_IOV_MAX];
};

#endif
