/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Settings: types, names, the environment and the file, bad values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <rdma/fi_errno.h>

#include "fake_provider.h"
#include "params.h"
#include "registry.h"

static char conf_path[] = "/tmp/weft-conf-XXXXXX";

/* A configuration file with this text, read at once. */
static int load(const char *text)
{
	char path[sizeof(conf_path)];
	FILE *file;
	int fd, ret;

	strcpy(path, conf_path);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	fputs(text, file);
	fclose(file);
	ret = params_load(path);
	unlink(path);
	return ret;
}

static struct fi_provider *prov(void)
{
	return &fake_register(0, "fake", 1)->prov;
}

static void a_setting_is_named_after_its_provider(void **state)
{
	struct fi_provider *fake = prov();
	char *text = NULL;

	assert_int_equal(fi_param_define(fake, "some_text", FI_PARAM_STRING, "help %d", 1), 0);
	assert_int_equal(fi_param_get(fake, "some_text", &text), -FI_ENODATA);
	setenv("FI_FAKE_SOME_TEXT", "abc", 1);
	assert_int_equal(fi_param_get(fake, "some_text", &text), 0);
	assert_string_equal(text, "abc");
	assert_int_equal(fi_param_get(NULL, "some_text", &text), -FI_ENOENT);
	unsetenv("FI_FAKE_SOME_TEXT");
}

static void numbers_and_truths_are_read_in_all_spellings(void **state)
{
	static const struct {
		const char *text;
		int value;
	} truths[] = {
		{ "1", 1 }, { "Yes", 1 }, { "TRUE", 1 },  { "on", 1 },
		{ "0", 0 }, { "no", 0 },  { "False", 0 }, { "OFF", 0 },
	};
	struct fi_provider *fake = prov();
	size_t i, size = 0;
	int value = -1;

	fi_param_define(fake, "n", FI_PARAM_INT, "h");
	fi_param_define(fake, "b", FI_PARAM_BOOL, "h");
	fi_param_define(fake, "s", FI_PARAM_SIZE_T, "h");
	setenv("FI_FAKE_N", "-0x10", 1);
	assert_int_equal(fi_param_get_int(fake, "n", &value), 0);
	assert_int_equal(value, -16);
	for (i = 0; i < sizeof(truths) / sizeof(truths[0]); i++) {
		setenv("FI_FAKE_B", truths[i].text, 1);
		value = -1;
		assert_int_equal(fi_param_get_bool(fake, "b", &value), 0);
		assert_int_equal(value, truths[i].value);
	}
	setenv("FI_FAKE_S", "18446744073709551615", 1);
	assert_int_equal(fi_param_get_size_t(fake, "s", &size), 0);
	assert_int_equal(size, SIZE_MAX);
	setenv("FI_FAKE_S", "-1", 1);
	assert_int_equal(fi_param_get_size_t(fake, "s", &size), 0);
	assert_int_equal(size, SIZE_MAX);
}

static void a_value_of_the_wrong_kind_is_left_out_with_a_line(void **state)
{
	static const char *const bad[] = { "", "x", "12x", "99999999999999999999" };
	struct fi_provider *fake = prov();
	size_t i, size = 5;
	int value = 7;

	fake_log_lines();
	fi_param_define(fake, "n", FI_PARAM_INT, "h");
	fi_param_define(fake, "b", FI_PARAM_BOOL, "h");
	fi_param_define(fake, "s", FI_PARAM_SIZE_T, "h");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("FI_FAKE_N", bad[i], 1);
		setenv("FI_FAKE_B", bad[i], 1);
		setenv("FI_FAKE_S", bad[i], 1);
		assert_int_equal(fi_param_get_int(fake, "n", &value), -FI_EINVAL);
		assert_int_equal(fi_param_get_bool(fake, "b", &value), -FI_EINVAL);
		assert_int_equal(fi_param_get_size_t(fake, "s", &size), -FI_EINVAL);
	}
	assert_int_equal(value, 7);
	assert_int_equal(size, 5);
	assert_int_equal(fake_log_cnt("FI_FAKE_B=x is ignored: it takes 1 or 0"), 1);
	setenv("FI_FAKE_N", "4294967296", 1);
	assert_int_equal(fi_param_get_int(fake, "n", &value), -FI_EINVAL);
}

