/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What tests of a program under libweft-mem.so (LD_PRELOAD), which is linked with none of it, see of its memory.
 */
#ifndef WEFT_MEM_PROGRAM_H
#define WEFT_MEM_PROGRAM_H

#include "arena.h"

/* program_start - cmocka's setup of a group: the library is there */
int program_start(void **state);

/* program_arena - returns the library's arena, NULL: it has none */
struct arena *program_arena(void);

/* program_shown - returns the chunk + 1 that has all of a range and is shown to peers, or 0 */
uint32_t program_shown(const void *addr, size_t len);

bool program_is_zero(const char *addr, size_t len);

/* program_writable - returns whether the kernel may store at an address */
bool program_writable(void *addr);

#endif
