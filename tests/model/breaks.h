/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Breaking the TCP connections of the process that this is part of, in the ways that networks and
 * hosts do: at random times by a thread (breaks.c, BREAK_US), or when a test says so.
 */
#ifndef WEFT_BREAKS_H
#define WEFT_BREAKS_H

#include <stdbool.h>

enum break_kind {
	BREAK_BOTH, /* both directions end */
	BREAK_WRITE,
	BREAK_READ,
	BREAK_RESET, /* what the kernel has received is lost */
	BREAK_KINDS,
};

/*
 * breaks_find - the descriptors of connections over which both sides have sent more than a greeting,
 * and that this side has not ended
 * @fds:   out: room for @most
 * @ended: those that the other side has ended too
 * Returns how many there are, at most @most.
 */
int breaks_find(int *fds, int most, bool ended);

/* breaks_do - break a connection; it may have ended */
void breaks_do(int fd, enum break_kind kind);

#endif
