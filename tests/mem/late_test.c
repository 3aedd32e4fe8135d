/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program under libweft-mem.so that loads libfabric.so.1 when it runs: both have the same arena.
 *
 * usage: late_test LIBFABRIC
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <rdma/fabric.h>
#include <weft/mem.h>
#include "arena.h"

#define LEN ((size_t)1 << 20)

static const char *path;

static void a_library_that_comes_later_has_the_same_arena(void **state)
{
	arena_export *export = (arena_export *)dlsym(RTLD_DEFAULT, ARENA_EXPORT);
	struct arena_place ours = { 0 }, theirs = { 0 };
	typeof(fi_freeinfo) *freeinfo;
	typeof(fi_getinfo) *getinfo;
	typeof(fi_fabric) *open_fabric;
	struct weft_mem_ops *mem = NULL;
	struct fi_info *info = NULL;
	struct fid_fabric *fabric = NULL;
	void *lib, *large = malloc(LEN), *buf = NULL;

	assert_non_null(export);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(lib);
	getinfo = (typeof(getinfo))dlsym(lib, "fi_getinfo");
	freeinfo = (typeof(freeinfo))dlsym(lib, "fi_freeinfo");
	open_fabric = (typeof(open_fabric))dlsym(lib, "fi_fabric");
	assert_int_equal(getinfo(FI_VERSION(1, 20), NULL, NULL, 0, NULL, &info), 0);
	assert_int_equal(open_fabric(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_open_ops(&fabric->fid, WEFT_MEM_OPS, 0, (void **)&mem, NULL), 0);
	assert_int_equal(mem->alloc(LEN, 64, 0, &buf), 0);
	assert_true(arena_find(export(ARENA_VERSION, sizeof(struct arena)), large, LEN, &ours));
	assert_true(arena_find(export(ARENA_VERSION, sizeof(struct arena)), buf, LEN, &theirs));
	assert_int_equal(mem->free(buf), 0);
	free(large);
	assert_int_equal(fi_close(&fabric->fid), 0);
	freeinfo(info);
	dlclose(lib);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_library_that_comes_later_has_the_same_arena),
	};

	path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
