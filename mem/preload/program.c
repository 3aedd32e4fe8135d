/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The memory of a program under libweft-mem.so; program.h has the contract. */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

static arena_export *export;

int program_start(void **state)
{
	export = (arena_export *)dlsym(RTLD_DEFAULT, ARENA_EXPORT);
	return export ? 0 : -1;
}

struct arena *program_arena(void)
{
	return export(ARENA_VERSION, sizeof(struct arena));
}

uint32_t program_shown(const void *addr, size_t len)
{
	struct arena_place place;

	return arena_find(program_arena(), addr, len, &place) ? place.chunk + 1 : 0;
}

bool program_is_zero(const char *addr, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (addr[i])
			return false;
	return true;
}

bool program_writable(void *addr)
{
	int data[2];
	bool can;

	assert_int_equal(pipe(data), 0);
	assert_int_equal(write(data[1], "w", 1), 1);
	can = read(data[0], addr, 1) == 1;
	close(data[0]);
	close(data[1]);
	return can;
}
