/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weft-nvmed as a process: its command line, its socket, how it sleeps and is woken, how it ends.
 *
 * usage: nvmed-process-test WEFT_NVMED
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "host_side.h"
#include "nvme/lease.h"

static char *program;
static char folder[] = "/tmp/weft-nvmed-XXXXXX";
static char slot[sizeof(folder) + 32];
static char file[sizeof(folder) + 32];

struct process {
	pid_t pid;
	char line[512];
};

/* Start it, and read its first line. What it says is empty if it ends before. */
static void start(struct process *p, const char *const *options)
{
	char arg[sizeof(slot) + 16], *argv[12] = { program, arg };
	int out[2], n = 2;
	ssize_t len;

	snprintf(arg, sizeof(arg), "--slot=%s", slot);
	while (*options)
		argv[n++] = (char *)(uintptr_t)*options++;
	assert_int_equal(pipe(out), 0);
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (!p->pid) {
		dup2(out[1], STDOUT_FILENO);
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		execv(program, argv);
		_exit(127);
	}
	close(out[1]);
	len = read(out[0], p->line, sizeof(p->line) - 1);
	assert_true(len >= 0);
	p->line[len] = 0;
	close(out[0]);
}

static int ended(struct process *p)
{
	int status;

	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	return status;
}

static int stop(struct process *p, int signal)
{
	assert_int_equal(kill(p->pid, signal), 0);
	return ended(p);
}

static const char *const in_memory[] = { "--memory=16M", "--spin=20", NULL };

static char state_of(pid_t pid)
{
	char path[64], line[512] = "", *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	at = strrchr(line, ')');
	assert_non_null(at);
	return at[2];
}

static void wait_until_asleep(const struct process *p, const struct host_pair *q)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (!atomic_load((_Atomic uint32_t *)&q->page->asleep) || state_of(p->pid) != 'S') {
		clock_gettime(CLOCK_MONOTONIC, &now);
		assert_true(now.tv_sec - begin.tv_sec < 30);
	}
}

static void it_sleeps_and_a_doorbell_wakes_it(void **state)
{
	struct process p;
	struct host h;
	struct host_pair admin, q;
	struct nvme_sqe sqe;

	start(&p, in_memory);
	assert_non_null(strstr(p.line, "32768 blocks of 512 bytes"));
	assert_int_equal(host_connect(&h, slot, NULL, NULL), 0);
	assert_int_equal(host_attach(&h), 0);
	assert_int_equal(host_enable(&h, &admin, 16), 0);
	assert_int_equal(host_pair_create(&h, &admin, &q, 1, 16, 0, -1), 0);
	sqe = host_rw(&h, NVME_IO_READ, 0, 8, host_take(&h, NVME_PAGE), 4096);
	for (int i = 0; i < 300; i++) {
		wait_until_asleep(&p, &q);
		assert_int_equal(host_run(&q, &sqe, NULL), 0);
	}
	/* At once after each other, so that it is about to sleep when it is rung */
	for (int i = 0; i < 20000; i++) {
		for (volatile int n = 0; n < i % 500 * 20; n++)
			;
		assert_int_equal(host_run(&q, &sqe, NULL), 0);
	}
	wait_until_asleep(&p, &q);
	host_pair_forget(&q);
	host_pair_forget(&admin);
	host_close(&h);
	assert_int_equal(stop(&p, SIGTERM), 0);
	assert_int_equal(access(slot, F_OK), -1);
}

static bool there_is_a_controller(const struct host_pair *q)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

	assert_int_equal(fcntl(q->page_fd, F_GETLK, &lock), 0);
	return lock.l_type != F_UNLCK;
}

