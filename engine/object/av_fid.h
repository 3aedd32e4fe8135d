/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The address vector: what the rest of the engine asks it, and what its own files share.
 * The caller holds the domain unless it says otherwise.
 */
#ifndef WEFT_AV_FID_H
#define WEFT_AV_FID_H

#include "av_shared.h"
#include "engine.h"

#define ENGINE_RX_CTX_BITS_MAX 32 /* the rest of an address is an index */

/* The slot of struct fi_ops_domain. */
int engine_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		   void *context);

/*
 * engine_av_cq_addr - what completions say of an address: its place in the vector, or the id that
 * the program gave it; FI_ADDR_NOTAVAIL where there is none
 * Source: fi_av(3), user identifiers for addresses.
 */
static inline fi_addr_t engine_av_cq_addr(const struct engine_av *av, fi_addr_t addr)
{
	return av_cq_addr(&av->table, addr);
}

/*
 * engine_av_named_open - find or make what the processes that open this name share (av_named.c)
 * @attr: checked; map_addr is set when it is NULL
 *
 * Not yet seen by anyone else: nothing is held. A vector to be read only (FI_READ) must be there.
 * Returns 0, -FI_EINVAL for a name that is too long, -FI_ENOENT, -FI_EACCES, -FI_EAGAIN when the
 * processes that have it are just going, or another -FI_E*.
 */
int engine_av_named_open(struct engine_av *av, struct fi_av_attr *attr);
/* engine_av_named_close - let go of it; nothing is held */
void engine_av_named_close(struct engine_av *av);

/*
 * engine_av_change - before addresses are inserted or removed
 * A vector with a name waits for other processes that change it, and is up to date then.
 * Returns 0, -FI_EACCES for one that may only be read, or another -FI_E*.
 */
int engine_av_change(struct engine_av *av);
/* engine_av_changed - after it */
void engine_av_changed(struct engine_av *av);

/*
 * engine_av_add - one address into the vector and to the bound endpoints, between
 * engine_av_change() and engine_av_changed()
 * @id:   NULL, or what completions are to say of it
 * @addr: out: its place
 * Returns 0 or -FI_ENOMEM.
 */
int engine_av_add(struct engine_av *av, const struct weft_addr *address, const fi_addr_t *id,
		  fi_addr_t *addr);

/* Slots of struct fi_ops_av, of programs (av_insert.c). */
int engine_av_insert(struct fid_av *fid, const void *addr, size_t cnt, fi_addr_t *out,
		     uint64_t flags, void *context);
int engine_av_insertsvc(struct fid_av *fid, const char *node, const char *service,
			fi_addr_t *out, uint64_t flags, void *context);
int engine_av_insertsym(struct fid_av *fid, const char *node, size_t node_cnt,
			const char *service, size_t svc_cnt, fi_addr_t *out, uint64_t flags,
			void *context);

#endif
