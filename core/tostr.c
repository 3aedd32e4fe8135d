/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_tostr and fi_tostr_r: attributes, flags and values as text. Called by programs such as
 * fi_info, on any thread.
 *
 * The text is YAML as fi_info(1) has always printed it: keys named like the fields, four
 * spaces per level, flags as '[ A, B ]'. Programs and tests parse it.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_trigger.h>

#include "export.h"
#include "log.h"
#include "names.h"

#define TAB "    "

/* The caller's buffer. Text is truncated to fit and always terminated. */
struct text {
	char *buf;
	size_t len;
	size_t used;
};

static void put(struct text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *text, const char *fmt, ...)
{
	size_t room = text->len - text->used;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text->buf + text->used, room, fmt, args);
	va_end(args);
	if (n > 0)
		text->used += (size_t)n < room ? (size_t)n : room - 1;
}

static void put_string(struct text *text, const char *key, const char *value)
{
	put(text, "%s: %s\n", key, value ? value : "(null)");
}

/* C libraries differ in what %p prints for NULL. */
static void put_pointer(struct text *text, const char *key, const void *value)
{
	if (value)
		put(text, "%s: %p\n", key, value);
	else
		put(text, "%s: (nil)\n", key);
}

static void put_flags(struct text *text, const struct info_name *names, uint64_t flags)
{
	info_flags_print(text->buf + text->used, text->len - text->used, names, flags);
	text->used += strlen(text->buf + text->used);
}

static void put_flags_line(struct text *text, const char *prefix, const char *key,
			   const struct info_name *names, uint64_t flags)
{
	put(text, "%s%s: [ ", prefix, key);
	put_flags(text, names, flags);
	put(text, " ]\n");
}

static void put_value_line(struct text *text, const char *prefix, const char *key,
			   const struct info_name *names, uint64_t value)
{
	put(text, "%s%s: %s\n", prefix, key, info_name_of(names, value));
}

#define NAMED(value)          \
	{                     \
		value, #value \
	}
#define END             \
	{               \
		0, NULL \
	}

static const struct info_name names_datatype[] = {
	NAMED(FI_INT8),		 NAMED(FI_UINT8),
	NAMED(FI_INT16),	 NAMED(FI_UINT16),
	NAMED(FI_INT32),	 NAMED(FI_UINT32),
	NAMED(FI_INT64),	 NAMED(FI_UINT64),
	NAMED(FI_INT128),	 NAMED(FI_UINT128),
	NAMED(FI_FLOAT),	 NAMED(FI_DOUBLE),
	NAMED(FI_FLOAT_COMPLEX), NAMED(FI_DOUBLE_COMPLEX),
	NAMED(FI_LONG_DOUBLE),	 NAMED(FI_LONG_DOUBLE_COMPLEX),
	NAMED(FI_FLOAT16),	 NAMED(FI_BFLOAT16),
	NAMED(FI_FLOAT8_E4M3),	 NAMED(FI_FLOAT8_E5M2),
	NAMED(FI_VOID),		 END,
};

static const struct info_name names_op[] = {
	NAMED(FI_MIN),	       NAMED(FI_MAX),
	NAMED(FI_SUM),	       NAMED(FI_PROD),
	NAMED(FI_LOR),	       NAMED(FI_LAND),
	NAMED(FI_BOR),	       NAMED(FI_BAND),
	NAMED(FI_LXOR),	       NAMED(FI_BXOR),
	NAMED(FI_ATOMIC_READ), NAMED(FI_ATOMIC_WRITE),
	NAMED(FI_CSWAP),       NAMED(FI_CSWAP_NE),
	NAMED(FI_CSWAP_LE),    NAMED(FI_CSWAP_LT),
	NAMED(FI_CSWAP_GE),    NAMED(FI_CSWAP_GT),
	NAMED(FI_MSWAP),       NAMED(FI_DIFF),
	NAMED(FI_NOOP),	       END,
};

