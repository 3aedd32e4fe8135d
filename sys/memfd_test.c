/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of sealed memory, as root and as an ordinary user. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "memfd.h"
#include <cmocka.h>
#include "mock_descriptors.h"

#define LEN ((size_t)3 * 4096)

static int clear(void **state)
{
	sys_fault_clear();
	return 0;
}

static void created_memory_has_its_size_mode_and_seals(void **state)
{
	int fd = sys_memfd_create("test", LEN, 0600);
	struct stat st;
	size_t len;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, LEN);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(sys_memfd_size(fd, &len), 0);
	assert_int_equal(len, LEN);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, 2 * (off_t)LEN), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	close(fd);
}

static void size_beyond_the_limit_on_files_is_refused(void **state)
{
	struct rlimit before, limit;
	int small, large;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ LEN, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(sys_memfd_max(), LEN);
	small = sys_memfd_create("test", LEN, 0600);
	large = sys_memfd_create("test", LEN + 1, 0600);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(small >= 0);
	close(small);
	assert_int_equal(large, -EFBIG);
}

static void impossible_sizes_are_refused(void **state)
{
	assert_int_equal(sys_memfd_create("test", 0, 0600), -FI_EINVAL);
	assert_int_equal(sys_memfd_create("test", SIZE_MAX, 0600), -FI_EINVAL);
}

static void two_mappings_are_the_same_memory(void **state)
{
	int fd = sys_memfd_create("test", LEN, 0600);
	const char *reader;
	void *a, *b;

	assert_int_equal(sys_memfd_map(fd, LEN, SYS_MEMFD_WRITE, &a), 0);
	assert_int_equal(sys_memfd_map(fd, 4096, 0, &b), 0);
	close(fd);
	sys_memfd_populate(a, LEN);
	reader = b;
	assert_int_equal(reader[100], 0);
	((char *)a)[100] = 42;
	assert_int_equal(reader[100], 42);
	sys_memfd_unmap(a, LEN);
	sys_memfd_unmap(b, 4096);
	sys_memfd_unmap(NULL, 0);
}

/* A window of it, and its first bytes. */
static void a_mapping_that_is_forgotten_is_private_and_zero(void **state)
{
	int fd = sys_memfd_create("weft-test", LEN, 0600);
	char *forgotten, *other;
	void *addr;

	assert_int_equal(sys_memfd_map(fd, LEN, SYS_MEMFD_WRITE, &addr), 0);
	forgotten = addr;
	assert_int_equal(sys_memfd_map(fd, LEN, SYS_MEMFD_WRITE, &addr), 0);
	other = addr;
	other[0] = 1;
	sys_memfd_forget(forgotten, LEN);
	assert_int_equal(forgotten[0], 0);
	forgotten[0] = 2;
	assert_int_equal(other[0], 1);
	sys_memfd_unmap(forgotten, LEN);
	sys_memfd_unmap(other, LEN);
	close(fd);
}

static void parts_are_mapped_and_read(void **state)
{
	uint8_t *whole, *part, bytes[64];
	size_t page;
	void *at;
	int fd = sys_memfd_create("test", 3 * 4096, 0600);

	assert_true(fd >= 0);
	assert_int_equal(sys_memfd_map(fd, 3 * 4096, SYS_MEMFD_WRITE, &at), 0);
	whole = at;
	assert_int_equal(sys_memfd_map_at(fd, 4096, 2 * 4096, SYS_MEMFD_WRITE, &at), 0);
	part = at;
	part[100] = 7;
	assert_int_equal(whole[4096 + 100], 7);
	whole[63] = 9;
	assert_int_equal(sys_memfd_read(fd, bytes, sizeof(bytes)), 0);
	assert_int_equal(bytes[63], 9);
	assert_int_equal(sys_memfd_map_at(fd, 4096, 2 * 4096 + 1, 0, &at), -FI_EINVAL);
	assert_int_equal(sys_memfd_map_at(fd, 4 * 4096, 1, 0, &at), -FI_EINVAL);
	assert_int_equal(sys_memfd_map_at(fd, SIZE_MAX - 4095, 8192, 0, &at), -FI_EINVAL);
	sys_memfd_unmap(part, 2 * 4096);
	/* as where pages are larger than what is in them */
	assert_int_equal(sys_memfd_map_at(fd, 4096 + 64, 4096, SYS_MEMFD_WRITE, &at), 0);
	part = at;
	assert_int_equal(part[36], 7);
	part[4095] = 5;
	assert_int_equal(whole[2 * 4096 + 63], 5);
	sys_memfd_unmap(part, 4096);
	page = (size_t)sysconf(_SC_PAGESIZE);
	assert_int_equal(msync(part - (4096 + 64) % page, page, MS_ASYNC), -1);
	/* nothing of it is left */
	assert_int_equal(errno, ENOMEM);
	sys_memfd_unmap(whole, 3 * 4096);
	close(fd);
	fd = sys_memfd_create("test", 32, 0600);
	assert_int_equal(sys_memfd_read(fd, bytes, sizeof(bytes)), -FI_EINVAL);
	close(fd);
}

