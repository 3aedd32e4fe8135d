/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues that another provider owns (FI_PEER): the program reads one queue of that
 * provider, and completions of this one go there too. The engine writes entries as into any queue;
 * a task of the domain passes them to the owner's table at the end of the round, in order. Entries
 * that the owner has no room for are passed in a later round. Source: fi_peer(3).
 */
#ifndef WEFT_CQ_IMPORT_H
#define WEFT_CQ_IMPORT_H

#include "queues.h"

/*
 * engine_cq_import_check - find the owner's queue in the context of fi_cq_open
 * @context: struct fi_peer_cq_context
 * @owner:   out
 *
 * Returns 0, or -FI_EINVAL if @context is not such a queue.
 */
int engine_cq_import_check(const struct engine_domain *domain, const void *context,
			   struct fid_peer_cq **owner);

/*
 * engine_cq_import - pass the entries of @cq, which is being opened, to @owner
 * @owner: borrowed until the queue is closed; called with the domain held, on the thread that makes
 *	   a round
 */
void engine_cq_import(struct engine_cq *cq, struct fid_peer_cq *owner);

/*
 * engine_cq_import_end - @cq is closed: pass the remaining entries. For any queue, with the domain
 * held
 */
void engine_cq_import_end(struct engine_cq *cq);

#endif