static const struct info_name names_collective[] = {
	NAMED(FI_BARRIER),   NAMED(FI_BROADCAST),
	NAMED(FI_ALLTOALL),  NAMED(FI_ALLREDUCE),
	NAMED(FI_ALLGATHER), NAMED(FI_REDUCE_SCATTER),
	NAMED(FI_REDUCE),    NAMED(FI_SCATTER),
	NAMED(FI_GATHER),    END,
};

static const struct info_name names_eq_event[] = {
	NAMED(FI_NOTIFY),	 NAMED(FI_CONNREQ),
	NAMED(FI_CONNECTED),	 NAMED(FI_SHUTDOWN),
	NAMED(FI_MR_COMPLETE),	 NAMED(FI_AV_COMPLETE),
	NAMED(FI_JOIN_COMPLETE), END,
};

static const struct info_name names_cq_event[] = {
	NAMED(FI_SEND),
	NAMED(FI_RECV),
	NAMED(FI_RMA),
	NAMED(FI_ATOMIC),
	NAMED(FI_MSG),
	NAMED(FI_TAGGED),
	NAMED(FI_READ),
	NAMED(FI_WRITE),
	NAMED(FI_REMOTE_READ),
	NAMED(FI_REMOTE_WRITE),
	NAMED(FI_REMOTE_CQ_DATA),
	NAMED(FI_MULTI_RECV),
	NAMED(FI_MORE),
	NAMED(FI_CLAIM),
	END,
};

static const struct info_name names_op_type[] = {
	NAMED(FI_OP_RECV),     NAMED(FI_OP_SEND),	  NAMED(FI_OP_TRECV),
	NAMED(FI_OP_TSEND),    NAMED(FI_OP_READ),	  NAMED(FI_OP_WRITE),
	NAMED(FI_OP_ATOMIC),   NAMED(FI_OP_FETCH_ATOMIC), NAMED(FI_OP_COMPARE_ATOMIC),
	NAMED(FI_OP_CNTR_SET), NAMED(FI_OP_CNTR_ADD),	  END,
};

static const struct info_name names_hmem[] = {
	NAMED(FI_HMEM_SYSTEM),
	NAMED(FI_HMEM_CUDA),
	NAMED(FI_HMEM_ROCR),
	NAMED(FI_HMEM_ZE),
	NAMED(FI_HMEM_NEURON),
	NAMED(FI_HMEM_SYNAPSEAI),
	END,
};

static const struct info_name names_cq_format[] = {
	NAMED(FI_CQ_FORMAT_UNSPEC), NAMED(FI_CQ_FORMAT_CONTEXT), NAMED(FI_CQ_FORMAT_MSG),
	NAMED(FI_CQ_FORMAT_DATA),   NAMED(FI_CQ_FORMAT_TAGGED),	 END,
};

static const struct info_name names_wait_obj[] = {
	NAMED(FI_WAIT_NONE),	   NAMED(FI_WAIT_UNSPEC),
	NAMED(FI_WAIT_SET),	   NAMED(FI_WAIT_FD),
	NAMED(FI_WAIT_MUTEX_COND), NAMED(FI_WAIT_YIELD),
	NAMED(FI_WAIT_POLLFD),	   END,
};

static const struct info_name names_cq_wait_cond[] = {
	NAMED(FI_CQ_COND_NONE),
	NAMED(FI_CQ_COND_THRESHOLD),
	END,
};

static const struct info_name names_cntr_events[] = {
	NAMED(FI_CNTR_EVENTS_COMP),
	NAMED(FI_CNTR_EVENTS_BYTES),
	END,
};

static const struct info_name names_av_flags[] = {
	NAMED(FI_EVENT),      NAMED(FI_READ), NAMED(FI_SYMMETRIC),
	NAMED(FI_AV_USER_ID), NAMED(FI_PEER), END,
};

static const struct info_name names_cq_flags[] = {
	NAMED(FI_AFFINITY),
	NAMED(FI_PEER),
	END,
};

