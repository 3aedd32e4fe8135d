/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What programs get of the arena: include/weft/mem.h. */
#ifndef WEFT_MEM_OPS_H
#define WEFT_MEM_OPS_H

#include <stdint.h>

/*
 * mem_ops_open - fi_open_ops() of an object that gives WEFT_MEM_OPS; starts the arena. Any thread.
 * Returns 0; -FI_ENOSYS for another name; -FI_EINVAL for flags; -FI_ENOMEM: there is no arena.
 */
int mem_ops_open(const char *name, uint64_t flags, void **ops);

#endif
