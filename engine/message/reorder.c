/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that have arrived before their turn; reorder.h has the contract. They are in bins by
 * their sequence number, twice as many when they become full. A sender can't tell which numbers
 * share a bin. Called from progress, and when an endpoint is closed, with the domain held.
 */
#include <rdma/fi_errno.h>
#include "recv.h"
#include "reorder.h"

#define BIN_BITS_FIRST 4u
#define BIN_BITS_MAX   20u

static uint32_t bin_cnt(const struct engine_reorder *r)
{
	return 1u << (64 - r->shift);
}

static struct list *bin_of(const struct engine_reorder *r, uint32_t seq)
{
	return &r->bins[seq * r->mult >> r->shift];
}

static struct engine_held *held_of(struct list *node)
{
	return container_of(node, struct engine_held, link);
}

/* Makes the bins, or twice as many. Returns false without memory; nothing has happened then. */
static bool bins_make(struct engine_reorder *r, uint32_t bits)
{
	struct engine_reorder to = { .mult = r->mult, .shift = 64 - bits };
	struct list *node;

	to.bins = platform_alloc(sizeof(*to.bins) << bits);
	if (!to.bins)
		return false;
	for (uint32_t i = 0; i < bin_cnt(&to); i++)
		list_init(&to.bins[i]);
	for (uint32_t i = 0; r->bins && i < bin_cnt(r); i++)
		while ((node = list_pop(&r->bins[i])))
			list_add_tail(bin_of(&to, held_of(node)->packet.seq), node);
	platform_free(r->bins);
	*r = to;
	return true;
}

static bool begin(struct engine_reorder *r)
{
	/* Without randomness packets are found all the same. */
	if (platform_random(&r->mult, sizeof(r->mult)))
		r->mult = 0x9e3779b97f4a7c15ull;
	r->mult |= 1;
	return bins_make(r, BIN_BITS_FIRST);
}

struct engine_held *engine_reorder_at(const struct engine_peer *peer, uint32_t seq)
{
	struct engine_held *held;

	if (!peer->reorder_cnt)
		return NULL;
	list_for_each_entry(held, bin_of(&peer->reorder, seq), link)
		if (held->packet.seq == seq)
			return held;
	return NULL;
}

int engine_reorder_add(struct engine_peer *peer, struct engine_held *held)
{
	struct engine_reorder *r = &peer->reorder;

	if (!r->bins && !begin(r))
		return -FI_ENOMEM;
	if (peer->reorder_cnt > 2 * bin_cnt(r) && r->shift > 64 - BIN_BITS_MAX)
		bins_make(r, 65 - r->shift); /* without memory these become longer */
	list_add_tail(bin_of(r, held->packet.seq), &held->link);
	peer->reorder_cnt++;
	engine_rx_head_set(peer);
	return 0;
}

void engine_reorder_remove(struct engine_peer *peer, struct engine_held *held)
{
	list_remove(&held->link);
	peer->reorder_cnt--;
	engine_rx_head_set(peer);
}

void engine_reorder_drop(struct engine_peer *peer)
{
	struct engine_reorder *r = &peer->reorder;
	struct list *node;

	for (uint32_t i = 0; r->bins && i < bin_cnt(r); i++)
		while ((node = list_pop(&r->bins[i])))
			engine_held_free(peer->ep, held_of(node));
	platform_free(r->bins);
	r->bins = NULL;
	peer->reorder_cnt = peer->reorder_large = 0;
	engine_rx_head_set(peer);
}
