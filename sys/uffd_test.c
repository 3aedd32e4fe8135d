/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of watching mappings: the event of each kind of change, and what a check says before the event
 * is read. A second thread makes the change, since it sleeps until then.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "fault.h"
#include "uffd.h"

#define PAGES 4
#define ANY   (PROT_READ | PROT_WRITE)

static int uffd;
static size_t page, len;
static uint8_t *range;

static void *map(void *at, int flags)
{
	void *p = mmap(at, len, ANY, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 1, len);
	return p;
}

static int open_and_watch(void **state)
{
	uffd = sys_uffd_open();
	if (uffd < 0) {
		print_message("no userfaultfd: %s\n", strerror(-uffd));
		return 0;
	}
	range = map(NULL, 0);
	assert_int_equal(sys_uffd_watch(uffd, range, len), 0);
	return 0;
}

static int close_and_unmap(void **state)
{
	if (uffd >= 0) {
		close(uffd);
		munmap(range, len);
	}
	return 0;
}

/* Makes a change on a thread of its own; returns its event, read after the check has seen it. */
static struct sys_uffd_event event_of(void *(*change)(void *))
{
	struct pollfd p = { .fd = uffd, .events = POLLIN };
	struct sys_uffd_event event[2];
	pthread_t thread;

	if (uffd < 0)
		skip();
	assert_int_equal(sys_uffd_check(uffd, range, len), 0);
	assert_int_equal(pthread_create(&thread, NULL, change, NULL), 0);
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(sys_uffd_check(uffd, range, len), -EAGAIN);
	assert_int_equal(sys_uffd_read(uffd, event, 2), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(sys_uffd_read(uffd, event + 1, 1), 0);
	return event[0];
}

static void *unmaps(void *arg)
{
	munmap(range + page, page);
	return NULL;
}

static void unmapping_is_told(void **state)
{
	struct sys_uffd_event e = event_of(unmaps);

	assert_int_equal(e.kind, SYS_UFFD_UNMAP);
	assert_int_equal(e.start, (uintptr_t)range + page);
	assert_int_equal(e.end, (uintptr_t)range + 2 * page);
	assert_int_equal(sys_uffd_check(uffd, range, len), -ENOENT);
	assert_int_equal(sys_uffd_check(uffd, range, page), 0);
}

static void *maps_over(void *arg)
{
	map(range, MAP_FIXED);
	return NULL;
}

static void mapping_over_it_is_told(void **state)
{
	struct sys_uffd_event e = event_of(maps_over);

	assert_int_equal(e.kind, SYS_UFFD_UNMAP);
	assert_int_equal(e.start, (uintptr_t)range);
	assert_int_equal(e.end, (uintptr_t)range + len);
	assert_int_equal(sys_uffd_check(uffd, range, len), -ENOENT);
}

static void *moves_to;
static _Atomic bool moved;

static void *moves(void *arg)
{
	assert_ptr_equal(mremap(range, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, moves_to),
			 moves_to);
	moved = true;
	return NULL;
}

static void moving_is_told(void **state)
{
	struct sys_uffd_event e;
	struct sys_uffd_event rest[2];
	struct pollfd p = { .fd = -1, .events = POLLIN };
	pthread_t thread;

	if (uffd < 0)
		skip();
	p.fd = uffd;
	moved = false;
	moves_to = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(pthread_create(&thread, NULL, moves, NULL), 0);
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(sys_uffd_check(uffd, range, len), -EAGAIN);
	assert_int_equal(sys_uffd_read(uffd, &e, 1), 1);
	assert_int_equal(e.kind, SYS_UFFD_REMAP);
	assert_int_equal(e.start, (uintptr_t)range);
	assert_int_equal(e.end, (uintptr_t)range + len);
	assert_int_equal(e.to, (uintptr_t)moves_to);
	/* Some kernels tell of the old addresses too: the call returns once that has been read. */
	while (!moved)
		if (poll(&p, 1, 10) == 1)
			sys_uffd_read(uffd, rest, 2);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(sys_uffd_check(uffd, range, len), -ENOENT);
	sys_uffd_unwatch(uffd, moves_to, len);
	munmap(moves_to, len);
}

static int advice;

static void *advises(void *arg)
{
	assert_int_equal(madvise(range, 2 * page, advice), 0);
	return NULL;
}

static void removal_is_told_before_it_happens(void **state)
{
	static const int all[] = { MADV_DONTNEED, MADV_FREE };

	if (uffd < 0)
		skip();
	for (int i = 0; i < 2; i++) {
		struct sys_uffd_event e;

		advice = all[i];
		memset(range, 1, len);
		e = event_of(advises);
		assert_int_equal(e.kind, SYS_UFFD_REMOVE);
		assert_int_equal(e.start, (uintptr_t)range);
		assert_int_equal(e.end, (uintptr_t)range + 2 * page);
	}
}

/* The kernel tells nothing of it. */
static void shared_memory_attached_over_it_is_found(void **state)
{
	int id;

	if (uffd < 0)
		skip();
	id = shmget(IPC_PRIVATE, len, 0600);
	if (id < 0)
		skip();
	assert_int_equal(sys_uffd_check(uffd, range, len), 0);
	assert_ptr_equal(shmat(id, range, SHM_REMAP), range);
	assert_int_equal(sys_uffd_check(uffd, range, len), -ENOENT);
	shmctl(id, IPC_RMID, NULL);
}

static void what_is_not_watched_any_more_is_not_told(void **state)
{
	struct sys_uffd_event e;

	if (uffd < 0)
		skip();
	sys_uffd_unwatch(uffd, range, len);
	assert_int_equal(sys_uffd_check(uffd, range, len), -ENOENT);
	unmaps(NULL);
	assert_int_equal(sys_uffd_read(uffd, &e, 1), 0);
}

static void memory_of_files_is_not_watched(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *file = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);