static const struct info_name names_mr_access[] = {
	NAMED(FI_RECV),	       NAMED(FI_SEND),	       NAMED(FI_READ),	     NAMED(FI_WRITE),
	NAMED(FI_REMOTE_READ), NAMED(FI_REMOTE_WRITE), NAMED(FI_COLLECTIVE), END,
};

static void put_hex(struct text *text, const void *addr, size_t len)
{
	const uint8_t *byte = addr;
	size_t i;

	for (i = 0; i < len; i++)
		put(text, "%s%02x", i ? "" : "0x", byte[i]);
}

static void put_in(struct text *text, const void *addr, size_t len)
{
	struct sockaddr_in sin;
	char ip[INET_ADDRSTRLEN];

	if (len < sizeof(sin)) {
		put_hex(text, addr, len);
		return;
	}
	memcpy(&sin, addr, sizeof(sin));
	inet_ntop(AF_INET, &sin.sin_addr, ip, sizeof(ip));
	put(text, "fi_sockaddr_in://%s:%u", ip, ntohs(sin.sin_port));
}

static void put_in6(struct text *text, const void *addr, size_t len)
{
	struct sockaddr_in6 sin6;
	char ip[INET6_ADDRSTRLEN];

	if (len < sizeof(sin6)) {
		put_hex(text, addr, len);
		return;
	}
	memcpy(&sin6, addr, sizeof(sin6));
	inet_ntop(AF_INET6, &sin6.sin6_addr, ip, sizeof(ip));
	put(text, "fi_sockaddr_in6://[%s]:%u", ip, ntohs(sin6.sin6_port));
}

/* An address of a format that only its provider knows is shown byte by byte. */
static void put_addr(struct text *text, uint32_t format, const void *addr, size_t len)
{
	sa_family_t family = AF_UNSPEC;

	if (!addr) {
		put(text, "(null)");
		return;
	}
	if (len >= sizeof(family))
		memcpy(&family, addr, sizeof(family));
	if (format == FI_SOCKADDR_IN)
		family = AF_INET;
	else if (format == FI_SOCKADDR_IN6)
		family = AF_INET6;
	else if (format != FI_SOCKADDR && format != FI_SOCKADDR_IP)
		family = AF_UNSPEC;

	if (format == FI_ADDR_STR)
		put(text, "%.*s", (int)strnlen(addr, len), (const char *)addr);
	else if (family == AF_INET)
		put_in(text, addr, len);
	else if (family == AF_INET6)
		put_in6(text, addr, len);
	else
		put_hex(text, addr, len);
}

/* Prints an object by its own tostr operation, if it has one. */
static void put_fid(struct text *text, const char *key, const struct fid *fid)
{
	if (!fid || !FI_CHECK_OP(fid->ops, struct fi_ops, tostr)) {
		put_pointer(text, key, fid);
		return;
	}
	fid->ops->tostr(fid, text->buf, text->len);
	text->used = strnlen(text->buf, text->len);
	if (text->used == text->len)
		text->buf[--text->used] = '\0';
}

static bool put_head(struct text *text, const char *prefix, const char *name, const void *attr)
{
	put(text, attr ? "%s%s:\n" : "%s%s: (null)\n", prefix, name);
	return attr;
}

static void put_size(struct text *text, const char *prefix, const char *key, size_t value)
{
	put(text, "%s%s: %zu\n", prefix, key, value);
}

static void put_tx_attr(struct text *text, const struct fi_tx_attr *attr, const char *prefix,
			const char *in)
{
	if (!put_head(text, prefix, "fi_tx_attr", attr))
		return;
	put_flags_line(text, in, "caps", info_names_caps, attr->caps);
	put_flags_line(text, in, "mode", info_names_mode, attr->mode);
	put_flags_line(text, in, "op_flags", info_names_op_flags, attr->op_flags);
	put_flags_line(text, in, "msg_order", info_names_msg_order, attr->msg_order);
	put_size(text, in, "inject_size", attr->inject_size);
	put_size(text, in, "size", attr->size);
	put_size(text, in, "iov_limit", attr->iov_limit);
	put_size(text, in, "rma_iov_limit", attr->rma_iov_limit);
	put(text, "%stclass: 0x%x\n", in, attr->tclass);
}

