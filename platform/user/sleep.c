/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What threads and programs sleep on: bells, poll sets, timers. A bell is an event descriptor and a poll set
 * an epoll descriptor. Called by the engine on any thread.
 *
 * A poll set is rung by having it ask for what is always true: that its bell, whose count never comes near
 * its limit, is writable (EPOLLOUT). So one bell serves any number of poll sets that are rung one by one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "descriptor.h"
#include "epoll.h"
#include "eventfd.h"
#include "platform.h"
#include "timerfd.h"

int platform_bell_open(struct platform_bell *bell)
{
	int fd = sys_eventfd_open();

	if (fd < 0)
		return fd;
	bell->descriptor = fd;
	return 0;
}

void platform_bell_ring(const struct platform_bell *bell)
{
	sys_eventfd_ring(bell->descriptor);
}

void platform_bell_clear(const struct platform_bell *bell)
{
	sys_eventfd_clear(bell->descriptor);
}

void platform_bell_close(struct platform_bell *bell)
{
	sys_eventfd_close(bell->descriptor);
}

int platform_poll_set_open(const struct platform_bell *bell, int *poll_set)
{
	int fd = sys_epoll_open(), ret;

	if (fd < 0)
		return fd;
	ret = bell ? sys_epoll_add(fd, bell->descriptor, 0) : 0;
	if (ret) {
		sys_descriptor_close(fd);
		return ret;
	}
	*poll_set = fd;
	return 0;
}

int platform_poll_set_add(int poll_set, int fd)
{
	return sys_epoll_add(poll_set, fd, EPOLLIN);
}

void platform_poll_set_remove(int poll_set, int fd)
{
	sys_epoll_remove(poll_set, fd);
}

void platform_poll_set_ring(int poll_set, const struct platform_bell *bell)
{
	sys_epoll_change(poll_set, bell->descriptor, EPOLLOUT);
}

void platform_poll_set_clear(int poll_set, const struct platform_bell *bell)
{
	sys_epoll_change(poll_set, bell->descriptor, 0);
}

void platform_poll_set_close(int poll_set)
{
	sys_descriptor_close(poll_set);
}

int platform_timer_open(int *timer)
{
	int fd = sys_timerfd_open();

	if (fd < 0)
		return fd;
	*timer = fd;
	return 0;
}

void platform_timer_set(int timer, uint64_t ns)
{
	sys_timerfd_set(timer, ns);
}

void platform_timer_close(int timer)
{
	sys_descriptor_close(timer);
}

int platform_descriptor_renew(int old, int fresh)
{
	int ret = dup3(fresh, old, O_CLOEXEC) < 0 ? -errno : 0;

	sys_descriptor_close(fresh);
	return ret;
}

static void sleep_cancelled(void *arg)
{
	const struct platform_wakers *on = arg;

	if (on && on->cancelled)
		on->cancelled(on->arg);
}

int platform_sleep(const struct platform_wakers *on, uint64_t ns)
{
	int fds[2], cnt = 0, ret;

	if (on && on->bell)
		fds[cnt++] = on->bell->descriptor;
	if (on && on->descriptor >= 0)
		fds[cnt++] = on->descriptor;
	pthread_cleanup_push(sleep_cancelled, (void *)on);
	ret = sys_sleep(fds, cnt, ns);
	pthread_cleanup_pop(0);
	return ret;
}
