/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the provider and the engine ask of the core, for the tests of this folder. On the test's
 * thread.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "mock_core.h"

char mock_log[512];
int mock_log_cnt;
const char *mock_params[8][2];

uint32_t fi_version(void)
{
	return FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

const char *fi_strerror(int errnum)
{
	return "";
}

int fi_param_define(const struct fi_provider *prov, const char *name, enum fi_param_type type,
		    const char *help, ...)
{
	return 0;
}

int fi_param_get(struct fi_provider *prov, const char *name, void *value)
{
	size_t i;

	for (i = 0; i < sizeof(mock_params) / sizeof(mock_params[0]) && mock_params[i][0]; i++) {
		if (strcmp(mock_params[i][0], name))
			continue;
		if (!strcmp(name, "iface"))
			*(const char **)value = mock_params[i][1];
		else
			*(int *)value = atoi(mock_params[i][1]);
		return 0;
	}
	return -FI_ENODATA;
}

int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	return level <= FI_LOG_INFO;
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(mock_log, sizeof(mock_log), fmt, args);
	va_end(args);
	mock_log_cnt += level == FI_LOG_WARN;
}
