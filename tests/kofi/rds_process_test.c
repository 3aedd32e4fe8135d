/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider rds in a process: the thread that says that it lives is there while a conn is up, and the child of a
 * fork leaves its parent's conns alone. Over mock_datagram.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>
#include "loop_end.h"
#include "wire.h"

#define LEN (200u << 10)

static uint8_t memory[2][LEN];
static struct loop_end ends[2];

/* Returns how many threads of the process have this name. */
static int threads_named(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	char path[300], comm[32];
	int cnt = 0;

	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(comm, sizeof(comm), file)) {
			comm[strcspn(comm, "\n")] = '\0';
			cnt += !strcmp(comm, name);
		}
		fclose(file);
	}
	closedir(tasks);
	return cnt;
}

/*
 * It names itself, so that it may not have done so yet. One that has been joined is listed until the kernel is done
 * with it.
 */
static void threads_are(int cnt)
{
	double until = loop_now_s() + 20;

	while (threads_named("weft-rds") != cnt)
		assert_true(loop_now_s() < until);
}

static void send_one(struct loop_end *from, struct loop_end *to)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	assert_int_equal(fi_recv(to->ep, memory[1], LEN, NULL, FI_ADDR_UNSPEC, NULL), 0);
	memset(memory[0], 7, LEN);
	do {
		ret = fi_send(from->ep, memory[0], LEN, NULL, from->other, NULL);
		fi_cq_read(from->cq, NULL, 0);
		fi_cq_read(to->cq, NULL, 0);
	} while (ret == -FI_EAGAIN);
	assert_int_equal(ret, 0);
	assert_int_equal(loop_end_completion(from, to, &entry), 0);
	assert_int_equal(loop_end_completion(to, from, &entry), 0);
}

static void open_both(void)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(loop_end_open(&ends[i], memory[i], LEN), 0);
	assert_int_equal(loop_end_knows(&ends[0], &ends[1]), 0);
	assert_int_equal(loop_end_knows(&ends[1], &ends[0]), 0);
}

static void close_both(void)
{
	for (int i = 0; i < 2; i++) {
		loop_end_close(&ends[i]);
		memset(&ends[i], 0, sizeof(ends[i]));
	}
}

static void a_thread_is_there_while_a_conn_is_up(void **state)
{
	assert_int_equal(threads_named("weft-rds"), 0);
	for (int i = 0; i < 3; i++) {
		open_both();
		assert_int_equal(threads_named("weft-rds"), 0);
		send_one(&ends[0], &ends[1]);
		threads_are(1);
		close_both();
		threads_are(0);
	}
}

/*
 * Looks at the copies of both ends, one of which has something to receive, and closes them. Returns 0 if nothing can be
 * sent over them.
 */
static int child(void)
{
	ssize_t ret = fi_send(ends[0].ep, memory[0], 8, NULL, ends[0].other, NULL);

	for (int i = 0; i < 100; i++) {
		fi_cq_read(ends[0].cq, NULL, 0);
		fi_cq_read(ends[1].cq, NULL, 0);
	}
	close_both();
	return ret == -FI_EOPBADSTATE ? 0 : 1;
}

static void the_child_of_a_fork_leaves_conns_alone(void **state)
{
	struct fi_cq_tagged_entry entry;
	int status = -1;
	pid_t pid;

	open_both();
	send_one(&ends[0], &ends[1]);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			fi_recv(ends[1].ep, memory[1], LEN, NULL, FI_ADDR_UNSPEC, NULL), 0);
		assert_int_equal(fi_send(ends[0].ep, memory[0], 64, NULL, ends[0].other, NULL),
				 0);
		pid = fork();
		if (!pid)
			_exit(child());
		assert_true(pid > 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(loop_end_completion(&ends[0], &ends[1], &entry), 0);
		assert_int_equal(loop_end_completion(&ends[1], &ends[0], &entry), 0);
		send_one(&ends[0], &ends[1]);
		send_one(&ends[1], &ends[0]);
		threads_are(1);
	}
	close_both();
}

/* A conn of the child's own, over endpoints that it opens */
static void the_child_of_a_fork_has_conns_of_its_own(void **state)
{
	int status = -1;
	pid_t pid;

	open_both();
	send_one(&ends[0], &ends[1]);
	pid = fork();
	if (!pid) {
		close_both();
		open_both();
		send_one(&ends[0], &ends[1]);
		threads_are(1);
		close_both();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	send_one(&ends[1], &ends[0]);
	close_both();
}

static int begin(void **state)
{
	kofi_rds_begin();
	return wire_register(&kofi_rds_wire);
}

static int finish(void **state)
{
	wire_unregister(&kofi_rds_wire);
	kofi_rds_end();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_is_there_while_a_conn_is_up),
		cmocka_unit_test(the_child_of_a_fork_leaves_conns_alone),
		cmocka_unit_test(the_child_of_a_fork_has_conns_of_its_own),
	};

	return cmocka_run_group_tests(tests, begin, finish);
}
