/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What each operation begins with: where it goes, and whether a handle allows it. Called by the
 * context's thread.
 */
#ifndef BTL_ACCESS_H
#define BTL_ACCESS_H

#include "ctx.h"

/*
 * btl_target_check - whether a handle allows an access, and the way to its peer
 * @len:    bytes that are accessed there
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE or both
 * @handle: out: valid until the next call
 * @route:  out: index of the peer's
 * Returns 0, or -FI_E* as weft_btl_put().
 */
int btl_target_check(struct weft_btl_ctx *ctx, const struct weft_btl_target *to, size_t len,
		     uint64_t access, const struct btl_handle **handle, size_t *route);

/* btl_address - an address of the owner's within a handle's memory, as a device counts */
static inline uint64_t btl_address(const struct btl_handle *handle, uint32_t device,
				   uint64_t addr)
{
	return handle->offset & 1u << device ? addr - handle->addr : addr;
}

/*
 * btl_local_get - what libfabric wants to know of local memory
 * @mem:   the program's registration, or NULL
 * @local: out: a registration for this operation alone, owned, or NULL
 * @desc:  out: for the call
 * Returns 0 or -FI_E*.
 */
int btl_local_get(struct weft_btl_ctx *ctx, uint32_t device, const struct iovec *range,
		  const struct weft_btl_mem *mem, struct fid_mr **local, void **desc);

#endif
