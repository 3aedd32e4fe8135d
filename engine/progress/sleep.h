/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A blocking call on an object of one domain (struct engine_sleeper).
 */
#ifndef WEFT_SLEEP_H
#define WEFT_SLEEP_H

#include "domain.h"

/*
 * engine_sleeper_wait - nothing was there: come back when it is worth while to make a round and
 * look The caller does not hold the domain.
 */
void engine_sleeper_wait(struct engine_sleeper *sleeper);

#endif
