/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Log lines of calls that are refused because the program made a mistake. Any thread. */
#include <rdma/fi_errno.h>
#include "refuse.h"

int engine_refuse(const struct engine_family *family, enum fi_log_subsys subsys, int err,
		  const char *call, const char *why)
{
	FI_WARN(family->provider, subsys, "%s refused (%s): %s\n", call, fi_strerror(-err), why);
	return err;
}

int engine_refuse_value(const struct engine_family *family, enum fi_log_subsys subsys, int err,
			const char *call, const char *why, uint64_t value)
{
	FI_WARN(family->provider, subsys, "%s refused (%s), given %#llx: %s\n", call,
		fi_strerror(-err), (unsigned long long)value, why);
	return err;
}

/* Returns the usual cause of an error of a data call, or NULL if the program made no mistake. */
static const char *engine_call_why(ssize_t err)
{
	switch (-err) {
	case FI_EINVAL:
		return "no such peer in the address vector, a NULL buffer that has a length, a list without "
		       "entries or with too many (iov_limit), or lengths here and there that differ";
	case FI_EBADFLAGS:
		return "flags that this call does not accept; see its man page";
	case FI_EMSGSIZE:
		return "more than max_msg_size, or than inject_size for injected data";
	case FI_ENOSYS:
		return "not among the capabilities that the endpoint or context was opened with; ask for "
		       "them in fi_info.caps, tx_attr.caps and rx_attr.caps";
	case FI_EOPBADSTATE:
		return "not enabled (fi_enable comes first), of type FI_EP_MSG and not connected, or opened "
		       "by the process that this one is a fork of";
	case FI_ENOCQ:
		return "no completion queue and no counter is bound for that direction; bind one of them";
	case FI_EOPNOTSUPP:
		return "no such operation on that type; fi_query_atomic reports the valid ones";
	default:
		return NULL;
	}
}

ssize_t engine_refuse_call(const struct engine_ctx *ctx, const char *call, ssize_t err)
{
	const char *why = engine_call_why(err);

	if (why)
		engine_refuse(ctx->domain->family, FI_LOG_EP_DATA, (int)err, call, why);
	return err;
}
