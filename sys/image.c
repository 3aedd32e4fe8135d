/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A process's memory by descriptor. Called by providers on any thread, with locks that fork(2) takes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "fault.h"
#include "image.h"

int sys_image_gone(int fd)
{
	int err = sys_fault(SYS_CALL_READ_IMAGE);
	ssize_t n;
	char byte;

	if (err)
		return -err;
	/* no entry begins at 1, and none has one byte */
	n = sys_descriptor_read_at(fd, &byte, 1, 1);
	if (!n)
		return 1;
	if (n > 0)
		return -FI_ENOSYS;
	return errno == EINVAL ? 0 : -errno;
}

static int file_open(pid_t pid, const char *name)
{
	int err = sys_fault(SYS_CALL_OPEN_IMAGE), fd;
	char path[32];

	if (err)
		return -err;
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = sys_descriptor_keep(sys_descriptor_open(path, O_RDONLY));
	return fd < 0 ? -errno : fd;
}

/*
 * Checks that execve(2) is complete there: the auxiliary vector is set last. Returns 0, -FI_EAGAIN,
 * or -FI_E*.
 */
static int program_begun(pid_t pid)
{
	int fd = file_open(pid, "auxv");
	unsigned long first = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
	n = sys_descriptor_read(fd, &first, sizeof(first));
	sys_descriptor_close(fd);
	return n == (ssize_t)sizeof(first) && first ? 0 : -FI_EAGAIN;
}

int sys_image_open(pid_t pid)
{
	int fd = file_open(pid, "pagemap"), gone, err;

	if (fd < 0)
		return fd;
	gone = sys_image_gone(fd);
	err = gone < 0 ? -FI_ENOSYS : gone ? -ESRCH : program_begun(pid);
	/* it was of this program, if that is still there */
	if (!err && sys_image_gone(fd) == 1)
		err = -ESRCH;
	if (!err)
		return fd;
	sys_descriptor_close(fd);
	return err;
}
