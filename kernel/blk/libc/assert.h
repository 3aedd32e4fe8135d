/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the headers that are shared with user space take of <assert.h>: static_assert alone. */
#ifndef KOFI_BLK_ASSERT_H
#define KOFI_BLK_ASSERT_H

#include <linux/build_bug.h>

#endif
