/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_PROVIDER_PATH: folders, files, preferences, and all that can be wrong with them. The
 * loadable providers are built beside this test; each test links what it needs into a
 * folder of its own.
 */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "fake_provider.h"
#include "loader.h"
#include "registry.h"
#include "start.h"

static char base[32]; /* a folder for each test */

static int setup(void **state)
{
	strcpy(base, "/tmp/weft-load-XXXXXX");
	return mkdtemp(base) ? fake_setup(state) : -1;
}

static int teardown(void **state)
{
	char command[64];

	fake_teardown(state);
	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	return system(command);
}

/* Makes base/@folder/lib@name-fi.so a link to a module of the build. Returns its path. */
static const char *place(const char *folder, const char *name, const char *module)
{
	static char link[128];
	char target[512], dir[64];

	snprintf(dir, sizeof(dir), "%s/%s", base, folder);
	mkdir(dir, 0755);
	snprintf(target, sizeof(target), "%s/%s", LOADABLE_DIR, module);
	snprintf(link, sizeof(link), "%s/lib%s-fi.so", dir, name);
	assert_int_equal(symlink(target, link), 0);
	return link;
}

/* Starts the core with a path in which each % is replaced by the base folder. */
static void start_with(const char *path)
{
	char value[512] = "";
	size_t used = 0;

	for (; *path && used < sizeof(value) - sizeof(base); path++) {
		if (*path == '%')
			used += (size_t)sprintf(value + used, "%s", base);
		else
			value[used++] = *path;
		value[used] = '\0';
	}
	core_stop();
	setenv("FI_PROVIDER_PATH", value, 1);
	fake_log_lines();
	core_start();
}

/* All visible providers with their versions, like 'one1 two2'. */
static void assert_visible(const char *expected)
{
	struct registry_entry **list;
	char names[128] = "";
	size_t i, cnt, used = 0;

	list = registry_list(&cnt);
	for (i = 0; i < cnt; i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s%u",
					 i ? " " : "", list[i]->prov->name,
					 FI_MAJOR(list[i]->prov->version));
	registry_list_free(list, cnt);
	assert_string_equal(names, expected);
}

static void folders_are_searched_in_order_and_files_by_name(void **state)
{
	place("b", "one", "libbare-one1.so");
	place("a", "two", "libbare-two1.so");
	place("a", "another", "libbare-one2.so");
	start_with("%/b:%/a");
	assert_visible("one2 two1");
}

static void a_file_may_be_named_directly(void **state)
{
	place("a", "one", "libbare-one1.so");
	place("a", "two", "libbare-two1.so");
	start_with("%/a/libone-fi.so");
	assert_visible("one1");
}

static void other_files_in_a_folder_are_left_alone(void **state)
{
	char path[64];

	place("a", "one", "libbare-one1.so");
	snprintf(path, sizeof(path), "%s/a/README", base);
	fclose(fopen(path, "w"));
	snprintf(path, sizeof(path), "%s/a/-fi.so", base);
	fclose(fopen(path, "w"));
	start_with("%/a");
	assert_visible("one1");
	assert_int_equal(fake_log_cnt("not loaded"), 0);
}

static void an_at_sign_lets_the_order_decide(void **state)
{
	place("a", "one", "libbare-one1.so");
	place("b", "one", "libbare-one2.so");
	start_with("@%/a:%/b");
	assert_visible("one1");
	start_with("%/a:%/b");
	assert_visible("one2");
}

static void a_plus_prefers_a_file_to_newer_ones(void **state)
{
	place("a", "one", "libbare-one1.so");
	place("b", "one", "libbare-one2.so");
	start_with("%/b:+%/a/libone-fi.so");
	assert_visible("one1");
}

static void a_relative_preferred_file_is_refused_with_a_line(void **state)
{
	start_with("+some/lib-fi.so");
	assert_visible("");
	assert_int_equal(fake_log_cnt("FI_PROVIDER_PATH has +some/lib-fi.so: + requires the "
				      "absolute path"),
			 1);
}

static void a_missing_folder_gives_one_line_that_says_what_to_do(void **state)
{
	place("a", "one", "libbare-one1.so");
	start_with("%/nowhere:%/a");
	assert_visible("one1");
	assert_int_equal(fake_log_cnt("FI_PROVIDER_PATH names"), 1);
	assert_true(
		fake_log_has("/nowhere, which can't be read (No such file or directory): make "
			     "it readable, or remove it"));
}