static void a_page_tells_of_the_end_and_its_lock_of_a_death(void **state)
{
	static const int signals[] = { SIGKILL, SIGTERM };

	for (int i = 0; i < 2; i++) {
		struct process p;
		struct host h;
		struct host_pair admin, q;
		int status;

		start(&p, in_memory);
		assert_int_equal(host_connect(&h, slot, NULL, NULL), 0);
		assert_int_equal(host_attach(&h), 0);
		assert_int_equal(host_enable(&h, &admin, 16), 0);
		assert_int_equal(host_pair_create(&h, &admin, &q, 1, 16, 0, -1), 0);
		assert_true(there_is_a_controller(&q));
		status = stop(&p, signals[i]);
		assert_int_equal(WIFSIGNALED(status), signals[i] == SIGKILL);
		assert_false(there_is_a_controller(&q));
		assert_int_equal(q.page->ended, signals[i] != SIGKILL);
		host_pair_forget(&q);
		host_pair_forget(&admin);
		host_close(&h);
	}
}

/* Again and again: how long it spins before it sleeps becomes shorter. */
static void leases_end_while_it_sleeps(void **state)
{
	struct process p;
	struct host h;
	struct host_pair admin;
	struct nvme_sqe arm = { .opcode = NVME_ADMIN_LEASE_ARM, .cdw10 = 1, .cdw12 = 50 };
	struct nvme_sqe aer = { .opcode = NVME_ADMIN_ASYNC_EVENT }, read;
	struct nvme_cqe cqe;

	start(&p, in_memory);
	assert_int_equal(host_connect(&h, slot, NULL, NULL), 0);
	assert_int_equal(host_attach(&h), 0);
	assert_int_equal(host_enable(&h, &admin, 16), 0);
	read = host_rw(&h, NVME_ADMIN_GET_LOG_PAGE, 0, 1, host_take(&h, NVME_PAGE), 512);
	read.nsid = 0;
	read.cdw10 = NVME_LOG_LEASES | (512 / 4 - 1u) << 16;
	read.cdw12 = 0;
	for (arm.cdw11 = 1; arm.cdw11 <= 20; arm.cdw11++) {
		assert_int_equal(host_run(&admin, &arm, NULL), 0);
		host_submit(&admin, &aer);
		host_ring(&admin);
		assert_true(host_wait(&admin, &cqe));
		assert_int_equal(cqe.result & 7, NVME_EVENT_TYPE_VENDOR);
		/* Until it is read nothing else is said of leases. */
		assert_int_equal(host_run(&admin, &read, NULL), 0);
	}
	host_pair_forget(&admin);
	host_close(&h);
	assert_int_equal(stop(&p, SIGINT), 0);
}

static void a_second_one_is_refused_and_a_dead_one_replaced(void **state)
{
	struct process first, second;

	start(&first, in_memory);
	start(&second, in_memory);
	assert_string_equal(second.line, "");
	assert_int_equal(WEXITSTATUS(ended(&second)), 1);
	assert_int_equal(WTERMSIG(stop(&first, SIGKILL)), SIGKILL);
	assert_int_equal(access(slot, F_OK), 0);
	start(&second, in_memory);
	assert_string_not_equal(second.line, "");
	assert_int_equal(stop(&second, SIGTERM), 0);
}

static void a_file_has_one_controller_and_the_same_serial_in_each_run(void **state)
{
	char option[sizeof(file) + 16], line[512];
	const char *const options[] = { option, "--block=4096", NULL };
	struct process p, other;
	struct host h;
	int fd = open(file, O_CREAT | O_RDWR, 0600);

	assert_int_equal(ftruncate(fd, (1 << 20) + 4000), 0);
	close(fd);
	snprintf(option, sizeof(option), "--file=%s", file);
	start(&p, options);
	assert_non_null(strstr(p.line, "256 blocks of 4096 bytes"));
	start(&other, options);
	assert_int_equal(WEXITSTATUS(ended(&other)), 1);
	assert_int_equal(host_connect(&h, slot, NULL, NULL), 0);
	assert_int_equal(host_attach(&h), 0);
	host_close(&h);
	assert_int_equal(stop(&p, SIGTERM), 0);
	strcpy(line, p.line);
	start(&p, options);
	assert_string_equal(line, p.line);
	assert_int_equal(stop(&p, SIGTERM), 0);
	unlink(file);
}

