/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What each operation begins with: where it goes, and whether a handle allows it. Called by the context's thread. */
#ifndef BTL_ACCESS_H
#define BTL_ACCESS_H

#include "ctx.h"

/*
 * struct btl_reach - a target, as libfabric's calls take it
 * @route: index of the peer's
 */
struct btl_reach {
	size_t route;
	uint32_t device;
	struct fid_ep *ep;
	fi_addr_t peer;
	uint64_t at;
	uint64_t key;
};

/*
 * btl_reach_get - check a target
 * @len:    bytes that are accessed there
 * @access: FI_REMOTE_READ, FI_REMOTE_WRITE or both
 * Returns 0, or -FI_E* as weft_btl_put().
 */
int btl_reach_get(struct weft_btl_ctx *ctx, const struct weft_btl_target *to, size_t len,
		  uint64_t access, struct btl_reach *reach);

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
