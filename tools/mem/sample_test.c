/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Looking at a process that would harm who looks at it: by its name, and by a file that takes long to open. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "sample.h"

static int show_page(void)
{
	static struct weft_mem_stats page;
	int fd = memfd_create(WEFT_MEM_STATS_FILE, MFD_CLOEXEC);

	page.magic = WEFT_MEM_STATS_MAGIC;
	page.version = WEFT_MEM_STATS_VERSION;
	page.pid = (uint32_t)getpid();
	page.parts[0].kind = WEFT_MEM_PART_CACHE;
	page.parts[0].counts[WEFT_MEM_CACHE_ENTRIES] = 7;
	return write(fd, &page, sizeof(page)) == (ssize_t)sizeof(page) ? 0 : -1;
}

/* A file of the same name that can't be opened until its owner allows it, or the kernel loses patience. */
static int show_lease(void)
{
	int fd = memfd_create(WEFT_MEM_STATS_FILE, MFD_CLOEXEC), again;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	close(fd);
	signal(SIGIO, SIG_IGN);
	return fcntl(again, F_SETLEASE, F_WRLCK);
}

/* Returns a process, which waits to be killed. @show: what it does first */
static pid_t begin(int (*show)(void), const char *name)
{
	int told[2];
	char byte = 1;
	pid_t pid;

	assert_int_equal(pipe(told), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		byte = prctl(PR_SET_NAME, name) || show() || show_page();
		if (write(told[1], &byte, 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	assert_int_equal(read(told[0], &byte, 1), 1);
	assert_int_equal(byte, 0);
	close(told[0]);
	close(told[1]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int show_nothing(void)
{
	return 0;
}

static void a_name_gives_a_terminal_no_commands(void **state)
{
	pid_t pid = begin(show_nothing, "\033[31m\a\x9b 1");
	struct sample sample;
	char why[128] = "";

	assert_int_equal(sample_read(pid, &sample, why), 0);
	assert_string_equal(sample.command, "?[31m?? 1");
	end(pid);
}

static void a_lease_makes_nobody_wait(void **state)
{
	pid_t pid = begin(show_lease, "leases");
	struct sample sample;
	char why[128] = "";

	assert_int_equal(sample_read(pid, &sample, why), 0);
	assert_int_equal(sample_count(&sample, WEFT_MEM_PART_CACHE, WEFT_MEM_CACHE_ENTRIES), 7);
	end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_gives_a_terminal_no_commands),
		cmocka_unit_test(a_lease_makes_nobody_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
