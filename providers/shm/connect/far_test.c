/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of connections by a socket between two processes that share less and less: one or both see
 * nothing of the other in /proc, have namespaces of their own, or no more than a folder together.
 */
#define _GNU_SOURCE /* unshare */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "local_socket.h"
#include "mock_child.h"
#include "mock_core.h"

static struct mock a;
static char folder[64];

static int setup(void **state)
{
	strcpy(folder, "/tmp/weft-socket-XXXXXX");
	return mock_board_open() || !mkdtemp(folder);
}

static int teardown(void **state)
{
	sys_fault_clear();
	mock_socket_dir = NULL;
	mock_board_close();
	mock_close(&a);
	memset(&a, 0, sizeof(a));
	sys_local_remove_stale(folder);
	return rmdir(folder);
}

static void connected(void)
{
	mock_connected(&a, NULL, &board->child);
	assert_int_equal(pshm_conn_of(a.conn)->process->how, PSHM_BY_SOCKET);
}

/* Serves one connection: answers every packet by the same tag, until it is closed in order. */
static int echo(struct mock *m)
{
	uint64_t answered = 0;

	mock_until(m, NULL, m->conn);
	mock_until(m, NULL, ({
			   while (m->conn && answered < m->next_tag &&
				  mock_put(m->conn, answered, 8 + (uint32_t)answered % 900))
				   answered++;
			   m->downs;
		   }));
	return m->garbled || m->down_err;
}

static void exchange(uint64_t cnt)
{
	uint64_t sent = 0;

	mock_until(&a, NULL, ({
		while (sent < cnt && mock_put(a.conn, sent, 8 + (uint32_t)sent % 2000))
			sent++;
		a.next_tag == cnt;
	}));
	assert_false(a.garbled);
}

static int begin_hidden(void)
{
	mock_hide_proc();
	return 0;
}

static void other_process_is_reached_where_neither_sees_the_other(void **state)
{
	mock_child_start(begin_hidden, echo);
	mock_hide_proc();
	mock_open(&a);
	connected();
	exchange(20000);
	mock_close(&a);
	mock_child_ended(0);
}

static void socket_takes_over_where_one_sees_the_other_alone(void **state)
{
	mock_child_start(begin_hidden, echo);
	mock_open(&a); /* we leave a request, which it can't open */
	connected();
	exchange(2000);
	mock_close(&a);
	mock_child_ended(0);
}

static int die(struct mock *m)
{
	mock_child_says(m);
	return raise(SIGKILL);
}

static void killed_peer_is_found_after_what_it_left(void **state)
{
	struct wire_conn *conn;
	int err = 0;

	mock_child_start(begin_hidden, die);
	mock_hide_proc();
	mock_open(&a);
	connected();
	conn = a.conn;
	mock_child_ended(SIGKILL);
	mock_until(&a, NULL, (err = pshm_check(conn)) != 0);
	assert_int_equal(err, -FI_ECONNRESET);
	assert_int_equal(a.next_tag, 100);
	pshm_disconnect(conn);
	assert_int_equal(mock_connect(&a, &board->child, &conn), -FI_ECONNREFUSED);
	board->child.ns_hash++; /* another host, whose processes are unknown */
	assert_int_equal(mock_connect(&a, &board->child, &conn), -FI_EHOSTUNREACH);
}

/* Returns what connecting to the child does; a connection is given up at once. */
static int try_connect(void)
{
	struct wire_conn *conn;
	int err = mock_connect(&a, &board->child, &conn);

	if (!err)
		pshm_disconnect(conn);
	return err;
}

static int begin_another(struct mock *m)
{
	mock_child_says(m);
	return execlp("sleep", "sleep", "60", (char *)NULL);
}

static void peer_that_begins_another_program_is_dead(void **state)
{
	struct wire_conn *conn;
	int err = 0;

	mock_child_start(begin_hidden, begin_another);
	mock_hide_proc();
	mock_open(&a);
	connected();
	conn = a.conn;
	mock_until(&a, NULL, (err = pshm_check(conn)) != 0);
	assert_int_equal(err, -FI_ECONNRESET);
	assert_int_equal(a.next_tag, 100);
	assert_int_equal(kill(child, 0), 0);
	pshm_disconnect(conn);
	/* The kernel closes the peer's sockets one after the other: where it listens may be the last. */
	mock_until(&a, NULL, (err = try_connect()) != 0);
	assert_true(err < 0);
}

static int wait_for_end(struct mock *m)
{
	return pause();
}

