/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that has the devices serve peers while the program makes no calls, where they don't by themselves. It
 * makes progress and reads no completion: those are the contexts'.
 */
#ifndef BTL_SERVICE_H
#define BTL_SERVICE_H

#include "transport.h"

/* btl_service_start - start the thread if a device needs it. Returns 0 or -FI_E* */
int btl_service_start(struct weft_btl *btl);

/* btl_service_stop - end and join it, if there is one */
void btl_service_stop(struct weft_btl *btl);

#endif
