/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The devices of a transport: libfabric's domains that have what one-sided operations need, and how each wants memory
 * to be registered. Found when the transport is opened, by one thread; not changed afterwards.
 */
#ifndef BTL_DEVICE_H
#define BTL_DEVICE_H

#include <stdbool.h>
#include <weft/btl.h>
#include "fabric.h"

/*
 * struct btl_device - a domain of libfabric's, of which each context opens an object of its own
 * @info:    owned
 * @fabric:  owned
 * @mr_mode: what it wants of registrations, FI_MR_BASIC and FI_MR_SCALABLE written out
 * @max:     bytes of the largest operation
 * @serves:  it serves peers while the program makes no calls
 */
struct btl_device {
	struct fi_info *info;
	struct fid_fabric *fabric;
	int mr_mode;
	size_t max;
	bool serves;
};

/*
 * btl_devices_open - find and open up to @max devices
 * Returns how many, or -FI_E*: -FI_ENODATA.
 */
int btl_devices_open(const struct weft_btl_attr *attr, struct btl_device *devices, size_t max);

/* btl_devices_close - close and free what btl_devices_open() has given */
void btl_devices_close(struct btl_device *devices, size_t cnt);

#endif
