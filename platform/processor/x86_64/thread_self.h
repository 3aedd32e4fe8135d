/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * processor_thread_self - the running thread, by the address of its control block, which has its own address
 * as its first word. Source: System V ABI, AMD64 supplement, thread-local storage.
 */
#ifndef WEFT_THREAD_SELF_H
#define WEFT_THREAD_SELF_H

#include <stdint.h>

static inline uintptr_t processor_thread_self(void)
{
	uintptr_t self;

	__asm__("mov %%fs:0, %0" : "=r"(self));
	return self;
}

#endif
