/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which libfabric this process runs on; libfabric.h has the contract. */
#define _GNU_SOURCE
#include "libfabric.h"

#include <dlfcn.h>

const char *fabric_library_path(void)
{
	Dl_info info;

	/* fi_version has one version: any library answers it. */
	if (!dladdr((void *)(uintptr_t)fi_version, &info) || !info.dli_fname)
		return "?";
	return info.dli_fname;
}
