/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* processor_thread_self - the running thread, by its thread pointer */
#ifndef WEFT_THREAD_SELF_H
#define WEFT_THREAD_SELF_H

#include <stdint.h>

static inline uintptr_t processor_thread_self(void)
{
	uintptr_t self;

	__asm__("mrs %0, tpidr_el0" : "=r"(self));
	return self;
}

#endif
