/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes of the objects that platform.h keeps opaque and the module's own sources fill with Linux' types, which
 * assert that theirs fit, in a kernel with lock debugging too. Included by both; needs no other header.
 */
#ifndef WEFT_PLATFORM_SIZES_H
#define WEFT_PLATFORM_SIZES_H

#define PLATFORM_LOCK_BYTES 192
/* of a lock's class: 16 where it is checked, else 0 */
#define PLATFORM_LOCK_CLASS_BYTES 16
#define PLATFORM_BELL_BYTES	  8
#define PLATFORM_THREAD_BYTES	  576

#endif
