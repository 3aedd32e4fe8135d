/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is logged, where it is written, and which loggers receive it. */
#include <fcntl.h>
#include <pthread.h>
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

#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <rdma/providers/fi_log.h>

#include "fake_provider.h"
#include "log.h"
#include "start.h"

static const struct fi_provider shm = { .name = "shm" }, tcp = { .name = "tcp" };

static void start_with(const char *name, const char *value)
{
	core_stop();
	setenv(name, value, 1);
	core_start();
}

static void without_settings_warnings_alone_are_logged(void **state)
{
	core_start();
	assert_true(fi_log_enabled(&shm, FI_LOG_WARN, FI_LOG_CORE));
	assert_false(fi_log_enabled(&shm, FI_LOG_TRACE, FI_LOG_CORE));
	assert_false(fi_log_enabled(&shm, FI_LOG_INFO, FI_LOG_CORE));
	assert_false(log_is_wanted());
	assert_true(fi_log_enabled(NULL, FI_LOG_WARN, FI_LOG_CORE));
}

static void a_level_includes_those_before_it(void **state)
{
	start_with("FI_LOG_LEVEL", "INFO");
	assert_true(fi_log_enabled(&shm, FI_LOG_WARN, FI_LOG_CQ));
	assert_true(fi_log_enabled(&shm, FI_LOG_INFO, FI_LOG_CQ));
	assert_false(fi_log_enabled(&shm, FI_LOG_DEBUG, FI_LOG_CQ));
	assert_true(log_is_wanted());
	start_with("FI_LOG_LEVEL", "loud");
	assert_true(fi_log_enabled(&shm, FI_LOG_WARN, FI_LOG_CQ));
	assert_false(fi_log_enabled(&shm, FI_LOG_INFO, FI_LOG_CQ));
}

static void providers_and_subsystems_are_chosen(void **state)
{
	start_with("FI_LOG_PROV", "tcp");
	assert_true(fi_log_enabled(&tcp, FI_LOG_WARN, FI_LOG_CQ));
	assert_false(fi_log_enabled(&shm, FI_LOG_WARN, FI_LOG_CQ));
	assert_true(fi_log_enabled(&core_provider, FI_LOG_WARN, FI_LOG_CORE));
	start_with("FI_LOG_PROV", "^tcp");
	assert_false(fi_log_enabled(&tcp, FI_LOG_WARN, FI_LOG_CQ));
	assert_true(fi_log_enabled(&shm, FI_LOG_WARN, FI_LOG_CQ));
	start_with("FI_LOG_SUBSYS", "cq,av");
	assert_true(fi_log_enabled(&shm, FI_LOG_WARN, FI_LOG_AV));
	assert_false(fi_log_enabled(&shm, FI_LOG_WARN, FI_LOG_MR));
}

static void what_is_no_level_or_subsystem_is_told_once(void **state)
{
	fake_log_lines();
	start_with("FI_LOG_LEVEL", "loud");
	assert_int_equal(fake_log_cnt("FI_LOG_LEVEL=loud is ignored: valid are warn, trace"), 1);
	start_with("FI_LOG_LEVEL", "Debug");
	start_with("FI_LOG_LEVEL", "");
	start_with("FI_LOG_SUBSYS", "^cq,EP_DATA");
	assert_int_equal(fake_log_cnt("FI_LOG_"), 1);
	start_with("FI_LOG_SUBSYS", "cq,queue");
	assert_int_equal(fake_log_cnt("FI_LOG_SUBSYS=cq,queue: no subsystem queue"), 1);
	assert_int_equal(fake_log_cnt("FI_LOG_"), 2);
}

static void a_number_out_of_range_is_not_enabled(void **state)
{
	core_start();
	assert_false(fi_log_enabled(&shm, (enum fi_log_level)9, FI_LOG_CORE));
	assert_false(fi_log_enabled(&shm, FI_LOG_WARN, (enum fi_log_subsys)99));
}

static void often_repeated_messages_have_an_interval(void **state)
{
	uint64_t showtime = 0;

	start_with("FI_LOG_INTERVAL", "100000");
	assert_true(fi_log_ready(&shm, FI_LOG_WARN, FI_LOG_CORE, &showtime));
	assert_false(fi_log_ready(&shm, FI_LOG_WARN, FI_LOG_CORE, &showtime));
	assert_false(fi_log_ready(&shm, FI_LOG_INFO, FI_LOG_CORE, &(uint64_t){ 0 }));
	assert_false(fi_log_ready(&shm, FI_LOG_WARN, FI_LOG_CORE, NULL));
}

