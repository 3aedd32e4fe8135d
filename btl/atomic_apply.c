/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomics by the processor: compare-and-swap until nobody was in between. */
#include <string.h>
#include "atomic_apply.h"

uint32_t btl_type_len(enum fi_datatype type)
{
	switch (type) {
	case FI_INT32:
	case FI_UINT32:
	case FI_FLOAT:
		return 4;
	case FI_INT64:
	case FI_UINT64:
	case FI_DOUBLE:
		return 8;
	default:
		return 0;
	}
}

bool btl_atomic_has(enum fi_op fi_op, enum fi_datatype type)
{
	bool is_float = type == FI_FLOAT || type == FI_DOUBLE;

	switch (fi_op) {
	case FI_SUM:
	case FI_MIN:
	case FI_MAX:
	case FI_ATOMIC_WRITE:
	case FI_CSWAP:
		return btl_type_len(type);
	case FI_BAND:
	case FI_BOR:
	case FI_BXOR:
		return btl_type_len(type) && !is_float;
	default:
		return false;
	}
}

static uint64_t of_bits(enum fi_op fi_op, uint64_t old, uint64_t operand)
{
	switch (fi_op) {
	case FI_SUM:
		return old + operand;
	case FI_BAND:
		return old & operand;
	case FI_BOR:
		return old | operand;
	case FI_BXOR:
		return old ^ operand;
	default:
		return operand;
	}
}

static double of_floats(enum fi_op fi_op, double old, double operand)
{
	switch (fi_op) {
	case FI_SUM:
		return old + operand;
	case FI_MIN:
		return operand < old ? operand : old;
	case FI_MAX:
		return operand > old ? operand : old;
	default:
		return operand;
	}
}

static float float_of(uint64_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static double double_of(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t bits_of(const void *value, size_t len)
{
	uint64_t bits = 0;

	memcpy(&bits, value, len);
	return bits;
}

/* Whether @a is less than @b. */
static bool is_less(enum fi_datatype type, uint64_t a, uint64_t b)
{
	switch (type) {
	case FI_INT32:
		return (int32_t)a < (int32_t)b;
	case FI_INT64:
		return (int64_t)a < (int64_t)b;
	case FI_UINT32:
		return (uint32_t)a < (uint32_t)b;
	default:
		return a < b;
	}
}

static uint64_t new_value(enum fi_op fi_op, enum fi_datatype type, uint64_t old,
			  uint64_t operand)
{
	float f;
	double d;

	switch (type) {
	case FI_FLOAT:
		/* a sum of two is rounded to the same value from a double's */
		f = (float)of_floats(fi_op, float_of(old), float_of(operand));
		return bits_of(&f, sizeof(f));
	case FI_DOUBLE:
		d = of_floats(fi_op, double_of(old), double_of(operand));
		return bits_of(&d, sizeof(d));
	default:
		if (fi_op == FI_MIN)
			return is_less(type, operand, old) ? operand : old;
		if (fi_op == FI_MAX)
			return is_less(type, old, operand) ? operand : old;
		return of_bits(fi_op, old, operand);
	}
}

static uint64_t load(void *at, uint32_t len)
{
	return len == 4 ? __atomic_load_n((uint32_t *)at, __ATOMIC_SEQ_CST)
			: __atomic_load_n((uint64_t *)at, __ATOMIC_SEQ_CST);
}

/*
 * Stores @value if @old is there, else loads what is there into @old.
 * Returns whether it has stored.
 */
static bool swap(void *at, uint32_t len, uint64_t *old, uint64_t value)
{
	uint32_t narrow = (uint32_t)*old;
	bool done;

	if (len == 8)
		return __atomic_compare_exchange_n((uint64_t *)at, old, value, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	done = __atomic_compare_exchange_n((uint32_t *)at, &narrow, (uint32_t)value, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	*old = narrow;
	return done;
}

uint64_t btl_atomic_apply(void *at, enum fi_op fi_op, enum fi_datatype type, uint64_t operand,
			  uint64_t compare)
{
	uint32_t len = btl_type_len(type);
	uint64_t old = load(at, len);

	if (fi_op == FI_CSWAP) {
		old = bits_of(&compare, len);
		swap(at, len, &old, operand);
		return old;
	}
	while (!swap(at, len, &old, new_value(fi_op, type, old, operand)))
		;
	return old;
}
