/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stands in for float.c where there are no floating-point registers: the kernel module and
 * tests/freestanding. atomics.c calls, on any thread.
 */
#include "atomics.h"
#include "cell.h"

const struct atomics_type *atomics_float_type(enum fi_datatype datatype)
{
	return NULL;
}
