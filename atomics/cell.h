/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One location under an atomic operation: how it is read and replaced, and the loop over an array.
 * integer.c and float.c define the result of each operation for a value and instantiate the loops;
 * no other file includes this.
 */
#ifndef WEFT_ATOMICS_CELL_H
#define WEFT_ATOMICS_CELL_H

#include "atomics.h"
#include "wide.h"

#define CELL_INLINE static inline __attribute__((always_inline))

typedef wide_word cell_word;

/* The bytes of an element, zero beyond its size. Only long double complex reaches hi. */
struct cell {
	cell_word lo;
	cell_word hi;
};

/* A datatype as this build supports it; size 0: not supported */
struct atomics_type {
	uint8_t size;
	uint8_t align;
	/* of integers */
	bool is_signed;
	/* a bit for each enum fi_op */
	uint32_t ops;
	void (*apply)(const struct atomics_type *type, const struct atomics_update *u);
	void (*combine)(const struct atomics_type *type, const struct atomics_update *u);
};

#define ATOMICS_DATATYPE_CNT (FI_FLOAT8_E5M2 + 1)
#define ATOMICS_OP_CNT	     (FI_DIFF + 1)
#define ATOMICS_OPS_ALL	     ((1u << ATOMICS_OP_CNT) - 1)

/* What integer.c has; size 0: nothing. atomics_float_type - what float.c has, or NULL */
extern const struct atomics_type atomics_integer_types[ATOMICS_DATATYPE_CNT];
const struct atomics_type *atomics_float_type(enum fi_datatype datatype);

/*
 * cell_next - what an operation makes of a location
 * @op:      a constant in most loops
 * @flip:    integers: the sign bit of a signed type, else 0
 * @old:     what stands there
 * @next:    what shall stand there; bytes beyond the element's size are cut off
 *
 * Returns false if the location stays as it is.
 */
typedef bool cell_next(enum fi_op op, cell_word flip, struct cell old, struct cell operand,
		       struct cell compare, struct cell *next);

/* cell_compares - returns true for the operations that take a third value */
CELL_INLINE bool cell_compares(enum fi_op op)
{
	return op >= FI_CSWAP && op <= FI_MSWAP;
}

/*
 * cell_chooses - whether a conditional operation stores its operand
 * @less, @equal, @greater: how the operand (FI_MIN, FI_MAX) or the compare value (FI_CSWAP_*)
 *                          stands to the location; none of them for NaN
 */
CELL_INLINE bool cell_chooses(enum fi_op op, bool less, bool equal, bool greater)
{
	switch (op) {
	case FI_MIN:
	case FI_CSWAP_LT:
		return less;
	case FI_MAX:
	case FI_CSWAP_GT:
		return greater;
	case FI_CSWAP:
		return equal;
	case FI_CSWAP_NE:
		return !equal;
	case FI_CSWAP_LE:
		return less || equal;
	case FI_CSWAP_GE:
		return greater || equal;
	default:
		return false;
	}
}

/* cell_logical - FI_LOR, FI_LAND or FI_LXOR of two truth values */
CELL_INLINE bool cell_logical(enum fi_op op, bool a, bool b)
{
	return op == FI_LOR ? a || b : op == FI_LAND ? a && b : a != b;
}

/* cell_get - an element of a byte array; a read of any alignment, not atomic */
CELL_INLINE struct cell cell_get(size_t size, const uint8_t *from)
{
	struct cell c = { 0 };
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	switch (size) {
	case 1:
		c.lo = *from;
		break;
	case 2:
		memcpy(&v16, from, 2);
		c.lo = v16;
		break;
	case 4:
		memcpy(&v32, from, 4);
		c.lo = v32;
		break;
	case 8:
		memcpy(&v64, from, 8);
		c.lo = v64;
		break;
	case 16:
		memcpy(&c.lo, from, 16);
		break;
	default:
		memcpy(&c.lo, from, 16);
		memcpy(&c.hi, from + 16, 16);
	}
	return c;
}

/* cell_put - the reverse of cell_get() */
CELL_INLINE void cell_put(size_t size, uint8_t *to, struct cell c)
{
	memcpy(to, &c.lo, size < 16 ? size : 16);
	if (size > 16)
		memcpy(to + 16, &c.hi, size - 16);
}

/* cell_is_lock_free - the rule of atomics.h for an aligned address */
CELL_INLINE bool cell_is_lock_free(size_t size, const void *target)
{
	return (uintptr_t)target % size == 0 &&
	       (size <= 8 || (size == 16 && wide_is_lock_free()));
}

/*
 * The accesses to a location. All are sequentially consistent: an atomic read that follows
 * an atomic write doesn't overtake it (FI_ORDER_ATOMIC_RAW), though nothing but these calls
 * stands between them where memory is mapped. @shared: by CPU atomics, else plainly; both
 * it and @size are constants.
 */
CELL_INLINE struct cell cell_load(size_t size, bool shared, uint8_t *target)
{
	const memory_order seq = memory_order_seq_cst;
	void *at = target;
	struct cell c = { 0 };

	if (!shared)
		return cell_get(size, target);
	switch (size) {
	case 1:
		c.lo = atomic_load_explicit((_Atomic uint8_t *)at, seq);
		break;
	case 2:
		c.lo = atomic_load_explicit((_Atomic uint16_t *)at, seq);
		break;
	case 4:
		c.lo = atomic_load_explicit((_Atomic uint32_t *)at, seq);
		break;
	case 8:
		c.lo = atomic_load_explicit((_Atomic uint64_t *)at, seq);
		break;
	default:
		c.lo = wide_load(target);
	}
	return c;
}

