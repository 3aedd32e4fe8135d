/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program under an allocator that is preloaded before libweft-mem.so, and lacks names which that one has: what it gave is
 * resized by it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void what_another_allocator_gave_is_resized_by_it(void **state)
{
	bool (*other_has)(const void *ptr);
	char *ptr = malloc(10);

	*(void **)&other_has = dlsym(RTLD_DEFAULT, "other_has");
	assert_non_null(other_has);
	assert_non_null(dlsym(RTLD_DEFAULT, "weft_mem_arena"));
	assert_true(ptr && other_has(ptr));
	strcpy(ptr, "kept");
	ptr = reallocarray(ptr, 3, 1 << 20);
	assert_true(ptr && other_has(ptr));
	assert_string_equal(ptr, "kept");
	free(ptr);
	ptr = reallocarray(NULL, 3, 10);
	assert_true(ptr && other_has(ptr));
	free(ptr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_another_allocator_gave_is_resized_by_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
