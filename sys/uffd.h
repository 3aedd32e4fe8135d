/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A userfaultfd that tells when mappings of this process change, and whether one changes now. It handles no
 * page faults: ranges are watched for write protection that is never set, so that any user may have one.
 * For mem/cache. Any thread. Source: userfaultfd(2), ioctl_userfaultfd(2).
 *
 * The thread that changes a watched range sleeps in its system call until the event is read. When that
 * happens depends on the call:
 *
 *	munmap, mremap, mmap(MAP_FIXED), brk	after the change, which other threads may see before the event
 *	MADV_DONTNEED, MADV_FREE		before the change, which comes some time after the event is read
 *
 * Two changes have no event: shmat(SHM_REMAP), which sys_uffd_check() finds, and MADV_GUARD_INSTALL
 * (Linux 6.13), which nothing does.
 */
#ifndef WEFT_SYS_UFFD_H
#define WEFT_SYS_UFFD_H

#include <stddef.h>
#include <stdint.h>

enum sys_uffd_kind {
	SYS_UFFD_UNMAP,
	/* pages are at another address now */
	SYS_UFFD_REMAP,
	/* the contents of pages are about to go */
	SYS_UFFD_REMOVE,
};

struct sys_uffd_event {
	enum sys_uffd_kind kind;
	/* addresses from start to before end; of REMAP those where the pages were */
	uintptr_t start;
	uintptr_t end;
	/* REMAP: where they begin now */
	uintptr_t to;
};

/*
 * sys_uffd_open - make one, close-on-exec
 * Returns it, owned (close() it: what it watches is watched no more), or -FI_E*: -FI_ENOSYS or -FI_EINVAL
 * where the kernel or the processor has no such events, -FI_EPERM where it is forbidden.
 * It becomes readable when there is an event. A child of fork() holds the parent's, and is to close it.
 */
int sys_uffd_open(void);

/*
 * sys_uffd_watch - tell of changes of a range from now on
 * @addr, @len: whole pages
 * Returns 0; -FI_EINVAL: not all of it is memory that can be watched; -FI_EBUSY: it is watched by another
 * userfaultfd; -FI_ENOMEM. Nothing is watched then.
 */
int sys_uffd_watch(int fd, const void *addr, size_t len);

/* sys_uffd_unwatch - tell of them no more; it may fail, and events come all the same */
void sys_uffd_unwatch(int fd, const void *addr, size_t len);

/*
 * sys_uffd_check - look whether a range is as it was
 * @addr, @len: whole pages, present when they were watched
 *
 * Returns 0: the range is one watched mapping, and no change of any watched range has begun of which the event
 * is unread, or is read and its thread still sleeps; -FI_EAGAIN: there is such a change; -FI_ENOENT: the
 * range is not one watched mapping, or its first page has gone. Other -FI_E*: unknown.
 */
int sys_uffd_check(int fd, const void *addr, size_t len);

/*
 * sys_uffd_read - read events that wait, and let their threads go on
 * @events: out, up to @max
 * Returns their number, 0 where none waits, or -FI_E*.
 */
int sys_uffd_read(int fd, struct sys_uffd_event *events, int max);

#endif
