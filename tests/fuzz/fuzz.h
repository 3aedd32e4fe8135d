/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A fuzz target is a function that takes any bytes and may do anything but crash, hang or
 * break what it checks. The name is libFuzzer's: link the target with -fsanitize=fuzzer instead
 * of replay.c to search for more. One thread.
 */
#ifndef WEFT_FUZZ_H
#define WEFT_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* LLVMFuzzerTestOneInput - try one input. Returns 0; aborts when something is wrong */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#endif
