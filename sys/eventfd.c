/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Event descriptors. Called by platform/user on any thread. */
#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include "descriptor.h"
#include "eventfd.h"
#include "fault.h"

int sys_eventfd_open(void)
{
	int err = sys_fault(SYS_CALL_EVENTFD);
	int fd;

	if (err)
		return -err;
	fd = sys_descriptor_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	return fd < 0 ? -errno : fd;
}

/* A count that can't grow is not 0: the descriptor is readable, and that is all that is wanted. */
void sys_eventfd_ring(int fd)
{
	uint64_t one = 1;

	while (sys_descriptor_write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void sys_eventfd_clear(int fd)
{
	uint64_t cnt;

	while (sys_descriptor_read(fd, &cnt, sizeof(cnt)) < 0 && errno == EINTR)
		;
}

void sys_eventfd_close(int fd)
{
	sys_descriptor_close(fd);
}
