/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls by which a program limits its own addresses, as it finds them before those of the C library. The reserved
 * ones of the arena count as used, so that nothing could be mapped any more below a limit of a TiB: those
 * that are not used are given back first. Any thread.
 */
#define _GNU_SOURCE
/* The names with and without 64 are of the same functions: a limit has 64 bits. */
#undef _FILE_OFFSET_BITS
#include "heap.h"
#include "raw.h"

#include <sys/resource.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

_Static_assert(sizeof(rlim_t) == 8, "prlimit64(2) takes 64 bits");

static int limit(pid_t pid, int resource, const void *next, void *old)
{
	const struct rlimit *set = next;

	if (resource == RLIMIT_AS && set && set->rlim_cur != RLIM_INFINITY &&
	    (!pid || pid == getpid()))
		heap_shrink();
	return raw_prlimit(pid, resource, next, old);
}

SHOWN int setrlimit(__rlimit_resource_t resource, const struct rlimit *next)
{
	return limit(0, (int)resource, next, NULL);
}

SHOWN int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *next)
{
	return limit(0, (int)resource, next, NULL);
}

SHOWN int prlimit(pid_t pid, enum __rlimit_resource resource, const struct rlimit *next,
		  struct rlimit *old)
{
	return limit(pid, (int)resource, next, old);
}

SHOWN int prlimit64(pid_t pid, enum __rlimit_resource resource, const struct rlimit64 *next,
		    struct rlimit64 *old)
{
	return limit(pid, (int)resource, next, old);
}