static void put_rx_attr(struct text *text, const struct fi_rx_attr *attr, const char *prefix,
			const char *in)
{
	if (!put_head(text, prefix, "fi_rx_attr", attr))
		return;
	put_flags_line(text, in, "caps", info_names_caps, attr->caps);
	put_flags_line(text, in, "mode", info_names_mode, attr->mode);
	put_flags_line(text, in, "op_flags", info_names_op_flags, attr->op_flags);
	put_flags_line(text, in, "msg_order", info_names_msg_order, attr->msg_order);
	put_size(text, in, "size", attr->size);
	put_size(text, in, "iov_limit", attr->iov_limit);
}

static void put_ctx_cnt(struct text *text, const char *prefix, const char *key, size_t cnt)
{
	if (cnt == FI_SHARED_CONTEXT)
		put(text, "%s%s: FI_SHARED_CONTEXT\n", prefix, key);
	else
		put_size(text, prefix, key, cnt);
}

static void put_ep_attr(struct text *text, const struct fi_ep_attr *attr, const char *prefix,
			const char *in)
{
	if (!put_head(text, prefix, "fi_ep_attr", attr))
		return;
	put_value_line(text, in, "type", info_names_ep_type, attr->type);
	put_value_line(text, in, "protocol", info_names_protocol, attr->protocol);
	put(text, "%sprotocol_version: %u\n", in, attr->protocol_version);
	put_size(text, in, "max_msg_size", attr->max_msg_size);
	put_size(text, in, "msg_prefix_size", attr->msg_prefix_size);
	put_size(text, in, "max_order_raw_size", attr->max_order_raw_size);
	put_size(text, in, "max_order_war_size", attr->max_order_war_size);
	put_size(text, in, "max_order_waw_size", attr->max_order_waw_size);
	put(text, "%smem_tag_format: 0x%016" PRIx64 "\n", in, attr->mem_tag_format);
	put_ctx_cnt(text, in, "tx_ctx_cnt", attr->tx_ctx_cnt);
	put_ctx_cnt(text, in, "rx_ctx_cnt", attr->rx_ctx_cnt);
	put_size(text, in, "auth_key_size", attr->auth_key_size);
	put(text, "%s", in);
	put_pointer(text, "xpu_ctx", attr->xpu_ctx);
}

