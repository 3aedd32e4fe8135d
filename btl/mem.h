/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registered memory, in whatever way each device wants it. */
#ifndef BTL_MEM_H
#define BTL_MEM_H

#include "transport.h"

/*
 * struct weft_btl_mem
 * @mr: by device; in the home context's domains
 */
struct weft_btl_mem {
	struct weft_btl *btl;
	struct btl_handle handle;
	struct fid_mr *mr[WEFT_BTL_DEVICES_MAX];
};

/*
 * btl_mr_open - register with one domain of a device
 * @ep: the endpoint by which the memory is reached, where the device has regions of endpoints
 * Returns 0 or -FI_E*.
 */
int btl_mr_open(struct weft_btl *btl, const struct btl_device *device,
		struct fid_domain *domain, struct fid_ep *ep, const struct iovec *range,
		uint64_t access, struct fid_mr **mr);

#endif
