/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The contract between the engine's memory regions and a wire that pins: one whose device reaches
 * memory only where it was registered with it. The engine knows registered memory by these
 * operations alone; what is cached, and for how long, is the wire's.
 */
#ifndef WEFT_MR_OPS_H
#define WEFT_MR_OPS_H

#include "platform.h"

/* The device of a wire, and what one domain has registered with it. Defined by the wire. */
struct mr_device;

/* What a wire keeps for one range of a region, from reg to dereg. The engine does not look at it. */
struct mr_pin {
	uint64_t words[4];
};

/*
 * Every call but open and close is made by the registrar of the domain, or by its holder: by one
 * thread at a time, maybe while another one is in a call of struct wire_ops.
 */
struct mr_ops {
	/*
	 * open - open the device for a domain
	 * @device: out: owned by the caller until close()
	 * The regions of the domain are closed before it, and its endpoints are opened after it.
	 * Returns 0 or -FI_E*: the wire is used without a device, or not at all.
	 */
	int (*open)(struct mr_device **device);
	void (*close)(struct mr_device *device);

	/*
	 * reg - make [@addr, @addr + @len) reachable for the device
	 * @len:    not 0; the range may wrap around, or not be mapped
	 * @access: FI_SEND, FI_RECV, FI_READ, ... FI_REMOTE_WRITE
	 * @pin:    out: kept in place until dereg()
	 * Ranges of regions may overlap, and be the same. May wait for the device.
	 * Returns 0, or -FI_E*: the region is not registered. A wire that can move payload through
	 * memory of its own does not fail for lack of room.
	 */
	int (*reg)(struct mr_device *device, const void *addr, size_t len, uint64_t access,
		   struct mr_pin *pin);
	/* dereg - the region is closed: nothing uses the range by this registration any more */
	void (*dereg)(struct mr_device *device, struct mr_pin *pin);
};

#endif