/* Reads a whole small file; returns the bytes read. */
static size_t read_file(const char *path, char *buf, size_t len)
{
	FILE *file = fopen(path, "r");
	size_t n;

	assert_non_null(file);
	n = fread(buf, 1, len - 1, file);
	buf[n] = '\0';
	fclose(file);
	return n;
}

static void a_file_receives_whole_lines_and_is_never_overwritten(void **state)
{
	char folder[] = "/tmp/weft-log-XXXXXX", path[64], text[512], again[512];
	struct stat st;
	int quiet, saved;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/log", folder);
	start_with("FI_LOG_LOCATION", path);
	FI_WARN(&shm, FI_LOG_AV, "without an end");
	FI_WARN(&shm, FI_LOG_AV, "with one\n");
	core_stop();
	read_file(path, text, sizeof(text));
	assert_non_null(strstr(text, ":shm:av:"));
	assert_non_null(strstr(text, "<warn> without an end\nweft:"));
	assert_non_null(strstr(text, "<warn> with one\n"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);

	/* The second time it exists: a warning, and stderr. */
	quiet = open("/dev/null", O_WRONLY);
	saved = dup(STDERR_FILENO);
	dup2(quiet, STDERR_FILENO);
	start_with("FI_LOG_LOCATION", path);
	FI_WARN(&shm, FI_LOG_AV, "again\n");
	core_stop();
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(quiet);
	read_file(path, again, sizeof(again));
	assert_string_equal(again, text);
	unlink(path);

	start_with("FI_LOG_LOCATION", folder);
	FI_WARN(&shm, FI_LOG_AV, "in a folder\n");
	core_stop();
	snprintf(path, sizeof(path), "%s/ofi_%d.log", folder, (int)getpid());
	assert_true(read_file(path, text, sizeof(text)) > 0);
	unlink(path);
	rmdir(folder);
}

static int heard_cnt;
static char heard[256];

static int capture_enabled(const struct fi_provider *prov, enum fi_log_level level,
			   enum fi_log_subsys subsys, uint64_t flags)
{
	return !(flags & FI_LOG_PROV_FILTERED);
}

static void listen_log(const struct fi_provider *prov, enum fi_log_level level,
		       enum fi_log_subsys subsys, const char *func, int line, const char *msg)
{
	heard_cnt++;
	snprintf(heard, sizeof(heard), "%s: %s", prov->name, msg);
}

static struct fi_ops_log listen_ops = {
	.size = sizeof(struct fi_ops_log),
	.enabled = capture_enabled,
	.log = listen_log,
};

static void an_imported_logger_receives_until_it_is_closed(void **state)
{
	struct fid_logging logger = { .ops = &listen_ops }, second = { .ops = &listen_ops };
	struct fid *fid;

	core_start();
	assert_int_equal(fi_import_log(FI_VERSION(1, 13), 0, &logger), 0);
	assert_true(log_is_wanted());
	heard_cnt = 0;
	FI_INFO(&shm, FI_LOG_CORE, "%d\n", 42);
	assert_int_equal(heard_cnt, 1);
	assert_string_equal(heard, "shm: 42\n");
	fi_log(NULL, FI_LOG_WARN, FI_LOG_CORE, NULL, 0, "anonymous");
	assert_string_equal(heard, "core: anonymous");

	assert_int_equal(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 0, &fid, NULL),
			 -FI_EALREADY);
	assert_int_equal(fi_import_log(FI_VERSION(1, 13), 0, &second), -FI_EALREADY);

	assert_int_equal(fi_close(&logger.fid), 0);
	heard_cnt = 0;
	FI_INFO(&shm, FI_LOG_CORE, "nobody\n");
	assert_int_equal(heard_cnt, 0);
	assert_false(log_is_wanted());
	assert_int_equal(fi_import_log(FI_VERSION(1, 13), 0, &second), 0);
	assert_int_equal(fi_close(&second.fid), 0);
}

