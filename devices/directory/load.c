/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Having libweft-directory.so; load.h has the contract.
 */
#define _GNU_SOURCE
#include "load.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

int directory_load(const struct directory_ops **out)
{
	const struct directory_ops *ops;
	/* A name that is loaded already is found, and not loaded again. */
	void *library = dlopen(DIRECTORY_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!library)
		return -EOPNOTSUPP;
	ops = dlsym(library, DIRECTORY_SYMBOL);
	if (!ops || ops->version != DIRECTORY_VERSION)
		return -ENOPROTOOPT;
	*out = ops;
	return 0;
}

void directory_host(char host[40])
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!file || !fgets(host, 40, file))
		*host = 0;
	host[strcspn(host, "\n")] = 0;
	if (file)
		fclose(file);
}
