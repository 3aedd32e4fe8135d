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

/*
 * What every provider offers of endpoints and of domains: initializers for struct fi_ep_attr, and for
 * struct fi_domain_attr, which a provider completes by name and caps. A file that uses the latter
 * includes info.h and mr.h.
 */
#define ENGINE_EP_OFFER                                                                    \
	.type = FI_EP_RDM, .auth_key_size = ENGINE_AUTH_KEY_MAX, .max_msg_size = SIZE_MAX, \
	.max_order_raw_size = ENGINE_ORDER_MAX, .max_order_war_size = ENGINE_ORDER_MAX,    \
	.max_order_waw_size = ENGINE_ORDER_MAX, .mem_tag_format = ENGINE_TAG_FORMAT,       \
	.tx_ctx_cnt = 1, .rx_ctx_cnt = 1

#define ENGINE_DOMAIN_OFFER                                                           \
	.threading = FI_THREAD_SAFE, .control_progress = FI_PROGRESS_AUTO,            \
	.data_progress = FI_PROGRESS_AUTO, .resource_mgmt = FI_RM_ENABLED,            \
	.auth_key_size = ENGINE_AUTH_KEY_MAX, .av_type = FI_AV_UNSPEC,                \
	.mr_mode = INFO_MR_BASIC | INFO_MR_SCALABLE, .mr_key_size = sizeof(uint64_t), \
	.mr_iov_limit = MR_IOV_MAX, .cq_data_size = sizeof(uint64_t),                 \
	.cq_cnt = ENGINE_OBJECT_CNT, .ep_cnt = ENGINE_OBJECT_CNT,                     \
	.cntr_cnt = ENGINE_OBJECT_CNT, .mr_cnt = ENGINE_OBJECT_CNT,                   \
	.max_cntr_value = UINT64_MAX, .max_err_cntr_value = UINT64_MAX,               \
	.tx_ctx_cnt = ENGINE_CTX_CNT, .rx_ctx_cnt = ENGINE_CTX_CNT,                   \
	.max_ep_tx_ctx = PACKET_RX_MAX, .max_ep_rx_ctx = PACKET_RX_MAX,               \
	.max_ep_stx_ctx = ENGINE_CTX_CNT, .max_ep_srx_ctx = ENGINE_CTX_CNT

/* engine_define_params - define the engine's parameters for a provider; called by its entry point */
void engine_define_params(const struct fi_provider *provider);

#endif
