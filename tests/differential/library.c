/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The libfabric that a script runs on, loaded by its path, so that one program calls any of them:
 * the exported calls are found here by name and version. Called once, before any script.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "script.h"

static struct {
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	uint32_t (*version)(void);
} library;

static void *find(void *handle, const char *name, const char *version)
{
	void *symbol = version ? dlvsym(handle, name, version) : dlsym(handle, name);

	if (!symbol) {
		fprintf(stderr, "act: %s\n", dlerror());
		exit(2);
	}
	return symbol;
}

void library_open(const char *path, const char *abi)
{
	const char *info = strcmp(abi, "newest") == 0 ? NULL : "FABRIC_1.3";
	void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	if (!handle) {
		fprintf(stderr, "act: %s\n", dlerror());
		exit(2);
	}
	*(void **)&library.getinfo = find(handle, "fi_getinfo", info);
	*(void **)&library.freeinfo = find(handle, "fi_freeinfo", info);
	*(void **)&library.dupinfo = find(handle, "fi_dupinfo", info);
	*(void **)&library.fabric = find(handle, "fi_fabric", "FABRIC_1.1");
	*(void **)&library.version = find(handle, "fi_version", NULL);
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **info)
{
	return library.getinfo(version, node, service, flags, hints, info);
}

void fi_freeinfo(struct fi_info *info)
{
	library.freeinfo(info);
}

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	return library.dupinfo(info);
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return library.fabric(attr, fabric, context);
}

uint32_t fi_version(void)
{
	return library.version();
}
