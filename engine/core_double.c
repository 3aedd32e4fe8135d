/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions of the core that the engine calls, for unit tests of engine/: nothing is set, and
 * nothing is logged.
 */
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include "core_double.h"

_Atomic int core_warnings;

int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	core_warnings += level == FI_LOG_WARN;
	return 0;
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *fmt, ...)
{
}

int fi_param_define(const struct fi_provider *prov, const char *name, enum fi_param_type type,
		    const char *help, ...)
{
	return 0;
}

int fi_param_get(struct fi_provider *prov, const char *name, void *value)
{
	return -FI_ENODATA;
}

const char *fi_strerror(int errnum)
{
	return "";
}
