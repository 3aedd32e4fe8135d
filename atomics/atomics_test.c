/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of atomic operations: every type, operation and kind against the expressions of
 * fi_atomic(3) written out in the C type itself, for all combinations of edge values; what is
 * valid; and what is refused. storm_test.c has the threads.
 */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include "atomics.h"
#include <cmocka.h>

typedef __int128 int128;
typedef unsigned __int128 uint128;
typedef float complex float_complex;
typedef double complex double_complex;
typedef long double long_double;
typedef long double complex long_double_complex;

#define VALUE_MAX 32 /* bytes of the largest element */
#define EDGE_CNT  14 /* edge values of a type */

/* What a type is, from fi_atomic(3) and the C compiler, independent of the table tested */
enum family { INTEGER, REAL, COMPLEX, ABSENT };

/* reference - the man page's expression; *addr is updated */
typedef void reference(enum fi_op op, void *addr, const void *buf, const void *compare);

/* The conditional operations that all types with an order have */
#define ORDERED_CASES          \
	case FI_MIN:           \
		if (b < a)     \
			a = b; \
		break;         \
	case FI_MAX:           \
		if (b > a)     \
			a = b; \
		break;         \
	case FI_CSWAP_LE:      \
		if (c <= a)    \
			a = b; \
		break;         \
	case FI_CSWAP_LT:      \
		if (c < a)     \
			a = b; \
		break;         \
	case FI_CSWAP_GE:      \
		if (c >= a)    \
			a = b; \
		break;         \
	case FI_CSWAP_GT:      \
		if (c > a)     \
			a = b; \
		break;

/* Those that every type has, but arithmetic */
#define LOGICAL_CASES                         \
	case FI_LOR:                          \
		a = (a || b);                 \
		break;                        \
	case FI_LAND:                         \
		a = (a && b);                 \
		break;                        \
	case FI_LXOR:                         \
		a = ((a && !b) || (!a && b)); \
		break;                        \
	case FI_ATOMIC_WRITE:                 \
		a = b;                        \
		break;                        \
	case FI_CSWAP:                        \
		if (c == a)                   \
			a = b;                \
		break;                        \
	case FI_CSWAP_NE:                     \
		if (c != a)                   \
			a = b;                \
		break;

#define LOAD(type)                   \
	type a, b, c = 0;            \
                                     \
	memcpy(&a, addr, sizeof(a)); \
	memcpy(&b, buf, sizeof(b));  \
	if (compare)                 \
	memcpy(&c, compare, sizeof(c))

/* Signed overflow wraps: the sum of the bits, computed in the widest unsigned type */
#define INTEGER_REFERENCE(type)                                                  \
	static void type##_reference(enum fi_op op, void *addr, const void *buf, \
				     const void *compare)                        \
	{                                                                        \
		LOAD(type);                                                      \
		switch (op) {                                                    \
			ORDERED_CASES                                            \
			LOGICAL_CASES                                            \
		case FI_SUM:                                                     \
			a = (type)((uint128)a + (uint128)b);                     \
			break;                                                   \
		case FI_DIFF:                                                    \
			a = (type)((uint128)a - (uint128)b);                     \
			break;                                                   \
		case FI_PROD:                                                    \
			a = (type)((uint128)a * (uint128)b);                     \
			break;                                                   \
		case FI_BOR:                                                     \
			a = (type)(a | b);                                       \
			break;                                                   \
		case FI_BAND:                                                    \
			a = (type)(a & b);                                       \
			break;                                                   \
		case FI_BXOR:                                                    \
			a = (type)(a ^ b);                                       \
			break;                                                   \
		case FI_MSWAP:                                                   \
			a = (type)((b & c) | (a & ~c));                          \
			break;                                                   \
		default:                                                         \
			break;                                                   \
		}                                                                \
		memcpy(addr, &a, sizeof(a));                                     \
	}

