/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_info and the structs in it as text. Called by fi_tostr, on any thread. */
#include <inttypes.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "tostr_text.h"

static void put_tx_attr(struct text *text, const struct fi_tx_attr *attr, const char *prefix,
			const char *in)
{
	if (!text_put_head(text, prefix, "fi_tx_attr", attr))
		return;
	text_put_flags_line(text, in, "caps", info_names_caps, attr->caps);
	text_put_flags_line(text, in, "mode", info_names_mode, attr->mode);
	text_put_flags_line(text, in, "op_flags", info_names_op_flags, attr->op_flags);
	text_put_flags_line(text, in, "msg_order", info_names_msg_order, attr->msg_order);
	text_put_size(text, in, "inject_size", attr->inject_size);
	text_put_size(text, in, "size", attr->size);
	text_put_size(text, in, "iov_limit", attr->iov_limit);
	text_put_size(text, in, "rma_iov_limit", attr->rma_iov_limit);
	text_put(text, "%stclass: 0x%x\n", in, attr->tclass);
}

static void put_rx_attr(struct text *text, const struct fi_rx_attr *attr, const char *prefix,
			const char *in)
{
	if (!text_put_head(text, prefix, "fi_rx_attr", attr))
		return;
	text_put_flags_line(text, in, "caps", info_names_caps, attr->caps);
	text_put_flags_line(text, in, "mode", info_names_mode, attr->mode);
	text_put_flags_line(text, in, "op_flags", info_names_op_flags, attr->op_flags);
	text_put_flags_line(text, in, "msg_order", info_names_msg_order, attr->msg_order);
	text_put_size(text, in, "size", attr->size);
	text_put_size(text, in, "iov_limit", attr->iov_limit);
}

static void put_ctx_cnt(struct text *text, const char *prefix, const char *key, size_t cnt)
{
	if (cnt == FI_SHARED_CONTEXT)
		text_put(text, "%s%s: FI_SHARED_CONTEXT\n", prefix, key);
	else
		text_put_size(text, prefix, key, cnt);
}

static void put_ep_attr(struct text *text, const struct fi_ep_attr *attr, const char *prefix,
			const char *in)
{
	if (!text_put_head(text, prefix, "fi_ep_attr", attr))
		return;
	text_put_value_line(text, in, "type", info_names_ep_type, attr->type);
	text_put_value_line(text, in, "protocol", info_names_protocol, attr->protocol);
	text_put(text, "%sprotocol_version: %u\n", in, attr->protocol_version);
	text_put_size(text, in, "max_msg_size", attr->max_msg_size);
	text_put_size(text, in, "msg_prefix_size", attr->msg_prefix_size);
	text_put_size(text, in, "max_order_raw_size", attr->max_order_raw_size);
	text_put_size(text, in, "max_order_war_size", attr->max_order_war_size);
	text_put_size(text, in, "max_order_waw_size", attr->max_order_waw_size);
	text_put(text, "%smem_tag_format: 0x%016" PRIx64 "\n", in, attr->mem_tag_format);
	put_ctx_cnt(text, in, "tx_ctx_cnt", attr->tx_ctx_cnt);
	put_ctx_cnt(text, in, "rx_ctx_cnt", attr->rx_ctx_cnt);
	text_put_size(text, in, "auth_key_size", attr->auth_key_size);
	text_put(text, "%s", in);
	text_put_pointer(text, "xpu_ctx", attr->xpu_ctx);
}

