/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Timers with a descriptor. Called by platform/user on any thread. */
#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include "descriptor.h"
#include "fault.h"
#include "timerfd.h"

int sys_timerfd_open(void)
{
	int err = sys_fault(SYS_CALL_TIMERFD);
	int fd;

	if (err)
		return -err;
	fd = sys_descriptor_keep(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	return fd < 0 ? -errno : fd;
}

void sys_timerfd_set(int fd, uint64_t ns)
{
	struct itimerspec time = {
		.it_value = { .tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u) },
	};

	timerfd_settime(fd, 0, &time, NULL);
}