#define FLOAT_REFERENCE(type, ordered)                                           \
	static void type##_reference(enum fi_op op, void *addr, const void *buf, \
				     const void *compare)                        \
	{                                                                        \
		LOAD(type);                                                      \
		switch (op) {                                                    \
			ordered LOGICAL_CASES case FI_SUM : a = a + b;           \
			break;                                                   \
		case FI_DIFF:                                                    \
			a = a - b;                                               \
			break;                                                   \
		case FI_PROD:                                                    \
			a = a * b;                                               \
			break;                                                   \
		default:                                                         \
			break;                                                   \
		}                                                                \
		memcpy(addr, &a, sizeof(a));                                     \
	}

INTEGER_REFERENCE(int8_t)
INTEGER_REFERENCE(uint8_t)
INTEGER_REFERENCE(int16_t)
INTEGER_REFERENCE(uint16_t)
INTEGER_REFERENCE(int32_t)
INTEGER_REFERENCE(uint32_t)
INTEGER_REFERENCE(int64_t)
INTEGER_REFERENCE(uint64_t)
INTEGER_REFERENCE(int128)
INTEGER_REFERENCE(uint128)
FLOAT_REFERENCE(float, ORDERED_CASES)
FLOAT_REFERENCE(double, ORDERED_CASES)
FLOAT_REFERENCE(long_double, ORDERED_CASES)
FLOAT_REFERENCE(float_complex, )
FLOAT_REFERENCE(double_complex, )
FLOAT_REFERENCE(long_double_complex, )

static const struct kind_of_type {
	const char *name;
	enum family family;
	size_t size;
	size_t align;
	/* bytes of a real number in it, or 0 */
	size_t part;
	reference *reference;
} types[] = {
	[FI_INT8] = { "int8", INTEGER, 1, 1, 0, int8_t_reference },
	[FI_UINT8] = { "uint8", INTEGER, 1, 1, 0, uint8_t_reference },
	[FI_INT16] = { "int16", INTEGER, 2, 2, 0, int16_t_reference },
	[FI_UINT16] = { "uint16", INTEGER, 2, 2, 0, uint16_t_reference },
	[FI_INT32] = { "int32", INTEGER, 4, 4, 0, int32_t_reference },
	[FI_UINT32] = { "uint32", INTEGER, 4, 4, 0, uint32_t_reference },
	[FI_INT64] = { "int64", INTEGER, 8, 8, 0, int64_t_reference },
	[FI_UINT64] = { "uint64", INTEGER, 8, 8, 0, uint64_t_reference },
	[FI_FLOAT] = { "float", REAL, 4, 4, 4, float_reference },
	[FI_DOUBLE] = { "double", REAL, 8, 8, 8, double_reference },
	[FI_FLOAT_COMPLEX] = { "float complex", COMPLEX, 8, 4, 4, float_complex_reference },
	[FI_DOUBLE_COMPLEX] = { "double complex", COMPLEX, 16, 8, 8, double_complex_reference },
	[FI_LONG_DOUBLE] = { "long double", REAL, 16, 16, 16, long_double_reference },
	[FI_LONG_DOUBLE_COMPLEX] = { "long double complex", COMPLEX, 32, 16, 16,
				     long_double_complex_reference },
	[FI_INT128] = { "int128", INTEGER, 16, 16, 0, int128_reference },
	[FI_UINT128] = { "uint128", INTEGER, 16, 16, 0, uint128_reference },
	[FI_FLOAT16] = { "float16", ABSENT, 0, 0, 0, NULL },
	[FI_BFLOAT16] = { "bfloat16", ABSENT, 0, 0, 0, NULL },
	[FI_FLOAT8_E4M3] = { "float8 e4m3", ABSENT, 0, 0, 0, NULL },
	[FI_FLOAT8_E5M2] = { "float8 e5m2", ABSENT, 0, 0, 0, NULL },
};