static void an_unreadable_folder_gives_one_line(void **state)
{
	char path[64];

	if (!geteuid())
		skip(); /* root reads everything */
	snprintf(path, sizeof(path), "%s/secret", base);
	mkdir(path, 0);
	start_with("%/secret");
	assert_visible("");
	assert_int_equal(fake_log_cnt("Permission denied"), 1);
}

static void what_is_no_library_gives_one_line(void **state)
{
	char path[64];
	FILE *file;

	place("a", "one", "libbare-one1.so");
	snprintf(path, sizeof(path), "%s/a/libbad-fi.so", base);
	file = fopen(path, "w");
	fputs("not a library\n", file);
	fclose(file);
	snprintf(path, sizeof(path), "%s/a/libworse-fi.so", base);
	assert_int_equal(symlink("/nonexistent", path), 0);
	start_with("%/a");
	assert_visible("one1");
	assert_int_equal(fake_log_cnt("not loaded"), 1);
	assert_true(fake_log_has("2 providers in"));
}

static void what_is_no_regular_file_gives_one_line_and_no_wait(void **state)
{
	char path[64];

	place("a", "one", "libbare-one1.so");
	snprintf(path, sizeof(path), "%s/a/libfifo-fi.so", base);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(600);
	start_with("%/a");
	assert_visible("one1");
	assert_int_equal(fake_log_cnt("not a regular file"), 1);
	start_with("%/a/libfifo-fi.so:/dev/tty");
	assert_visible("");
	assert_int_equal(fake_log_cnt("libfifo-fi.so was not loaded: it is not a regular"), 1);
	alarm(0);
}

/* Writes the first @len bytes of @from to base/@name. Returns how many of them are mapped. */
static size_t cut_off(const char *from, const char *name, size_t len)
{
	static _Alignas(8) char bytes[1 << 20];
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
	const Elf64_Phdr *segments;
	size_t whole, mapped = 0;
	char path[512];
	FILE *file;
	int i;

	snprintf(path, sizeof(path), "%s/%s", LOADABLE_DIR, from);
	file = fopen(path, "r");
	assert_non_null(file);
	whole = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	snprintf(path, sizeof(path), "%s/%s", base, name);
	file = fopen(path, "w");
	fwrite(bytes, 1, len < whole ? len : whole, file);
	fclose(file);
	segments = (const Elf64_Phdr *)(bytes + header->e_phoff);
	for (i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD &&
		    segments[i].p_offset + segments[i].p_filesz > mapped)
			mapped = segments[i].p_offset + segments[i].p_filesz;
	return mapped;
}

static void a_library_that_is_cut_off_gives_one_line(void **state)
{
	size_t len, mapped = cut_off("libbare-one1.so", "libone-fi.so", 0);

	for (len = 0; len < mapped; len += len < 1024 ? 60 : 1000) {
		cut_off("libbare-one1.so", "libone-fi.so", len);
		start_with("%/libone-fi.so");
		assert_visible("");
		assert_int_equal(fake_log_cnt("was not loaded"), 1);
	}
	cut_off("libbare-one1.so", "libone-fi.so", mapped - 1);
	start_with("%/libone-fi.so");
	assert_visible("");
	assert_int_equal(fake_log_cnt("the file is truncated"), 1);
	cut_off("libbare-one1.so", "libone-fi.so", SIZE_MAX);
	start_with("%/libone-fi.so");
	assert_visible("one1");
	assert_int_equal(fake_log_cnt("was not loaded"), 0);
}

static void a_library_without_a_provider_is_refused(void **state)
{
	place("a", "none", "libbare-none.so");
	start_with("%/a");
	assert_visible("");
	assert_int_equal(fake_log_cnt("a provider without a name is ignored"), 1);
}

static void empty_entries_and_an_empty_path_are_nothing(void **state)
{
	place("a", "one", "libbare-one1.so");
	start_with("::%/a:");
	assert_visible("one1");
	start_with("@");
	assert_visible("");
	assert_int_equal(fake_log_cnt("FI_PROVIDER_PATH"), 0);
}

static void without_a_path_the_fallback_is_searched(void **state)
{
	char path[64];

	core_start();
	place("a", "one", "libbare-one1.so");
	place("b", "two", "libbare-two1.so");
	snprintf(path, sizeof(path), "%s/a", base);
	loader_run(NULL, path);
	assert_visible("one1");
	registry_clear();
	loader_run("", path);
	assert_visible("one1");
	registry_clear();
	loader_run("+/nonexistent-fi.so", path);
	assert_visible("one1");
	registry_clear();
	loader_run("/proc/self/fd", path);
	assert_visible("");
	fake_log_lines();
	loader_run(NULL, "/nonexistent");
	assert_int_equal(fake_log_cnt("nonexistent"), 0);
}