static void wrong_imports_are_errors(void **state)
{
	struct fid_logging logger = { .ops = &listen_ops };
	struct fi_ops_log small = { .size = sizeof(small) - 1 };
	struct fid *fid;

	assert_int_equal(fi_import_log(FI_VERSION(1, 12), 0, &logger), -FI_EINVAL);
	assert_int_equal(fi_import_log(FI_VERSION(1, 13), 1, &logger), -FI_EBADFLAGS);
	assert_int_equal(fi_open(FI_VERSION(1, 13), "logging", NULL, 8, 0, &fid, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 0, NULL, NULL),
			 -FI_EINVAL);
	assert_int_equal(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 0, &fid, NULL), 0);
	assert_int_equal(fi_import_fid(fid, NULL, 0), -FI_EINVAL);
	logger.fid.fclass = FI_CLASS_EQ;
	assert_int_equal(fi_import_fid(fid, &logger.fid, 0), -FI_EINVAL);
	logger.fid.fclass = FI_CLASS_LOG;
	assert_int_equal(fi_import_fid(fid, &logger.fid, 1), -FI_EINVAL);
	logger.ops = &small;
	assert_int_equal(fi_import_fid(fid, &logger.fid, 0), -FI_EINVAL);
	logger.ops = NULL;
	assert_int_equal(fi_import_fid(fid, &logger.fid, 0), -FI_EINVAL);
	assert_false(log_is_wanted());
	assert_int_equal(fi_control(fid, FI_ENABLE, NULL), -FI_ENOSYS);
}

static int state_of_log;

static void look_log(const struct fi_provider *prov, enum fi_log_level level,
		     enum fi_log_subsys subsys, const char *func, int line, const char *msg)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_of_log);
}

/* Whatever it does there, stdio among it: callers hold locks. */
static void a_thread_that_is_cancelled_does_not_end_in_the_log(void **state)
{
	struct fi_ops_log ops = { .size = sizeof(ops),
				  .enabled = capture_enabled,
				  .log = look_log };
	struct fid_logging logger = { .ops = &ops };
	int after;

	core_start();
	assert_int_equal(fi_import_log(FI_VERSION(1, 13), 0, &logger), 0);
	state_of_log = PTHREAD_CANCEL_ENABLE;
	FI_WARN(&shm, FI_LOG_AV, "of a thread that may be cancelled\n");
	assert_int_equal(state_of_log, PTHREAD_CANCEL_DISABLE);
	assert_int_equal(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &after), 0);
	assert_int_equal(after, PTHREAD_CANCEL_ENABLE);
	/* it stays as it was where the caller has forbidden it already */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	FI_WARN(&shm, FI_LOG_AV, "of one that may not\n");
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &after);
	assert_int_equal(after, PTHREAD_CANCEL_DISABLE);
	assert_int_equal(fi_close(&logger.fid), 0);
}

static void an_ear_hears_each_message_once_and_nothing_of_the_core(void **state)
{
	struct log_capture capture, inner;

	core_start();
	log_capture_begin(&capture);
	assert_true(fi_log_enabled(&shm, FI_LOG_INFO, FI_LOG_CORE));
	assert_false(fi_log_enabled(&shm, FI_LOG_DEBUG, FI_LOG_CORE));
	assert_false(fi_log_enabled(&core_provider, FI_LOG_INFO, FI_LOG_CORE));
	FI_INFO(&shm, FI_LOG_CORE, "first.\n");
	log_capture_begin(&inner);
	FI_INFO(&tcp, FI_LOG_CORE, "inner\n");
	log_capture_end(&inner);
	FI_INFO(&shm, FI_LOG_CORE, "first\n");
	FI_INFO(&tcp, FI_LOG_CORE, "second\n");
	log_capture_end(&capture);
	FI_INFO(&shm, FI_LOG_CORE, "too late\n");
	assert_string_equal(capture.text, "first; second");
	assert_string_equal(inner.text, "inner");
}

static void an_ear_that_is_full_keeps_whole_messages(void **state)
{
	struct log_capture capture;
	char msg[128];
	int i;

	log_capture_begin(&capture);
	for (i = 0; i < 100; i++) {
		snprintf(msg, sizeof(msg), "message number %d of some length\n", i);
		FI_INFO(&shm, FI_LOG_CORE, "%s", msg);
	}
	log_capture_end(&capture);
	assert_true(capture.used < sizeof(capture.text));
	assert_int_equal(strlen(capture.text), capture.used);
	assert_string_equal(capture.text + capture.used - 6, "length");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_settings_warnings_alone_are_logged),
		TEST(a_level_includes_those_before_it),
		TEST(providers_and_subsystems_are_chosen),
		TEST(what_is_no_level_or_subsystem_is_told_once),
		TEST(a_number_out_of_range_is_not_enabled),
		TEST(often_repeated_messages_have_an_interval),
		TEST(a_file_receives_whole_lines_and_is_never_overwritten),
		TEST(an_imported_logger_receives_until_it_is_closed),
		TEST(wrong_imports_are_errors),
		TEST(a_thread_that_is_cancelled_does_not_end_in_the_log),
		TEST(an_ear_hears_each_message_once_and_nothing_of_the_core),
		TEST(an_ear_that_is_full_keeps_whole_messages),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