/* The lists of fi_atomic(3): the kinds an operation belongs to, the families that have it */
static const struct {
	const char *name;
	/* b: base, f: fetch, c: compare */
	const char *kinds;
	/* i: integer, r: real, c: complex */
	const char *families;
} ops[] = {
	[FI_MIN] = { "min", "bf", "ir" },	   [FI_MAX] = { "max", "bf", "ir" },
	[FI_SUM] = { "sum", "bf", "irc" },	   [FI_PROD] = { "prod", "bf", "irc" },
	[FI_LOR] = { "lor", "bf", "irc" },	   [FI_LAND] = { "land", "bf", "irc" },
	[FI_BOR] = { "bor", "bf", "i" },	   [FI_BAND] = { "band", "bf", "i" },
	[FI_LXOR] = { "lxor", "bf", "irc" },	   [FI_BXOR] = { "bxor", "bf", "i" },
	[FI_ATOMIC_READ] = { "read", "f", "irc" }, [FI_ATOMIC_WRITE] = { "write", "bf", "irc" },
	[FI_CSWAP] = { "cswap", "c", "irc" },	   [FI_CSWAP_NE] = { "cswap_ne", "c", "irc" },
	[FI_CSWAP_LE] = { "cswap_le", "c", "ir" }, [FI_CSWAP_LT] = { "cswap_lt", "c", "ir" },
	[FI_CSWAP_GE] = { "cswap_ge", "c", "ir" }, [FI_CSWAP_GT] = { "cswap_gt", "c", "ir" },
	[FI_MSWAP] = { "mswap", "c", "i" },	   [FI_DIFF] = { "diff", "bf", "irc" },
};

#define TYPE_CNT (sizeof(types) / sizeof(*types))
#define OP_CNT	 (sizeof(ops) / sizeof(*ops))

static bool expected_valid(enum atomics_kind kind, size_t type, size_t op)
{
	return types[type].family != ABSENT && strchr(ops[op].kinds, "bfc"[kind]) &&
	       strchr(ops[op].families, "irc"[types[type].family]);
}

/* Bit patterns at the ends, and such that show a byte in the wrong place */
static void integer_edge(size_t size, int n, uint8_t *value)
{
	static const uint64_t random[] = { 0x0123456789abcdef, 0xfedcba9876543210,
					   0xb7e151628aed2a6a, 0x243f6a8885a308d3 };
	size_t i;

	switch (n) {
	case 0:
	case 1:
	case 2:
		memset(value, 0, size);
		value[0] = (uint8_t)n;
		break;
	case 3: /* -1, or the greatest */
	case 4: /* -2 */
		memset(value, 0xff, size);
		value[0] = n == 3 ? 0xff : 0xfe;
		break;
	case 5: /* the greatest signed */
		memset(value, 0xff, size);
		value[size - 1] = 0x7f;
		break;
	case 6: /* the least signed */
	case 7:
		memset(value, 0, size);
		value[0] = n == 7;
		value[size - 1] |= 0x80;
		break;
	case 8:
	case 9:
		memset(value, n == 8 ? 0x55 : 0xaa, size);
		break;
	default:
		for (i = 0; i < size; i++)
			value[i] = (uint8_t)(random[n - 10] >> (i * 8 % 64)) ^ (uint8_t)(i / 8);
	}
}

static void real_edge(size_t size, int n, uint8_t *value)
{
	static const long double plain[] = { 0,	    -0.0L,  1,	      -1,	 0.1L,
					     3.75L, -1e10L, INFINITY, -INFINITY, NAN };
	long double wide = n < 10 ? plain[n] : 0;
	double d = (double)wide;
	float f = (float)wide;
	static const float floats[] = { FLT_MAX, -FLT_MAX, FLT_TRUE_MIN, FLT_EPSILON };
	static const double doubles[] = { DBL_MAX, -DBL_MAX, DBL_TRUE_MIN, DBL_EPSILON };
	static const long double wides[] = { LDBL_MAX, -LDBL_MAX, LDBL_TRUE_MIN, LDBL_EPSILON };

	memset(value, 0, size);
	if (n >= 10) {
		f = floats[n - 10];
		d = doubles[n - 10];
		wide = wides[n - 10];
	}
	if (size == 4)
		memcpy(value, &f, 4);
	else if (size == 8)
		memcpy(value, &d, 8);
	else
		memcpy(value, &wide, 10);
}

static void edge(const struct kind_of_type *type, int n, uint8_t *value)
{
	switch (type->family) {
	case REAL:
		real_edge(type->size, n, value);
		break;
	case COMPLEX: /* each part takes each kind of number */
		real_edge(type->part, n, value);
		real_edge(type->part, (n * 5 + 3) % EDGE_CNT, value + type->part);
		break;
	default:
		integer_edge(type->size, n, value);
	}
}

