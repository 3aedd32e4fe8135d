/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions of the core that the provider and the engine call, for the tests of this folder. On
 * the test's thread.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "mock_core.h"

char mock_log[512];
int mock_warnings;
const char *mock_socket_dir;
const size_t *mock_area_budget;

uint32_t fi_version(void)
{
	return FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

const char *fi_strerror(int err)
{
	return strerror(err);
}

int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	return 1;
}

int fi_log_ready(const struct fi_provider *prov, enum fi_log_level level,
		 enum fi_log_subsys subsys, uint64_t *showtime)
{
	return 1;
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(mock_log, sizeof(mock_log), fmt, args);
	va_end(args);
	mock_warnings += level == FI_LOG_WARN;
}

int fi_param_define(const struct fi_provider *provider, const char *name,
		    enum fi_param_type type, const char *help, ...)
{
	return 0;
}

int fi_param_get(struct fi_provider *provider, const char *name, void *value)
{
	if (!strcmp(name, "area_budget") && mock_area_budget) {
		memcpy(value, mock_area_budget, sizeof(*mock_area_budget));
		return 0;
	}
	if (strcmp(name, "socket_dir") || !mock_socket_dir)
		return -FI_ENODATA;
	memcpy(value, &mock_socket_dir, sizeof(mock_socket_dir));
	return 0;
}
