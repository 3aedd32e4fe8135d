/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What tests ask of the provider of forced.c, and tell it. Any thread. */
#ifndef TESTS_BTL_FORCED_H
#define TESTS_BTL_FORCED_H

#include <stddef.h>

/* forced_region_cnt - Returns how many open regions, of all domains, have one of the @len bytes at @addr */
size_t forced_region_cnt(const void *addr, size_t len);

/*
 * forced_unmapped - the bytes are those of other pages from now on
 * What is registered there by now is of no use: an operation with one of those regions ends the process.
 */
void forced_unmapped(const void *addr, size_t len);

#endif
