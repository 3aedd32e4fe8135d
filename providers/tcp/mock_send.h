/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A kernel that lacks memory: what send(2) of the program does then. The linker has the program call
 * it (--wrap=send); on the test's thread.
 */
#ifndef WEFT_TCP_MOCK_SEND_H
#define WEFT_TCP_MOCK_SEND_H

#include <stddef.h>
#include <stdint.h>

struct mock_send {
	/* The next calls that it is about; 0: none */
	uint32_t cnt;
	/* errno with which they fail; 0: they take @most bytes */
	int err;
	size_t most;
};

extern struct mock_send mock_send;

#endif
