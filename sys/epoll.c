/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sets of descriptors, and sleeping on them. Called by platform/user on any thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "descriptor.h"
#include "epoll.h"
#include "fault.h"

#define SLEEP_MAX 2

int sys_epoll_open(void)
{
	int err = sys_fault(SYS_CALL_EPOLL);
	int fd;

	if (err)
		return -err;
	fd = sys_descriptor_keep(epoll_create1(EPOLL_CLOEXEC));
	return fd < 0 ? -errno : fd;
}

int sys_epoll_add(int epoll, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events };
	int err = sys_fault(SYS_CALL_EPOLL);

	if (err)
		return -err;
	if (!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) || errno == EEXIST)
		return 0;
	return -errno;
}

int sys_epoll_add_known(int epoll, int fd, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };
	int err = sys_fault(SYS_CALL_EPOLL);

	if (err)
		return -err;
	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int sys_epoll_hold(int epoll, int fd, uint32_t events, void *what)
{
	struct epoll_event event = { .events = events, .data.ptr = what };
	int err = sys_fault(SYS_CALL_EPOLL);

	if (err)
		return -err;
	if (!epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) ||
	    (errno == ENOENT && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)))
		return 0;
	return -errno;
}

int sys_epoll_take(int epoll, void **what, int cnt)
{
	struct epoll_event events[SYS_EPOLL_TAKE_MAX];
	int n;

	do
		n = (int)syscall(SYS_epoll_pwait, epoll, events, cnt, 0, NULL, (size_t)0);
	while (n < 0 && errno == EINTR);
	for (int i = 0; i < n; i++)
		what[i] = events[i].data.ptr;
	return n < 0 ? -errno : n;
}

int sys_epoll_next(int epoll, void **what)
{
	struct epoll_event event;
	int n;

	do
		n = (int)syscall(SYS_epoll_pwait, epoll, &event, 1, 0, NULL, (size_t)0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? -errno : 0;
	*what = event.data.ptr;
	return 1;
}

bool sys_epoll_ready(int epoll)
{
	struct pollfd p = { .fd = epoll, .events = POLLIN };

	return sys_descriptor_poll(&p, 1, 0) != 0;
}

void sys_epoll_change(int epoll, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events };

	epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
}

void sys_epoll_remove(int epoll, int fd)
{
	struct epoll_event event = { 0 };

	epoll_ctl(epoll, EPOLL_CTL_DEL, fd, &event);
}

int sys_sleep(const int *fds, int cnt, uint64_t ns)
{
	struct pollfd polled[SLEEP_MAX];
	struct timespec t = {
		.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u),
	};

	for (int i = 0; i < cnt; i++)
		polled[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	if (sys_fault(SYS_CALL_POLL))
		return 0;
	if (ppoll(polled, (nfds_t)cnt, ns == UINT64_MAX ? NULL : &t, NULL) < 0 && errno == EINTR)
		return -EINTR;
	return 0;
}
