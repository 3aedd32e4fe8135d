/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The words of a script and of its transcript: names of the interface for numbers, and errors by
 * their names. Called by the verbs.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include "script.h"

#define NAMED(name)                   \
	{                             \
#name, (uint64_t)name \
	}

static const struct {
	const char *name;
	uint64_t value;
} names[] = {
	{ "max", UINT64_MAX },
	{ "max32", UINT32_MAX },
	/* capabilities and flags */
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
	NAMED(FI_TRANSMIT),
	NAMED(FI_REMOTE_READ),
	NAMED(FI_REMOTE_WRITE),
	NAMED(FI_MULTI_RECV),
	NAMED(FI_REMOTE_CQ_DATA),
	NAMED(FI_MORE),
	NAMED(FI_PEEK),
	NAMED(FI_TRIGGER),
	NAMED(FI_FENCE),
	NAMED(FI_COMPLETION),
	NAMED(FI_EVENT),
	NAMED(FI_INJECT),
	NAMED(FI_INJECT_COMPLETE),
	NAMED(FI_TRANSMIT_COMPLETE),
	NAMED(FI_DELIVERY_COMPLETE),
	NAMED(FI_AFFINITY),
	NAMED(FI_COMMIT_COMPLETE),
	NAMED(FI_MATCH_COMPLETE),
	NAMED(FI_PEER_TRANSFER),
	NAMED(FI_AV_USER_ID),
	NAMED(FI_PEER),
	NAMED(FI_XPU),
	NAMED(FI_TAGGED_DIRECTED_RECV),
	NAMED(FI_TAGGED_MULTI_RECV),
	NAMED(FI_HMEM),
	NAMED(FI_EXACT_DIRECTED_RECV),
	NAMED(FI_RMA_PMEM),
	NAMED(FI_SOURCE_ERR),
	NAMED(FI_LOCAL_COMM),
	NAMED(FI_REMOTE_COMM),
	NAMED(FI_SHARED_AV),
	NAMED(FI_PROV_ATTR_ONLY),
	NAMED(FI_NUMERICHOST),
	NAMED(FI_RMA_EVENT),
	NAMED(FI_SOURCE),
	NAMED(FI_NAMED_RX_CTX),
	NAMED(FI_DIRECTED_RECV),
	NAMED(FI_DISCARD),
	NAMED(FI_CLAIM),
	NAMED(FI_SELECTIVE_COMPLETION),
	NAMED(FI_SYMMETRIC),
	NAMED(FI_SYNC_ERR),
	NAMED(FI_FETCH_ATOMIC),
	NAMED(FI_COMPARE_ATOMIC),
	/* modes */
	NAMED(FI_CONTEXT),
	NAMED(FI_CONTEXT2),
	NAMED(FI_LOCAL_MR),
	NAMED(FI_RX_CQ_DATA),
	NAMED(FI_ASYNC_IOV),
	NAMED(FI_MSG_PREFIX),
	NAMED(FI_MR_UNSPEC),
	NAMED(FI_MR_BASIC),
	NAMED(FI_MR_SCALABLE),
	NAMED(FI_MR_LOCAL),
	NAMED(FI_MR_RAW),
	NAMED(FI_MR_VIRT_ADDR),
	NAMED(FI_MR_ALLOCATED),
	NAMED(FI_MR_PROV_KEY),
	NAMED(FI_MR_MMU_NOTIFY),
	NAMED(FI_MR_RMA_EVENT),
	NAMED(FI_MR_ENDPOINT),
	NAMED(FI_MR_HMEM),
	NAMED(FI_MR_COLLECTIVE),
	/* orders */
	NAMED(FI_ORDER_NONE),
	NAMED(FI_ORDER_RAR),
	NAMED(FI_ORDER_RAW),
	NAMED(FI_ORDER_RAS),
	NAMED(FI_ORDER_WAR),
	NAMED(FI_ORDER_WAW),
	NAMED(FI_ORDER_WAS),
	NAMED(FI_ORDER_SAR),
	NAMED(FI_ORDER_SAW),
	NAMED(FI_ORDER_SAS),
	NAMED(FI_ORDER_STRICT),
	NAMED(FI_ORDER_DATA),
	NAMED(FI_ORDER_RMA_RAW),
	NAMED(FI_ORDER_RMA_WAW),
	NAMED(FI_ORDER_ATOMIC_RAW),
	NAMED(FI_ORDER_ATOMIC_WAW),
	/* enumerations of struct fi_info */
	NAMED(FI_FORMAT_UNSPEC),
	NAMED(FI_SOCKADDR),
	NAMED(FI_SOCKADDR_IN),
	NAMED(FI_SOCKADDR_IN6),
	NAMED(FI_SOCKADDR_IB),
	NAMED(FI_SOCKADDR_IP),
	NAMED(FI_ADDR_STR),
	NAMED(FI_AV_UNSPEC),
	NAMED(FI_AV_MAP),
	NAMED(FI_AV_TABLE),
	NAMED(FI_PROGRESS_UNSPEC),
	NAMED(FI_PROGRESS_AUTO),
	NAMED(FI_PROGRESS_MANUAL),
	NAMED(FI_PROGRESS_CONTROL_UNIFIED),
	NAMED(FI_THREAD_UNSPEC),
	NAMED(FI_THREAD_SAFE),
	NAMED(FI_THREAD_FID),
	NAMED(FI_THREAD_DOMAIN),
	NAMED(FI_THREAD_COMPLETION),
	NAMED(FI_THREAD_ENDPOINT),
	NAMED(FI_RM_UNSPEC),
	NAMED(FI_RM_DISABLED),
	NAMED(FI_RM_ENABLED),
	NAMED(FI_EP_UNSPEC),
	NAMED(FI_EP_MSG),
	NAMED(FI_EP_DGRAM),
	NAMED(FI_EP_RDM),
	NAMED(FI_SHARED_CONTEXT),
	NAMED(FI_PROTO_UDP),
	NAMED(FI_PROTO_SOCK_TCP),
	NAMED(FI_PROTO_RXM),
	NAMED(FI_PROTO_RXD),
	NAMED(FI_PROTO_RXM_TCP),
	NAMED(FI_PROTO_SHM),
	NAMED(FI_PROTO_XNET),
	NAMED(FI_PROTO_SM2),
	NAMED(FI_PROTO_LNX),
	NAMED(FI_TAG_MPI),
	NAMED(FI_TAG_CCL),
	NAMED(FI_TC_BEST_EFFORT),
	NAMED(FI_TC_LOW_LATENCY),
	NAMED(FI_TC_BULK_DATA),
	NAMED(FI_ADDR_UNSPEC),
	/* queues, counters, options */
	NAMED(FI_CQ_FORMAT_UNSPEC),
	NAMED(FI_CQ_FORMAT_CONTEXT),
	NAMED(FI_CQ_FORMAT_MSG),
	NAMED(FI_CQ_FORMAT_DATA),
	NAMED(FI_CQ_FORMAT_TAGGED),
	NAMED(FI_WAIT_NONE),
	NAMED(FI_WAIT_UNSPEC),
	NAMED(FI_WAIT_SET),
	NAMED(FI_WAIT_FD),
	NAMED(FI_WAIT_MUTEX_COND),
	NAMED(FI_WAIT_YIELD),
	NAMED(FI_WAIT_POLLFD),
	NAMED(FI_CNTR_EVENTS_COMP),
	NAMED(FI_CNTR_EVENTS_BYTES),
	NAMED(FI_NOTIFY),
	NAMED(FI_GETFIDFLAG),
	NAMED(FI_SETFIDFLAG),
	NAMED(FI_GETOPSFLAG),
	NAMED(FI_SETOPSFLAG),
	NAMED(FI_GETWAIT),
	NAMED(FI_GETWAITOBJ),
	NAMED(FI_ENABLE),
	NAMED(FI_BACKLOG),
	NAMED(FI_FLUSH_WORK),
	NAMED(FI_REFRESH),
	NAMED(FI_OPT_ENDPOINT),
	NAMED(FI_OPT_MIN_MULTI_RECV),
	NAMED(FI_OPT_CM_DATA_SIZE),
	NAMED(FI_OPT_BUFFERED_MIN),
	NAMED(FI_OPT_BUFFERED_LIMIT),
	NAMED(FI_OPT_SEND_BUF_SIZE),
	NAMED(FI_OPT_RECV_BUF_SIZE),
	NAMED(FI_OPT_TX_SIZE),
	NAMED(FI_OPT_RX_SIZE),
	NAMED(FI_OPT_FI_HMEM_P2P),
	NAMED(FI_OPT_CUDA_API_PERMITTED),
	NAMED(FI_OPT_SHARED_MEMORY_PERMITTED),
	NAMED(FI_OPT_MAX_MSG_SIZE),
	NAMED(FI_OPT_INJECT_MSG_SIZE),
	/* atomics */
	NAMED(FI_INT8),
	NAMED(FI_UINT8),
	NAMED(FI_INT16),
	NAMED(FI_INT32),
	NAMED(FI_UINT32),
	NAMED(FI_INT64),
	NAMED(FI_UINT64),
	NAMED(FI_FLOAT),
	NAMED(FI_DOUBLE),
	NAMED(FI_LONG_DOUBLE),
	NAMED(FI_DOUBLE_COMPLEX),
	NAMED(FI_MIN),
	NAMED(FI_MAX),
	NAMED(FI_SUM),
	NAMED(FI_PROD),
	NAMED(FI_LOR),
	NAMED(FI_LAND),
	NAMED(FI_BOR),
	NAMED(FI_BAND),
	NAMED(FI_LXOR),
	NAMED(FI_BXOR),
	NAMED(FI_ATOMIC_READ),
	NAMED(FI_ATOMIC_WRITE),
	NAMED(FI_CSWAP),
	NAMED(FI_CSWAP_NE),
	NAMED(FI_CSWAP_LE),
	NAMED(FI_MSWAP),
};

