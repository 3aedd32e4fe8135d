/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The unit of layouts: what different threads or processes write stands in different units.
 *
 * It is 64 bytes for every processor, whatever its lines are. Layouts in shared memory follow it, and
 * two processes of a machine have to agree on them though they were compiled apart, for this core or
 * for any: it is part of their version (PSHM_VERSION, MR_VERSION), and is not read from the machine.
 * x86-64 and most of aarch64 (Neoverse, Ampere, Grace) have lines of 64 bytes.
 *
 * Where lines are longer (Apple: 128; A64FX: 256) everything is as correct: order is made by atomic
 * accesses, none of which relies on a line. It is slower in known places: two or four lines of a ring
 * are one of the processor's, which consumer and producer then both access where the ring is nearly
 * empty, and the flags of a pair share theirs with the neighbour. Longer units would have all others
 * pay for that: a ring takes as much of each cache as it has lines, and a message of 8 bytes would
 * move two.
 *
 * Source: Arm ARM, CTR_EL0.DminLine; Fujitsu, A64FX Microarchitecture Manual, 'L1 cache'.
 */
#ifndef WEFT_CACHE_LINE_H
#define WEFT_CACHE_LINE_H

#define CACHE_LINE 64

#endif
