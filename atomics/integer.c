/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Integers of 1 to 16 bytes. atomics.c calls, on any thread. Compiles without floating-point
 * registers.
 *
 * One arithmetic serves all of them: values are widened with zeros, the result is cut to the
 * element's size, and that is the same for signed and unsigned types as long as nothing is
 * compared. For comparisons both sides have the sign bit of a signed type flipped, which turns
 * its order into that of unsigned numbers.
 */
#include "atomics.h"
#include "cell.h"

CELL_INLINE bool integer_next(enum fi_op op, cell_word flip, struct cell old,
			      struct cell operand, struct cell compare, struct cell *next)
{
	cell_word a = old.lo, b = operand.lo, mask = compare.lo;
	cell_word mine = a ^ flip, yours = (cell_compares(op) ? mask : b) ^ flip;

	switch (op) {
	case FI_SUM:
		next->lo = a + b;
		return true;
	case FI_DIFF:
		next->lo = a - b;
		return true;
	case FI_PROD:
		next->lo = a * b;
		return true;
	case FI_BOR:
		next->lo = a | b;
		return true;
	case FI_BAND:
		next->lo = a & b;
		return true;
	case FI_BXOR:
		next->lo = a ^ b;
		return true;
	case FI_MSWAP:
		next->lo = (b & mask) | (a & ~mask);
		return true;
	case FI_LOR:
	case FI_LAND:
	case FI_LXOR:
		next->lo = cell_logical(op, a != 0, b != 0);
		return true;
	default:
		return cell_chooses(op, yours<mine, yours == mine, yours> mine);
	}
}

/* The sum is the common one, and has an instruction that never has to try again. */
CELL_INLINE struct cell integer_add(size_t size, void *at, struct cell operand)
{
	const memory_order seq = memory_order_seq_cst;
	struct cell old = { 0 };

	switch (size) {
	case 1:
		old.lo = atomic_fetch_add_explicit((_Atomic uint8_t *)at, (uint8_t)operand.lo,
						   seq);
		break;
	case 2:
		old.lo = atomic_fetch_add_explicit((_Atomic uint16_t *)at, (uint16_t)operand.lo,
						   seq);
		break;
	case 4:
		old.lo = atomic_fetch_add_explicit((_Atomic uint32_t *)at, (uint32_t)operand.lo,
						   seq);
		break;
	default:
		old.lo = atomic_fetch_add_explicit((_Atomic uint64_t *)at, (uint64_t)operand.lo,
						   seq);
	}
	return old;
}

CELL_INLINE void integer_add_each(size_t size, const struct atomics_update *u)
{
	uint8_t *target = u->target, *result = u->kind == ATOMICS_BASE ? NULL : u->result;
	const uint8_t *operands = u->operand;
	struct cell old;
	size_t i, at;

	for (i = 0, at = 0; i < u->cnt; i++, at += size) {
		old = integer_add(size, target + at, cell_get(size, operands + at));
		if (result)
			cell_put(size, result + at, old);
	}
}

CELL_INLINE cell_word integer_flip(size_t size, const struct atomics_type *type)
{
	return (cell_word)type->is_signed << (8 * size - 1);
}

CELL_INLINE void integer_apply(size_t size, const struct atomics_type *type,
			       const struct atomics_update *u)
{
	if (u->op == FI_SUM)
		integer_add_each(size, u);
	else
		cell_dispatch(size, true, integer_next, integer_flip(size, type), u);
}

static void integer_apply_8(const struct atomics_type *type, const struct atomics_update *u)
{
	integer_apply(1, type, u);
}

static void integer_apply_16(const struct atomics_type *type, const struct atomics_update *u)
{
	integer_apply(2, type, u);
}

static void integer_apply_32(const struct atomics_type *type, const struct atomics_update *u)
{
	integer_apply(4, type, u);
}

static void integer_apply_64(const struct atomics_type *type, const struct atomics_update *u)
{
	integer_apply(8, type, u);
}

static void integer_apply_128(const struct atomics_type *type, const struct atomics_update *u)
{
	if (cell_is_lock_free(16, u->target))
		cell_each(u->op, 16, true, integer_next, integer_flip(16, type), u);
	else
		cell_each(u->op, 16, false, integer_next, integer_flip(16, type), u);
}

static void integer_combine_8(const struct atomics_type *type, const struct atomics_update *u)
{
	cell_dispatch(1, false, integer_next, integer_flip(1, type), u);
}

static void integer_combine_16(const struct atomics_type *type, const struct atomics_update *u)
{
	cell_dispatch(2, false, integer_next, integer_flip(2, type), u);
}

static void integer_combine_32(const struct atomics_type *type, const struct atomics_update *u)
{
	cell_dispatch(4, false, integer_next, integer_flip(4, type), u);
}

static void integer_combine_64(const struct atomics_type *type, const struct atomics_update *u)
{
	cell_dispatch(8, false, integer_next, integer_flip(8, type), u);
}

static void integer_combine_128(const struct atomics_type *type, const struct atomics_update *u)
{
	cell_each(u->op, 16, false, integer_next, integer_flip(16, type), u);
}

const struct atomics_type atomics_integer_types[ATOMICS_DATATYPE_CNT] = {
	[FI_INT8] = { 1, 1, true, ATOMICS_OPS_ALL, integer_apply_8, integer_combine_8 },
	[FI_UINT8] = { 1, 1, false, ATOMICS_OPS_ALL, integer_apply_8, integer_combine_8 },
	[FI_INT16] = { 2, 2, true, ATOMICS_OPS_ALL, integer_apply_16, integer_combine_16 },
	[FI_UINT16] = { 2, 2, false, ATOMICS_OPS_ALL, integer_apply_16, integer_combine_16 },
	[FI_INT32] = { 4, 4, true, ATOMICS_OPS_ALL, integer_apply_32, integer_combine_32 },
	[FI_UINT32] = { 4, 4, false, ATOMICS_OPS_ALL, integer_apply_32, integer_combine_32 },
	[FI_INT64] = { 8, 8, true, ATOMICS_OPS_ALL, integer_apply_64, integer_combine_64 },
	[FI_UINT64] = { 8, 8, false, ATOMICS_OPS_ALL, integer_apply_64, integer_combine_64 },
	[FI_INT128] = { 16, 16, true, ATOMICS_OPS_ALL, integer_apply_128, integer_combine_128 },
	[FI_UINT128] = { 16, 16, false, ATOMICS_OPS_ALL, integer_apply_128,
			 integer_combine_128 },
};
