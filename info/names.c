/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The tables behind names.h. Deprecated values are given by number, since their public
 * names warn wherever they are used.
 */
#include <stdio.h>
#include <string.h>

#include <rdma/fabric.h>

#include "names.h"

#define NAMED(value)          \
	{                     \
		value, #value \
	}
#define END             \
	{               \
		0, NULL \
	}

const struct info_name info_names_caps[] = {
	NAMED(FI_MSG),
	NAMED(FI_RMA),
	NAMED(FI_TAGGED),
	NAMED(FI_ATOMIC),
	NAMED(FI_MULTICAST),
	NAMED(FI_COLLECTIVE),
	NAMED(FI_READ),
	NAMED(FI_WRITE),
	NAMED(FI_RECV),
	NAMED(FI_SEND),
	NAMED(FI_REMOTE_READ),
	NAMED(FI_REMOTE_WRITE),
	NAMED(FI_MULTI_RECV),
	NAMED(FI_REMOTE_CQ_DATA),
	NAMED(FI_TRIGGER),
	NAMED(FI_FENCE),
	NAMED(FI_RMA_PMEM),
	NAMED(FI_SOURCE_ERR),
	NAMED(FI_LOCAL_COMM),
	NAMED(FI_REMOTE_COMM),
	NAMED(FI_SHARED_AV),
	NAMED(FI_RMA_EVENT),
	NAMED(FI_SOURCE),
	NAMED(FI_NAMED_RX_CTX),
	NAMED(FI_DIRECTED_RECV),
	NAMED(FI_AV_USER_ID),
	NAMED(FI_PEER),
	NAMED(FI_HMEM),
	NAMED(FI_XPU),
	NAMED(FI_TAGGED_DIRECTED_RECV),
	NAMED(FI_TAGGED_MULTI_RECV),
	NAMED(FI_EXACT_DIRECTED_RECV),
	END,
};

const struct info_name info_names_mode[] = {
	NAMED(FI_CONTEXT),
	NAMED(FI_MSG_PREFIX),
	NAMED(FI_ASYNC_IOV),
	NAMED(FI_RX_CQ_DATA),
	{ 1ULL << 55, "FI_LOCAL_MR" },
	NAMED(FI_CONTEXT2),
	END,
};

const struct info_name info_names_op_flags[] = {
	NAMED(FI_MULTICAST),
	NAMED(FI_MULTI_RECV),
	NAMED(FI_REMOTE_CQ_DATA),
	NAMED(FI_MORE),
	NAMED(FI_PEEK),
	NAMED(FI_TRIGGER),
	NAMED(FI_FENCE),
	NAMED(FI_COMPLETION),
	NAMED(FI_INJECT),
	NAMED(FI_INJECT_COMPLETE),
	NAMED(FI_TRANSMIT_COMPLETE),
	NAMED(FI_DELIVERY_COMPLETE),
	NAMED(FI_COMMIT_COMPLETE),
	NAMED(FI_MATCH_COMPLETE),
	NAMED(FI_AFFINITY),
	NAMED(FI_CLAIM),
	NAMED(FI_DISCARD),
	END,
};

const struct info_name info_names_msg_order[] = {
	NAMED(FI_ORDER_RAR),	    NAMED(FI_ORDER_RAW),	NAMED(FI_ORDER_RAS),
	NAMED(FI_ORDER_WAR),	    NAMED(FI_ORDER_WAW),	NAMED(FI_ORDER_WAS),
	NAMED(FI_ORDER_SAR),	    NAMED(FI_ORDER_SAW),	NAMED(FI_ORDER_SAS),
	NAMED(FI_ORDER_RMA_RAR),    NAMED(FI_ORDER_RMA_RAW),	NAMED(FI_ORDER_RMA_WAR),
	NAMED(FI_ORDER_RMA_WAW),    NAMED(FI_ORDER_ATOMIC_RAR), NAMED(FI_ORDER_ATOMIC_RAW),
	NAMED(FI_ORDER_ATOMIC_WAR), NAMED(FI_ORDER_ATOMIC_WAW), END,
};

const struct info_name info_names_mr_mode[] = {
	{ 1 << 0, "FI_MR_BASIC" }, { 1 << 1, "FI_MR_SCALABLE" },
	NAMED(FI_MR_LOCAL),	   NAMED(FI_MR_RAW),
	NAMED(FI_MR_VIRT_ADDR),	   NAMED(FI_MR_ALLOCATED),
	NAMED(FI_MR_PROV_KEY),	   NAMED(FI_MR_MMU_NOTIFY),
	NAMED(FI_MR_RMA_EVENT),	   NAMED(FI_MR_ENDPOINT),
	NAMED(FI_MR_HMEM),	   NAMED(FI_MR_COLLECTIVE),
	NAMED(FI_MR_XPU_DESC),	   END,
};

