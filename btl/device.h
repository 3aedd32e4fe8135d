/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The devices of a transport: libfabric's domains that have what one-sided operations need, and how
 * each wants memory to be registered. Found when the transport is opened, by one thread; not
 * changed afterwards.
 */
#ifndef BTL_DEVICE_H
#define BTL_DEVICE_H

#include <stdbool.h>
#include <rdma/fi_domain.h>
#include <weft/btl.h>

/*
 * struct btl_device - a domain of libfabric's, of which each context opens an object of its own
 * @info:    owned
 * @later_info: owned; the same for contexts after the first, which serve no peers and are one
 *		thread's
 * @fabric:  owned
 * @mr_mode: what it wants of registrations, FI_MR_BASIC and FI_MR_SCALABLE written out
 * @max:     bytes of the largest operation
 * @inject_max: bytes of the largest message that is sent within the call
 * @serves:  it serves peers while the program makes no calls
 * @has_messages: with remote CQ data, wide enough for the ids
 * @has_rma: puts and gets are the provider's, else peers are asked for them
 * @has_atomics: so are atomics, of all kinds on integers: those on a value have to be carried out
 *		 in one place
 * @addr_len: bytes of its addresses
 */
struct btl_device {
	struct fi_info *info, *later_info;
	struct fid_fabric *fabric;
	int mr_mode;
	size_t max;
	size_t inject_max;
	bool serves, has_messages, has_rma, has_atomics;
	size_t addr_len;
};

/*
 * btl_devices_open - find and open up to @max devices
 * Returns how many, or -FI_E*: -FI_ENODATA.
 */
int btl_devices_open(const struct weft_btl_attr *attr, struct btl_device *devices, size_t max);

/*
 * btl_device_needs_server - Returns whether it has operations that peers are asked for, by messages
 */
static inline bool btl_device_needs_server(const struct btl_device *device)
{
	return !device->has_rma || !device->has_atomics;
}

/*
 * btl_device_takes - Returns whether bytes of a stranger can be an address of the device's format:
 * as long as its own, or a string that ends
 */
bool btl_device_takes(const struct btl_device *device, const unsigned char *addr, size_t len);

/*
 * btl_device_has_atomic - Returns whether the provider has an atomic that fetches, or FI_CSWAP, on
 * a type
 */
bool btl_device_has_atomic(struct fid_domain *domain, enum fi_op fi_op, enum fi_datatype type);

/* btl_device_probe - find out which atomics a device has, by a domain of it */
void btl_device_probe(struct btl_device *device, struct fid_domain *domain);

/* btl_devices_close - close and free what btl_devices_open() has given */
void btl_devices_close(struct btl_device *devices, size_t cnt);

#endif
