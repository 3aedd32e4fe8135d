/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Processes by descriptor. Called by providers on any thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "fault.h"
#include "pidfd.h"

int sys_pidfd_open(pid_t pid)
{
	int err = sys_fault(SYS_CALL_PIDFD_OPEN);
	int fd;

	if (err)
		return -err;
	fd = sys_descriptor_keep((int)syscall(SYS_pidfd_open, pid, 0));
	return fd < 0 ? -errno : fd;
}

int sys_pidfd_take(pid_t pid, int fd)
{
	int process = sys_pidfd_open(pid), err;
	int copy = -1;

	if (process < 0)
		return process;
	err = sys_fault(SYS_CALL_PIDFD_GETFD);
	if (!err) {
		copy = sys_descriptor_keep((int)syscall(SYS_pidfd_getfd, process, fd, 0));
		err = copy < 0 ? errno : 0;
	}
	sys_descriptor_close(process);
	return err ? -err : copy;
}

int sys_pidfd_dead(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int err, n;

	do {
		err = sys_fault(SYS_CALL_POLL);
		n = err ? -1 : sys_descriptor_poll(&p, 1, 0);
		if (n < 0 && !err)
			err = errno;
	} while (err == EINTR);
	if (err)
		return -err;
	if (p.revents & POLLNVAL || pidfd < 0)
		return -FI_EBADF;
	return n > 0;
}

int sys_procdir_open(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = sys_descriptor_keep(sys_descriptor_open(path, O_PATH | O_DIRECTORY));
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? -ESRCH : -errno;
}

int sys_procdir_dead(int fd)
{
	struct stat st;

	if (!fstatat(fd, "stat", &st, 0))
		return 0;
	return errno == ENOENT || errno == ESRCH ? 1 : -errno;
}
