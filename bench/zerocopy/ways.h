/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ways to hand memory to a TCP socket that are compared: by a copy, and by references to its pages.
 * Each has a socket of its own; one thread.
 */
#ifndef WEFT_BENCH_ZEROCOPY_WAYS_H
#define WEFT_BENCH_ZEROCOPY_WAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <liburing.h>

/* What a way sends from. Messages take turns in the buffers. */
struct memory {
	/* a memfd, mapped at mem */
	int file;
	char *mem;
	size_t len;
};

struct sender {
	const struct memory *memory;
	/* connected, and blocking */
	int fd;
	/* of the ways by io_uring */
	struct io_uring ring;
	/* notifications: what was sent before may be stored to again */
	uint64_t asked;
	uint64_t told;
	/* of MSG_ZEROCOPY's: the kernel has copied after all, which io_uring's do not say */
	uint64_t copied;
};

struct way {
	const char *name;
	/* open - returns 0 or -errno: the kernel refuses this way */
	int (*open)(struct sender *sender);
	/* send - returns 0 when the socket has taken all, or -errno */
	int (*send)(struct sender *sender, size_t at, size_t len);
	/* settle - wait until at most @left messages may still be read by the kernel. 0 or -errno */
	int (*settle)(struct sender *sender, uint64_t left);
	void (*close)(struct sender *sender);
};

enum { WAYS = 8 };

extern const struct way ways[WAYS];

#endif
