/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A library that is loaded before libfabric.so.1 (LD_PRELOAD), so that a program's provider is the one of tests/btl/forced.c.
 * The program's references to fi_getinfo() and fi_fabric() are found here; those of forced.c are wrapped, and go to
 * libfabric.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <rdma/fabric.h>
#include "fabric.h"

/* libfabric, which may call itself by the same names, in the newest version */
static __thread bool inside;

int __wrap_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **list);
int __wrap_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
struct fi_info *__wrap_fi_dupinfo(const struct fi_info *info);
void __wrap_fi_freeinfo(struct fi_info *info);

/* In the version that programs are bound to (fabric/fabric.h). */
static void *next(const char *name, const char *version)
{
	void *found = inside ? dlsym(RTLD_NEXT, name) : dlvsym(RTLD_NEXT, name, version);

	if (found)
		return found;
	fprintf(stderr, "forced: libfabric has no %s of %s\n", name, version);
	abort();
}

int __wrap_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **list)
{
	int (*call)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *,
		    struct fi_info **) = (__typeof__(call))(uintptr_t)next("fi_getinfo",
									   "FABRIC_1.3");

	bool was = inside;
	int ret;

	inside = true;
	ret = call(version, node, service, flags, hints, list);
	inside = was;
	return ret;
}

int __wrap_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	int (*call)(struct fi_fabric_attr *, struct fid_fabric **,
		    void *) = (__typeof__(call))(uintptr_t)next("fi_fabric", "FABRIC_1.1");

	bool was = inside;
	int ret;

	inside = true;
	ret = call(attr, fabric, context);
	inside = was;
	return ret;
}

struct fi_info *__wrap_fi_dupinfo(const struct fi_info *info)
{
	struct fi_info *(*call)(const struct fi_info *) = (__typeof__(call))(uintptr_t)next(
		"fi_dupinfo", "FABRIC_1.3");

	return call(info);
}

void __wrap_fi_freeinfo(struct fi_info *info)
{
	void (*call)(struct fi_info *) = (__typeof__(call))(uintptr_t)next("fi_freeinfo",
									   "FABRIC_1.3");

	call(info);
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **list)
{
	return inside ? __wrap_fi_getinfo(version, node, service, flags, hints, list)
		      : fabric_getinfo(version, node, service, flags, hints, list);
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return inside ? __wrap_fi_fabric(attr, fabric, context) : fabric_open(attr, fabric);
}
