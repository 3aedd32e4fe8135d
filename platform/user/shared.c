/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that processes find by a name, for the engine: that of sys/. Called when an address
 * vector with a name is opened, changed or closed, on any thread.
 */
#include <rdma/fi_errno.h>
#include "fnv.h"
#include "platform.h"
#include "shared_name.h"

struct platform_shared {
	struct sys_shared *sys;
	/* A child that lives on has neither the name nor the lock of a parent that has ended. */
	struct platform_copy copy;
};

static void shared_copied(struct platform_copy *copy)
{
	struct platform_shared *shared =
		(struct platform_shared *)((char *)copy -
					   offsetof(struct platform_shared, copy));

	sys_shared_forked(shared->sys);
}

/* Takes @sys. Returns 0 and a handle, or -FI_ENOMEM. */
static int handle_make(struct sys_shared *sys, struct platform_shared **out)
{
	struct platform_shared *shared = platform_alloc(sizeof(*shared));

	if (!shared) {
		sys_shared_close(sys);
		return -FI_ENOMEM;
	}
	shared->sys = sys;
	shared->copy.copied = shared_copied;
	platform_copy_watch(&shared->copy);
	*out = shared;
	return 0;
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
		forward = fnv_step(forward, (uint8_t)name[i]);
		backward = fnv_step(backward, (uint8_t)name[n - 1 - i]);
	}
	snprintf(out, len, "weft-%016llx%016llx", (unsigned long long)forward,
		 (unsigned long long)backward);
}

int platform_shared_create(const char *name, size_t len, struct platform_shared **out)
{
	char key[SYS_SHARED_NAME_MAX];
	struct sys_shared *sys;
	int err;

	short_name(name, key, sizeof(key));
	err = sys_shared_create(key, len, &sys);
	return err ? err : handle_make(sys, out);
}

int platform_shared_publish(struct platform_shared *shared)
{
	return sys_shared_publish(shared->sys);
}

int platform_shared_attach(const char *name, bool writable, struct platform_shared **out)
{
	char key[SYS_SHARED_NAME_MAX];
	struct sys_shared *sys;
	int err;

	short_name(name, key, sizeof(key));
	err = sys_shared_attach(key, writable, &sys);
	return err ? err : handle_make(sys, out);
}

void *platform_shared_map(struct platform_shared *shared, size_t *len)
{
	return sys_shared_map(shared->sys, len);
}

int platform_shared_lock(struct platform_shared *shared)
{
	return sys_shared_lock(shared->sys);
}

void platform_shared_unlock(struct platform_shared *shared)
{
	sys_shared_unlock(shared->sys);
}

void platform_shared_close(struct platform_shared *shared)
{
	if (!shared)
		return;
	platform_copy_unwatch(&shared->copy);
	sys_shared_close(shared->sys);
	platform_free(shared);
}