const char *word_text(const struct call *c, const char *key)
{
	size_t len = strlen(key);

	for (int i = 1; i < c->cnt; i++)
		if (strncmp(c->words[i], key, len) == 0 && c->words[i][len] == '=')
			return c->words[i] + len + 1;
	return NULL;
}

static uint64_t named(const char *text, size_t len)
{
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strlen(names[i].name) == len && strncmp(names[i].name, text, len) == 0)
			return names[i].value;
	fprintf(stderr, "act: no number is called %.*s\n", (int)len, text);
	_exit(2);
}

uint64_t word_number(const char *text)
{
	uint64_t value = 0;
	size_t len;

	for (;; text += len + 1) {
		len = strcspn(text, "|");
		if (*text >= '0' && *text <= '9')
			value |= strtoull(text, NULL, 0);
		else if (len)
			value |= named(text, len);
		if (!text[len])
			return value;
	}
}

uint64_t word_value(const struct call *c, const char *key, uint64_t otherwise)
{
	const char *text = word_text(c, key);

	return text ? word_number(text) : otherwise;
}

const char *word_error(long result)
{
	static const char *const own[] = {
		"EOTHER",   "ETOOSMALL", "EOPBADSTATE", "EAVAIL",	 "EBADFLAGS", "ENOEQ",
		"EDOMAIN",  "ENOCQ",	 "ECRC",	"ETRUNC",	 "ENOKEY",    "ENOAV",
		"EOVERRUN", "ENORX",	 "ENOMR",	"EFIREWALLADDR",
	};
	static char number[32];
	const char *name = NULL;

	if (result == RESULT_ABSENT)
		return "absent";
	if (result == RESULT_WRONG)
		return "wrong";
	if (result < 0 && -result < FI_ERRNO_OFFSET)
		name = strerrorname_np((int)-result);
	else if (result < 0 && -result - FI_ERRNO_OFFSET < (long)COUNT_OF(own))
		name = own[-result - FI_ERRNO_OFFSET];
	if (name)
		snprintf(number, sizeof(number), "-%s", name);
	else
		snprintf(number, sizeof(number), "%ld", result);
	return number;
}

void say(struct call *c, const char *format, ...)
{
	size_t room = sizeof(c->answer) - c->answer_len;
	va_list list;
	int len;

	va_start(list, format);
	len = vsnprintf(c->answer + c->answer_len, room, format, list);
	va_end(list);
	if (len > 0)
		c->answer_len += (size_t)len < room ? (size_t)len : room - 1;
}
