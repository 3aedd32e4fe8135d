/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A connection whose other end is bare memory, for tests that write anything there. Both processes of
 * it are this one. Tests only.
 */
#ifndef WEFT_SHM_MOCK_VICTIM_H
#define WEFT_SHM_MOCK_VICTIM_H

#include "mock_engine.h"

/* What pairs have that processes make between them. */
extern const struct pshm_sizes mock_victim_sizes;

/* mock_pair_of - a pair with the hello of @from, which is not offered to anybody */
struct pshm_region mock_pair_of(const struct pshm_sizes *sizes, const struct mock *from);

/* mock_offer_of - what offers that pair */
struct pshm_offer mock_offer_of(const struct pshm_region *region);

/* mock_offer_made - leave a request at @to's inbox. Returns the error that it answers */
int mock_offer_made(struct mock *to, const struct pshm_offer *offer);

/* mock_victim_made - a connection of @to with what calls itself @from. Returns the pair, in @region */
struct pshm_pair *mock_victim_made(struct mock *to, const struct mock *from,
				   struct pshm_region *region);

/*
 * mock_forged_line - publish the next line for @to's connection, of kind PACKET_DATA and tag
 * MOCK_BIG, and have it polled
 * @len: of the packet
 * @note: of the line
 * @payload, @payload_len: what it says
 */
void mock_forged_line(struct mock *to, struct pshm_region *region, uint32_t len, uint32_t note,
		      const void *payload, size_t payload_len);

#endif