static void put_domain_attr(struct text *text, const struct fi_domain_attr *attr,
			    const char *prefix, const char *in)
{
	if (!put_head(text, prefix, "fi_domain_attr", attr))
		return;
	put(text, "%s", in);
	put_pointer(text, "domain", attr->domain);
	put(text, "%s", in);
	put_string(text, "name", attr->name);
	put_value_line(text, in, "threading", info_names_threading, attr->threading);
	put_value_line(text, in, "progress", info_names_progress, attr->progress);
	put_value_line(text, in, "resource_mgmt", info_names_resource_mgmt, attr->resource_mgmt);
	put_value_line(text, in, "av_type", info_names_av_type, attr->av_type);
	put_flags_line(text, in, "mr_mode", info_names_mr_mode, (unsigned int)attr->mr_mode);
	put_size(text, in, "mr_key_size", attr->mr_key_size);
	put_size(text, in, "cq_data_size", attr->cq_data_size);
	put_size(text, in, "cq_cnt", attr->cq_cnt);
	put_size(text, in, "ep_cnt", attr->ep_cnt);
	put_size(text, in, "tx_ctx_cnt", attr->tx_ctx_cnt);
	put_size(text, in, "rx_ctx_cnt", attr->rx_ctx_cnt);
	put_size(text, in, "max_ep_tx_ctx", attr->max_ep_tx_ctx);
	put_size(text, in, "max_ep_rx_ctx", attr->max_ep_rx_ctx);
	put_size(text, in, "max_ep_stx_ctx", attr->max_ep_stx_ctx);
	put_size(text, in, "max_ep_srx_ctx", attr->max_ep_srx_ctx);
	put_size(text, in, "cntr_cnt", attr->cntr_cnt);
	put_size(text, in, "mr_iov_limit", attr->mr_iov_limit);
	put_flags_line(text, in, "caps", info_names_caps, attr->caps);
	put_flags_line(text, in, "mode", info_names_mode, attr->mode);
	put_size(text, in, "auth_key_size", attr->auth_key_size);
	put_size(text, in, "max_err_data", attr->max_err_data);
	put_size(text, in, "mr_cnt", attr->mr_cnt);
	put(text, "%stclass: 0x%x\n", in, attr->tclass);
	put_size(text, in, "max_ep_auth_key", attr->max_ep_auth_key);
	put(text, "%smax_group_id: %u\n", in, attr->max_group_id);
	put(text, "%smax_cntr_value: %" PRIu64 "\n", in, attr->max_cntr_value);
	put(text, "%smax_err_cntr_value: %" PRIu64 "\n", in, attr->max_err_cntr_value);
	put_size(text, in, "max_xpu_ctx_cnt", attr->max_xpu_ctx_cnt);
}

static void put_fabric_attr(struct text *text, const struct fi_fabric_attr *attr,
			    const char *prefix, const char *in)
{
	if (!put_head(text, prefix, "fi_fabric_attr", attr))
		return;
	put(text, "%s", in);
	put_string(text, "name", attr->name);
	put(text, "%s", in);
	put_string(text, "prov_name", attr->prov_name);
	put(text, "%sprov_version: %u.%u\n", in, FI_MAJOR(attr->prov_version),
	    FI_MINOR(attr->prov_version));
	put(text, "%sapi_version: %u.%u\n", in, FI_MAJOR(attr->api_version),
	    FI_MINOR(attr->api_version));
}

static void put_info(struct text *text, const struct fi_info *info)
{
	put(text, "fi_info:\n");
	put_flags_line(text, TAB, "caps", info_names_caps, info->caps);
	put_flags_line(text, TAB, "mode", info_names_mode, info->mode);
	put_value_line(text, TAB, "addr_format", info_names_addr_format, info->addr_format);
	put_size(text, TAB, "src_addrlen", info->src_addrlen);
	put_size(text, TAB, "dest_addrlen", info->dest_addrlen);
	put(text, TAB "src_addr: ");
	put_addr(text, info->addr_format, info->src_addr, info->src_addrlen);
	put(text, "\n" TAB "dest_addr: ");
	put_addr(text, info->addr_format, info->dest_addr, info->dest_addrlen);
	put(text, "\n");
	put_fid(text, TAB "handle", info->handle);
	put_tx_attr(text, info->tx_attr, TAB, TAB TAB);
	put_rx_attr(text, info->rx_attr, TAB, TAB TAB);
	put_ep_attr(text, info->ep_attr, TAB, TAB TAB);
	put_domain_attr(text, info->domain_attr, TAB, TAB TAB);
	put_fabric_attr(text, info->fabric_attr, TAB, TAB TAB);
	put_fid(text, TAB "nic", info->nic ? &info->nic->fid : NULL);
}

static void put_av_attr(struct text *text, const struct fi_av_attr *attr)
{
	put(text, "fi_av_attr:\n");
	put_value_line(text, TAB, "type", info_names_av_type, attr->type);
	put_size(text, TAB, "count", attr->count);
	put_size(text, TAB, "ep_per_node", attr->ep_per_node);
	put_string(text, TAB "name", attr->name);
	put_flags_line(text, TAB, "flags", names_av_flags, attr->flags);
}