/* A service is started with none now and then. The file has memory behind it, which takes writes of any length. */
static void what_it_says_is_not_written_to_its_file(void **state)
{
	char path[64], option[96], at_slot[sizeof(slot) + 16], first[64] = "", zeros[64] = "";
	int disk = memfd_create("disk", MFD_CLOEXEC);
	struct process p = { 0 };
	struct timespec begin, now;
	struct host h;

	assert_int_equal(ftruncate(disk, 1 << 20), 0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), disk);
	snprintf(option, sizeof(option), "--file=%s", path);
	snprintf(at_slot, sizeof(at_slot), "--slot=%s", slot);
	p.pid = fork();
	assert_true(p.pid >= 0);
	if (!p.pid) {
		for (int fd = 0; fd <= STDERR_FILENO; fd++)
			close(fd);
		execl(program, program, at_slot, option, NULL);
		_exit(127);
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (host_connect(&h, slot, NULL, NULL)) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		assert_true(now.tv_sec - begin.tv_sec < 30);
	}
	assert_int_equal(host_attach(&h), 0);
	host_close(&h);
	assert_int_equal(stop(&p, SIGTERM), 0);
	assert_int_equal(pread(disk, first, sizeof(first), 0), sizeof(first));
	assert_memory_equal(first, zeros, sizeof(first));
	close(disk);
}

static void a_bad_command_line_is_said(void **state)
{
	static const char *const bad[][6] = {
		{ NULL },
		{ "--memory=0", NULL },
		{ "--memory=1000", NULL },
		{ "--memory=1X", NULL },
		{ "--memory=99999999T", NULL },
		{ "--memory=1M", "--file=x", NULL },
		{ "--memory=1M", "--queues=0", NULL },
		{ "--memory=1M", "--queues=1025", NULL },
		{ "--memory=1M", "--block=1024", NULL },
		{ "--memory=1M", "--cmb=100K", NULL },
		{ "--memory=1M", "--cmb=1G", "--granule=4K", NULL },
		{ "--memory=1M", "--serial=", NULL },
		{ "--memory=1M", "--serial=123456789012345678901", NULL },
		{ "--memory=1M", "--spin=x", NULL },
		{ "--memory=1M", "--deadline=100", NULL },
		{ "--memory=1M", "--direct", NULL },
		{ "--vfio=0000:01:00.0", "--block=4096", NULL },
		{ "--vfio=0000:01:00.0", "--cmb=1M", NULL },
		{ "--memory=1M", "more", NULL },
		{ "--nothing", NULL },
	};
	struct process p;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		start(&p, bad[i]);
		assert_int_equal(WEXITSTATUS(ended(&p)), 2);
	}
	start(&p, (const char *const[]){ "--file=/nonexistent/file", NULL });
	assert_int_equal(WEXITSTATUS(ended(&p)), 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_sleeps_and_a_doorbell_wakes_it),
		cmocka_unit_test(a_page_tells_of_the_end_and_its_lock_of_a_death),
		cmocka_unit_test(leases_end_while_it_sleeps),
		cmocka_unit_test(a_second_one_is_refused_and_a_dead_one_replaced),
		cmocka_unit_test(a_file_has_one_controller_and_the_same_serial_in_each_run),
		cmocka_unit_test(what_it_says_is_not_written_to_its_file),
		cmocka_unit_test(a_bad_command_line_is_said),
	};
	int failed;

	if (argc < 2 || !mkdtemp(folder))
		return 2;
	program = argv[1];
	snprintf(slot, sizeof(slot), "%s/slot", folder);
	snprintf(file, sizeof(file), "%s/file", folder);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
