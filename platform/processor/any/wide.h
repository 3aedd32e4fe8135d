/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sixteen bytes at once: of a processor that can't, or is not known to; updates of such elements are
 * plain, by the target alone. Each folder beside this one has the same three functions; only atomics/
 * includes them. The address is aligned to 16 bytes.
 */
#ifndef WEFT_WIDE_H
#define WEFT_WIDE_H

#include "platform.h"

typedef unsigned __int128 wide_word;

/*
 * wide_is_lock_free - returns true if the other two are atomic, the load also of memory that is
 * mapped read-only
 */
static inline bool wide_is_lock_free(void)
{
	return false;
}

/* wide_load - sequentially consistent where it is atomic */
static inline wide_word wide_load(const uint8_t *target)
{
	wide_word word;

	memcpy(&word, target, sizeof(word));
	return word;
}

/*
 * wide_replace - store @next if the location holds @old, in the same way
 * Returns false if it holds another value, which is now in @old.
 */
static inline bool wide_replace(uint8_t *target, wide_word *old, wide_word next)
{
	memcpy(target, &next, sizeof(next));
	return true;
}

#endif
