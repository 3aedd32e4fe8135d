/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A note is what one process sends another over a socket, with descriptors (struct pshm_note). What
 * arrives is not trusted.
 */
#ifndef WEFT_SHM_NOTE_H
#define WEFT_SHM_NOTE_H

#include "local_socket.h"
#include "region.h"

#define PSHM_NOTE_MAGIC	  0x65746f6eu /* "note" */
#define PSHM_NOTE_VERSION 2u

enum pshm_note_type {
	/* a request, with the descriptors of the pair and of the asker's inbox */
	PSHM_NOTE_ASK = 1,
	/* answer, with the descriptor of the requested inbox */
	PSHM_NOTE_INBOX,
	/* an answer: the error */
	PSHM_NOTE_REFUSED,
	/* wakes an endpoint */
	PSHM_NOTE_WAKE,
};

/* A message. Members that its type does not have are zero. */
struct pshm_note {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	/* REFUSED: positive fi_errno */
	uint32_t error;
	uint32_t zero;
	/* ASK, WAKE: nonce of the endpoint that is addressed */
	uint8_t to[PSHM_NONCE];
	/* ASK: nonce of the requesting endpoint */
	uint8_t from[PSHM_NONCE];
	/* all but WAKE: nonce of the pair */
	uint8_t pair[PSHM_NONCE];
};

_Static_assert(sizeof(struct pshm_note) == 40, "layout");
_Static_assert(offsetof(struct pshm_note, error) == 8, "layout");
_Static_assert(offsetof(struct pshm_note, to) == 16, "layout");
_Static_assert(offsetof(struct pshm_note, pair) == 32, "layout");

/* Returns true for the nonce of no endpoint and no pair. */
static inline bool pshm_nonce_none(const uint8_t nonce[PSHM_NONCE])
{
	static const uint8_t none[PSHM_NONCE];

	return pshm_nonce_same(nonce, none);
}

/* pshm_note_of - returns an empty note of that type */
struct pshm_note pshm_note_of(enum pshm_note_type type);

/* pshm_note_valid - returns true if this version sends such notes, with as many descriptors */
bool pshm_note_valid(const struct pshm_note *note, const struct sys_local_received *received);

/* pshm_received_close - close the descriptors that were received with a note */
void pshm_received_close(struct sys_local_received *received);

#endif
