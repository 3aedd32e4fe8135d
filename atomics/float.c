/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * float, double, long double, and the complex types of each. atomics.c calls, on any thread.
 * Not part of the kernel module, which links nofloat.c.
 *
 * Comparisons and truth are those of long double, to which the smaller types convert exactly;
 * the compiler sees that and compares in the type itself. Sums and products are rounded once,
 * in the type they belong to.
 */
#include <complex.h>
#include <float.h>
#include "atomics.h"
#include "cell.h"

/* x87: ten bytes are the value; the rest is stored as zeros, so that no stack memory leaks */
#define LONG_DOUBLE_LEN (LDBL_MANT_DIG == 64 ? 10 : sizeof(long double))

static_assert(sizeof(float) == 4 && sizeof(double) == 8 && sizeof(long double) == 16,
	      "the sizes of the loops below");
static_assert(sizeof(long double complex) == sizeof(struct cell), "the largest element");

/* real_get - the number in a word. @size: 4, 8 or 16 */
CELL_INLINE long double real_get(size_t size, cell_word word)
{
	long double wide;
	double d;
	float f;

	switch (size) {
	case 4:
		memcpy(&f, &word, sizeof(f));
		return f;
	case 8:
		memcpy(&d, &word, sizeof(d));
		return d;
	default:
		memcpy(&wide, &word, sizeof(wide));
		return wide;
	}
}

/* real_put - the reverse of real_get(), for a value that the type has */
CELL_INLINE cell_word real_put(size_t size, long double value)
{
	cell_word word = 0;
	double d = (double)value;
	float f = (float)value;

	switch (size) {
	case 4:
		memcpy(&word, &f, sizeof(f));
		break;
	case 8:
		memcpy(&word, &d, sizeof(d));
		break;
	default:
		memcpy(&word, &value, LONG_DOUBLE_LEN);
	}
	return word;
}

CELL_INLINE float float_combine(enum fi_op op, float a, float b)
{
	return op == FI_SUM ? a + b : op == FI_DIFF ? a - b : a * b;
}

CELL_INLINE double double_combine(enum fi_op op, double a, double b)
{
	return op == FI_SUM ? a + b : op == FI_DIFF ? a - b : a * b;
}

CELL_INLINE long double wide_combine(enum fi_op op, long double a, long double b)
{
	return op == FI_SUM ? a + b : op == FI_DIFF ? a - b : a * b;
}

/* real_combine - FI_SUM, FI_DIFF or FI_PROD in the type of @size */
CELL_INLINE cell_word real_combine(enum fi_op op, size_t size, cell_word a, cell_word b)
{
	long double x = real_get(size, a), y = real_get(size, b);

	switch (size) {
	case 4:
		return real_put(size, float_combine(op, (float)x, (float)y));
	case 8:
		return real_put(size, double_combine(op, (double)x, (double)y));
	default:
		return real_put(size, wide_combine(op, x, y));
	}
}

CELL_INLINE bool real_next(enum fi_op op, size_t size, cell_word old, cell_word operand,
			   cell_word compare, cell_word *next)
{
	long double mine = real_get(size, old), b = real_get(size, operand);
	long double yours = cell_compares(op) ? real_get(size, compare) : b;

	switch (op) {
	case FI_SUM:
	case FI_DIFF:
	case FI_PROD:
		*next = real_combine(op, size, old, operand);
		return true;
	case FI_LOR:
	case FI_LAND:
	case FI_LXOR:
		*next = real_put(size, cell_logical(op, mine != 0, b != 0));
		return true;
	default:
		return cell_chooses(op, yours<mine, yours == mine, yours> mine);
	}
}

/* complex_part - a complex number's real (0) or imaginary (1) part. @size: of one part */
CELL_INLINE cell_word complex_part(size_t size, struct cell c, int i)
{
	switch (size) {
	case 4:
		return (uint32_t)(c.lo >> 32 * i);
	case 8:
		return (uint64_t)(c.lo >> 64 * i);
	default:
		return i ? c.hi : c.lo;
	}
}

