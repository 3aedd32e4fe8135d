/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Elements of every datatype that C has a type for, and a plain reference of what each atomic
 * operation makes of them; storm.h has the contract. Called by the members of a storm.
 */
#include <complex.h>
#include "storm.h"

typedef __int128 wide;
typedef unsigned __int128 uwide;
typedef long double longer;
typedef float complex cfloat;
typedef double complex cdouble;
typedef long double complex clonger;

#define INTS(X)                \
	X(FI_INT8, int8_t)     \
	X(FI_UINT8, uint8_t)   \
	X(FI_INT16, int16_t)   \
	X(FI_UINT16, uint16_t) \
	X(FI_INT32, int32_t)   \
	X(FI_UINT32, uint32_t) \
	X(FI_INT64, int64_t)   \
	X(FI_UINT64, uint64_t) \
	X(FI_INT128, wide)     \
	X(FI_UINT128, uwide)
#define REALS(X) X(FI_FLOAT, float) X(FI_DOUBLE, double) X(FI_LONG_DOUBLE, longer)
#define COMPLEXES(X)                  \
	X(FI_FLOAT_COMPLEX, cfloat)   \
	X(FI_DOUBLE_COMPLEX, cdouble) \
	X(FI_LONG_DOUBLE_COMPLEX, clonger)

#define LONGER_BYTES 10 /* of a long double; padding behind */

size_t element_size(enum fi_datatype type)
{
	switch (type) {
#define X(t, c) \
	case t: \
		return sizeof(c);
		INTS(X)
		REALS(X)
		COMPLEXES(X)
#undef X
	default:
		return 0;
	}
}

bool element_is_int(enum fi_datatype type)
{
	switch (type) {
#define X(t, c) case t:
		INTS(X)
#undef X
		return true;
	default:
		return false;
	}
}

bool element_is_complex(enum fi_datatype type)
{
	return type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX ||
	       type == FI_LONG_DOUBLE_COMPLEX;
}

/* What every type has. */
#define NEXT_ANY(c)                                 \
	case FI_LOR:                                \
		return (c)(old != 0 || v != 0);     \
	case FI_LAND:                               \
		return (c)(old != 0 && v != 0);     \
	case FI_LXOR:                               \
		return (c)((old != 0) != (v != 0)); \
	case FI_ATOMIC_WRITE:                       \
		return v;                           \
	case FI_CSWAP:                              \
		return than == old ? v : old;       \
	case FI_CSWAP_NE:                           \
		return than != old ? v : old;

#define NEXT_ORDERED                          \
	case FI_MIN:                          \
		return v < old ? v : old;     \
	case FI_MAX:                          \
		return v > old ? v : old;     \
	case FI_CSWAP_LT:                     \
		return than < old ? v : old;  \
	case FI_CSWAP_LE:                     \
		return than <= old ? v : old; \
	case FI_CSWAP_GT:                     \
		return than > old ? v : old;  \
	case FI_CSWAP_GE:                     \
		return than >= old ? v : old;

#define NEXT_BITS(c)                               \
	case FI_SUM:                               \
		return (c)((uwide)old + (uwide)v); \
	case FI_DIFF:                              \
		return (c)((uwide)old - (uwide)v); \
	case FI_PROD:                              \
		return (c)((uwide)old * (uwide)v); \
	case FI_BOR:                               \
		return (c)(old | v);               \
	case FI_BAND:                              \
		return (c)(old & v);               \
	case FI_BXOR:                              \
		return (c)(old ^ v);               \
	case FI_MSWAP:                             \
		return (c)((v & than) | (old & ~than));

#define NEXT_NUMBERS            \
	case FI_SUM:            \
		return old + v; \
	case FI_DIFF:           \
		return old - v; \
	case FI_PROD:           \
		return old * v;

#define NEXT(c, cases)                                       \
	static c next_##c(enum fi_op op, c old, c v, c than) \
	{                                                    \
		switch (op) {                                \
			cases default : return old;          \
		}                                            \
	}

#define X(t, c) NEXT(c, NEXT_ANY(c) NEXT_ORDERED NEXT_BITS(c))
INTS(X)
#undef X
#define X(t, c) NEXT(c, NEXT_ANY(c) NEXT_ORDERED NEXT_NUMBERS)
REALS(X)
#undef X
#define X(t, c) NEXT(c, NEXT_ANY(c) NEXT_NUMBERS)
COMPLEXES(X)
#undef X

