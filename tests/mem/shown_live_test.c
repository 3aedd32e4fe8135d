/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What 'weft mem' says of a running process, against what the process knows of itself: this one has an
 * arena, a device that pins, and a cache. The tool is the argument.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>
#include <rdma/fabric.h>
#include "arena.h"
#include "cache.h"
#include "fake_device.h"
#include "pin.h"

#define MIB ((size_t)1 << 20)

static const char *weft;
static struct fake_device device;

/* Returns the first process of what the tool prints of this one. */
static json_t *shown(json_t **whole)
{
	char command[4096];
	json_error_t error;
	FILE *from;

	snprintf(command, sizeof(command), "%s mem --json %d", weft, (int)getpid());
	from = popen(command, "re");
	assert_non_null(from);
	*whole = json_loadf(from, 0, &error);
	assert_int_equal(pclose(from), 0);
	assert_non_null(*whole);
	return json_array_get(json_object_get(*whole, "processes"), 0);
}

static uint64_t number(json_t *process, const char *part, const char *name)
{
	json_t *value = json_object_get(json_object_get(process, part), name);

	if (!json_is_integer(value))
		fail_msg("no number %s.%s", part, name);
	return (uint64_t)json_integer_value(value);
}

/* Uses memory of the arena, and some of its own, by a device. Returns where the former is. */
static char *use(struct mem_pins *pins, char *own, size_t page)
{
	struct arena *arena = arena_get();
	struct mem_pin_ref ref;
	void *addr, *more;

	assert_non_null(arena);
	assert_int_equal(arena_alloc(arena, 5 * MIB, 1, ARENA_READ, &addr, NULL), 0);
	assert_int_equal(arena_alloc(arena, 3 * MIB, 1, ARENA_READ, &more, NULL), 0);
	memset(addr, 1, 5 * MIB);
	assert_int_equal(arena_free(arena, more), 0);
	assert_int_equal(mem_pins_get(pins, addr, 5 * MIB, FI_SEND, &ref), 0);
	mem_pins_put(pins, &ref);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(mem_pins_get(pins, own, 3 * page, FI_SEND, &ref), 0);
		mem_pins_put(pins, &ref);
	}
	return addr;
}

static void assert_arena(json_t *process)
{
	struct arena_usage usage;

	arena_usage(arena_get(), &usage);
	assert_int_equal(number(process, "arena", "live_bytes"), usage.live);
	assert_int_equal(number(process, "arena", "quarantined_bytes"), usage.quarantined);
	assert_int_equal(number(process, "arena", "chunk_bytes"), usage.chunks);
	assert_int_equal(number(process, "arena", "retired_bytes"), usage.retired);
	assert_in_range(number(process, "arena", "resident_bytes"), 5 * MIB, usage.chunks);
}

static void assert_devices(json_t *process, struct mem_pins *pins)
{
	struct mem_cache_stats cache;
	struct mem_pins_stats stats;
	uint64_t once = 0;

	mem_pins_stats(pins, &stats);
	assert_int_equal(number(process, "pins", "devices"), 1);
	assert_int_equal(number(process, "pins", "grains"), stats.grains);
	assert_int_equal(number(process, "pins", "bytes"), stats.grains * MIB);
	assert_int_equal(number(process, "pins", "registered"), stats.pinned);
	mem_cache_stats(mem_pins_cache(pins), &cache);
	for (int why = 0; why < MEM_ONCE_CNT; why++)
		once += cache.once[why];
	assert_int_equal(number(process, "cache", "hits"), cache.hits);
	assert_int_equal(number(process, "cache", "misses"), cache.misses);
	assert_int_equal(number(process, "cache", "once"), once);
	assert_int_equal(number(process, "cache", "once_refused"), cache.once[MEM_ONCE_REFUSED]);
	assert_int_equal(number(process, "cache", "bytes"), cache.bytes);
	assert_int_equal(cache.hits + cache.misses + once, 5);
}

static void the_tool_says_what_the_process_knows(void **state)
{
	struct mem_pin_config config = { .ops = &fake_device_ops,
					 .device = &device,
					 .grain = MIB,
					 .access = FI_SEND | FI_RECV };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct mem_pins *pins;
	json_t *whole, *process;
	char *own, *addr;

	own = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(own, MAP_FAILED);
	fake_device_init(&device);
	assert_int_equal(mem_pins_create(&config, &pins), 0);
	addr = use(pins, own, page);
	process = shown(&whole);
	assert_arena(process);
	assert_devices(process, pins);
	json_decref(whole);

	assert_int_equal(arena_free(arena_get(), addr), 0);
	arena_trim(arena_get(), 0);
	munmap(own, 4 * page);
	mem_pins_destroy(pins);
	process = shown(&whole);
	assert_true(json_is_null(json_object_get(process, "pins")));
	assert_true(json_is_null(json_object_get(process, "cache")));
	assert_int_equal(number(process, "arena", "live_bytes"), 0);
	assert_int_equal(number(process, "arena", "quarantined_bytes"), 0);
	assert_true(number(process, "arena", "punched_bytes") >= 8 * MIB);
	json_decref(whole);
	fake_device_fini(&device);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tool_says_what_the_process_knows),
	};

	if (argc < 2)
		return 2;
	weft = argv[1];
	/* What is free stays while the tool looks. */
	setenv("FI_MEM_DECAY", "3600", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
