/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The lines of driven children, and one that dies: this program itself, which is started with arguments as
 * such a child is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "worker.h"
#include "figures.h"

static void a_child_introduces_itself(void **state)
{
	struct results_config out = { .api = 2 << 16 | 7,
				      .provider = "tcp;ofi_rxm",
				      .prov_version = "117.0",
				      .build = "1.17.0 of the distribution",
				      .library = "/a path/libfabric.so.1" };
	struct results_config in = { 0 };
	char *text;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	worker_ready_print(to, &out);
	fclose(to);
	assert_int_equal(worker_ready_parse(text, &in), 0);
	assert_int_equal(in.api, out.api);
	assert_string_equal(in.provider, out.provider);
	assert_string_equal(in.prov_version, out.prov_version);
	assert_string_equal(in.build, out.build);
	assert_string_equal(in.library, out.library);
	assert_int_equal(worker_ready_parse("ready\t1\tshm\n", &in), -EPROTO);
	free(text);
}

static void a_sample_line_is_read(void **state)
{
	struct worker_sample sample;

	assert_int_equal(worker_sample_parse("sample latency 65536 3.25 nan\n", &sample), 0);
	assert_int_equal(sample.test, FIGURE_LATENCY);
	assert_int_equal(sample.size, 65536);
	assert_float_equal(sample.value, 3.25, 1e-6);
	assert_true(isnan(sample.raw_ns));
	assert_int_equal(worker_sample_parse("sample all 8 1 1", &sample), -EINVAL);
	assert_int_equal(worker_sample_parse("sample lat 8 1", &sample), -EINVAL);
	assert_int_equal(worker_sample_parse("Segmentation fault", &sample), -EINVAL);
}

static void the_end_of_a_child_is_an_error(void **state)
{
	char *none[] = { NULL };
	struct worker_sample sample;
	struct worker child;
	siginfo_t end;

	assert_int_equal(worker_start(&child, NULL, NULL, "A", none), 0);
	assert_int_equal(waitid(P_PID, (id_t)child.pid, &end, WEXITED | WNOWAIT), 0);
	worker_go(&child);
	assert_int_equal(worker_samples(&child, &sample, 1), -EPIPE);
	worker_stop(&child);
}

int main(int argc, char **argv)
{
	static const struct results_config config = {
		.provider = "tcp", .prov_version = "1", .build = "none", .library = "none"
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_introduces_itself),
		cmocka_unit_test(a_sample_line_is_read),
		cmocka_unit_test(the_end_of_a_child_is_an_error),
	};

	if (argc > 1) {
		worker_ready_print(stdout, &config);
		return EXIT_SUCCESS;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
