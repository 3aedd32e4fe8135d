/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operations of fi_atomic(3) on memory of this process: for each type and operation
 * there is one method that updates a location, whoever asks for it. The engine calls it at
 * the target for packets of any wire, and at the initiator where the target's memory is
 * mapped; on whichever thread is in the call.
 *
 * How a location is updated follows from its type and address alone:
 *
 *   lock-free   by CPU atomics, sequentially consistent. Integers of 1 to 8 bytes, float and
 *               double always; float complex where the address is a multiple of 8; types of
 *               16 bytes where it is a multiple of 16 and the CPU has AVX (and with it
 *               cmpxchg16b and whole 16-byte loads; never in the kernel). Threads and
 *               processes may update such a location at the same time.
 *   plainly     everything else, at the target alone: the caller serializes all updates of
 *               such locations, by the domain's lock.
 *
 * The method belongs to the type: updates of one location as different types at the same
 * time are only atomic to each other if each of them is lock-free and of the same size.
 */
#ifndef WEFT_ATOMICS_H
#define WEFT_ATOMICS_H

#include <rdma/fi_domain.h>
#include "platform.h"

/* The three sets of calls of fi_atomic(3). */
enum atomics_kind {
	ATOMICS_BASE,	 /* fi_atomic: FI_MIN to FI_BXOR, FI_ATOMIC_WRITE, FI_DIFF */
	ATOMICS_FETCH,	 /* fi_fetch_atomic: those and FI_ATOMIC_READ */
	ATOMICS_COMPARE, /* fi_compare_atomic: FI_CSWAP to FI_MSWAP */
};

/* One call's work. The arrays have cnt elements each. */
struct atomics_update {
	enum atomics_kind kind;
	enum fi_datatype datatype;
	enum fi_op op;
	/* aligned as atomics_aligned() says */
	void *target;
	/* any alignment; not read by FI_ATOMIC_READ */
	const void *operand;
	/* any alignment; read only by ATOMICS_COMPARE */
	const void *compare;
	/*
	 * any alignment; not written by ATOMICS_BASE. May be the operand or compare array
	 * itself, or NULL if the result is not needed
	 */
	void *result;
	size_t cnt;
};

/*
 * atomics_size - bytes of one element
 * @datatype: any value, from anywhere
 *
 * Returns 0 for what C has no type for (FI_FLOAT16, FI_BFLOAT16, FI_FLOAT8_*), for FI_VOID,
 * for values that are no datatype, and in the kernel for all floating-point types.
 */
size_t atomics_size(enum fi_datatype datatype);

/*
 * atomics_valid - whether atomics_apply() has the operation
 * @kind, @datatype, @op: any value, from anywhere
 *
 * Integers have every operation of the kind; real types all but FI_BOR, FI_BAND, FI_BXOR and
 * FI_MSWAP; complex types FI_SUM, FI_DIFF, FI_PROD, FI_LOR, FI_LAND, FI_LXOR, FI_ATOMIC_READ,
 * FI_ATOMIC_WRITE, FI_CSWAP and FI_CSWAP_NE.
 */
bool atomics_valid(enum atomics_kind kind, enum fi_datatype datatype, enum fi_op op);

/* atomics_element - atomics_size() of what is atomics_valid(), else 0 */
size_t atomics_element(enum atomics_kind kind, enum fi_datatype datatype, enum fi_op op);

/*
 * atomics_aligned - returns true if an element may be at an address
 * It has to be a multiple of what C aligns the type to: its size for integers (16 for those of 128
 * bits), float (4) and double (8); 4 for float complex; 8 for double complex; 16 for long double
 * and long double complex. Returns false, too, for a datatype of size 0.
 */
bool atomics_aligned(const void *target, enum fi_datatype datatype);

/*
 * atomics_lock_free - whether the element at an aligned address is updated by CPU atomics
 *
 * Then any process that has the memory mapped may call atomics_apply() on it, with no lock.
 * All elements of an array have the answer of its first. Mapping keeps the answer: addresses
 * of the same byte in two processes differ by whole pages.
 */
bool atomics_lock_free(const void *target, enum fi_datatype datatype);

/*
 * atomics_apply - update an array, element by element
 * @u: what to do; its kind, datatype, op and alignment may come from a peer
 *
 * The caller has checked that target's cnt elements may be accessed, and holds the domain's
 * lock unless atomics_lock_free(). Each element is atomic for itself. Result gets what stood
 * at the location before. FI_ATOMIC_READ, and an operation that decides to leave a location
 * as it is, don't write to it, so that such memory may be read-only.
 *
 * Integer overflow wraps, for signed types too. Logical operations store 0 or 1 and take
 * NaN for true. Floating-point comparisons are C's: -0 equals 0, and NaN is neither less than,
 * equal to nor greater than anything: FI_MIN and FI_MAX leave a location that holds NaN, and
 * any location if the operand is NaN; with a NaN on either side FI_CSWAP_NE stores and the
 * other FI_CSWAP_* don't. Products of complex numbers are C's (annex G). What is stored or
 * returned unchanged keeps its bits.
 *
 * Returns 0, -FI_EOPNOTSUPP if not atomics_valid() or -FI_EINVAL if not atomics_aligned();
 * nothing was touched then.
 * Source: fi_atomic(3).
 */
int atomics_apply(const struct atomics_update *u);

/*
 * atomics_combine - the same on memory that is the caller's alone
 *
 * No access is atomic, nothing has to be aligned, and target and operand don't overlap. For
 * reductions. Returns 0 or -FI_EOPNOTSUPP; nothing was touched then.
 */
int atomics_combine(const struct atomics_update *u);

#endif