/* Returns true if the page at @at is there. */
static bool is_there(char *at)
{
	unsigned char resident = 0;

	assert_int_equal(mincore(at, 1, &resident), 0);
	return resident & 1;
}

/* What is populated begins anywhere: what is aligned to smaller pages too. */
static void part_of_a_page_populates_it(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = sys_memfd_create("test", 3 * page, 0600);
	void *at;
	char *from;

	assert_int_equal(sys_memfd_map(fd, 3 * page, SYS_MEMFD_WRITE, &at), 0);
	close(fd);
	from = at;
	sys_memfd_populate(from, page);
	if (!is_there(from)) {
		sys_memfd_unmap(at, 3 * page);
		print_message("skipped: the kernel populates nothing\n");
		skip();
	}
	sys_memfd_populate(from + page + page / 4, page);
	assert_true(is_there(from + page));
	assert_true(is_there(from + 2 * page));
	sys_memfd_unmap(at, 3 * page);
}

static void only_sealed_memory_of_enough_length_is_mapped(void **state)
{
	void *at = &at;
	int fd, pipe_fds[2];
	size_t len;

	fd = sys_memfd_create("test", LEN, 0600);
	assert_int_equal(sys_memfd_map(fd, LEN + 1, 0, &at), -FI_EINVAL);
	assert_int_equal(sys_memfd_map(fd, 0, 0, &at), -FI_EINVAL);
	close(fd);
	assert_int_equal(sys_memfd_map(fd, LEN, 0, &at), -FI_EBADF);

	for (int seals = 0; seals < 2; seals++) {
		fd = memfd_create("unsealed", MFD_ALLOW_SEALING);
		assert_int_equal(ftruncate(fd, (off_t)LEN), 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals ? F_SEAL_SHRINK : F_SEAL_GROW), 0);
		assert_int_equal(sys_memfd_map(fd, LEN, 0, &at), -FI_EINVAL);
		close(fd);
	}

	fd = open("/proc/self/exe", O_RDONLY);
	assert_int_equal(sys_memfd_size(fd, &len), -FI_EINVAL);
	close(fd);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(sys_memfd_size(pipe_fds[0], &len), -FI_EINVAL);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	assert_ptr_equal(at, &at);
}

