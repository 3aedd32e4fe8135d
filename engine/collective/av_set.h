/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sets of addresses, which groups of collectives are made of. The caller holds the domain unless a
 * comment says otherwise.
 */
#ifndef WEFT_AV_SET_H
#define WEFT_AV_SET_H

#include <rdma/fi_collective.h>
#include "endpoint.h"

/* fi_av_set_attr.flags that name collectives; none means all. */
#define ENGINE_SET_COLLECTIVES                                                       \
	(FI_BARRIER_SET | FI_BROADCAST_SET | FI_ALLTOALL_SET | FI_ALLREDUCE_SET |    \
	 FI_ALLGATHER_SET | FI_REDUCE_SCATTER_SET | FI_REDUCE_SET | FI_SCATTER_SET | \
	 FI_GATHER_SET)

/* Addresses of sets: never an index, nor an address of a collective group below this. */
#define ENGINE_SET_ADDR (1ull << 62)

struct engine_av_set {
	struct fid_av_set fid;
	struct engine_av *av;
	/* Link in av->sets */
	struct list link;
	/* Members in order, each once */
	fi_addr_t *addrs;
	size_t cnt, cap;
	/* Collectives that the set is for, of ENGINE_SET_COLLECTIVES */
	uint64_t collectives;
	/* Address of the set, of fi_av_set_addr */
	fi_addr_t addr;
};

/*
 * engine_av_set_open - the slot of fi_av_set, called by programs
 *
 * Communication keys are not supported: -FI_ENOSYS. Source: fi_av_set(3).
 */
int engine_av_set_open(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set,
		       void *context);

/*
 * engine_av_set_at - the set with that address, of fi_av_set_addr, or NULL
 *
 * The set and its members may be freed once the caller leaves the domain: a join copies the
 * members.
 */
struct engine_av_set *engine_av_set_at(const struct engine_av *av, fi_addr_t addr);

/* engine_av_set_of - the set of a fid, or NULL if it is not one of @av */
struct engine_av_set *engine_av_set_of(const struct engine_av *av, const struct fid_av_set *fid);

/* engine_av_set_rank - index of an address among the members, or SIZE_MAX */
size_t engine_av_set_rank(const struct engine_av_set *set, fi_addr_t addr);

#endif