CELL_INLINE struct cell complex_of(size_t size, cell_word re, cell_word im)
{
	switch (size) {
	case 4:
		return (struct cell){ .lo = im << 32 | re };
	case 8:
		return (struct cell){ .lo = im << 64 | re };
	default:
		return (struct cell){ .lo = re, .hi = im };
	}
}

/* complex_product - C's own multiplication, which handles infinities */
CELL_INLINE struct cell complex_product(size_t size, struct cell old, struct cell operand)
{
	long double a = real_get(size, complex_part(size, old, 0));
	long double b = real_get(size, complex_part(size, old, 1));
	long double c = real_get(size, complex_part(size, operand, 0));
	long double d = real_get(size, complex_part(size, operand, 1));
	long double complex product;

	switch (size) {
	case 4:
		product = __builtin_complex((float)a, (float)b) *
			  __builtin_complex((float)c, (float)d);
		break;
	case 8:
		product = __builtin_complex((double)a, (double)b) *
			  __builtin_complex((double)c, (double)d);
		break;
	default:
		product = __builtin_complex(a, b) * __builtin_complex(c, d);
	}
	return complex_of(size, real_put(size, creall(product)),
			  real_put(size, cimagl(product)));
}

CELL_INLINE bool complex_next(enum fi_op op, size_t size, struct cell old, struct cell operand,
			      struct cell compare, struct cell *next)
{
	cell_word re = complex_part(size, old, 0), im = complex_part(size, old, 1);
	cell_word re2 = complex_part(size, operand, 0), im2 = complex_part(size, operand, 1);
	bool truth = real_get(size, re) != 0 || real_get(size, im) != 0;
	bool truth2 = real_get(size, re2) != 0 || real_get(size, im2) != 0;
	bool equal = real_get(size, re) == real_get(size, complex_part(size, compare, 0)) &&
		     real_get(size, im) == real_get(size, complex_part(size, compare, 1));

	switch (op) {
	case FI_SUM:
	case FI_DIFF:
		*next = complex_of(size, real_combine(op, size, re, re2),
				   real_combine(op, size, im, im2));
		return true;
	case FI_PROD:
		*next = complex_product(size, old, operand);
		return true;
	case FI_LOR:
	case FI_LAND:
	case FI_LXOR:
		*next = complex_of(size, real_put(size, cell_logical(op, truth, truth2)),
				   real_put(size, 0));
		return true;
	default:
		return cell_chooses(op, false, equal, false);
	}
}

static inline bool float_next(enum fi_op op, cell_word flip, struct cell old,
			      struct cell operand, struct cell compare, struct cell *next)
{
	return real_next(op, 4, old.lo, operand.lo, compare.lo, &next->lo);
}

static inline bool double_next(enum fi_op op, cell_word flip, struct cell old,
			       struct cell operand, struct cell compare, struct cell *next)
{
	return real_next(op, 8, old.lo, operand.lo, compare.lo, &next->lo);
}

static bool wide_next(enum fi_op op, cell_word flip, struct cell old, struct cell operand,
		      struct cell compare, struct cell *next)
{
	return real_next(op, 16, old.lo, operand.lo, compare.lo, &next->lo);
}

static bool float_complex_next(enum fi_op op, cell_word flip, struct cell old,
			       struct cell operand, struct cell compare, struct cell *next)
{
	return complex_next(op, 4, old, operand, compare, next);
}

static bool double_complex_next(enum fi_op op, cell_word flip, struct cell old,
				struct cell operand, struct cell compare, struct cell *next)
{
	return complex_next(op, 8, old, operand, compare, next);
}

static bool wide_complex_next(enum fi_op op, cell_word flip, struct cell old,
			      struct cell operand, struct cell compare, struct cell *next)
{
	return complex_next(op, 16, old, operand, compare, next);
}

