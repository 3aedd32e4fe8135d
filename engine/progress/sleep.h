/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How blocking calls sleep (struct engine_sleeper).
 */
#ifndef WEFT_SLEEP_H
#define WEFT_SLEEP_H

#include "domain.h"

/*
 * engine_sleeper_wait - spin or sleep on the channel of a domain, in a blocking call whose last
 * round has found nothing
 * @sleeper: with wait, there and arg
 * On return the caller makes a round and checks again; the event need not have happened. If there
 * is nothing and sleeper->interrupted is set, the call returns -FI_EINTR. The caller does not hold
 * the domain.
 */
void engine_sleeper_wait(struct engine_sleeper *sleeper);

/*
 * engine_sleeper_sleep - sleep, in a blocking call on a wait set or event queue
 * @on: what wakes the thread, of a channel that it has entered, and what has it leave if it is cancelled
 * @armed: 0; -FI_EAGAIN: there is an event, and it does not sleep; else the error that kept the
 *         domains from being armed: it sleeps for a short time
 * No lock is held. On return the event need not have happened; sleeper->interrupted as above.
 */
void engine_sleeper_sleep(struct engine_sleeper *sleeper, struct platform_wakers *on, int armed);

#endif