static void listener_that_is_killed_meanwhile_ends_the_request(void **state)
{
	struct wire_conn *conn;

	mock_child_start(begin_hidden, wait_for_end);
	mock_hide_proc();
	mock_open(&a);
	assert_int_equal(mock_connect(&a, &board->child, &conn), 0);
	kill(child, SIGKILL);
	mock_child_ended(SIGKILL);
	mock_until(&a, NULL, a.downs);
	assert_int_equal(a.down_err, -FI_ECONNRESET);
}

/* A copy of the child survives, with all the descriptors that it did not close. */
static int leave_a_copy(struct mock *m)
{
	mock_until(m, NULL, m->conn);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, 0);
		atomic_store(&board->step, 2);
		alarm(600);
		mock_step_wait(3);
		_exit(0);
	}
	mock_step_wait(2);
	return raise(SIGKILL);
}

static void copy_made_by_fork_does_not_hide_a_death(void **state)
{
	int err = 0;

	mock_child_start(begin_hidden, leave_a_copy);
	mock_hide_proc();
	mock_open(&a);
	connected();
	mock_child_ended(SIGKILL);
	mock_until(&a, NULL, (err = pshm_check(a.conn)) != 0);
	assert_int_equal(err, -FI_ECONNRESET);
	atomic_store(&board->step, 3);
}

/* Containers */

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		err = errno;
	close(fd);
	return err;
}

/*
 * Namespaces of its own, in which nothing is mounted at /proc: the first process of the pid
 * namespace continues, the one that made it waits for it.
 */
static int contain(int flags)
{
	char map[64];
	int err, status;
	pid_t first;

	snprintf(map, sizeof(map), "%u %u 1", (unsigned)geteuid(), (unsigned)geteuid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | flags))
		return errno;
	err = write_file("/proc/self/uid_map", map);
	if (!err && mount("none", "/proc", "tmpfs", 0, NULL))
		err = errno;
	if (err)
		return err;
	first = fork();
	if (first < 0)
		return errno;
	if (!first) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return 0;
	}
	waitpid(first, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static int begin_container(void)
{
	return contain(0);
}

static int begin_container_without_network(void)
{
	mock_socket_dir = folder;
	return contain(CLONE_NEWNET);
}

static void container_without_proc_is_reached_through_the_network_namespace(void **state)
{
	if (!mock_child_start(begin_container, echo))
		skip();
	assert_int_equal(board->child.ns_hash, ADDR_NO_NS);
	mock_open(&a);
	connected();
	exchange(5000);
	mock_close(&a);
	mock_child_ended(0);
}

static void containers_that_share_a_folder_alone_use_it(void **state)
{
	struct wire_conn *conn;

	if (!mock_child_start(begin_container_without_network, echo))
		skip();
	mock_open(&a); /* which does not know of the folder */
	assert_int_equal(mock_connect(&a, &board->child, &conn), -FI_EHOSTUNREACH);
	mock_close(&a);
	mock_socket_dir = folder;
	mock_open(&a);
	connected();
	exchange(5000);
	mock_close(&a);
	mock_child_ended(0);
}

static int serve_in_container(struct mock *m)
{
	mock_until(m, NULL, m->conn);
	return raise(SIGKILL);
}

static void container_that_dies_is_missed_and_tidied_up_after(void **state)
{
	int err = 0, files = 0;
	struct dirent *entry;
	DIR *dir;

	if (!mock_child_start(begin_container_without_network, serve_in_container))
		skip();
	mock_socket_dir = folder;
	mock_open(&a);
	connected();
	mock_until(&a, NULL, (err = pshm_check(a.conn)) != 0);
	assert_int_equal(err, -FI_ECONNRESET);
	mock_close(&a);
	waitpid(child, NULL, 0);
	child = 0;
	mock_open(&a);
	dir = opendir(folder);
	while ((entry = readdir(dir)))
		files += entry->d_name[0] != '.';
	closedir(dir);
	assert_int_equal(files, 1); /* ours */
	mock_close(&a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(other_process_is_reached_where_neither_sees_the_other),
		TEST(socket_takes_over_where_one_sees_the_other_alone),
		TEST(killed_peer_is_found_after_what_it_left),
		TEST(peer_that_begins_another_program_is_dead),
		TEST(listener_that_is_killed_meanwhile_ends_the_request),
		TEST(copy_made_by_fork_does_not_hide_a_death),
		TEST(container_without_proc_is_reached_through_the_network_namespace),
		TEST(containers_that_share_a_folder_alone_use_it),
		TEST(container_that_dies_is_missed_and_tidied_up_after),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
