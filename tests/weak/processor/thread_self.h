/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* processor_thread_self - the running thread: a coroutine of ../weak.h, as weak_self() says */
#ifndef WEFT_THREAD_SELF_H
#define WEFT_THREAD_SELF_H

#include <stdint.h>

uintptr_t weak_self(void);

static inline uintptr_t processor_thread_self(void)
{
	return weak_self();
}

#endif
