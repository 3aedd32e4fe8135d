/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether memory of this process can be accessed, asked of the kernel instead of by an access, which
 * would end the process. Any thread. maps.h says what mappings allow.
 *
 * Source: madvise(2), MADV_POPULATE_READ (Linux 5.14); mincore(2).
 */
#ifndef WEFT_SYS_TOUCH_H
#define WEFT_SYS_TOUCH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * sys_touch - have the pages of a range present as an access to them has
 * @addr:  first byte of a page
 * @len:   bytes, a multiple of a page
 * @write: for a store, which allocates and copies pages; else for a load
 *
 * Takes about 0.2 us, and for each page that is not present what its first access would take.
 * Returns 0; -FI_EFAULT: an access raises a signal (guard pages, beyond the end of a file, no huge page
 * left); or another -FI_E*: that is not known. So it is where mappings do not allow the access, where
 * nothing is mapped, of a device's memory, and before Linux 5.14.
 */
int sys_touch(void *addr, size_t len, bool write);

/* sys_mapped - returns true if something is mapped in all of a range, whatever it allows; @addr as above */
bool sys_mapped(void *addr, size_t len);

#endif
