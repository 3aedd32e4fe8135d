/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program that is linked with no library of ours loads libfabric.so.1, uses its memory and unloads it: the
 * code of the thread that keeps memory (mem/arena/keeper.h) has to stay. With FI_MEM_DECAY=1.
 *
 * usage: unload_test LIBFABRIC
 */
#include <dirent.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <rdma/fabric.h>
#include <weft/mem.h>

#define LEN	   ((size_t)32 << 20)
#define DEADLINE_S 20
#define KEEPER	   "weft-mem-keeper\n"

static const char *path;

static bool is_keeper(const char *thread)
{
	char name[300], line[64] = "";
	FILE *from;

	snprintf(name, sizeof(name), "/proc/self/task/%s/comm", thread);
	from = fopen(name, "r");
	if (!from)
		return false;
	if (!fgets(line, sizeof(line), from))
		line[0] = '\0';
	fclose(from);
	return !strcmp(line, KEEPER);
}

static bool has_keeper(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	bool found = false;

	assert_non_null(dir);
	while (!found && (entry = readdir(dir)))
		found = is_keeper(entry->d_name);
	closedir(dir);
	return found;
}

/* Waits until the keeper has ended. */
static void wait_keeper(void)
{
	time_t end = time(NULL) + DEADLINE_S;

	while (has_keeper() && time(NULL) < end)
		usleep(1000);
	assert_false(has_keeper());
}

/* Loads the library, has it keep memory, and unloads it. */
static void use(void)
{
	typeof(fi_freeinfo) *freeinfo;
	typeof(fi_getinfo) *getinfo;
	typeof(fi_fabric) *open_fabric;
	struct weft_mem_ops *mem = NULL;
	struct fid_fabric *fabric = NULL;
	struct fi_info *info = NULL;
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL), *buf = NULL;

	assert_non_null(lib);
	getinfo = (typeof(getinfo))dlsym(lib, "fi_getinfo");
	freeinfo = (typeof(freeinfo))dlsym(lib, "fi_freeinfo");
	open_fabric = (typeof(open_fabric))dlsym(lib, "fi_fabric");
	assert_int_equal(getinfo(FI_VERSION(1, 20), NULL, NULL, 0, NULL, &info), 0);
	assert_int_equal(open_fabric(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_open_ops(&fabric->fid, WEFT_MEM_OPS, 0, (void **)&mem, NULL), 0);
	assert_int_equal(mem->alloc(LEN, 0, 0, &buf), 0);
	memset(buf, 1, LEN);
	assert_int_equal(mem->free(buf), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	freeinfo(info);
	assert_int_equal(dlclose(lib), 0);
}

static void a_library_that_is_unloaded_keeps_its_promises(void **state)
{
	time_t end;
	bool kept;

	for (int i = 0; i < 2; i++) {
		/* the keeper is seen whenever this thread is not kept from running for as long as there is one */
		end = time(NULL) + DEADLINE_S;
		do {
			use();
			kept = has_keeper();
		} while (!kept && time(NULL) < end);
		assert_true(kept);
		wait_keeper();
	}
}

static void a_library_is_loaded_again_while_the_keeper_runs(void **state)
{
	for (int i = 0; i < 20; i++)
		use();
	wait_keeper();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_library_that_is_unloaded_keeps_its_promises),
		cmocka_unit_test(a_library_is_loaded_again_while_the_keeper_runs),
	};

	path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
