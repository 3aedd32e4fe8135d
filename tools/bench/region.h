/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registered memory of a channel, the peer's memory, and transfers between the two. Keys are
 * exchanged over the out-of-band channel. Regions are registered as the provider's mr_mode
 * requires: keys chosen by the provider or by us, virtual addresses or offsets, raw keys, regions
 * bound to an endpoint. One thread per side.
 */
#ifndef WEFT_TOOLS_REGION_H
#define WEFT_TOOLS_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel.h"

/* Registered memory and its descriptor for local transfers. */
struct region {
	const struct channel *ch;
	char *mem;
	size_t len;
	/* NULL if the provider needs no registration */
	struct fid_mr *mr;
	void *desc;
};

/* A region of the peer's, as transfers name it. */
struct remote_region {
	/* address of its first byte */
	uint64_t addr;
	uint64_t key;
	/* the key was mapped by fi_mr_map_raw() and has to be unmapped */
	bool mapped;
};

/*
 * region_init - allocate, touch and register memory
 * @access:  FI_READ | FI_WRITE for this side's transfers (registered only if the provider
 *           wants that), FI_REMOTE_READ | FI_REMOTE_WRITE for the peer's
 *
 * Prints the reason of a failure. Returns 0 or a negative fi_errno, with nothing held.
 */
int region_init(struct channel *ch, struct region *region, size_t len, uint64_t access);

/* region_fini - deregister and free; a zero one is allowed */
void region_fini(struct region *region);

/*
 * region_expose - register memory for one transfer of the peer, which learns of it by a message
 * @region:  from region_init; its present registration ends
 * @access:  FI_REMOTE_READ or FI_REMOTE_WRITE
 * @name:    receives the address and key for the peer
 *
 * Prints the reason of a failure. Returns 0 or a negative fi_errno; -FI_ENOSYS where keys are longer than 64 bits.
 */
int region_expose(struct channel *ch, struct region *region, uint64_t access,
		  struct remote_region *name);

/* region_hide - deregister, and keep the memory; allowed for a region that is not registered */
void region_hide(struct region *region);

/*
 * region_exchange - send the description of a region to the peer, and receive the peer's
 * @region: NULL if this side has failed: then the peer's call fails as well
 * Both sides call it. Prints the reason of a failure. Returns 0 or a negative fi_errno.
 */
int region_exchange(struct channel *ch, const struct region *region,
		    struct remote_region *remote);

/* region_forget - release a region of the peer */
void region_forget(struct channel *ch, struct remote_region *remote);

/* What is done one-sidedly. */
enum region_transfer_kind {
	REGION_READ,
	REGION_WRITE,
	REGION_FETCH_ADD, /* of a 64-bit word */
	REGION_ADD,	  /* like REGION_FETCH_ADD, but without a result, and injected */
};

/* One such transfer. */
struct region_access {
	const struct region *local;
	/* offset in local; REGION_FETCH_ADD: of the operand, which the 8 bytes of the result follow */
	size_t at;
	const struct remote_region *remote;
	/* offset in the peer's region */
	size_t remote_at;
	/* bytes */
	size_t len;
};

/*
 * region_adds - check that REGION_FETCH_ADD and REGION_ADD are supported
 *
 * Prints the reason of a failure. Returns 0 or a negative fi_errno.
 */
int region_adds(struct channel *ch);

/*
 * region_transfer - read, write or update the peer's memory
 * @access:  borrowed for the call
 * @op:      its completion; the caller's again once it is not busy
 *
 * Writes that fit are injected, unless no_inject. Makes progress while the provider returns -FI_EAGAIN.
 * Returns 0 or a negative fi_errno.
 */
int region_transfer(struct channel *ch, enum region_transfer_kind kind,
		    const struct region_access *access, struct channel_op *op);

#endif
