/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What an atomic does to a value, by this processor. Any thread; atomic among all that go this way.
 */
#ifndef BTL_ATOMIC_APPLY_H
#define BTL_ATOMIC_APPLY_H

#include <stdbool.h>
#include <rdma/fi_atomic.h>

/* btl_type_len - bytes of a type that operations have; 0: they don't have it */
uint32_t btl_type_len(enum fi_datatype type);

/* btl_atomic_has - whether there is an operation on a type; FI_CSWAP too */
bool btl_atomic_has(enum fi_op fi_op, enum fi_datatype type);

/*
 * btl_atomic_apply - carry an atomic out on the value at @at, which is aligned
 * @operand, @compare: in their first bytes a value of the type; @compare of FI_CSWAP alone
 * Returns what was there, in its first bytes. btl_atomic_has() is true.
 */
uint64_t btl_atomic_apply(void *at, enum fi_op fi_op, enum fi_datatype type, uint64_t operand,
			  uint64_t compare);

#endif
