/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine's wire format: one header for every packet on every wire, and the hello
 * that opens a connection. Little-endian; a wire hands a header to the engine as a
 * private copy, read once.
 */
#ifndef WEFT_PACKET_H
#define WEFT_PACKET_H

#include "addr.h"

enum packet_op {
	PACKET_EAGER = 1, /* a message with its payload */
	PACKET_RTS = 2,	  /* a message whose payload stays with the sender: struct packet_rts follows */
	PACKET_CTS = 3,	  /* tag: sender's id; data: receiver's id; struct packet_cts follows */
	PACKET_DATA = 4,  /* tag: receiver's id; data: offset; payload follows */
	PACKET_FIN = 5,	  /* tag: sender's id; data: bytes that were read: the receiver is done */
	PACKET_CREDIT = 6, /* nothing but the acknowledgement and credits of every header */
};

enum packet_flag {
	PACKET_TAGGED = 1 << 0,
	PACKET_CQ_DATA = 1 << 1, /* data is remote CQ data (EAGER, RTS) */
	PACKET_PULL = 1 << 2,	 /* RTS: the receiver may read the payload from the sender's memory */
};

#define PACKET_FLAGS_KNOWN (PACKET_TAGGED | PACKET_CQ_DATA | PACKET_PULL)

struct packet {
	uint8_t op;
	uint8_t flags;
	uint16_t epoch;	  /* low bits of the sender's epoch: a stray of an older life is dropped */
	uint32_t len;	  /* bytes of payload behind the header */
	uint32_t seq;	  /* EAGER, RTS: place of the message in the sender's order to this peer */
	uint16_t ack;	  /* low bits of the next seq expected: cumulative */
	uint16_t credits; /* eager payload granted to the receiver of this, in CREDIT_UNIT bytes */
	uint64_t tag;
	uint64_t data;
};

_Static_assert(sizeof(struct packet) == 32, "half a cache line");
_Static_assert(offsetof(struct packet, seq) == 8, "layout");
_Static_assert(offsetof(struct packet, ack) == 12, "layout");
_Static_assert(offsetof(struct packet, tag) == 16, "layout");
_Static_assert(offsetof(struct packet, data) == 24, "layout");

#define CREDIT_UNIT 256u

struct packet_rts {
	uint64_t len;  /* bytes of the whole message */
	uint64_t id;   /* sender's operation, to be echoed in CTS or FIN */
	uint64_t addr; /* PACKET_PULL: where the payload starts in the sender's memory */
};

_Static_assert(sizeof(struct packet_rts) == 24, "fits behind the header in one cache line");

struct packet_cts {
	uint64_t len; /* bytes wanted, from the start */
};

_Static_assert(sizeof(struct packet_cts) == 8, "layout");

#define HELLO_MAGIC 0x74666577u /* "weft" */
#define HELLO_VERSION 1u

/*
 * First bytes of each direction of a connection, whatever the wire.
 */
struct hello {
	uint32_t magic;
	uint16_t version;
	uint16_t flags;	 /* none defined: zero */
	uint64_t epoch;	 /* random, one per fi_enable: another one is another life */
	uint32_t window; /* eager payload that the receiver of this may send at once, bytes */
	uint32_t seq;	 /* seq of the first message that the sender of this will send */
	uint32_t life;	 /* counts the connections to this peer that the sender of this has given up */
	uint32_t reserved; /* zero */
	struct weft_addr addr; /* full address of the sender */
};

_Static_assert(sizeof(struct hello) == 96, "layout");
_Static_assert(offsetof(struct hello, epoch) == 8, "layout");
_Static_assert(offsetof(struct hello, window) == 16, "layout");
_Static_assert(offsetof(struct hello, life) == 24, "layout");
_Static_assert(offsetof(struct hello, addr) == 32, "layout");

/*
 * hello_check - 0, or why this hello can't be answered: -FI_ENOPROTOOPT for another version,
 * -FI_EINVAL for anything else that no peer of this version sends
 */
int hello_check(const struct hello *h);

#endif