static long double part_of(size_t size, const uint8_t *value)
{
	long double wide;
	double d;
	float f;

	if (size == 4)
		return memcpy(&f, value, 4), f;
	if (size == 8)
		return memcpy(&d, value, 8), d;
	memcpy(&wide, value, 16);
	return wide;
}

/* The same bits; of two NaNs that were computed it's enough that both are. */
static bool same(const struct kind_of_type *type, const uint8_t *a, const uint8_t *b)
{
	size_t at, significant = type->part == 16 ? 10 : type->part;

	if (!type->part)
		return !memcmp(a, b, type->size);
	for (at = 0; at < type->size; at += type->part)
		if (memcmp(a + at, b + at, significant) &&
		    !(isnan(part_of(type->part, a + at)) && isnan(part_of(type->part, b + at))))
			return false;
	return true;
}

#define TRIPLE_CNT (EDGE_CNT * EDGE_CNT * EDGE_CNT)
#define ROOM	   (TRIPLE_CNT * VALUE_MAX + 64)
#define GUARD	   0xc3

static _Alignas(64) uint8_t targets[ROOM], olds[ROOM];
static uint8_t operands[ROOM], compares[ROOM], results[ROOM];

static void fill(const struct kind_of_type *type, bool with_compare, size_t cnt, size_t shift)
{
	size_t i;

	memset(targets, GUARD, sizeof(targets));
	memset(results, GUARD, sizeof(results));
	memset(operands, GUARD, sizeof(operands));
	memset(compares, GUARD, sizeof(compares));
	for (i = 0; i < cnt; i++) {
		edge(type, (int)(i % EDGE_CNT), targets + shift + i * type->size);
		edge(type, (int)(i / EDGE_CNT % EDGE_CNT), operands + 1 + i * type->size);
		if (with_compare)
			edge(type, (int)(i / EDGE_CNT / EDGE_CNT),
			     compares + 3 + i * type->size);
	}
	memcpy(olds, targets, sizeof(targets));
}

static void expect_guards(const uint8_t *room, size_t from, size_t len)
{
	size_t i;

	for (i = 0; i < from; i++)
		assert_int_equal(room[i], GUARD);
	for (i = from + len; i < ROOM; i++)
		assert_int_equal(room[i], GUARD);
}

/* All combinations in one array that begins @shift bytes after a multiple of 64 */
static void expect_as_reference(enum atomics_kind kind, size_t t, size_t op, size_t shift)
{
	const struct kind_of_type *type = &types[t];
	size_t cnt = kind == ATOMICS_COMPARE ? TRIPLE_CNT : EDGE_CNT * EDGE_CNT, i;
	struct atomics_update u = {
		.kind = kind,
		.datatype = (enum fi_datatype)t,
		.op = (enum fi_op)op,
		.target = targets + shift,
		.operand = op == FI_ATOMIC_READ ? NULL : operands + 1,
		.compare = kind == ATOMICS_COMPARE ? compares + 3 : NULL,
		.result = kind == ATOMICS_BASE ? NULL : results + 5,
		.cnt = cnt,
	};

	fill(type, kind == ATOMICS_COMPARE, cnt, shift);
	assert_int_equal(atomics_apply(&u), 0);
	for (i = 0; i < cnt; i++) {
		_Alignas(16) uint8_t value[VALUE_MAX];
		size_t at = i * type->size;

		memcpy(value, olds + shift + at, type->size);
		type->reference(u.op, value, operands + 1 + at,
				kind == ATOMICS_COMPARE ? compares + 3 + at : NULL);
		if (!same(type, value, targets + shift + at))
			fail_msg("%s of %s, combination %zu", ops[op].name, type->name, i);
		if (kind != ATOMICS_BASE)
			assert_memory_equal(results + 5 + at, olds + shift + at, type->size);
	}
	expect_guards(targets, shift, cnt * type->size);
	expect_guards(results, 5, kind == ATOMICS_BASE ? 0 : cnt * type->size);
}

