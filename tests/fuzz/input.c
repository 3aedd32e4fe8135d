/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The input of a fuzz target; see input.h. Called by the targets, on one thread. */
#include "input.h"

static struct {
	const uint8_t *data;
	size_t len, at;
} input;

void input_begin(const uint8_t *data, size_t len)
{
	input.data = data;
	input.len = len;
	input.at = 0;
}

size_t input_left(void)
{
	return input.len - input.at;
}

uint8_t input_byte(void)
{
	return input.at < input.len ? input.data[input.at++] : 0;
}

uint32_t input_word(void)
{
	uint32_t v = input_byte();

	v |= (uint32_t)input_byte() << 8;
	v |= (uint32_t)input_byte() << 16;
	return v | (uint32_t)input_byte() << 24;
}

uint64_t input_long(void)
{
	uint64_t high = input_word();

	return high << 32 | input_word();
}
