/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that serves peers while the program makes no calls, where the devices don't by
 * themselves. For a device without one-sided operations it has an endpoint of its own, and carries
 * out what peers ask there; else it makes progress, and reads no completion: those are the
 * contexts'.
 */
#ifndef BTL_SERVICE_H
#define BTL_SERVICE_H

#include "ctx.h"

/*
 * btl_service_open - open the endpoints that peers ask, if a device needs one
 * Returns 0 or -FI_E*.
 */
int btl_service_open(struct weft_btl *btl);

/*
 * btl_service_name - the address of a device's
 * @len: in: bytes at @addr; out: bytes of the address, 0: the device needs none
 * Returns 0 or -FI_E*.
 */
int btl_service_name(struct weft_btl *btl, uint32_t device, void *addr, size_t *len);

/* btl_service_start - start the thread if a device needs it. Returns 0 or -FI_E* */
int btl_service_start(struct weft_btl *btl);

/* btl_service_close - end and join the thread, and close, whatever there is */
void btl_service_close(struct weft_btl *btl);

#endif
