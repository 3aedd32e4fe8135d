/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Changes of mappings by userfaultfd. Called by mem/cache on any thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "descriptor.h"
#include "fault.h"
#include "uffd.h"

#define FEATURES                                                                           \
	(UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | \
	 UFFD_FEATURE_PAGEFAULT_FLAG_WP)
#define READ_MAX 16 /* events in one read(2) */

/* One for faults of user mode alone is anyone's; kernels before 5.11 don't know the difference. */
static int open_any(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	fd = sys_descriptor_keep(fd);
	return fd < 0 ? -errno : fd;
}

int sys_uffd_open(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURES };
	int err = sys_fault(SYS_CALL_USERFAULTFD);
	int fd;

	if (err)
		return -err;
	fd = open_any();
	if (fd < 0)
		return fd;
	err = ioctl(fd, UFFDIO_API, &api) ? errno : 0;
	if (!err && (api.features & FEATURES) != FEATURES)
		err = FI_ENOSYS;
	if (err) {
		sys_descriptor_close(fd);
		return -err;
	}
	return fd;
}

int sys_uffd_watch(int fd, const void *addr, size_t len)
{
	struct uffdio_register range = {
		.range = { .start = (uintptr_t)addr, .len = len },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	int err = sys_fault(SYS_CALL_UFFD_REGISTER);

	if (err)
		return -err;
	return ioctl(fd, UFFDIO_REGISTER, &range) ? -errno : 0;
}

void sys_uffd_unwatch(int fd, const void *addr, size_t len)
{
	struct uffdio_range range = { .start = (uintptr_t)addr, .len = len };

	ioctl(fd, UFFDIO_UNREGISTER, &range);
}

/*
 * A page of zeros is asked for where pages are present: the kernel answers EAGAIN while something
 * changes, ENOENT where the range is not one watched mapping, and else EEXIST. If the first page is absent it gets one,
 * which is what a load would have given it.
 */
int sys_uffd_check(int fd, const void *addr, size_t len)
{
	struct uffdio_zeropage page = { .range = { .start = (uintptr_t)addr, .len = len } };
	int err = sys_fault(SYS_CALL_UFFD_CHECK);

	if (err)
		return -err;
	if (!ioctl(fd, UFFDIO_ZEROPAGE, &page))
		return -FI_ENOENT;
	return errno == EEXIST ? 0 : -errno;
}

/* Returns false for an event that is not of interest. */
static bool convert(const struct uffd_msg *msg, struct sys_uffd_event *event)
{
	switch (msg->event) {
	case UFFD_EVENT_UNMAP:
	case UFFD_EVENT_REMOVE:
		*event = (struct sys_uffd_event){
			.kind = msg->event == UFFD_EVENT_UNMAP ? SYS_UFFD_UNMAP
							       : SYS_UFFD_REMOVE,
			.start = msg->arg.remove.start,
			.end = msg->arg.remove.end,
		};
		return true;
	case UFFD_EVENT_REMAP:
		*event = (struct sys_uffd_event){
			.kind = SYS_UFFD_REMAP,
			.start = msg->arg.remap.from,
			.end = msg->arg.remap.from + msg->arg.remap.len,
			.to = msg->arg.remap.to,
		};
		return true;
	default:
		return false;
	}
}

int sys_uffd_read(int fd, struct sys_uffd_event *events, int max)
{
	struct uffd_msg msgs[READ_MAX];
	size_t len = sizeof(msgs[0]) * (size_t)(max < READ_MAX ? max : READ_MAX);
	ssize_t got = sys_descriptor_read(fd, msgs, len);
	int cnt = 0;

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	for (size_t i = 0; i < (size_t)got / sizeof(msgs[0]); i++)
		cnt += convert(&msgs[i], &events[cnt]);
	return cnt;
}
