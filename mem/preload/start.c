/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What runs when the library is loaded, and what libfabric.so.1 finds in it. */
#define _GNU_SOURCE
#include "arena.h"
#include "heap.h"
#include "next.h"
#include "preload.h"
#include "setting.h"

#include <stdlib.h>
#include <string.h>

arena_export weft_mem_arena;

/* Reads digits, and K, M or G after them for multiples of 1024. Returns 0, or -1 for what is no such number. */
static int parse(const char *text, size_t *len)
{
	static const char units[] = "KMG";
	unsigned long long bytes;
	size_t shift = 0;
	char *end;

	if (*text < '0' || *text > '9')
		return -1;
	bytes = strtoull(text, &end, 10);
	for (size_t i = 0; units[i]; i++)
		if (*end == units[i] || *end == (units[i] | 0x20))
			shift = 10 * (i + 1);
	end += shift != 0;
	if (*end || bytes > SIZE_MAX >> shift)
		return -1;
	*len = (size_t)bytes << shift;
	return 0;
}

/* Returns the value of a setting, or NULL. */
static const char *setting(char **env, const char *name)
{
	size_t len = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, len) && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

/* Returns the bytes that a setting has, or @otherwise. */
static size_t setting_bytes(char **env, const char *name, size_t otherwise)
{
	const char *text = setting(env, name);
	size_t len;

	if (!text)
		return otherwise;
	if (!parse(text, &len))
		return len;
	setting_ignored(name, text,
			"a number of bytes, and K, M or G after it for multiples of 1024");
	return otherwise;
}

/*
 * The library is linked to be the first one whose constructors run, before those that may install fork handlers.
 * The C library's own has not run then, without which getenv() finds nothing.
 */
__attribute__((constructor)) static void load(int argc, char **argv, char **env)
{
	size_t limit = setting_bytes(env, "FI_MEM_LIMIT", SIZE_MAX);

	next();
	preload_min = setting_bytes(env, "FI_MEM_MIN", PRELOAD_MIN_DEFAULT);
	if (preload_min < PRELOAD_MIN_LEAST)
		preload_min = PRELOAD_MIN_LEAST;
	heap_allow(limit);
}

__attribute__((visibility("default"))) struct arena *weft_mem_arena(uint32_t version,
								    uint32_t size)
{
	if (version != ARENA_VERSION || size != sizeof(struct arena))
		return NULL;
	return heap_arena();
}
