/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Descriptors that a program does not know of; descriptor.h has the contract. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "cancel.h"
#include "descriptor.h"

int sys_descriptor_open(const char *path, int flags)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0);
}

#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer takes eventfds for what makes threads wait for each other: it is to see these two. */
static ssize_t read_as(int fd, void *buf, size_t len)
{
	int state = sys_uncancelled();
	ssize_t n = read(fd, buf, len);
	sys_uncancelled_end(state);
	return n;
}

static ssize_t write_as(int fd, const void *buf, size_t len)
{
	int state = sys_uncancelled();
	ssize_t n = write(fd, buf, len);
	sys_uncancelled_end(state);
	return n;
}
#else
static ssize_t read_as(int fd, void *buf, size_t len)
{
	return syscall(SYS_read, fd, buf, len);
}

static ssize_t write_as(int fd, const void *buf, size_t len)
{
	return syscall(SYS_write, fd, buf, len);
}
#endif

ssize_t sys_descriptor_read(int fd, void *buf, size_t len)
{
	return read_as(fd, buf, len);
}

ssize_t sys_descriptor_read_at(int fd, void *buf, size_t len, off_t at)
{
	return syscall(SYS_pread64, fd, buf, len, at);
}

ssize_t sys_descriptor_write(int fd, const void *buf, size_t len)
{
	return write_as(fd, buf, len);
}

int sys_descriptor_poll(struct pollfd *fds, nfds_t cnt, int ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	return (int)syscall(SYS_ppoll, fds, cnt, ms < 0 ? NULL : &t, NULL, 0);
}

void sys_descriptor_close(int fd)
{
	int before = errno;

#ifdef __SANITIZE_THREAD__
	/* ThreadSanitizer, which saw it opened, is to see this too */
	int state = sys_uncancelled();

	close(fd);
	sys_uncancelled_end(state);
#else
	syscall(SYS_close, fd);
#endif
	errno = before;
}

/* ThreadSanitizer takes sockets for what makes threads wait for each other, and sees dup3(2), not fcntl(2). */
static void seen_as(int fd, int kept)
{
#ifdef __SANITIZE_THREAD__
	if (kept >= 0)
		dup3(fd, kept, O_CLOEXEC);
#endif
}

int sys_descriptor_keep(int fd)
{
	int kept;

	if (fd < 0 || fd >= SYS_DESCRIPTOR_FIRST)
		return fd;
	kept = fcntl(fd, F_DUPFD_CLOEXEC, SYS_DESCRIPTOR_FIRST);
	if (kept < 0 && fd > STDERR_FILENO)
		return fd;
	if (kept < 0) {
		kept = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		/* so few are allowed that this would be the first one above them */
		if (kept < 0)
			errno = EMFILE;
	}
	seen_as(fd, kept);
	sys_descriptor_close(fd);
	return kept;
}

bool sys_descriptor_room(int fd)
{
	int more[3];
	size_t cnt = 0, room = sizeof(more) / sizeof(more[0]);

	while (cnt < room && (more[cnt] = fcntl(fd, F_DUPFD_CLOEXEC, 0)) >= 0)
		cnt++;
	for (size_t i = 0; i < cnt; i++)
		sys_descriptor_close(more[i]);
	return cnt == room;
}
