/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A blocking call on an object of one domain (struct engine_sleeper).
 */
#ifndef WEFT_SLEEP_H
#define WEFT_SLEEP_H

#include "domain.h"

/*
 * engine_sleeper_wait - spin or sleep, in a blocking call whose last round has found nothing
 * On return the caller makes a round and checks again; nothing need have come. The caller does not
 * hold the domain.
 */
void engine_sleeper_wait(struct engine_sleeper *sleeper);

#endif