static void every_operation_does_what_the_man_page_says(void **state)
{
	size_t t, op;
	int kind, tried = 0;

	for (t = 0; t < TYPE_CNT; t++) {
		for (op = 0; op < OP_CNT; op++) {
			for (kind = ATOMICS_BASE; kind <= ATOMICS_COMPARE; kind++) {
				if (!expected_valid(kind, t, op))
					continue;
				expect_as_reference(kind, t, op, 0);
				expect_as_reference(kind, t, op, types[t].align);
				tried++;
			}
		}
	}
	/* 10 integers: 12 base, 13 fetch, 7 compare; 3 reals: 9, 10, 6; 3 complex: 7, 8, 2 */
	assert_int_equal(tried, 10 * 32 + 3 * 25 + 3 * 17);
}

static void what_is_valid_is_the_man_page_s_table(void **state)
{
	int kind, t, op;

	for (kind = -1; kind <= ATOMICS_COMPARE + 1; kind++) {
		for (t = -2; t <= 300; t++) {
			for (op = -2; op <= 300; op++) {
				bool known = kind >= 0 && kind <= ATOMICS_COMPARE && t >= 0 &&
					     t < (int)TYPE_CNT && op >= 0 && op < (int)OP_CNT;

				assert_int_equal(atomics_valid((enum atomics_kind)kind,
							       (enum fi_datatype)t,
							       (enum fi_op)op),
						 known && expected_valid(kind, t, op));
				assert_int_equal(
					atomics_element((enum atomics_kind)kind,
							(enum fi_datatype)t, (enum fi_op)op),
					known && expected_valid(kind, t, op) ? types[t].size
									     : 0);
			}
		}
	}
}

static void sizes_are_those_of_c(void **state)
{
	int t;

	for (t = -2; t <= 300; t++)
		assert_int_equal(atomics_size((enum fi_datatype)t),
				 t >= 0 && t < (int)TYPE_CNT ? types[t].size : 0);
	assert_int_equal(atomics_size((enum fi_datatype)INT32_MAX), 0);
	assert_int_equal(atomics_size((enum fi_datatype)INT32_MIN), 0);
}

static void what_is_not_valid_is_refused_and_touches_nothing(void **state)
{
	static const int strange[] = { -1, 20, 31, 32, 255, 256, 257, INT32_MAX, INT32_MIN };
	size_t t, op, i;
	int kind;

	for (kind = ATOMICS_BASE; kind <= ATOMICS_COMPARE; kind++) {
		for (t = 0; t < TYPE_CNT; t++) {
			/* nothing may look at these */
			struct atomics_update u = {
				kind, (enum fi_datatype)t, FI_MIN, targets, NULL, NULL, NULL, 1
			};

			memset(targets, GUARD, sizeof(targets));
			for (op = 0; op < OP_CNT; op++) {
				u.op = (enum fi_op)op;
				if (!expected_valid(kind, t, op))
					assert_int_equal(atomics_apply(&u), -FI_EOPNOTSUPP);
			}
			for (i = 0; i < sizeof(strange) / sizeof(*strange); i++) {
				u.op = (enum fi_op)strange[i];
				assert_int_equal(atomics_apply(&u), -FI_EOPNOTSUPP);
				u.op = FI_SUM;
				u.datatype = (enum fi_datatype)strange[i];
				assert_int_equal(atomics_apply(&u), -FI_EOPNOTSUPP);
				u.datatype = (enum fi_datatype)t;
			}
			expect_guards(targets, 0, 0);
		}
	}
}

static void misaligned_elements_are_refused_and_not_touched(void **state)
{
	size_t t, at;

	for (t = 0; t < TYPE_CNT; t++) {
		for (at = 0; at < 32; at++) {
			bool fits = types[t].align && at % types[t].align == 0;
			struct atomics_update u = { ATOMICS_FETCH, (enum fi_datatype)t,
						    FI_SUM,	   targets + at,
						    operands,	   NULL,
						    results,	   1 };

			assert_int_equal(atomics_aligned(targets + at, u.datatype), fits);
			if (fits || !types[t].align)
				continue;
			memset(targets, GUARD, sizeof(targets));
			memset(results, GUARD, sizeof(results));
			assert_int_equal(atomics_apply(&u), -FI_EINVAL);
			assert_false(atomics_lock_free(targets + at, u.datatype));
			expect_guards(targets, 0, 0);
			expect_guards(results, 0, 0);
		}
	}
}

