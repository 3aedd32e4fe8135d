/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a wire that pins gives: how memory is registered with its device. pin.h keeps memory of the
 * arena registered by it, and mem/cache other memory. Called on any thread, by several at once.
 */
#ifndef WEFT_MEM_PIN_OPS_H
#define WEFT_MEM_PIN_OPS_H

#include <stddef.h>
#include <stdint.h>

struct mem_pin_ops {
	/*
	 * pin - make [@addr, @addr + @len) reachable for the device
	 * @access: FI_SEND, FI_RECV, FI_READ, ... FI_REMOTE_WRITE
	 * Returns 0 and @handle; -FI_ENOMEM: what the process may lock, or the host has, is spent: what other
	 * devices have registered may be given up for it; -FI_ENOSPC: the device's own table is
	 * full; or another -FI_E*.
	 */
	int (*pin)(void *device, void *addr, size_t len, uint64_t access, uint64_t *handle);
	/* unpin - nothing uses the handle any more. Never fails */
	void (*unpin)(void *device, uint64_t handle);
};

#endif
