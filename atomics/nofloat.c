/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Replaces float.c where there are no floating-point registers: in the kernel module and
 * tests/freestanding. Called by atomics.c, on any thread.
 */
#include "atomics.h"
#include "cell.h"

const struct atomics_type *atomics_float_type(enum fi_datatype datatype)
{
	return NULL;
}