static void put_domain_attr(struct text *text, const struct fi_domain_attr *attr,
			    const char *prefix, const char *in)
{
	if (!text_put_head(text, prefix, "fi_domain_attr", attr))
		return;
	text_put(text, "%s", in);
	text_put_pointer(text, "domain", attr->domain);
	text_put(text, "%s", in);
	text_put_string(text, "name", attr->name);
	text_put_value_line(text, in, "threading", info_names_threading, attr->threading);
	text_put_value_line(text, in, "progress", info_names_progress, attr->progress);
	text_put_value_line(text, in, "resource_mgmt", info_names_resource_mgmt,
			    attr->resource_mgmt);
	text_put_value_line(text, in, "av_type", info_names_av_type, attr->av_type);
	text_put_flags_line(text, in, "mr_mode", info_names_mr_mode,
			    (unsigned int)attr->mr_mode);
	text_put_size(text, in, "mr_key_size", attr->mr_key_size);
	text_put_size(text, in, "cq_data_size", attr->cq_data_size);
	text_put_size(text, in, "cq_cnt", attr->cq_cnt);
	text_put_size(text, in, "ep_cnt", attr->ep_cnt);
	text_put_size(text, in, "tx_ctx_cnt", attr->tx_ctx_cnt);
	text_put_size(text, in, "rx_ctx_cnt", attr->rx_ctx_cnt);
	text_put_size(text, in, "max_ep_tx_ctx", attr->max_ep_tx_ctx);
	text_put_size(text, in, "max_ep_rx_ctx", attr->max_ep_rx_ctx);
	text_put_size(text, in, "max_ep_stx_ctx", attr->max_ep_stx_ctx);
	text_put_size(text, in, "max_ep_srx_ctx", attr->max_ep_srx_ctx);
	text_put_size(text, in, "cntr_cnt", attr->cntr_cnt);
	text_put_size(text, in, "mr_iov_limit", attr->mr_iov_limit);
	text_put_flags_line(text, in, "caps", info_names_caps, attr->caps);
	text_put_flags_line(text, in, "mode", info_names_mode, attr->mode);
	text_put_size(text, in, "auth_key_size", attr->auth_key_size);
	text_put_size(text, in, "max_err_data", attr->max_err_data);
	text_put_size(text, in, "mr_cnt", attr->mr_cnt);
	text_put(text, "%stclass: 0x%x\n", in, attr->tclass);
	text_put_size(text, in, "max_ep_auth_key", attr->max_ep_auth_key);
	text_put(text, "%smax_group_id: %u\n", in, attr->max_group_id);
	text_put(text, "%smax_cntr_value: %" PRIu64 "\n", in, attr->max_cntr_value);
	text_put(text, "%smax_err_cntr_value: %" PRIu64 "\n", in, attr->max_err_cntr_value);
	text_put_size(text, in, "max_xpu_ctx_cnt", attr->max_xpu_ctx_cnt);
}

static void put_fabric_attr(struct text *text, const struct fi_fabric_attr *attr,
			    const char *prefix, const char *in)
{
	if (!text_put_head(text, prefix, "fi_fabric_attr", attr))
		return;
	text_put(text, "%s", in);
	text_put_string(text, "name", attr->name);
	text_put(text, "%s", in);
	text_put_string(text, "prov_name", attr->prov_name);
	text_put(text, "%sprov_version: %u.%u\n", in, FI_MAJOR(attr->prov_version),
		 FI_MINOR(attr->prov_version));
	text_put(text, "%sapi_version: %u.%u\n", in, FI_MAJOR(attr->api_version),
		 FI_MINOR(attr->api_version));
}

static void put_info(struct text *text, const struct fi_info *info)
{
	text_put(text, "fi_info:\n");
	text_put_flags_line(text, TAB, "caps", info_names_caps, info->caps);
	text_put_flags_line(text, TAB, "mode", info_names_mode, info->mode);
	text_put_value_line(text, TAB, "addr_format", info_names_addr_format, info->addr_format);
	text_put_size(text, TAB, "src_addrlen", info->src_addrlen);
	text_put_size(text, TAB, "dest_addrlen", info->dest_addrlen);
	text_put(text, TAB "src_addr: ");
	text_put_addr(text, info->addr_format, info->src_addr, info->src_addrlen);
	text_put(text, "\n" TAB "dest_addr: ");
	text_put_addr(text, info->addr_format, info->dest_addr, info->dest_addrlen);
	text_put(text, "\n");
	text_put_fid(text, TAB "handle", info->handle);
	put_tx_attr(text, info->tx_attr, TAB, TAB TAB);
	put_rx_attr(text, info->rx_attr, TAB, TAB TAB);
	put_ep_attr(text, info->ep_attr, TAB, TAB TAB);
	put_domain_attr(text, info->domain_attr, TAB, TAB TAB);
	put_fabric_attr(text, info->fabric_attr, TAB, TAB TAB);
	text_put_fid(text, TAB "nic", info->nic ? &info->nic->fid : NULL);
}

bool text_put_info(struct text *text, const void *data, enum fi_type type)
{
	switch (type) {
	case FI_TYPE_INFO:
		put_info(text, data);
		return true;
	case FI_TYPE_TX_ATTR:
		put_tx_attr(text, data, "", TAB);
		return true;
	case FI_TYPE_RX_ATTR:
		put_rx_attr(text, data, "", TAB);
		return true;
	case FI_TYPE_EP_ATTR:
		put_ep_attr(text, data, "", TAB);
		return true;
	case FI_TYPE_DOMAIN_ATTR:
		put_domain_attr(text, data, "", TAB);
		return true;
	case FI_TYPE_FABRIC_ATTR:
		put_fabric_attr(text, data, "", TAB);
		return true;
	default:
		return false;
	}
}
