/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A victim that lets its memory be written and read, and how the liar speaks of it: what the tests
 * of lies to a target and to an initiator have in common. Nothing outside of what was granted may
 * change. One thread.
 */
#ifndef WEFT_ACCESS_VICTIM_H
#define WEFT_ACCESS_VICTIM_H

#include <rdma/fi_rma.h>
#include "access.h"
#include "victim.h"

#define KEY	 7
#define KEY_READ 8 /* of the same memory: may be read only */
#define REGION	 16384
#define ALL_LEN	 (64u << 10)

extern char *const region;  /* REGION bytes, of 'g' at first; so is what lies around them */
extern char out[ALL_LEN];   /* of the victim's operations: 'o' at first */
extern char bytes[ALL_LEN]; /* of the liar's packets: 'l' at first */

/* access_victim_setup, access_victim_teardown - before and after each test; nothing is left over */
int access_victim_setup(void **state);
int access_victim_teardown(void **state);

/* a_packet - of the liar, its next */
struct packet a_packet(enum packet_op op, uint32_t len);

/* say - have it arrive. Returns what the engine says; what is a request in its turn is counted */
int say(const struct packet *p, const void *payload, size_t avail);

/*
 * accepted - the packet is valid and is handled. refused - it is not, and the raw peer connects
 * again
 */
void accepted(const struct packet *p, const void *payload);
void refused(const struct packet *p, const void *payload, size_t avail);

/*
 * heard - the next packet of that kind that the endpoint under test sends, and up to @len bytes of
 * its payload
 */
struct packet heard(enum packet_op op, void *payload, size_t len);

#endif
