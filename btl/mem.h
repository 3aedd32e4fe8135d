/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registered memory, in whatever way each device wants it. */
#ifndef BTL_MEM_H
#define BTL_MEM_H

#include "transport.h"

/* What operations of this process do with registered memory. */
#define BTL_LOCAL_ACCESS (FI_READ | FI_WRITE | FI_SEND)

/*
 * struct weft_btl_mem
 * @next:   in the transport's list
 * @serial: counts from 1: no two of a transport have the same
 * @mr: by device; in the home context's domains
 */
struct weft_btl_mem {
	struct weft_btl *btl;
	struct weft_btl_mem *next;
	uint64_t serial;
	struct btl_handle handle;
	struct fid_mr *mr[WEFT_BTL_DEVICES_MAX];
};

/*
 * btl_mem_find_locked - registered memory by what the owner knows it by, with the transport's lock
 * held
 * Returns it, valid until the lock is released, or NULL.
 */
const struct btl_handle *btl_mem_find_locked(const struct weft_btl *btl, uint64_t id);

/*
 * btl_mr_open - register with one domain of a device
 * @ep: the endpoint by which the memory is reached, where the device has regions of endpoints
 * Returns 0 or -FI_E*.
 */
int btl_mr_open(struct weft_btl *btl, const struct btl_device *device,
		struct fid_domain *domain, struct fid_ep *ep, const struct iovec *range,
		uint64_t access, struct fid_mr **mr);

#endif
