/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process beside the one that drives a function, for when that ends: other processes that have mapped the function's
 * registers are killed, then the function is reset, and with the last descriptor of it the kernel gives its memory back.
 * Until then it may go on accessing what was mapped for it: memory that is still there.
 */
#ifndef WEFT_DEVICES_VFIO_WATCHDOG_H
#define WEFT_DEVICES_VFIO_WATCHDOG_H

#include <stdbool.h>

#include "vfio.h"

/* watchdog_start - fork it. The process has one thread yet. Returns a descriptor, owned, or a negative errno */
int watchdog_start(struct vfio *v);

/*
 * watchdog_tell - a process is about to map registers
 * @pidfd: of it, borrowed
 *
 * Returns 0; -EPIPE: there is no watchdog any more, and nobody is to map anything.
 */
int watchdog_tell(int watchdog, int pidfd);

/* watchdog_runs - whether it is there */
bool watchdog_runs(int watchdog);

#endif
