/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a unit test sees of core_double.c. */
#ifndef WEFT_CORE_DOUBLE_H
#define WEFT_CORE_DOUBLE_H

/* Warnings that the engine was about to log. */
extern _Atomic int core_warnings;

#endif