static void the_fallback_adds_to_what_is_there(void **state)
{
	char path[64];

	place("a", "one", "libbare-one1.so");
	place("b", "one", "libbare-one2.so");
	place("b", "two", "libbare-two1.so");
	start_with("+%/a/libone-fi.so");
	snprintf(path, sizeof(path), "%s/b", base);
	loader_run(NULL, path);
	assert_visible("one1 two1");
	core_stop();
	start_with("%/a");
	loader_run(NULL, path);
	assert_visible("one1 two1");
	loader_run(path, "/nonexistent");
	assert_visible("one2 two1");
}

static void a_list_of_unknown_providers_gives_one_line(void **state)
{
	place("a", "one", "libbare-one1.so");
	setenv("FI_PROVIDER", "nosuch,nosuch2", 1);
	start_with("%/a");
	assert_int_equal(fake_log_cnt("FI_PROVIDER=nosuch,nosuch2 names no provider"), 1);
	setenv("FI_PROVIDER", "nosuch,ONE", 1);
	start_with("%/a");
	assert_int_equal(fake_log_cnt("names no provider"), 0);
	setenv("FI_PROVIDER", "^nosuch", 1);
	start_with("%/a");
	assert_int_equal(fake_log_cnt("names no provider"), 0);
}

static void a_name_that_nobody_can_have_gives_one_line(void **state)
{
	place("a", "one", "libbare-one1.so");
	setenv("FI_PROVIDER", "shmm,one,shm;one", 1);
	start_with("%/a");
	assert_int_equal(fake_log_cnt("FI_PROVIDER=shmm,one,shm;one: no provider is called "
				      "shmm, shm;one"),
			 1);
	/* The second caret is no caret. */
	setenv("FI_PROVIDER", "^two,^one", 1);
	start_with("%/a");
	assert_int_equal(fake_log_cnt("no provider is called two, ^one"), 1);
	setenv("FI_PROVIDER", "one", 1);
	setenv("FI_LOG_PROV", "core,onne", 1);
	start_with("%/a");
	assert_int_equal(fake_log_cnt("FI_LOG_PROV=core,onne: no provider is called onne"), 1);
	assert_int_equal(fake_log_cnt("no provider is called"), 1);
	setenv("FI_LOG_PROV", "^one", 1);
	/* Settings for many machines name what is not on all of them. */
	setenv("FI_PROVIDER", "PSM3,verbs;ofi_rxm,one,tcp;ofi_rxm,ofi_hook_trace", 1);
	start_with("%/a");
	setenv("FI_PROVIDER", "^efa,sockets", 1);
	start_with("%/a");
	assert_int_equal(fake_log_cnt("no provider is called"), 0);
	unsetenv("FI_LOG_PROV");
}

static void a_library_is_closed_when_its_provider_goes(void **state)
{
	struct registry_entry *entry;

	place("a", "one", "libbare-one1.so");
	start_with("%/a");
	entry = registry_find("one", 3);
	assert_non_null(entry);
	assert_non_null(entry->library);
	assert_int_equal(registry_remove(entry->prov), 0);
	assert_string_equal(entry->prov->name, "one"); /* still mapped */
	registry_put(entry);
	assert_visible("");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(folders_are_searched_in_order_and_files_by_name),
		TEST(a_file_may_be_named_directly),
		TEST(other_files_in_a_folder_are_left_alone),
		TEST(an_at_sign_lets_the_order_decide),
		TEST(a_plus_prefers_a_file_to_newer_ones),
		TEST(a_relative_preferred_file_is_refused_with_a_line),
		TEST(a_missing_folder_gives_one_line_that_says_what_to_do),
		TEST(an_unreadable_folder_gives_one_line),
		TEST(what_is_no_library_gives_one_line),
		TEST(what_is_no_regular_file_gives_one_line_and_no_wait),
		TEST(a_library_that_is_cut_off_gives_one_line),
		TEST(a_library_without_a_provider_is_refused),
		TEST(empty_entries_and_an_empty_path_are_nothing),
		TEST(without_a_path_the_fallback_is_searched),
		TEST(the_fallback_adds_to_what_is_there),
		TEST(a_list_of_unknown_providers_gives_one_line),
		TEST(a_name_that_nobody_can_have_gives_one_line),
		TEST(a_library_is_closed_when_its_provider_goes),
	};

	return cmocka_run_group_tests_name("loader", tests, NULL, NULL);
}
