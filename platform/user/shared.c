/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that processes find by a name, for the engine: that of sys/. Called when an address
 * vector with a name is opened, changed or closed, on any thread.
 */
#include <rdma/fi_errno.h>
#include "platform.h"
#include "shared_name.h"

#define FNV_START 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

static struct sys_shared *sys_of(struct platform_shared *shared)
{
	return (struct sys_shared *)shared;
}

/*
 * Converts a name of any length and characters to one that sys/ accepts; a caller that needs to be
 * sure stores the whole name in the memory.
 */
static void short_name(const char *name, char *out, size_t len)
{
	uint64_t forward = FNV_START, backward = FNV_START;
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++) {
		forward = (forward ^ (uint8_t)name[i]) * FNV_PRIME;
		backward = (backward ^ (uint8_t)name[n - 1 - i]) * FNV_PRIME;
	}
	snprintf(out, len, "weft-%016llx%016llx", (unsigned long long)forward,
		 (unsigned long long)backward);
}

int platform_shared_create(const char *name, size_t len, struct platform_shared **out)
{
	char key[SYS_SHARED_NAME_MAX];

	short_name(name, key, sizeof(key));
	return sys_shared_create(key, len, (struct sys_shared **)out);
}

int platform_shared_publish(struct platform_shared *shared)
{
	return sys_shared_publish(sys_of(shared));
}

int platform_shared_attach(const char *name, bool writable, struct platform_shared **out)
{
	char key[SYS_SHARED_NAME_MAX];

	short_name(name, key, sizeof(key));
	return sys_shared_attach(key, writable, (struct sys_shared **)out);
}

void *platform_shared_map(struct platform_shared *shared, size_t *len)
{
	return sys_shared_map(sys_of(shared), len);
}

int platform_shared_lock(struct platform_shared *shared)
{
	return sys_shared_lock(sys_of(shared));
}

void platform_shared_unlock(struct platform_shared *shared)
{
	sys_shared_unlock(sys_of(shared));
}

void platform_shared_close(struct platform_shared *shared)
{
	sys_shared_close(sys_of(shared));
}