const struct info_name info_names_ep_type[] = {
	NAMED(FI_EP_UNSPEC), NAMED(FI_EP_MSG), NAMED(FI_EP_DGRAM), NAMED(FI_EP_RDM), END,
};

const struct info_name info_names_protocol[] = {
	NAMED(FI_PROTO_UNSPEC),
	NAMED(FI_PROTO_RDMA_CM_IB_RC),
	NAMED(FI_PROTO_IWARP),
	NAMED(FI_PROTO_IB_UD),
	NAMED(FI_PROTO_PSMX),
	NAMED(FI_PROTO_UDP),
	NAMED(FI_PROTO_SOCK_TCP),
	NAMED(FI_PROTO_MXM),
	NAMED(FI_PROTO_IWARP_RDM),
	NAMED(FI_PROTO_IB_RDM),
	NAMED(FI_PROTO_GNI),
	NAMED(FI_PROTO_RXM),
	NAMED(FI_PROTO_RXD),
	NAMED(FI_PROTO_MLX),
	NAMED(FI_PROTO_NETWORKDIRECT),
	NAMED(FI_PROTO_PSMX2),
	NAMED(FI_PROTO_SHM),
	NAMED(FI_PROTO_MRAIL),
	NAMED(FI_PROTO_RSTREAM),
	NAMED(FI_PROTO_RDMA_CM_IB_XRC),
	NAMED(FI_PROTO_EFA),
	NAMED(FI_PROTO_PSMX3),
	NAMED(FI_PROTO_RXM_TCP),
	NAMED(FI_PROTO_OPX),
	NAMED(FI_PROTO_CXI),
	NAMED(FI_PROTO_XNET),
	NAMED(FI_PROTO_COLL),
	NAMED(FI_PROTO_UCX),
	NAMED(FI_PROTO_SM2),
	NAMED(FI_PROTO_CXI_RNR),
	NAMED(FI_PROTO_LPP),
	NAMED(FI_PROTO_LNX),
	END,
};

const struct info_name info_names_addr_format[] = {
	NAMED(FI_FORMAT_UNSPEC),
	NAMED(FI_SOCKADDR),
	NAMED(FI_SOCKADDR_IP),
	NAMED(FI_SOCKADDR_IN),
	NAMED(FI_SOCKADDR_IN6),
	NAMED(FI_SOCKADDR_IB),
	NAMED(FI_ADDR_PSMX),
	NAMED(FI_ADDR_GNI),
	NAMED(FI_ADDR_BGQ),
	NAMED(FI_ADDR_MLX),
	NAMED(FI_ADDR_STR),
	NAMED(FI_ADDR_PSMX2),
	NAMED(FI_ADDR_IB_UD),
	NAMED(FI_ADDR_EFA),
	NAMED(FI_ADDR_PSMX3),
	NAMED(FI_ADDR_OPX),
	NAMED(FI_ADDR_CXI),
	NAMED(FI_ADDR_UCX),
	END,
};

const struct info_name info_names_threading[] = {
	NAMED(FI_THREAD_UNSPEC),
	NAMED(FI_THREAD_SAFE),
	NAMED(FI_THREAD_FID),
	NAMED(FI_THREAD_DOMAIN),
	NAMED(FI_THREAD_COMPLETION),
	NAMED(FI_THREAD_ENDPOINT),
	END,
};

const struct info_name info_names_progress[] = {
	NAMED(FI_PROGRESS_UNSPEC),
	NAMED(FI_PROGRESS_AUTO),
	NAMED(FI_PROGRESS_MANUAL),
	NAMED(FI_PROGRESS_CONTROL_UNIFIED),
	END,
};

const struct info_name info_names_resource_mgmt[] = {
	NAMED(FI_RM_UNSPEC),
	NAMED(FI_RM_DISABLED),
	NAMED(FI_RM_ENABLED),
	END,
};

const struct info_name info_names_av_type[] = {
	NAMED(FI_AV_UNSPEC),
	NAMED(FI_AV_MAP),
	NAMED(FI_AV_TABLE),
	END,
};

const char *info_name_of(const struct info_name *names, uint64_t value)
{
	for (; names->name; names++)
		if (names->value == value)
			return names->name;
	return "Unknown";
}

char *info_flags_print(char *buf, size_t len, const struct info_name *names, uint64_t flags)
{
	size_t used = 0;
	int n;

	buf[0] = '\0';
	for (; names->name; names++) {
		if (!names->value || (flags & names->value) != names->value)
			continue;
		n = snprintf(buf + used, len - used, "%s%s", used ? ", " : "", names->name);
		if (n < 0 || (size_t)n >= len - used)
			break;
		used += (size_t)n;
	}
	return buf;
}