static void up_to_8_bytes_are_lock_free_where_they_are_one_word(void **state)
{
	bool wide = atomics_lock_free(targets, FI_UINT128);
	size_t t, at;

	for (t = 0; t < TYPE_CNT; t++) {
		for (at = 0; at < 32; at++) {
			size_t size = types[t].size;
			bool one = size && at % size == 0;

			assert_int_equal(atomics_lock_free(targets + at, (enum fi_datatype)t),
					 one && (size <= 8 || (size == 16 && wide)));
		}
	}
	assert_false(atomics_lock_free(targets, FI_VOID));
}

static void a_result_may_lie_over_the_operands(void **state)
{
	size_t t;

	for (t = 0; t < TYPE_CNT; t++) {
		const struct kind_of_type *type = &types[t];
		struct atomics_update u = { ATOMICS_FETCH, (enum fi_datatype)t,
					    FI_SUM,	   targets,
					    operands + 1,  NULL,
					    operands + 1,  EDGE_CNT };

		if (type->family == ABSENT)
			continue;
		fill(type, true, EDGE_CNT, 0);
		assert_int_equal(atomics_apply(&u), 0);
		assert_memory_equal(operands + 1, olds, EDGE_CNT * type->size);

		fill(type, true, EDGE_CNT, 0);
		u.kind = ATOMICS_COMPARE;
		u.op = FI_CSWAP_NE;
		u.compare = u.result = compares + 3;
		assert_int_equal(atomics_apply(&u), 0);
		assert_memory_equal(compares + 3, olds, EDGE_CNT * type->size);
	}
}

static void a_fetch_needs_no_result_and_no_elements(void **state)
{
	uint64_t target = 1, operand = 2;
	struct atomics_update u = { ATOMICS_FETCH, FI_UINT64, FI_SUM, &target,
				    &operand,	   NULL,      NULL,   1 };

	assert_int_equal(atomics_apply(&u), 0);
	assert_int_equal(target, 3);
	u.cnt = 0;
	u.operand = NULL;
	assert_int_equal(atomics_apply(&u), 0);
	assert_int_equal(target, 3);
}

/* Constants are in read-only pages: a write would be the end of this test. */
static void reading_does_not_write(void **state)
{
	static const _Alignas(16) uint8_t constant[VALUE_MAX] = { 1, 2, 3 };
	uint8_t result[VALUE_MAX];
	size_t t;

	for (t = 0; t < TYPE_CNT; t++) {
		struct atomics_update u = {
			.kind = ATOMICS_FETCH,
			.datatype = (enum fi_datatype)t,
			.op = FI_ATOMIC_READ,
			.target = (void *)(uintptr_t)constant,
			.result = result,
			.cnt = 1,
		};

		if (types[t].family == ABSENT)
			continue;
		assert_int_equal(atomics_apply(&u), 0);
		assert_memory_equal(result, constant, types[t].size);
		if (types[t].family == COMPLEX)
			continue;
		u.op = FI_MAX;
		u.operand = constant; /* not greater */
		assert_int_equal(atomics_apply(&u), 0);
	}
}

/* NaNs with a payload, signalling ones, and the padding of x87 numbers */
static void what_is_only_moved_keeps_its_bits(void **state)
{
	static const enum fi_op moves[] = { FI_ATOMIC_WRITE, FI_ATOMIC_READ };
	size_t t, m;

	for (t = 0; t < TYPE_CNT; t++) {
		_Alignas(16) uint8_t target[VALUE_MAX], operand[VALUE_MAX], result[VALUE_MAX];

		if (types[t].family == ABSENT)
			continue;
		memset(target, 0xa5, sizeof(target));
		memset(operand, 0xff, sizeof(operand));
		operand[2] = 0xbf; /* float: signalling */
		operand[6] = 0xf7; /* double: signalling */
		for (m = 0; m < 2; m++) {
			struct atomics_update u = { ATOMICS_FETCH, (enum fi_datatype)t,
						    moves[m],	   target,
						    operand,	   NULL,
						    result,	   1 };

			assert_int_equal(atomics_apply(&u), 0);
			if (moves[m] == FI_ATOMIC_WRITE)
				assert_int_equal(result[0], 0xa5);
			assert_memory_equal(target, operand, types[t].size);
		}
		assert_memory_equal(result, operand, types[t].size);
	}
}