/*
 * cell_replace - store @next if the location holds @old; otherwise returns false, and @old is the
 * present value
 */
CELL_INLINE bool cell_replace(size_t size, bool shared, uint8_t *target, struct cell *old,
			      struct cell next)
{
	const memory_order seq = memory_order_seq_cst;
	void *at = target;
	uint8_t v8 = (uint8_t)old->lo;
	uint16_t v16 = (uint16_t)old->lo;
	uint32_t v32 = (uint32_t)old->lo;
	uint64_t v64 = (uint64_t)old->lo;
	bool done;

	if (!shared) {
		cell_put(size, target, next);
		return true;
	}
	switch (size) {
	case 1:
		done = atomic_compare_exchange_weak_explicit((_Atomic uint8_t *)at, &v8,
							     (uint8_t)next.lo, seq, seq);
		old->lo = v8;
		return done;
	case 2:
		done = atomic_compare_exchange_weak_explicit((_Atomic uint16_t *)at, &v16,
							     (uint16_t)next.lo, seq, seq);
		old->lo = v16;
		return done;
	case 4:
		done = atomic_compare_exchange_weak_explicit((_Atomic uint32_t *)at, &v32,
							     (uint32_t)next.lo, seq, seq);
		old->lo = v32;
		return done;
	case 8:
		done = atomic_compare_exchange_weak_explicit((_Atomic uint64_t *)at, &v64,
							     (uint64_t)next.lo, seq, seq);
		old->lo = v64;
		return done;
	default:
		return wide_replace(target, &old->lo, next.lo);
	}
}

/* cell_exchange - FI_ATOMIC_WRITE of up to 8 bytes in one instruction */
CELL_INLINE struct cell cell_exchange(size_t size, uint8_t *target, struct cell next)
{
	const memory_order seq = memory_order_seq_cst;
	void *at = target;
	struct cell old = { 0 };

	switch (size) {
	case 1:
		old.lo = atomic_exchange_explicit((_Atomic uint8_t *)at, (uint8_t)next.lo, seq);
		break;
	case 2:
		old.lo = atomic_exchange_explicit((_Atomic uint16_t *)at, (uint16_t)next.lo,
						  seq);
		break;
	case 4:
		old.lo = atomic_exchange_explicit((_Atomic uint32_t *)at, (uint32_t)next.lo,
						  seq);
		break;
	default:
		old.lo = atomic_exchange_explicit((_Atomic uint64_t *)at, (uint64_t)next.lo,
						  seq);
	}
	return old;
}

/* cell_update - update one element; returns its previous value */
CELL_INLINE struct cell cell_update(enum fi_op op, size_t size, bool shared, cell_next *next,
				    cell_word flip, uint8_t *target, struct cell operand,
				    struct cell compare)
{
	struct cell old, new;

	if (op == FI_ATOMIC_WRITE && shared && size <= 8)
		return cell_exchange(size, target, operand);
	old = cell_load(size, shared, target);
	if (op == FI_ATOMIC_READ)
		return old;
	do {
		new = operand;
		if (op != FI_ATOMIC_WRITE && !next(op, flip, old, operand, compare, &new))
			break;
	} while (!cell_replace(size, shared, target, &old, new));
	return old;
}

/* cell_each - one operation on an array; small and constant: a tight loop of its own */
CELL_INLINE void cell_each(enum fi_op op, size_t size, bool shared, cell_next *next,
			   cell_word flip, const struct atomics_update *u)
{
	uint8_t *target = u->target, *result = u->kind == ATOMICS_BASE ? NULL : u->result;
	const uint8_t *operands = u->operand, *compares = u->compare;
	struct cell operand = { 0 }, compare = { 0 }, old;
	size_t i, at;

	for (i = 0, at = 0; i < u->cnt; i++, at += size) {
		if (op != FI_ATOMIC_READ)
			operand = cell_get(size, operands + at);
		if (cell_compares(op))
			compare = cell_get(size, compares + at);
		old = cell_update(op, size, shared, next, flip, target + at, operand, compare);
		if (result)
			cell_put(size, result + at, old);
	}
}

/* cell_dispatch - cell_each() with a loop for each operation */
CELL_INLINE void cell_dispatch(size_t size, bool shared, cell_next *next, cell_word flip,
			       const struct atomics_update *u)
{
	switch (u->op) {
	case FI_MIN:
		return cell_each(FI_MIN, size, shared, next, flip, u);
	case FI_MAX:
		return cell_each(FI_MAX, size, shared, next, flip, u);
	case FI_SUM:
		return cell_each(FI_SUM, size, shared, next, flip, u);
	case FI_PROD:
		return cell_each(FI_PROD, size, shared, next, flip, u);
	case FI_BOR:
		return cell_each(FI_BOR, size, shared, next, flip, u);
	case FI_BAND:
		return cell_each(FI_BAND, size, shared, next, flip, u);
	case FI_BXOR:
		return cell_each(FI_BXOR, size, shared, next, flip, u);
	case FI_ATOMIC_READ:
		return cell_each(FI_ATOMIC_READ, size, shared, next, flip, u);
	case FI_ATOMIC_WRITE:
		return cell_each(FI_ATOMIC_WRITE, size, shared, next, flip, u);
	case FI_CSWAP:
		return cell_each(FI_CSWAP, size, shared, next, flip, u);
	case FI_MSWAP:
		return cell_each(FI_MSWAP, size, shared, next, flip, u);
	case FI_DIFF:
		return cell_each(FI_DIFF, size, shared, next, flip, u);
	default: /* the logical and the ordered ones: seldom, and not worth a loop each */
		return cell_each(u->op, size, shared, next, flip, u);
	}
}

#endif
