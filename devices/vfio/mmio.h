/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registers of a device, and the order of accesses to them and to the memory that it reads and writes by itself. Other
 * processors' orderings are C11's; a device's are these.
 */
#ifndef WEFT_DEVICES_VFIO_MMIO_H
#define WEFT_DEVICES_VFIO_MMIO_H

#include <stdatomic.h>
#include <stdint.h>

static inline uint32_t mmio_read(const uint8_t *reg)
{
	return *(const volatile uint32_t *)reg;
}

static inline void mmio_write(uint8_t *reg, uint32_t value)
{
	*(volatile uint32_t *)reg = value;
}

/* mmio_publish - what was stored in memory before is seen by a device that a register, written after, tells of it */
static inline void mmio_publish(void)
{
#if defined(__x86_64__)
	/* Stores are seen in their order, those to registers too. */
	atomic_signal_fence(memory_order_seq_cst);
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshst" ::: "memory");
#else
	__sync_synchronize();
#endif
}

/* mmio_acquire - loads after are not older than one before that has shown what a device has written last */
static inline void mmio_acquire(void)
{
#if defined(__x86_64__)
	atomic_signal_fence(memory_order_seq_cst);
#elif defined(__aarch64__)
	__asm__ volatile("dmb oshld" ::: "memory");
#else
	__sync_synchronize();
#endif
}

#endif