void element_next(enum fi_datatype type, enum fi_op op, const void *old, const void *operand,
		  const void *compare, void *next)
{
	switch (type) {
#define X(t, c)                                               \
	case t: {                                             \
		c is, v = 0, than = 0;                        \
		memcpy(&is, old, sizeof(is));                 \
		if (op != FI_ATOMIC_READ)                     \
			memcpy(&v, operand, sizeof(v));       \
		if (op >= FI_CSWAP && op <= FI_MSWAP)         \
			memcpy(&than, compare, sizeof(than)); \
		is = next_##c(op, is, v, than);               \
		memcpy(next, &is, sizeof(is));                \
		break;                                        \
	}
		INTS(X)
		REALS(X)
		COMPLEXES(X)
#undef X
	default:
		break;
	}
	element_canonical(type, next);
}

void element_canonical(enum fi_datatype type, void *at)
{
	size_t size = element_size(type), part = element_is_complex(type) ? size / 2 : size;
	float f;
	double d;
	longer l;

	if (element_is_int(type))
		return;
	for (char *p = at; p < (char *)at + size; p += part) {
		switch (part) {
		case sizeof(f):
			memcpy(&f, p, sizeof(f));
			f += 0.0f;
			memcpy(p, &f, sizeof(f));
			break;
		case sizeof(d):
			memcpy(&d, p, sizeof(d));
			d += 0.0;
			memcpy(p, &d, sizeof(d));
			break;
		default:
			memcpy(&l, p, sizeof(l));
			l += 0.0L;
			memset(p, 0, sizeof(l));
			memcpy(p, &l, LONGER_BYTES);
		}
	}
}

/* Numbers of whole values; complex ones take two. */
static void put(enum fi_datatype type, int64_t first, int64_t second, void *at)
{
	switch (type) {
#define X(t, c)                                                                  \
	case t: {                                                                \
		c value = (c)((uwide)(wide)first + ((uwide)(wide)second << 64)); \
		memcpy(at, &value, sizeof(value));                               \
		return;                                                          \
	}
		INTS(X)
#undef X
#define X(t, c)                                    \
	case t: {                                  \
		c value = (c)first;                \
		memcpy(at, &value, sizeof(value)); \
		break;                             \
	}
		REALS(X)
#undef X
#define X(t, c)                                          \
	case t: {                                        \
		c value = (c)((c)first + (c)second * I); \
		memcpy(at, &value, sizeof(value));       \
		break;                                   \
	}
		COMPLEXES(X)
#undef X
	default:
		break;
	}
	element_canonical(type, at);
}

void element_small(enum fi_datatype type, uint64_t number, void *at)
{
	int64_t n = (int64_t)number;

	put(type, n, element_is_complex(type) ? 2 * n : n, at);
}

bool element_is_small(enum fi_datatype type, const void *at, uint64_t *number)
{
	uint8_t same[ELEMENT_MAX], canonical[ELEMENT_MAX];
	size_t size = element_size(type);

	*number = 0;
	switch (type) {
#define X(t, c)                                     \
	case t: {                                   \
		c value;                            \
		memcpy(&value, at, sizeof(value));  \
		*number = (uint64_t)(int64_t)value; \
		break;                              \
	}
		INTS(X)
		REALS(X)
#undef X
#define X(t, c)                                             \
	case t: {                                           \
		c value;                                    \
		memcpy(&value, at, sizeof(value));          \
		*number = (uint64_t)(int64_t)creall(value); \
		break;                                      \
	}
		COMPLEXES(X)
#undef X
	default:
		return false;
	}
	memcpy(canonical, at, size);
	element_canonical(type, canonical);
	element_small(type, *number, same);
	return !memcmp(same, canonical, size);
}

/* A factor: a power of two, or one that turns; with all of them a storm stays within bounds. */
static void draw_factor(enum fi_datatype type, uint64_t random, void *at)
{
	float turn[2] = { 0 };

	if (!element_is_complex(type)) {
		longer l = random % 2 ? 2 : 0.5L;
		double d = (double)l;
		float f = (float)d;

		memcpy(at,
		       type == FI_FLOAT	   ? (void *)&f
		       : type == FI_DOUBLE ? (void *)&d
					   : &l,
		       element_size(type));
		return;
	}
	turn[random % 2] = random & 2 ? -1 : 1;
	put(type, (int64_t)turn[0], (int64_t)turn[1], at);
}

void element_draw(enum fi_datatype type, enum fi_op op, uint64_t random, void *at)
{
	if (element_is_int(type))
		put(type, (int64_t)(op == FI_PROD ? random | 1 : random),
		    (int64_t)(random * 0x9e3779b97f4a7c15u), at);
	else if (op == FI_PROD)
		draw_factor(type, random, at);
	else
		put(type, (int64_t)(random % 2001) - 1000, (int64_t)(random >> 32) % 1000, at);
	element_canonical(type, at);
}
