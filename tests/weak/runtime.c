/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the compiler calls for each access where it instruments for ThreadSanitizer: views.c answers. For
 * the threads of weak.c alone.
 */
#include "views.h"

#include <stddef.h>

/* What the compiler calls. */

#define RUNTIME __attribute__((used, visibility("default")))
void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
RUNTIME void __tsan_init(void)
{
}
RUNTIME void __tsan_func_entry(void *pc)
{
}
RUNTIME void __tsan_func_exit(void)
{
}

#define PLAIN(name, size)                                   \
	void __tsan_read##name(void *at);                   \
	void __tsan_write##name(void *at);                  \
	void __tsan_unaligned_read##name(void *at);         \
	void __tsan_unaligned_write##name(void *at);        \
	RUNTIME void __tsan_read##name(void *at)            \
	{                                                   \
		views_touch(at, size, false);               \
	}                                                   \
	RUNTIME void __tsan_write##name(void *at)           \
	{                                                   \
		views_touch(at, size, true);                \
	}                                                   \
	RUNTIME void __tsan_unaligned_read##name(void *at)  \
	{                                                   \
		views_touch(at, size, false);               \
	}                                                   \
	RUNTIME void __tsan_unaligned_write##name(void *at) \
	{                                                   \
		views_touch(at, size, true);                \
	}
PLAIN(1, 1)
PLAIN(2, 2)
PLAIN(4, 4)
PLAIN(8, 8)
PLAIN(16, 16)

void __tsan_read_range(void *at, unsigned long len);
void __tsan_write_range(void *at, unsigned long len);
RUNTIME void __tsan_read_range(void *at, unsigned long len)
{
	views_touch(at, len, false);
}
RUNTIME void __tsan_write_range(void *at, unsigned long len)
{
	views_touch(at, len, true);
}

static bool next_exchange(uint64_t old, uint64_t operand, uint64_t compare, uint64_t *next)
{
	*next = operand;
	return true;
}
static bool next_add(uint64_t old, uint64_t operand, uint64_t compare, uint64_t *next)
{
	*next = old + operand;
	return true;
}
static bool next_sub(uint64_t old, uint64_t operand, uint64_t compare, uint64_t *next)
{
	*next = old - operand;
	return true;
}
static bool next_or(uint64_t old, uint64_t operand, uint64_t compare, uint64_t *next)
{
	*next = old | operand;
	return true;
}
static bool next_and(uint64_t old, uint64_t operand, uint64_t compare, uint64_t *next)
{
	*next = old & operand;
	return true;
}
static bool next_swap(uint64_t old, uint64_t operand, uint64_t compare, uint64_t *next)
{
	*next = operand;
	return old == compare;
}

#define UPDATE(bits, name, next)                                                          \
	uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *at,          \
						    uint##bits##_t value, int mo);        \
	RUNTIME uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *at,  \
							    uint##bits##_t value, int mo) \
	{                                                                                 \
		return (uint##bits##_t)views_update(at, bits / 8, next, value, 0, mo);    \
	}

#define SWAP(bits, name)                                                                     \
	int __tsan_atomic##bits##_compare_exchange_##name(                                   \
		volatile uint##bits##_t *at, uint##bits##_t *expected, uint##bits##_t value, \
		int mo, int no);                                                             \
	RUNTIME int __tsan_atomic##bits##_compare_exchange_##name(                           \
		volatile uint##bits##_t *at, uint##bits##_t *expected, uint##bits##_t value, \
		int mo, int no)                                                              \
	{                                                                                    \
		uint##bits##_t old = (uint##bits##_t)views_update(at, bits / 8, next_swap,   \
								  value, *expected, mo);     \
                                                                                             \
		if (old == *expected)                                                        \
			return 1;                                                            \
		*expected = old;                                                             \
		return 0;                                                                    \
	}

/* clang calls this one, for both. */
#define SWAP_VALUE(bits)                                                                      \
	uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                            \
		volatile uint##bits##_t *at, uint##bits##_t expected, uint##bits##_t value,   \
		int mo, int no);                                                              \
	RUNTIME uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                    \
		volatile uint##bits##_t *at, uint##bits##_t expected, uint##bits##_t value,   \
		int mo, int no)                                                               \
	{                                                                                     \
		return (uint##bits##_t)views_update(at, bits / 8, next_swap, value, expected, \
						    mo);                                      \
	}

#define ATOMICS(bits)                                                                         \
	uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int mo); \
	RUNTIME uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at,  \
							  int mo)                             \
	{                                                                                     \
		return (uint##bits##_t)views_load(at, bits / 8, mo);                          \
	}                                                                                     \
	void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value,   \
					 int mo);                                             \
	RUNTIME void __tsan_atomic##bits##_store(volatile uint##bits##_t *at,                 \
						 uint##bits##_t value, int mo)                \
	{                                                                                     \
		views_store(at, bits / 8, value, mo);                                         \
	}                                                                                     \
	UPDATE(bits, exchange, next_exchange)                                                 \
	UPDATE(bits, fetch_add, next_add)                                                     \
	UPDATE(bits, fetch_sub, next_sub)                                                     \
	UPDATE(bits, fetch_or, next_or)                                                       \
	UPDATE(bits, fetch_and, next_and)                                                     \
	SWAP(bits, strong)                                                                    \
	SWAP(bits, weak)                                                                      \
	SWAP_VALUE(bits)

ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

void __tsan_atomic_thread_fence(int mo);
void __tsan_atomic_signal_fence(int mo);
RUNTIME void __tsan_atomic_thread_fence(int mo)
{
	views_fence(mo);
}
RUNTIME void __tsan_atomic_signal_fence(int mo)
{
}
