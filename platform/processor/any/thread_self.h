/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* processor_thread_self - the running thread, by what the C library calls it */
#ifndef WEFT_THREAD_SELF_H
#define WEFT_THREAD_SELF_H

#include <pthread.h>
#include <stdint.h>

static inline uintptr_t processor_thread_self(void)
{
	return (uintptr_t)pthread_self();
}

#endif