static void put_cq_attr(struct text *text, const struct fi_cq_attr *attr)
{
	put(text, "fi_cq_attr:\n");
	put_size(text, TAB, "size", attr->size);
	put_flags_line(text, TAB, "flags", names_cq_flags, attr->flags);
	put_value_line(text, TAB, "format", names_cq_format, attr->format);
	put_value_line(text, TAB, "wait_obj", names_wait_obj, attr->wait_obj);
	put(text, TAB "signaling_vector: %d\n", attr->signaling_vector);
	put_value_line(text, TAB, "wait_cond", names_cq_wait_cond, attr->wait_cond);
}

static void put_mr_attr(struct text *text, const struct fi_mr_attr *attr)
{
	put(text, "fi_mr_attr:\n");
	put_pointer(text, TAB "mr_iov", attr->mr_iov);
	put_size(text, TAB, "iov_count", attr->iov_count);
	put_flags_line(text, TAB, "access", names_mr_access, attr->access);
	put(text, TAB "offset: 0x%" PRIx64 "\n", attr->offset);
	put(text, TAB "requested_key: 0x%" PRIx64 "\n", attr->requested_key);
	put_pointer(text, TAB "context", attr->context);
	put_size(text, TAB, "auth_key_size", attr->auth_key_size);
	put_value_line(text, TAB, "iface", names_hmem, attr->iface);
}

static void put_cntr_attr(struct text *text, const struct fi_cntr_attr *attr)
{
	put(text, "fi_cntr_attr:\n");
	put_value_line(text, TAB, "events", names_cntr_events, attr->events);
	put_value_line(text, TAB, "wait_obj", names_wait_obj, attr->wait_obj);
	put(text, TAB "flags: 0x%" PRIx64 "\n", attr->flags);
}

static void put_cq_err_entry(struct text *text, const struct fi_cq_err_entry *entry)
{
	put(text, "fi_cq_err_entry:\n");
	put_pointer(text, TAB "op_context", entry->op_context);
	put(text, TAB "flags: 0x%" PRIx64 "\n", entry->flags);
	put_size(text, TAB, "len", entry->len);
	put_pointer(text, TAB "buf", entry->buf);
	put(text, TAB "data: %" PRIu64 "\n", entry->data);
	put(text, TAB "tag: 0x%" PRIx64 "\n", entry->tag);
	put_size(text, TAB, "olen", entry->olen);
	put(text, TAB "err: %d\n", entry->err);
	put(text, TAB "prov_errno: %d\n", entry->prov_errno);
	put_pointer(text, TAB "err_data", entry->err_data);
	put_size(text, TAB, "err_data_size", entry->err_data_size);
}

/* Types that are one number with names. */
static const struct {
	enum fi_type type;
	size_t size;
	bool flags;
	const struct info_name *names;
} number_types[] = {
	{ FI_TYPE_EP_TYPE, sizeof(int), false, info_names_ep_type },
	{ FI_TYPE_CAPS, sizeof(uint64_t), true, info_names_caps },
	{ FI_TYPE_OP_FLAGS, sizeof(uint64_t), true, info_names_op_flags },
	{ FI_TYPE_ADDR_FORMAT, sizeof(uint32_t), false, info_names_addr_format },
	{ FI_TYPE_THREADING, sizeof(int), false, info_names_threading },
	{ FI_TYPE_PROGRESS, sizeof(int), false, info_names_progress },
	{ FI_TYPE_PROTOCOL, sizeof(uint32_t), false, info_names_protocol },
	{ FI_TYPE_MSG_ORDER, sizeof(uint64_t), true, info_names_msg_order },
	{ FI_TYPE_MODE, sizeof(uint64_t), true, info_names_mode },
	{ FI_TYPE_AV_TYPE, sizeof(int), false, info_names_av_type },
	{ FI_TYPE_ATOMIC_TYPE, sizeof(int), false, names_datatype },
	{ FI_TYPE_ATOMIC_OP, sizeof(int), false, names_op },
	{ FI_TYPE_EQ_EVENT, sizeof(int), false, names_eq_event },
	{ FI_TYPE_CQ_EVENT_FLAGS, sizeof(uint64_t), true, names_cq_event },
	{ FI_TYPE_MR_MODE, sizeof(int), true, info_names_mr_mode },
	{ FI_TYPE_OP_TYPE, sizeof(int), false, names_op_type },
	{ FI_TYPE_COLLECTIVE_OP, sizeof(int), false, names_collective },
	{ FI_TYPE_HMEM_IFACE, sizeof(int), false, names_hmem },
	{ FI_TYPE_CQ_FORMAT, sizeof(int), false, names_cq_format },
	{ FI_TYPE_CQ_WAIT_COND, sizeof(int), false, names_cq_wait_cond },
	{ FI_TYPE_WAIT_OBJ, sizeof(int), false, names_wait_obj },
};

