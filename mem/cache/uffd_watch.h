/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A watch (watch.h) by a userfaultfd and a thread that reads it. A thread of the program that unmaps watched
 * memory waits until its event is read, and for no lock: it may hold any, or run a signal handler.
 */
#ifndef WEFT_MEM_UFFD_WATCH_H
#define WEFT_MEM_UFFD_WATCH_H

#include "watch.h"

/*
 * mem_uffd_watch_open - make one, if the events of this kernel are as they should be, which is tried
 * Returns 0 and the watch, owned (its close() takes it), or -FI_E*: -FI_ENOSYS, -FI_EINVAL or -FI_EPERM where there is
 * no userfaultfd, -FI_EIO: its events are not as they should be.
 */
int mem_uffd_watch_open(struct mem_watch **watch);

#endif
