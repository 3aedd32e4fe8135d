/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Settings of the preload library. They are read once, when it is loaded. */
#ifndef WEFT_MEM_PRELOAD_H
#define WEFT_MEM_PRELOAD_H

#include <stddef.h>
#include <stdint.h>

#define PRELOAD_MIN_DEFAULT 65536u
#define PRELOAD_MIN_LEAST   4096u

/* Allocations from this length on are large: FI_MEM_MIN. */
extern size_t preload_min;

#endif
