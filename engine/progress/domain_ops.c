/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ops that a domain installs for the rooms below progress/. Called with the domain held, from
 * sends, from progress, and from control calls that insert addresses.
 */
#include "domain_ops.h"
#include "access.h"
#include "fail.h"
#include "flush.h"
#include "progress.h"
#include "recv.h"

static void domain_progress(struct engine_domain *domain)
{
	engine_domain_progress(domain);
}

static void peer_renamed(struct engine_peer *peer)
{
	engine_rxq_rename(peer->ep->rx.q, peer);
}

const struct engine_domain_ops engine_progress_ops = {
	.progress = domain_progress,
	.flush = engine_peer_flush,
	.lost = engine_peer_fail,
	.route_lost = engine_direct_drop,
	.renamed = peer_renamed,
};
