/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies between processes: reads are a loop around the system call that shows it a few pieces at a
 * time, from where it stopped. Called by providers on any thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "process_vm.h"

#define WINDOW_CNT 16u /* pieces of each side per system call */

/* A position in a list of pieces. */
struct position {
	const struct iovec *iov;
	size_t cnt;  /* pieces left, this one included */
	size_t skip; /* bytes of this one that are done */
};

static size_t total(const struct iovec *iov, size_t cnt)
{
	size_t sum = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (__builtin_add_overflow(sum, iov[i].iov_len, &sum))
			return SIZE_MAX;
	}
	return sum;
}

/* Fills the window with what follows @at. Returns the number of pieces. */
static unsigned long window(struct iovec *win, const struct position *at)
{
	unsigned long n = 0;
	size_t skip = at->skip;

	for (size_t i = 0; i < at->cnt && n < WINDOW_CNT; i++, skip = 0) {
		if (at->iov[i].iov_len == skip)
			continue;
		win[n].iov_base = (char *)at->iov[i].iov_base + skip;
		win[n].iov_len = at->iov[i].iov_len - skip;
		n++;
	}
	return n;
}

static void advance(struct position *at, size_t len)
{
	while (at->cnt && len >= at->iov->iov_len - at->skip) {
		len -= at->iov->iov_len - at->skip;
		at->iov++;
		at->cnt--;
		at->skip = 0;
	}
	at->skip += len;
}

ssize_t sys_process_vm_read(pid_t pid, const struct iovec *local, size_t local_cnt,
			    const struct iovec *remote, size_t remote_cnt)
{
	struct position to = { .iov = local, .cnt = local_cnt };
	struct position from = { .iov = remote, .cnt = remote_cnt };
	size_t wanted = total(local, local_cnt), there = total(remote, remote_cnt);
	struct iovec lwin[WINDOW_CNT], rwin[WINDOW_CNT];
	size_t done = 0;

	if (wanted > there)
		wanted = there;
	if (wanted > SSIZE_MAX)
		return -FI_EINVAL;
	while (done < wanted) {
		unsigned long lcnt = window(lwin, &to), rcnt = window(rwin, &from);
		int err = sys_fault(SYS_CALL_PROCESS_VM_READV);
		ssize_t n;

		if (err)
			return -err;
		n = process_vm_readv(pid, lwin, lcnt, rwin, rcnt, 0);
		if (n <= 0)
			return n < 0 ? -errno : -FI_EFAULT;
		advance(&to, (size_t)n);
		advance(&from, (size_t)n);
		done += (size_t)n;
	}
	return (ssize_t)done;
}

ssize_t sys_process_vm_write_guarded(pid_t pid, void *write_guard, const struct iovec *local,
				     size_t local_cnt, const struct iovec *remote,
				     size_t remote_cnt)
{
	struct iovec lwin[SYS_WRITE_GUARDED_MAX + 1], rwin[SYS_WRITE_GUARDED_MAX + 1];
	size_t wanted = total(local, local_cnt);
	int err = sys_fault(SYS_CALL_PROCESS_VM_WRITEV);
	char byte = 1;
	ssize_t n;

	if (err)
		return -err;
	if (local_cnt > SYS_WRITE_GUARDED_MAX || remote_cnt > SYS_WRITE_GUARDED_MAX ||
	    wanted >= SSIZE_MAX || total(remote, remote_cnt) != wanted)
		return -FI_EINVAL;
	lwin[0] = (struct iovec){ .iov_base = &byte, .iov_len = 1 };
	rwin[0] = (struct iovec){ .iov_base = write_guard, .iov_len = 1 };
	for (size_t i = 0; i < local_cnt; i++)
		lwin[i + 1] = local[i];
	for (size_t i = 0; i < remote_cnt; i++)
		rwin[i + 1] = remote[i];
	/* Not in a loop as a read: a second call would have to pass the guard again. */
	n = process_vm_writev(pid, lwin, local_cnt + 1, rwin, remote_cnt + 1, 0);
	if (n < 0)
		return -errno;
	return (size_t)n == wanted + 1 ? (ssize_t)wanted : -FI_EFAULT;
}
