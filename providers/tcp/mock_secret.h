/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For the tests of secrets: files of them, the sides that have them, and a relay between two sides,
 * which sees and changes what passes. Single-threaded.
 */
#ifndef WEFT_TCP_MOCK_SECRET_H
#define WEFT_TCP_MOCK_SECRET_H

#include "mock_engine.h"

#define RELAY_MAX (64u << 10) /* bytes of one direction that are kept */

/* secret_set - sides that are opened from now on have this secret; NULL: none. @tls: and TLS */
void secret_set(const char *secret, bool tls);

/* secret_side - a side with this secret */
struct side *secret_side(const char *secret, bool tls);

/* What one direction of a relayed connection has carried. */
struct relayed {
	uint8_t bytes[RELAY_MAX];
	/* Bytes that came, all of them */
	size_t len;
	/* A byte that is changed on its way, by this mask; SIZE_MAX: none */
	size_t bend;
	uint8_t mask;
	/* Bytes after which the connection ends; SIZE_MAX: never */
	size_t cut;
};

/* One connection to a side, through a port of its own. */
struct relay {
	/* What to connect to, with side_connect() */
	struct side *at;
	int listener, down, up;
	/* out: to the side that accepts; back: to the one that connects */
	struct relayed out, back;
};

struct relay *relay_open(struct side *to);
void relay_close(struct relay *relay);

/* relay_pump - pass on what is there. Returns false once the connection has been cut or has ended */
bool relay_pump(struct relay *relay);

#endif
