/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Settings that make Open MPI pass variables to its ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "arguments.h"
#include "launch_env.h"

#define LIST_ENV "OMPI_MCA_mca_base_env_list"

static void expect_list(const char *old, char delim, const char *const *names, const char *want)
{
	char *list = launch_env_list(old, delim, names);

	assert_string_equal(list, want);
	free(list);
}

static void names_are_added_once_to_what_is_there(void **state)
{
	static const char *const names[] = { "LD_LIBRARY_PATH", "FI_LINK_REPORT", NULL };

	expect_list(NULL, ';', names, "LD_LIBRARY_PATH;FI_LINK_REPORT");
	expect_list("", ';', names, "LD_LIBRARY_PATH;FI_LINK_REPORT");
	expect_list("A=1;B", ';', names, "A=1;B;LD_LIBRARY_PATH;FI_LINK_REPORT");
	expect_list("A=1;", ';', names, "A=1;LD_LIBRARY_PATH;FI_LINK_REPORT");
	expect_list("LD_LIBRARY_PATH=/mine;B", ';', names,
		    "LD_LIBRARY_PATH=/mine;B;FI_LINK_REPORT");
	expect_list("FI_LINK_REPORT;LD_LIBRARY_PATH", ';', names,
		    "FI_LINK_REPORT;LD_LIBRARY_PATH");
	expect_list("XLD_LIBRARY_PATH;FI_LINK_REPORTS", ';', names,
		    "XLD_LIBRARY_PATH;FI_LINK_REPORTS;LD_LIBRARY_PATH;FI_LINK_REPORT");
	expect_list("A:B", ':', names, "A:B:LD_LIBRARY_PATH:FI_LINK_REPORT");
}

static void clear(void)
{
	unsetenv(LIST_ENV);
	unsetenv("OMPI_MCA_mca_base_env_list_delimiter");
	setenv("FI_LINK_REPORT", "1", 1);
}

static int holds(char *const *argv, const char *a, const char *b)
{
	for (; *argv; argv++)
		if (!strcmp(*argv, a) && argv[1] && !strcmp(argv[1], b))
			return 1;
	return 0;
}

static void the_environment_carries_the_list(void **state)
{
	char *argv[] = { (char *)"mpirun", (char *)"-n", (char *)"2", (char *)"prog", NULL };
	struct launch_command cmd;

	clear();
	setenv(LIST_ENV, "A=1", 1);
	assert_int_equal(launch_forward(&cmd, argv, false), 0);
	assert_non_null(strstr(getenv(LIST_ENV), "A=1;LD_LIBRARY_PATH"));
	assert_non_null(strstr(getenv(LIST_ENV), ";FI_LINK_REPORT"));
	assert_string_equal(cmd.argv[3], "prog");
	assert_null(cmd.argv[4]);
	launch_command_fini(&cmd);
}

static void with_dash_x_on_the_command_line_ours_go_there_too(void **state)
{
	char *argv[] = { (char *)"/usr/bin/mpirun", (char *)"-x", (char *)"A", (char *)"prog",
			 NULL };
	struct launch_command cmd;

	clear();
	assert_int_equal(launch_forward(&cmd, argv, false), 0);
	assert_null(getenv(LIST_ENV));
	assert_string_equal(cmd.argv[0], "/usr/bin/mpirun");
	assert_true(holds(cmd.argv, "-x", "LD_LIBRARY_PATH"));
	assert_true(holds(cmd.argv, "-x", "FI_LINK_REPORT"));
	assert_true(holds(cmd.argv, "-x", "A"));
	assert_true(holds(cmd.argv, "A", "prog"));
	launch_command_fini(&cmd);
}

static void a_list_on_the_command_line_is_added_to(void **state)
{
	char *argv[] = { (char *)"mpirun", (char *)"--mca", (char *)"mca_base_env_list",
			 (char *)"B=2",	   (char *)"prog",  NULL };
	struct launch_command cmd;

	clear();
	assert_int_equal(launch_forward(&cmd, argv, false), 0);
	assert_null(getenv(LIST_ENV));
	assert_int_equal(strncmp(cmd.argv[3], "B=2;LD_LIBRARY_PATH", 19), 0);
	assert_string_equal(cmd.argv[4], "prog");
	assert_string_equal(argv[3], "B=2");
	launch_command_fini(&cmd);
}

