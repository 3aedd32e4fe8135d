/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How much freed memory keeps its pages: up to a share of what this process may use, and up to half of what
 * is still unused of that, so that what is allocated elsewhere finds room. What is not used again goes
 * with time: keeper.h. `_locked`: the caller holds the arena's lock.
 */
#ifndef WEFT_MEM_RETAIN_H
#define WEFT_MEM_RETAIN_H

#include "arena.h"

/* Of longer ranges pages are taken away in multiples of this, as wires register them. */
#define RETAIN_GRAIN ((size_t)2 << 20)

struct limit;

/* retain_limit_locked - the limits that hold from now on; arena.allowed follows */
void retain_limit_locked(struct arena *arena, const struct limit *limit);

/* retain_freed_locked - a range was freed: take pages away where more is kept than is allowed */
void retain_freed_locked(struct arena *arena);

/* retain_fresh_locked - @len bytes without pages were allocated, which need memory from now on */
void retain_fresh_locked(struct arena *arena, size_t len);

#endif
