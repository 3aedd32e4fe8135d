/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The address vector: what the rest of the engine calls, and what its own files share. The caller
 * holds the domain unless a comment says otherwise.
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
 * engine_av_named_open - find or create the table that the processes which open this name share
 * (av_named.c)
 * @attr: checked; map_addr is set when it is NULL
 *
 * Called before the vector is visible to other threads; nothing is held. A read-only vector
 * (FI_READ) has to exist. Returns 0, -FI_EINVAL for a name that is too long, -FI_ENOENT,
 * -FI_EACCES, -FI_EAGAIN when the processes that have it are closing it, or another -FI_E*.
 */
int engine_av_named_open(struct engine_av *av, struct fi_av_attr *attr);
/* engine_av_named_close - release the shared table; nothing is held */
void engine_av_named_close(struct engine_av *av);

/*
 * engine_av_change - begin to insert or remove addresses
 *
 * Waits until no other process changes a named vector, and brings it up to date. Ended by
 * engine_av_changed(). Returns 0, -FI_EACCES for a read-only vector, or another -FI_E*.
 */
int engine_av_change(struct engine_av *av);
/* engine_av_changed - end what engine_av_change() began */
void engine_av_changed(struct engine_av *av);

/*
 * engine_av_add - insert one address into the vector and the endpoints bound to it
 * @id:   what completions report for it, or NULL: its index
 * @addr: out: its index
 *
 * Called between engine_av_change() and engine_av_changed(). Returns 0 or -FI_ENOMEM.
 */
int engine_av_add(struct engine_av *av, const struct weft_addr *address, const fi_addr_t *id,
		  fi_addr_t *addr);

/* Slots of struct fi_ops_av (av_insert.c), called by programs. */
int engine_av_insert(struct fid_av *fid, const void *addr, size_t cnt, fi_addr_t *out,
		     uint64_t flags, void *context);
int engine_av_insertsvc(struct fid_av *fid, const char *node, const char *service,
			fi_addr_t *out, uint64_t flags, void *context);
int engine_av_insertsym(struct fid_av *fid, const char *node, size_t node_cnt,
			const char *service, size_t svc_cnt, fi_addr_t *out, uint64_t flags,
			void *context);

#endif
