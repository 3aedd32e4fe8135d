/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pressure stall information: the kernel tells when tasks wait for memory. Used by mem/, one thread at a time.
 * Source: Linux Documentation/accounting/psi.rst.
 */
#ifndef WEFT_SYS_PSI_H
#define WEFT_SYS_PSI_H

#include <stdbool.h>

/*
 * sys_psi_open - be told when some task waits for memory for a tenth of the time
 * @path: /proc/pressure/memory, or the memory.pressure of a control group
 * Returns a descriptor, owned, or -FI_E*: -FI_ENOENT where the kernel counts no pressure, -FI_EACCES or
 * -FI_EPERM for who may not ask.
 */
int sys_psi_open(const char *path);

/*
 * sys_psi_wait - wait for pressure
 * @fds: descriptors of sys_psi_open(), or -1. One that is none any more becomes -1: the program may close
 *	 what it did not open, and the number may mean a file of its own
 * @ms:  at most so long
 * Returns true if there was pressure; false after that time, or earlier for a signal.
 */
bool sys_psi_wait(int *fds, int cnt, int ms);

#endif
