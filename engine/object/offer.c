/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What every provider over the engine offers for sending and receiving; a provider's getinfo adds
 * its own. Constant.
 */
#include <rdma/fi_endpoint.h>
#include "engine.h"

struct fi_tx_attr engine_tx_offer = {
	.caps = ENGINE_TX_CAPS,
	.op_flags = ENGINE_TX_OP_FLAGS,
	.msg_order = ENGINE_MSG_ORDER,
	.inject_size = ENGINE_INJECT_MAX,
	.size = ENGINE_TX_SIZE,
	.iov_limit = ENGINE_IOV_MAX,
	.rma_iov_limit = PACKET_TARGET_MAX,
};

struct fi_rx_attr engine_rx_offer = {
	.caps = ENGINE_RX_CAPS,
	.op_flags = ENGINE_RX_OP_FLAGS,
	.msg_order = ENGINE_MSG_ORDER,
	.size = ENGINE_RX_SIZE,
	.iov_limit = ENGINE_IOV_MAX,
};
