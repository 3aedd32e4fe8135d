/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a provider calls of the endpoint engine behind shm, tcp and link.
 */
#ifndef WEFT_ENGINE_H
#define WEFT_ENGINE_H

#include "endpoint.h"

/*
 * Entry points for providers: fi_provider.fabric, and what a provider's getinfo offers in common.
 * engine_fabric_open - @family is the provider's, constant
 */
int engine_fabric_open(const struct engine_family *family, struct fi_fabric_attr *attr,
		       struct fid_fabric **fabric, void *context);

/* What providers offer of sending and receiving (offer.c). Constant, though fi_info's pointers are not */
extern struct fi_tx_attr engine_tx_offer;
extern struct fi_rx_attr engine_rx_offer;

/* engine_define_params - declare the engine's parameters for a provider; from its entry point */
void engine_define_params(const struct fi_provider *provider);

#endif