static void wrong_calls_are_errors(void **state)
{
	struct fi_provider *fake = prov();
	int value;

	assert_int_equal(fi_param_define(fake, NULL, FI_PARAM_INT, "h"), -FI_EINVAL);
	assert_int_equal(fi_param_define(fake, "", FI_PARAM_INT, "h"), -FI_EINVAL);
	assert_int_equal(fi_param_define(fake, "n", FI_PARAM_INT, NULL), -FI_EINVAL);
	assert_int_equal(fi_param_define(fake, "n", FI_PARAM_INT, "%s", ""), 0);
	assert_int_equal(fi_param_get(fake, NULL, &value), -FI_EINVAL);
	assert_int_equal(fi_param_get(fake, "n", NULL), -FI_EINVAL);
	assert_int_equal(fi_param_get(fake, "never defined", &value), -FI_ENOENT);
	assert_int_equal(fi_getparams(NULL, &value), -FI_EINVAL);
	fi_freeparams(NULL);
}

static void the_list_has_every_setting_once_with_its_value(void **state)
{
	struct fi_provider *fake = prov();
	struct fi_param *list;
	int i, cnt, found = 0;

	fi_param_define(fake, "twice", FI_PARAM_INT, "first");
	fi_param_define(fake, "twice", FI_PARAM_SIZE_T, "second");
	setenv("FI_FAKE_TWICE", "12", 1);
	assert_int_equal(fi_getparams(&list, &cnt), 0);
	for (i = 0; i < cnt; i++) {
		assert_non_null(list[i].name);
		assert_non_null(list[i].help_string);
		if (strcmp(list[i].name, "FI_FAKE_TWICE"))
			continue;
		found++;
		assert_string_equal(list[i].help_string, "fake: second");
		assert_string_equal(list[i].value, "12");
		assert_int_equal(list[i].type, FI_PARAM_SIZE_T);
	}
	assert_int_equal(found, 1);
	assert_null(list[cnt].name);
	fi_freeparams(list);
	unsetenv("FI_FAKE_TWICE");
}

static void a_provider_takes_its_settings_with_it(void **state)
{
	struct fi_provider *fake = prov();
	int value;

	fi_param_define(fake, "n", FI_PARAM_INT, "h");
	registry_remove(fake);
	assert_int_equal(fi_param_get(fake, "n", &value), -FI_ENOENT);
}

static void a_file_gives_what_the_environment_does_not(void **state)
{
	struct fi_provider *fake = prov();
	int value = 0;

	unsetenv("FI_FAKE_N");
	fi_param_define(fake, "n", FI_PARAM_INT, "h");
	assert_int_equal(load("# comment\n\n  FI_FAKE_N = 5 \nnonsense\n=7\nFI_OTHER=x=y\n"), 2);
	assert_int_equal(fi_param_get_int(fake, "n", &value), 0);
	assert_int_equal(value, 5);
	assert_int_equal(load("FI_FAKE_N=6"), 1);
	fi_param_get_int(fake, "n", &value);
	assert_int_equal(value, 6);
	setenv("FI_FAKE_N", "7", 1);
	fi_param_get_int(fake, "n", &value);
	assert_int_equal(value, 7);
	params_prefer_file(true);
	fi_param_get_int(fake, "n", &value);
	assert_int_equal(value, 6);
	unsetenv("FI_FAKE_N");
}

static void a_missing_file_is_no_error(void **state)
{
	assert_int_equal(params_load("/nonexistent/libfabric.conf"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_setting_is_named_after_its_provider),
		TEST(numbers_and_truths_are_read_in_all_spellings),
		TEST(a_value_of_the_wrong_kind_is_left_out_with_a_line),
		TEST(wrong_calls_are_errors),
		TEST(the_list_has_every_setting_once_with_its_value),
		TEST(a_provider_takes_its_settings_with_it),
		TEST(a_file_gives_what_the_environment_does_not),
		TEST(a_missing_file_is_no_error),
	};

	return cmocka_run_group_tests_name("params", tests, NULL, NULL);
}
