/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Pipes that other processes ring. Called by providers on any thread, with locks that fork(2) takes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "eventfd.h"
#include "fault.h"
#include "fifo.h"

/* @pid: 0 for this process, whose number may not be in /proc: that may be another namespace's */
static int open_path(pid_t pid, int fd, int flags)
{
	int err = sys_fault(SYS_CALL_OPEN_FD), opened;
	char path[64];

	if (err)
		return -err;
	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	else
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	opened = sys_descriptor_keep(sys_descriptor_open(path, flags));
	return opened < 0 ? -errno : opened;
}

static int identify(int fd, struct sys_fifo_id *id)
{
	int err = sys_fault(SYS_CALL_FSTAT);
	struct stat st;

	if (err)
		return -err;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISFIFO(st.st_mode))
		return -FI_ENOENT;
	*id = (struct sys_fifo_id){ st.st_dev, st.st_ino };
	return 0;
}

/*
 * One descriptor for reading and writing, so that a sleeper never gets the end of the last writer.
 */
int sys_fifo_create(struct sys_fifo_id *id)
{
	int err = sys_fault(SYS_CALL_PIPE), ends[2], fd;

	if (err)
		return -err;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	fd = open_path(0, ends[0], O_RDWR | O_NONBLOCK);
	sys_descriptor_close(ends[0]);
	sys_descriptor_close(ends[1]);
	if (fd == -FI_ENOENT ||
	    fd == -FI_EACCES) { /* no /proc: no other process can open it either */
		*id = (struct sys_fifo_id){ 0, 0 };
		return sys_eventfd_open();
	}
	if (fd < 0)
		return fd;
	err = identify(fd, id);
	if (!err)
		return fd;
	sys_descriptor_close(fd);
	return err;
}

int sys_fifo_open(pid_t pid, int fd, const struct sys_fifo_id *id)
{
	struct sys_fifo_id found;
	int path, opened, err;

	/* O_PATH opens nothing: first see what it is */
	path = open_path(pid, fd, O_PATH);
	if (path < 0)
		return path;
	err = identify(path, &found);
	if (!err && (found.dev != id->dev || found.ino != id->ino))
		err = -FI_ENOENT;
	/* for reading too: writing to a pipe without a reader raises SIGPIPE */
	opened = err ? err : open_path(0, path, O_RDWR | O_NONBLOCK);
	sys_descriptor_close(path);
	return opened;
}

void sys_fifo_ring(int fd)
{
	static const uint64_t one = 1; /* as long as an event descriptor wants it */

	while (sys_descriptor_write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void sys_fifo_clear(int fd)
{
	char bytes[256];
	ssize_t n;

	do
		n = sys_descriptor_read(fd, bytes, sizeof(bytes));
	while (n == sizeof(bytes) || (n < 0 && errno == EINTR));
}

void sys_fifo_close(int fd)
{
	sys_descriptor_close(fd);
}
