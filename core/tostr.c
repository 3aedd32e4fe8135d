/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_tostr and fi_tostr_r: attributes, flags and values as text. Called by programs such as
 * fi_info, on any thread.
 */
#include <inttypes.h>
#include <string.h>

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
#include "tostr_text.h"

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

static void put_av_attr(struct text *text, const struct fi_av_attr *attr)
{
	text_put(text, "fi_av_attr:\n");
	text_put_value_line(text, TAB, "type", info_names_av_type, attr->type);
	text_put_size(text, TAB, "count", attr->count);
	text_put_size(text, TAB, "ep_per_node", attr->ep_per_node);
	text_put_string(text, TAB "name", attr->name);
	text_put_flags_line(text, TAB, "flags", names_av_flags, attr->flags);
}

static void put_cq_attr(struct text *text, const struct fi_cq_attr *attr)
{
	text_put(text, "fi_cq_attr:\n");
	text_put_size(text, TAB, "size", attr->size);
	text_put_flags_line(text, TAB, "flags", names_cq_flags, attr->flags);
	text_put_value_line(text, TAB, "format", names_cq_format, attr->format);
	text_put_value_line(text, TAB, "wait_obj", names_wait_obj, attr->wait_obj);
	text_put(text, TAB "signaling_vector: %d\n", attr->signaling_vector);
	text_put_value_line(text, TAB, "wait_cond", names_cq_wait_cond, attr->wait_cond);
}

static void put_mr_attr(struct text *text, const struct fi_mr_attr *attr)
{
	text_put(text, "fi_mr_attr:\n");
	text_put_pointer(text, TAB "mr_iov", attr->mr_iov);
	text_put_size(text, TAB, "iov_count", attr->iov_count);
	text_put_flags_line(text, TAB, "access", names_mr_access, attr->access);
	text_put(text, TAB "offset: 0x%" PRIx64 "\n", attr->offset);
	text_put(text, TAB "requested_key: 0x%" PRIx64 "\n", attr->requested_key);
	text_put_pointer(text, TAB "context", attr->context);
	text_put_size(text, TAB, "auth_key_size", attr->auth_key_size);
	text_put_value_line(text, TAB, "iface", names_hmem, attr->iface);
}

static void put_cntr_attr(struct text *text, const struct fi_cntr_attr *attr)
{
	text_put(text, "fi_cntr_attr:\n");
	text_put_value_line(text, TAB, "events", names_cntr_events, attr->events);
	text_put_value_line(text, TAB, "wait_obj", names_wait_obj, attr->wait_obj);
	text_put(text, TAB "flags: 0x%" PRIx64 "\n", attr->flags);
}

static void put_cq_err_entry(struct text *text, const struct fi_cq_err_entry *entry)
{
	text_put(text, "fi_cq_err_entry:\n");
	text_put_pointer(text, TAB "op_context", entry->op_context);
	text_put(text, TAB "flags: 0x%" PRIx64 "\n", entry->flags);
	text_put_size(text, TAB, "len", entry->len);
	text_put_pointer(text, TAB "buf", entry->buf);
	text_put(text, TAB "data: %" PRIu64 "\n", entry->data);
	text_put(text, TAB "tag: 0x%" PRIx64 "\n", entry->tag);
	text_put_size(text, TAB, "olen", entry->olen);
	text_put(text, TAB "err: %d\n", entry->err);
	text_put(text, TAB "prov_errno: %d\n", entry->prov_errno);
	text_put_pointer(text, TAB "err_data", entry->err_data);
	text_put_size(text, TAB, "err_data_size", entry->err_data_size);
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
			text_put_flags(text, number_types[i].names, big);
		else
			text_put(text, "%s", info_name_of(number_types[i].names, big));
		return true;
	}
	return false;
}

/* An object, or a struct of a call that opens or reads one. Returns false for other types. */
static bool put_object(struct text *text, const void *data, enum fi_type type)
{
	switch (type) {
	case FI_TYPE_FID:
		text_put_fid(text, "fid", data);
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
		text_put(text, "%d.%d.%d (Weft " WEFT_VERSION ")", FI_MAJOR_VERSION,
			 FI_MINOR_VERSION, FI_REVISION_VERSION);
		break;
	case FI_TYPE_LOG_LEVEL:
		memcpy(&number, data, sizeof(number));
		text_put(text, "%s", log_level_name((enum fi_log_level)number));
		break;
	case FI_TYPE_LOG_SUBSYS:
		memcpy(&number, data, sizeof(number));
		text_put(text, "%s", log_subsys_name((enum fi_log_subsys)number));
		break;
	default:
		text_put(text, "Unknown type");
	}
}

CORE_EXPORT char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype)
{
	struct text text = { .buf = buf, .len = len };

	if (!data || !buf || !len)
		return NULL;
	buf[0] = '\0';
	if (!put_number(&text, data, datatype) && !text_put_info(&text, data, datatype) &&
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
