/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One word in place of every mutex. A thread that finds it locked goes no further. */
#ifndef WEFT_WEAK_MUTEX_H
#define WEFT_WEAK_MUTEX_H

/* mutex_init - unlock it; called before the threads begin */
void mutex_init(void);

#endif
