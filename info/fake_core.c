/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See fake_core.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_log.h>

#include "fake_core.h"

uint32_t fake_core_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
int fake_core_log_on = 1;
char fake_core_log[512];

const struct fi_provider fake_prov = {
	.version = FI_VERSION(3, 1),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "fake",
};

uint32_t fi_version(void)
{
	return fake_core_version;
}

int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	return fake_core_log_on;
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(fake_core_log, sizeof(fake_core_log), fmt, args);
	va_end(args);
	fake_core_log[strcspn(fake_core_log, "\n")] = '\0';
}

struct fi_info *fake_offer(void)
{
	struct fi_info *offer = info_alloc();

	offer->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE |
		      FI_REMOTE_READ | FI_REMOTE_WRITE | FI_DIRECTED_RECV | FI_MULTI_RECV |
		      FI_SOURCE | FI_RMA_EVENT | FI_LOCAL_COMM | FI_REMOTE_COMM;
	offer->addr_format = FI_SOCKADDR_IN;
	offer->tx_attr->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_SEND | FI_READ | FI_WRITE;
	offer->tx_attr->op_flags = FI_COMPLETION | FI_INJECT | FI_DELIVERY_COMPLETE;
	offer->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_SAW;
	offer->tx_attr->inject_size = 256;
	offer->tx_attr->size = 1024;
	offer->tx_attr->iov_limit = 8;
	offer->tx_attr->rma_iov_limit = 4;
	offer->rx_attr->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_RECV | FI_REMOTE_READ |
			       FI_REMOTE_WRITE | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE |
			       FI_RMA_EVENT;
	offer->rx_attr->op_flags = FI_COMPLETION | FI_MULTI_RECV;
	offer->rx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_SAW;
	offer->rx_attr->size = 1024;
	offer->rx_attr->iov_limit = 8;
	offer->ep_attr->type = FI_EP_RDM;
	offer->ep_attr->protocol = FI_PROTO_XNET;
	offer->ep_attr->protocol_version = 2;
	offer->ep_attr->max_msg_size = 1 << 30;
	offer->ep_attr->max_order_raw_size = 4096;
	offer->ep_attr->mem_tag_format = UINT64_MAX >> 1;
	offer->ep_attr->tx_ctx_cnt = 1;
	offer->ep_attr->rx_ctx_cnt = 1;
	offer->domain_attr->name = strdup("eth0");
	offer->domain_attr->threading = FI_THREAD_SAFE;
	offer->domain_attr->control_progress = FI_PROGRESS_AUTO;
	offer->domain_attr->data_progress = FI_PROGRESS_AUTO;
	offer->domain_attr->resource_mgmt = FI_RM_ENABLED;
	offer->domain_attr->mr_mode = INFO_MR_BASIC | INFO_MR_SCALABLE;
	offer->domain_attr->mr_key_size = 8;
	offer->domain_attr->cq_data_size = 8;
	offer->domain_attr->cq_cnt = 128;
	offer->domain_attr->max_ep_tx_ctx = 1;
	offer->domain_attr->max_ep_rx_ctx = 1;
	offer->domain_attr->cntr_cnt = 16;
	offer->domain_attr->mr_iov_limit = 1;
	offer->domain_attr->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
	offer->domain_attr->max_err_data = 64;
	offer->fabric_attr->name = strdup("192.0.2.0/24");
	return offer;
}
