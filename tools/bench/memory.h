/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of a channel's buffers and regions: malloc's, or, if the options ask for it, the provider's
 * registered memory (<weft/mem.h>). One thread.
 */
#ifndef WEFT_TOOLS_MEMORY_H
#define WEFT_TOOLS_MEMORY_H

#include "channel.h"

/*
 * memory_alloc - allocate memory, not touched
 * @access: FI_REMOTE_WRITE: peers will store there
 * Returns it, aligned to a cache line, for memory_free(); or NULL. The first failure of a provider that
 * has no such memory is reported.
 */
void *memory_alloc(const struct channel *ch, size_t len, uint64_t access);

/* memory_free - NULL is allowed */
void memory_free(const struct channel *ch, void *mem);

#endif
