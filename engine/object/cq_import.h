/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues of which another provider is the owner: its program reads one queue of its own, into
 * which this provider's completions go too (FI_PEER). The engine writes entries as into any queue; a task of
 * the domain hands them to the owner's table at the end of the round, in order, and again in the next round
 * those that it has no room for. Source: fi_peer(3).
 */
#ifndef WEFT_CQ_IMPORT_H
#define WEFT_CQ_IMPORT_H

#include "queues.h"

/*
 * engine_cq_import_check - is that an owner's queue?
 * @context: struct fi_peer_cq_context
 * Returns 0 and the queue, or -FI_EINVAL.
 */
int engine_cq_import_check(const struct engine_domain *domain, const void *context,
			   struct fid_peer_cq **owner);

/*
 * engine_cq_import - from now on the entries of @cq, which is being opened, go to @owner
 * @owner: borrowed until the queue is closed; called with the domain held, by whoever makes a round
 */
void engine_cq_import(struct engine_cq *cq, struct fid_peer_cq *owner);

/* engine_cq_import_end - the queue is closed: hand over what is left. With the domain held; any queue */
void engine_cq_import_end(struct engine_cq *cq);

#endif
