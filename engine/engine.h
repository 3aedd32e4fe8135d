/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The entry points of the endpoint engine behind shm, tcp and link, for providers.
 */
#ifndef WEFT_ENGINE_H
#define WEFT_ENGINE_H

#include "endpoint.h"

/*
 * engine_fabric_open - fi_provider.fabric
 * @family: of the provider, constant
 *
 * Returns 0 or -FI_E*.
 */
int engine_fabric_open(const struct engine_family *family, struct fi_fabric_attr *attr,
		       struct fid_fabric **fabric, void *context);

/*
 * What every provider offers for sending and receiving (offer.c). Not written, although the
 * pointers of struct fi_info are not const.
 */
extern struct fi_tx_attr engine_tx_offer;
extern struct fi_rx_attr engine_rx_offer;

/* engine_define_params - define the engine's parameters for a provider; called by its entry point */
void engine_define_params(const struct fi_provider *provider);

#endif
