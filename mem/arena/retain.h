/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How much freed memory keeps its pages. The caller holds the arena's lock.
 */
#ifndef WEFT_MEM_RETAIN_H
#define WEFT_MEM_RETAIN_H

#include "arena.h"

/* retain_freed_locked - a range was freed: take pages away where more is kept than is allowed */
void retain_freed_locked(struct arena *arena);

/* retain_trim_locked - arena_trim() */
void retain_trim_locked(struct arena *arena, size_t keep);

/*
 * arena_revoke_locked - let nobody use pages any more, and take them away (arena.c)
 * Returns 0, -FI_EBUSY: somebody keeps them, or -FI_E*.
 */
int arena_revoke_locked(struct arena *arena, uint32_t chunk, uintptr_t base, size_t len);

#endif
