/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The input of a fuzz target, as a tape that is read once; behind its end come zeros. And how
 * a target says that what it checks is broken. One thread.
 */
#ifndef WEFT_FUZZ_INPUT_H
#define WEFT_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the process, so that the input is kept, where a cmocka assertion would have no test to fail. */
#define MUST(cond)                                                                 \
	do {                                                                       \
		if (!(cond)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                   \
		}                                                                  \
	} while (0)

/* input_begin - read from here on; borrowed while the target runs */
void input_begin(const uint8_t *data, size_t len);

/* input_left - bytes that have not been read */
size_t input_left(void);

/* input_byte - the next byte */
uint8_t input_byte(void);

/* input_word - the next four, the lowest first; input_long: eight, the high word first */
uint32_t input_word(void);
uint64_t input_long(void);

#endif