	close(fd);
	if (uffd < 0)
		skip();
	assert_int_equal(sys_uffd_watch(uffd, file, page), -EINVAL);
	munmap(file, page);
	assert_int_equal(sys_uffd_watch(uffd, file, page), -EINVAL);
}

/* Changes in a child are its own. */
static void a_child_is_not_watched(void **state)
{
	struct sys_uffd_event e;
	int status;
	pid_t pid;

	if (uffd < 0)
		skip();
	pid = fork();
	if (!pid) {
		unmaps(NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(sys_uffd_read(uffd, &e, 1), 0);
	assert_int_equal(sys_uffd_check(uffd, range, len), 0);
}

static void each_call_may_fail(void **state)
{
	sys_fault_set(SYS_CALL_USERFAULTFD, EPERM, 0, 1);
	assert_int_equal(sys_uffd_open(), -EPERM);
	sys_fault_set(SYS_CALL_UFFD_REGISTER, EBUSY, 0, 1);
	assert_int_equal(sys_uffd_watch(uffd, range, len), -EBUSY);
	sys_fault_set(SYS_CALL_UFFD_CHECK, EAGAIN, 0, 1);
	assert_int_equal(sys_uffd_check(uffd, range, len), -EAGAIN);
	sys_fault_clear();
}

#define watched_test(test) \
	cmocka_unit_test_setup_teardown(test, open_and_watch, close_and_unmap)

int main(void)
{
	const struct CMUnitTest tests[] = {
		watched_test(unmapping_is_told),
		watched_test(mapping_over_it_is_told),
		watched_test(moving_is_told),
		watched_test(removal_is_told_before_it_happens),
		watched_test(shared_memory_attached_over_it_is_found),
		watched_test(what_is_not_watched_any_more_is_not_told),
		watched_test(memory_of_files_is_not_watched),
		watched_test(a_child_is_not_watched),
		watched_test(each_call_may_fail),
	};

	page = (size_t)sysconf(_SC_PAGESIZE);
	len = PAGES * page;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