static void float_apply(const struct atomics_type *type, const struct atomics_update *u)
{
	cell_dispatch(4, true, float_next, 0, u);
}

static void double_apply(const struct atomics_type *type, const struct atomics_update *u)
{
	cell_dispatch(8, true, double_next, 0, u);
}

static void wide_apply(const struct atomics_type *type, const struct atomics_update *u)
{
	if (cell_is_lock_free(16, u->target))
		cell_each(u->op, 16, true, wide_next, 0, u);
	else
		cell_each(u->op, 16, false, wide_next, 0, u);
}

static void float_complex_apply(const struct atomics_type *type, const struct atomics_update *u)
{
	if (cell_is_lock_free(8, u->target))
		cell_each(u->op, 8, true, float_complex_next, 0, u);
	else
		cell_each(u->op, 8, false, float_complex_next, 0, u);
}

static void double_complex_apply(const struct atomics_type *type, const struct atomics_update *u)
{
	if (cell_is_lock_free(16, u->target))
		cell_each(u->op, 16, true, double_complex_next, 0, u);
	else
		cell_each(u->op, 16, false, double_complex_next, 0, u);
}

static void wide_complex_apply(const struct atomics_type *type, const struct atomics_update *u)
{
	cell_each(u->op, 32, false, wide_complex_next, 0, u);
}

static void float_merge(const struct atomics_type *type, const struct atomics_update *u)
{
	cell_dispatch(4, false, float_next, 0, u);
}

static void double_merge(const struct atomics_type *type, const struct atomics_update *u)
{
	cell_dispatch(8, false, double_next, 0, u);
}

static void wide_merge(const struct atomics_type *type, const struct atomics_update *u)
{
	cell_each(u->op, 16, false, wide_next, 0, u);
}

static void float_complex_merge(const struct atomics_type *type, const struct atomics_update *u)
{
	cell_each(u->op, 8, false, float_complex_next, 0, u);
}

static void double_complex_merge(const struct atomics_type *type, const struct atomics_update *u)
{
	cell_each(u->op, 16, false, double_complex_next, 0, u);
}

#define COMPLEX_OPS                                                                      \
	(1u << FI_SUM | 1u << FI_DIFF | 1u << FI_PROD | 1u << FI_LOR | 1u << FI_LAND |   \
	 1u << FI_LXOR | 1u << FI_ATOMIC_READ | 1u << FI_ATOMIC_WRITE | 1u << FI_CSWAP | \
	 1u << FI_CSWAP_NE)
#define REAL_OPS                                                                             \
	(COMPLEX_OPS | 1u << FI_MIN | 1u << FI_MAX | 1u << FI_CSWAP_LE | 1u << FI_CSWAP_LT | \
	 1u << FI_CSWAP_GE | 1u << FI_CSWAP_GT)

static const struct atomics_type float_types[ATOMICS_DATATYPE_CNT] = {
	[FI_FLOAT] = { 4, 4, true, REAL_OPS, float_apply, float_merge },
	[FI_DOUBLE] = { 8, 8, true, REAL_OPS, double_apply, double_merge },
	[FI_LONG_DOUBLE] = { 16, _Alignof(long double), true, REAL_OPS, wide_apply, wide_merge },
	[FI_FLOAT_COMPLEX] = { 8, _Alignof(float complex), true, COMPLEX_OPS,
			       float_complex_apply, float_complex_merge },
	[FI_DOUBLE_COMPLEX] = { 16, _Alignof(double complex), true, COMPLEX_OPS,
				double_complex_apply, double_complex_merge },
	[FI_LONG_DOUBLE_COMPLEX] = { 32, _Alignof(long double complex), true, COMPLEX_OPS,
				     wide_complex_apply, wide_complex_apply },
};

const struct atomics_type *atomics_float_type(enum fi_datatype datatype)
{
	const struct atomics_type *type = &float_types[datatype];

	return type->size ? type : NULL;
}