static void huge_pages_of_another_process_are_refused(void **state)
{
	int fd = memfd_create("huge", MFD_ALLOW_SEALING | MFD_HUGETLB);
	size_t len;

	if (fd < 0) {
		print_message("skipped: no huge page files here: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_int_equal(sys_memfd_size(fd, &len), -FI_EINVAL);
	close(fd);
}

static void descriptor_of_another_process_opens(void **state)
{
	int here[2], there[2], fd, theirs;
	void *at;
	pid_t child;

	assert_int_equal(pipe(here), 0);
	assert_int_equal(pipe(there), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(here[1]);
		fd = sys_memfd_create("child", LEN, 0600);
		if (sys_memfd_map(fd, LEN, SYS_MEMFD_WRITE, &at))
			_exit(1);
		strcpy(at, "from the child");
		if (write(there[1], &fd, sizeof(fd)) != sizeof(fd))
			_exit(1);
		/* Until the other side has closed its end. */
		_exit(read(here[0], &fd, sizeof(fd)) == 0 && !strcmp(at, "from the other") ? 0
											   : 1);
	}
	close(here[0]);
	close(there[1]);
	assert_int_equal(read(there[0], &theirs, sizeof(theirs)), sizeof(theirs));

	fd = sys_memfd_open(child, theirs, false);
	if (fd == -FI_EACCES || fd == -FI_EPERM) {
		close(here[1]);
		waitpid(child, NULL, 0);
		print_message("skipped: not permitted to look into a child\n");
		skip();
	}
	assert_true(fd >= 0);
	assert_int_equal(sys_memfd_map(fd, LEN, SYS_MEMFD_WRITE, &at), -FI_EACCES);
	close(fd);
	fd = sys_memfd_open(child, theirs, true);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(sys_memfd_map(fd, LEN, SYS_MEMFD_WRITE, &at), 0);
	close(fd);
	assert_string_equal(at, "from the child");
	strcpy(at, "from the other");
	/* A pipe is no memory, and isn't opened. */
	assert_int_equal(sys_memfd_open(child, there[0], true), -FI_EINVAL);
	assert_int_equal(sys_memfd_open(child, 9999, true), -FI_ENOENT);
	close(here[1]);
	assert_int_equal(waitpid(child, &theirs, 0), child);
	assert_true(WIFEXITED(theirs));
	assert_int_equal(WEXITSTATUS(theirs), 0);
	assert_int_equal(sys_memfd_open(child, theirs, true), -FI_ENOENT);
	close(there[0]);
	sys_memfd_unmap(at, LEN);
}

static void mode_0400_can_not_be_reopened_for_writing(void **state)
{
	int fd = sys_memfd_create("test", LEN, 0400);
	void *at;
	int other;

	assert_int_equal(sys_memfd_map(fd, LEN, SYS_MEMFD_WRITE, &at), 0); /* the owner's own */
	sys_memfd_unmap(at, LEN);
	other = sys_memfd_open(getpid(), fd, true);
	if (geteuid())
		assert_int_equal(other, -FI_EACCES);
	else
		assert_true(other >= 0); /* root is not held */
	if (other >= 0)
		close(other);
	other = sys_memfd_open(getpid(), fd, false);
	assert_true(other >= 0);
	close(other);
	close(fd);
}

static void failing_calls_are_passed_on_and_leave_no_descriptor(void **state)
{
	static const enum sys_call creating[] = { SYS_CALL_MEMFD_CREATE, SYS_CALL_FCHMOD,
						  SYS_CALL_FTRUNCATE, SYS_CALL_FCNTL_SEAL };
	int before = mock_descriptors(), fd;
	uint8_t bytes[64];
	void *at;

	for (int i = 0; i < 4; i++) {
		sys_fault_set(creating[i], ENOSPC, 0, 1);
		assert_int_equal(sys_memfd_create("test", LEN, 0600), -FI_ENOSPC);
	}
	/* A kernel that does not know the newest flag. */
	sys_fault_set(SYS_CALL_MEMFD_CREATE, EINVAL, 0, 1);
	fd = sys_memfd_create("test", LEN, 0600);
	assert_true(fd >= 0);
	sys_fault_set(SYS_CALL_MEMFD_CREATE, EINVAL, 0, 2);
	assert_int_equal(sys_memfd_create("test", LEN, 0600), -FI_EINVAL);

	sys_fault_set(SYS_CALL_OPEN_FD, EACCES, 0, 1);
	assert_int_equal(sys_memfd_open(getpid(), fd, true), -FI_EACCES);
	sys_fault_set(SYS_CALL_OPEN_FD, EMFILE, 1, 1);
	assert_int_equal(sys_memfd_open(getpid(), fd, true), -FI_EMFILE);
	sys_fault_set(SYS_CALL_FSTAT, EIO, 0, 1);
	assert_int_equal(sys_memfd_open(getpid(), fd, true), -FI_EIO);

	sys_fault_set(SYS_CALL_FCNTL_SEAL, EIO, 0, 1);
	assert_int_equal(sys_memfd_map(fd, LEN, 0, &at), -FI_EIO);
	sys_fault_set(SYS_CALL_FSTAT, EIO, 0, 1);
	assert_int_equal(sys_memfd_map(fd, LEN, 0, &at), -FI_EIO);
	sys_fault_set(SYS_CALL_MMAP, ENOMEM, 0, 1);
	assert_int_equal(sys_memfd_map(fd, LEN, 0, &at), -FI_ENOMEM);
	sys_fault_set(SYS_CALL_PREAD, EINTR, 0, 1);
	assert_int_equal(sys_memfd_read(fd, bytes, sizeof(bytes)), 0);
	sys_fault_set(SYS_CALL_PREAD, EIO, 0, 1);
	assert_int_equal(sys_memfd_read(fd, bytes, sizeof(bytes)), -FI_EIO);
	close(fd);
	assert_int_equal(mock_descriptors(), before);
}

static void pages_that_there_are_are_found(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = sys_memfd_create("data", 8 * page, 0600);
	uint64_t at = 0, len = 0;
	char *addr;

	assert_true(fd >= 0);
	assert_int_equal(sys_memfd_data(fd, &at, &len), -ENXIO);
	assert_int_equal(sys_memfd_map(fd, 8 * page, SYS_MEMFD_WRITE, (void **)&addr), 0);
	memset(addr + 2 * page, 1, 2 * page);
	memset(addr + 7 * page, 1, page);
	assert_int_equal(sys_memfd_data(fd, &at, &len), 0);
	assert_int_equal(at, 2 * page);
	assert_int_equal(len, 2 * page);
	at += len;
	assert_int_equal(sys_memfd_data(fd, &at, &len), 0);
	assert_int_equal(at, 7 * page);
	assert_int_equal(len, page);
	at += len;
	assert_int_equal(sys_memfd_data(fd, &at, &len), -ENXIO);
	sys_memfd_unmap(addr, 8 * page);
	close(fd);
}

static void only_a_writable_descriptor_is_one(void **state)
{
	int fd = sys_memfd_create("test", LEN, 0600),
	    other = sys_memfd_create("test", LEN, 0600);
	uint64_t inode, other_inode;
	char path[64];
	int read_only;

	assert_int_equal(sys_memfd_inode(fd, &inode), 0);
	assert_int_equal(sys_memfd_inode(other, &other_inode), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_only = open(path, O_RDONLY);
	assert_true(read_only >= 0);
	assert_int_equal(sys_memfd_is_writable(getpid(), fd, inode), 0);
	assert_int_equal(sys_memfd_is_writable(getpid(), read_only, inode), -FI_EACCES);
	assert_int_equal(sys_memfd_is_writable(getpid(), fd, other_inode), -FI_ENOENT);
	assert_int_equal(sys_memfd_is_writable(getpid(), 1 << 20, inode), -FI_ENOENT);
	close(read_only);
	close(other);
	close(fd);
}

/* A program has closed the descriptor, and has another file under its number. */
static void another_file_under_the_number_is_left_alone(void **state)
{
	int fd = sys_memfd_create("ours", LEN, 0600), theirs, again;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct sys_memfd_id id;
	char byte;

	assert_int_equal(sys_memfd_identify(fd, &id), 0);
	again = sys_memfd_dup(fd, &id);
	assert_true(again >= 0 && again != fd);
	assert_int_equal(pwrite(fd, "1", 1, 0), 1);
	assert_int_equal(sys_memfd_punch(fd, &id, 0, page), 0);
	assert_int_equal(pread(again, &byte, 1, 0), 1);
	assert_int_equal(byte, 0);
	/* without room for a further descriptor */
	assert_int_equal(pwrite(fd, "1", 1, 0), 1);
	sys_fault_set(SYS_CALL_FCNTL_DUP, FI_EMFILE, 0, 0);
	assert_int_equal(sys_memfd_dup(fd, &id), -FI_EMFILE);
	assert_int_equal(sys_memfd_punch(fd, &id, 0, page), 0);
	sys_fault_clear();
	assert_int_equal(pread(again, &byte, 1, 0), 1);
	assert_int_equal(byte, 0);

	theirs = sys_memfd_create("theirs", LEN, 0600);
	assert_int_equal(pwrite(theirs, "2", 1, 0), 1);
	assert_int_equal(dup2(theirs, fd), fd);
	assert_int_equal(sys_memfd_dup(fd, &id), -FI_EBADF);
	assert_int_equal(sys_memfd_punch(fd, &id, 0, page), -FI_EBADF);
	sys_memfd_close(fd, &id);
	assert_int_equal(pread(fd, &byte, 1, 0), 1);
	assert_int_equal(byte, '2');
	close(fd);
	assert_int_equal(sys_memfd_dup(fd, &id), -FI_EBADF);
	assert_int_equal(sys_memfd_punch(fd, &id, 0, page), -FI_EBADF);
	sys_memfd_close(again, &id);
	assert_int_equal(pread(again, &byte, 1, 0), -1);
	close(theirs);
}

static void a_lease_makes_nobody_wait(void **state)
{
	int fd = sys_memfd_create("leased", LEN, 0600),
	    again = sys_memfd_open(getpid(), fd, true);

	assert_true(again >= 0);
	close(fd);
	signal(SIGIO, SIG_IGN);
	assert_int_equal(fcntl(again, F_SETLEASE, F_WRLCK), 0);
	assert_int_equal(sys_memfd_open(getpid(), again, false), -FI_EBUSY);
	assert_int_equal(fcntl(again, F_SETLEASE, F_UNLCK), 0);
	fd = sys_memfd_open(getpid(), again, false);
	assert_true(fd >= 0);
	close(fd);
	close(again);
	signal(SIGIO, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_writable_descriptor_is_one),
		cmocka_unit_test(created_memory_has_its_size_mode_and_seals),
		cmocka_unit_test(impossible_sizes_are_refused),
		cmocka_unit_test(size_beyond_the_limit_on_files_is_refused),
		cmocka_unit_test(two_mappings_are_the_same_memory),
		cmocka_unit_test(a_mapping_that_is_forgotten_is_private_and_zero),
		cmocka_unit_test(parts_are_mapped_and_read),
		cmocka_unit_test(part_of_a_page_populates_it),
		cmocka_unit_test(only_sealed_memory_of_enough_length_is_mapped),
		cmocka_unit_test(huge_pages_of_another_process_are_refused),
		cmocka_unit_test(descriptor_of_another_process_opens),
		cmocka_unit_test(mode_0400_can_not_be_reopened_for_writing),
		cmocka_unit_test_teardown(failing_calls_are_passed_on_and_leave_no_descriptor,
					  clear),
		cmocka_unit_test(pages_that_there_are_are_found),
		cmocka_unit_test(a_lease_makes_nobody_wait),
		cmocka_unit_test_teardown(another_file_under_the_number_is_left_alone, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