/* What doesn't belong to the number must not tell of the stack. */
static void computed_long_doubles_have_zero_padding(void **state)
{
	_Alignas(16) uint8_t target[32], operand[32];
	static const uint8_t zeros[6];
	struct atomics_update u = {
		ATOMICS_BASE, FI_LONG_DOUBLE_COMPLEX, FI_PROD, target, operand, NULL, NULL, 1
	};

	if (LDBL_MANT_DIG != 64)
		skip();
	memset(target, 0xff, sizeof(target));
	memset(operand, 0xff, sizeof(operand));
	real_edge(16, 5, operand);
	real_edge(16, 4, target);
	memset(target + 10, 0xff, 6);
	memset(operand + 10, 0xff, 6);
	assert_int_equal(atomics_apply(&u), 0);
	assert_memory_equal(target + 10, zeros, 6);
	assert_memory_equal(target + 26, zeros, 6);
	memset(target + 10, 0xff, 6);
	u.datatype = FI_LONG_DOUBLE;
	u.op = FI_SUM;
	assert_int_equal(atomics_apply(&u), 0);
	assert_memory_equal(target + 10, zeros, 6);
}

/* Apart from the reference, which is C's own: the formula of the books */
static void complex_products_are_those_of_the_books(void **state)
{
	double target[2] = { 3, -2 }, operand[2] = { -1.5, 4 };
	struct atomics_update u = {
		ATOMICS_BASE, FI_DOUBLE_COMPLEX, FI_PROD, target, operand, NULL, NULL, 1
	};

	assert_int_equal(atomics_apply(&u), 0);
	assert_true(target[0] == 3 * -1.5 - -2 * 4 && target[1] == 3 * 4 + -2 * -1.5);
}

static void not_a_number_is_chosen_by_no_comparison(void **state)
{
	double nan_value = NAN, one = 1, target;
	struct atomics_update u = { ATOMICS_BASE, FI_DOUBLE,  FI_MIN, &target,
				    &nan_value,	  &nan_value, NULL,   1 };
	int op;

	for (op = FI_MIN; op <= FI_MAX; op++) {
		u.op = (enum fi_op)op;
		target = 1;
		u.operand = &nan_value;
		assert_int_equal(atomics_apply(&u), 0);
		assert_true(target == 1);
		target = NAN;
		u.operand = &one;
		assert_int_equal(atomics_apply(&u), 0);
		assert_true(isnan(target));
	}
	u.kind = ATOMICS_COMPARE;
	for (op = FI_CSWAP; op <= FI_CSWAP_GT; op++) {
		u.op = (enum fi_op)op;
		target = 5;
		assert_int_equal(atomics_apply(&u), 0);
		assert_true(target == (op == FI_CSWAP_NE ? 1 : 5));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_does_what_the_man_page_says),
		cmocka_unit_test(what_is_valid_is_the_man_page_s_table),
		cmocka_unit_test(sizes_are_those_of_c),
		cmocka_unit_test(what_is_not_valid_is_refused_and_touches_nothing),
		cmocka_unit_test(misaligned_elements_are_refused_and_not_touched),
		cmocka_unit_test(up_to_8_bytes_are_lock_free_where_they_are_one_word),
		cmocka_unit_test(a_result_may_lie_over_the_operands),
		cmocka_unit_test(a_fetch_needs_no_result_and_no_elements),
		cmocka_unit_test(reading_does_not_write),
		cmocka_unit_test(what_is_only_moved_keeps_its_bits),
		cmocka_unit_test(computed_long_doubles_have_zero_padding),
		cmocka_unit_test(complex_products_are_those_of_the_books),
		cmocka_unit_test(not_a_number_is_chosen_by_no_comparison),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
