/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * System calls that the kernel refuses to this process, as a container's filter does: so that
 * a measurement shows what a provider is worth without them. One thread.
 */
#ifndef WEFT_TOOLS_REFUSE_H
#define WEFT_TOOLS_REFUSE_H

#include <stdbool.h>

/* Calls that 'weft bench --refuse' accepts: process_vm_readv and process_vm_writev. */
#define REFUSE_PROCESS_VM "process_vm"

/* refuse_is_known - whether there are calls by that name */
bool refuse_is_known(const char *what);

/*
 * refuse_calls - have these calls fail with EPERM from now on
 * @what: a name from the list above
 * Applies to this thread, the threads and processes that it starts, and the programs that they
 * execute. It can't be undone, and is tried before this returns. Prints the reason of a failure.
 * Returns 0 or -errno.
 * Source: seccomp(2), Linux Documentation/userspace-api/seccomp_filter.rst.
 */
int refuse_calls(const char *what);

#endif