static void a_program_that_is_no_launcher_keeps_its_arguments(void **state)
{
	char *argv[] = { (char *)"prog",  (char *)"-x",
			 (char *)"--mca", (char *)"mca_base_env_list",
			 (char *)"v",	  NULL };
	struct launch_command cmd;
	int i;

	clear();
	assert_int_equal(launch_forward(&cmd, argv, false), 0);
	for (i = 0; argv[i]; i++)
		assert_string_equal(cmd.argv[i], argv[i]);
	assert_null(cmd.argv[i]);
	/* It may be a script that calls mpirun. */
	assert_non_null(getenv(LIST_ENV));
	launch_command_fini(&cmd);
}

static void the_library_goes_before_the_others(void **state)
{
	unsetenv("LD_LIBRARY_PATH");
	assert_int_equal(launch_library_prepend("/a"), 0);
	assert_string_equal(getenv("LD_LIBRARY_PATH"), "/a");
	assert_int_equal(launch_library_prepend("/b"), 0);
	assert_string_equal(getenv("LD_LIBRARY_PATH"), "/b:/a");
}

static void what_is_preloaded_reaches_the_ranks_too(void **state)
{
	char *argv[] = { (char *)"mpirun", (char *)"prog", NULL };
	struct launch_command cmd;

	clear();
	unsetenv("LD_PRELOAD");
	assert_int_equal(launch_mem_prepend("/a/one.so"), 0);
	assert_int_equal(launch_mem_prepend("/b/two.so"), 0);
	assert_string_equal(getenv("LD_PRELOAD"), "/b/two.so:/a/one.so");
	assert_int_equal(launch_forward(&cmd, argv, false), 0);
	assert_null(strstr(getenv(LIST_ENV), "LD_PRELOAD"));
	launch_command_fini(&cmd);
	clear();
	assert_int_equal(launch_forward(&cmd, argv, true), 0);
	assert_non_null(strstr(getenv(LIST_ENV), ";LD_PRELOAD;"));
	launch_command_fini(&cmd);
	unsetenv("LD_PRELOAD");
}

static void expect_env(const char *name, const char *want)
{
	assert_non_null(getenv(name));
	assert_string_equal(getenv(name), want);
}

static void clear_btl(void)
{
	unsetenv("OMPI_MCA_mca_base_component_path");
	unsetenv("OMPI_MCA_btl");
	unsetenv("OMPI_MCA_osc");
}

static void the_component_is_found_before_open_mpis_own(void **state)
{
	clear_btl();
	assert_int_equal(launch_btl_set("/a"), 0);
	expect_env("OMPI_MCA_mca_base_component_path", "/a:SYSTEM_DEFAULT:USER_DEFAULT");
	expect_env("OMPI_MCA_btl", "self,weft");
	expect_env("OMPI_MCA_osc", "rdma,sm");
	clear_btl();
}

static void what_the_user_has_set_for_the_component_stays(void **state)
{
	clear_btl();
	setenv("OMPI_MCA_mca_base_component_path", "/mine:/theirs", 1);
	setenv("OMPI_MCA_btl", "self,weft,tcp", 1);
	setenv("OMPI_MCA_osc", "pt2pt", 1);
	assert_int_equal(launch_btl_set("/a"), 0);
	expect_env("OMPI_MCA_mca_base_component_path", "/a:/mine:/theirs");
	expect_env("OMPI_MCA_btl", "self,weft,tcp");
	expect_env("OMPI_MCA_osc", "pt2pt");
	clear_btl();
}

static void a_directory_without_the_library_is_refused(void **state)
{
	char dir[PATH_MAX];

	assert_true(argument_library_find("/", dir) < 0);
	assert_true(argument_library_find("/nonexistent", dir) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_added_once_to_what_is_there),
		cmocka_unit_test(the_environment_carries_the_list),
		cmocka_unit_test(with_dash_x_on_the_command_line_ours_go_there_too),
		cmocka_unit_test(a_list_on_the_command_line_is_added_to),
		cmocka_unit_test(a_program_that_is_no_launcher_keeps_its_arguments),
		cmocka_unit_test(the_library_goes_before_the_others),
		cmocka_unit_test(what_is_preloaded_reaches_the_ranks_too),
		cmocka_unit_test(the_component_is_found_before_open_mpis_own),
		cmocka_unit_test(what_the_user_has_set_for_the_component_stays),
		cmocka_unit_test(a_directory_without_the_library_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
