/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A port whose connections lead to another port, and what passes there does not stay as it is:
 * after some bytes it is bent, cut off, repeated, mixed with noise, or nothing passes any more.
 * Greetings are right before that, whatever version and secrets they have, so that what is behind
 * them is reached. One thread; nothing blocks.
 */
#ifndef WEFT_RELAY_H
#define WEFT_RELAY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RELAY_LINKS 24
#define RELAY_HEAD  4096 /* bytes of a first flight that are kept */

enum relay_deed {
	RELAY_BEND,   /* one bit */
	RELAY_NOISE,  /* random bytes between */
	RELAY_LOSE,   /* some bytes are missing */
	RELAY_REPEAT, /* some come twice */
	RELAY_CUT,    /* both ends are closed */
	RELAY_RESET,  /* both ends are reset */
	RELAY_STALL,  /* nothing passes any more, and both ends stay open for a while */
	RELAY_DEEDS,
};

/* A connection: fds[0] was accepted, fds[1] leads to the port. */
struct relay_link {
	int fds[2];	     /* -1: none */
	uint64_t passed, at; /* bytes both ways; the deed is due after this many */
	enum relay_deed deed;
	uint64_t stalled_ns; /* when it stalled; 0: it does not */
};

struct relay {
	int listener;
	struct sockaddr_in here, to;
	uint64_t seed;
	struct relay_link links[RELAY_LINKS];
	uint64_t deeds[RELAY_DEEDS];
	/* What the last to connect said first: the beginning of a right greeting */
	uint8_t head[RELAY_HEAD];
	size_t head_len;
};

/* relay_open - listen at a port of the loopback interface, r->here. Returns 0 or -1 */
int relay_open(struct relay *r, const struct sockaddr_in *to, uint64_t seed);

/* relay_turn - accept, connect, and pass on what is there. Returns true if anything was */
bool relay_turn(struct relay *r);

/* relay_close - close all */
void relay_close(struct relay *r);

#endif