static bool put_number(struct text *text, const void *data, enum fi_type type)
{
	uint64_t big = 0;
	uint32_t small;
	size_t i;

	for (i = 0; i < sizeof(number_types) / sizeof(number_types[0]); i++) {
		if (number_types[i].type != type)
			continue;
		if (number_types[i].size == sizeof(small)) {
			memcpy(&small, data, sizeof(small));
			big = small;
		} else {
			memcpy(&big, data, sizeof(big));
		}
		if (number_types[i].flags)
			put_flags(text, number_types[i].names, big);
		else
			put(text, "%s", info_name_of(number_types[i].names, big));
		return true;
	}
	return false;
}

/* An fi_info or one of the structs in it. Returns false for other types. */
static bool put_info_part(struct text *text, const void *data, enum fi_type type)
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

/* An object, or a struct of a call that opens or reads one. Returns false for other types. */
static bool put_object(struct text *text, const void *data, enum fi_type type)
{
	switch (type) {
	case FI_TYPE_FID:
		put_fid(text, "fid", data);
		return true;
	case FI_TYPE_AV_ATTR:
		put_av_attr(text, data);
		return true;
	case FI_TYPE_CQ_ATTR:
		put_cq_attr(text, data);
		return true;
	case FI_TYPE_MR_ATTR:
		put_mr_attr(text, data);
		return true;
	case FI_TYPE_CNTR_ATTR:
		put_cntr_attr(text, data);
		return true;
	case FI_TYPE_CQ_ERR_ENTRY:
		put_cq_err_entry(text, data);
		return true;
	default:
		return false;
	}
}

/* Something of the library itself. */
static void put_library(struct text *text, const void *data, enum fi_type type)
{
	int number;

	switch (type) {
	case FI_TYPE_VERSION:
		put(text, "%d.%d.%d (Weft " WEFT_VERSION ")", FI_MAJOR_VERSION,
		    FI_MINOR_VERSION, FI_REVISION_VERSION);
		break;
	case FI_TYPE_LOG_LEVEL:
		memcpy(&number, data, sizeof(number));
		put(text, "%s", log_level_name((enum fi_log_level)number));
		break;
	case FI_TYPE_LOG_SUBSYS:
		memcpy(&number, data, sizeof(number));
		put(text, "%s", log_subsys_name((enum fi_log_subsys)number));
		break;
	default:
		put(text, "Unknown type");
	}
}

CORE_EXPORT char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype)
{
	struct text text = { .buf = buf, .len = len };

	if (!data || !buf || !len)
		return NULL;
	buf[0] = '\0';
	if (!put_number(&text, data, datatype) && !put_info_part(&text, data, datatype) &&
	    !put_object(&text, data, datatype))
		put_library(&text, data, datatype);
	return buf;
}

/* One buffer per thread, overwritten by the next call. */
CORE_EXPORT char *fi_tostr(const void *data, enum fi_type datatype)
{
	static _Thread_local char buf[8192];

	return fi_tostr_r(buf, sizeof(buf), data, datatype);
}
