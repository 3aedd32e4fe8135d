/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* System calls that end no thread: one that is cancelled in them would leave its locks. Any thread. Source: pthreads(7). */
#ifndef WEFT_SYS_CANCEL_H
#define WEFT_SYS_CANCEL_H

#include <pthread.h>

/* sys_uncancelled - what follows is no cancellation point, until sys_uncancelled_end() with what this returns */
static inline int sys_uncancelled(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void sys_uncancelled_end(int state)
{
	pthread_setcancelstate(state, NULL);
}

#endif
