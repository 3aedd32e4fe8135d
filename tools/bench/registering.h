/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registering memory for the peer's access and taking that back, as 'weft bench' times it. The other side
 * does nothing meanwhile.
 */
#ifndef WEFT_TOOLS_REGISTERING_H
#define WEFT_TOOLS_REGISTERING_H

#include <stddef.h>
#include <stdint.h>

#include "channel.h"

/*
 * registering_run - register memory of that size @cnt times
 * @taken: receives nanoseconds of all of them
 *
 * Prints the reason of a failure. Returns 0 or a negative fi_errno.
 */
int registering_run(struct channel *ch, size_t size, uint32_t cnt, uint64_t *taken);

#endif
