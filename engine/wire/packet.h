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
	PACKET_RTS =
		2, /* a message whose payload stays with the sender: struct packet_rts follows */
	PACKET_CTS = 3,	 /* tag: sender's id; data: receiver's id; struct packet_cts follows */
	PACKET_DATA = 4, /* tag: receiver's id; data: offset; payload follows */
	PACKET_FIN =
		5, /* tag: sender's id, or seq of an EAGER; data: bytes taken: the receiver is done */
	PACKET_CREDIT = 6, /* nothing but the acknowledgement and credits of every header */

	/*
	 * One-sided requests: carried out in their turn among messages. They name one target by tag
	 * (its address) and data (its key), or, with PACKET_TARGETS, several in a struct packet_targets
	 * that stands before everything else but the struct of the request.
	 */
	PACKET_WRITE = 7, /* payload: what is to be written */
	PACKET_READ = 8,  /* payload: struct packet_read */
	PACKET_RESPONSE =
		9, /* tag: id of the READ or ATOMIC; data: offset; payload: what was read */
	PACKET_ATOMIC = 10, /* payload: struct packet_atomic, operands, values to compare with */
	/*
	 * data: everything before that seq has arrived, and requests are carried out; tag: so many NAK with
	 * a seq were sent before
	 */
	PACKET_ACK = 11,
	PACKET_NAK = 12, /* tag: id, or seq, of a request that was refused; data: FI_E* */
};

enum packet_flag {
	PACKET_TAGGED = 1 << 0,
	PACKET_CQ_DATA =
		1 << 1, /* data is remote CQ data (EAGER, RTS; WRITE and ATOMIC with TARGETS) */
	PACKET_PULL = 1 << 2, /* RTS: the receiver may read the payload from the sender's memory */
	PACKET_TARGETS =
		1 << 3, /* of a request: see above. RTS: a write; targets follow packet_rts */
	PACKET_MATCH = 1 << 2,	  /* EAGER, with DELIVERY: no FIN before a receive has it */
	PACKET_DELIVERY = 1 << 4, /* EAGER, RTS: the sender waits for FIN */
	/*
	 * EAGER, WRITE, ATOMIC that asks nothing back, CREDIT: the sender waits for ACK. Of WRITE and ATOMIC
	 * without it ACK tells in time too, but there is no hurry
	 */
	PACKET_ACKED = 1 << 5,
	PACKET_PIECES = 1 << 5, /* RTS, with PULL: addr is that of a list of where it stands */
	PACKET_GROUP = 1 << 6,	/* EAGER, RTS: of a group, in tags of its own; with TAGGED */
	/* WRITE, alone or with ACKED: its payload takes credit, as a message's does, and may be held until its turn */
	PACKET_COUNTED = 1 << 7,
};

#define PACKET_FLAGS_TX                                                                   \
	(PACKET_TAGGED | PACKET_CQ_DATA | PACKET_DELIVERY | PACKET_ACKED | PACKET_MATCH | \
	 PACKET_GROUP) /* of a send */

/*
 * What a packet's epoch says: the receive context that a message or request is for, and bits of the
 * sender's epoch. One field, so that a look at it tells both of a packet of this incarnation for context 0.
 */
#define PACKET_EPOCH(epoch)	  ((uint16_t)((epoch) << 8))
#define PACKET_INCARNATION(epoch) ((epoch)&0xff00u)
#define PACKET_RX_IDX(epoch)	  ((epoch)&0x00ffu)
#define PACKET_RX_MAX		  256u /* receive contexts of an endpoint */

struct packet {
	/* enum packet_op */
	uint8_t op;
	uint8_t flags;
	/* see above; a stray of an older incarnation ends the connection */
	uint16_t epoch;
	/* bytes of payload behind the header */
	uint32_t len;
	/* message or request: its place in the sender's order to this peer */
	uint32_t seq;
	/* low bits of the next seq expected: cumulative */
	uint16_t ack;
	/* eager payload granted to the receiver of this, in CREDIT_UNIT bytes */
	uint16_t credits;
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
	/* bytes of the whole message */
	uint64_t len;
	/* sender's operation, to be echoed in CTS or FIN */
	uint64_t id;
	/*
	 * PACKET_PULL: where the payload starts in the sender's memory; with PACKET_PIECES, where
	 * PACKET_PIECE_CNT of struct packet_piece start there, of which the first ones hold it
	 */
	uint64_t addr;
};

struct packet_piece {
	uint64_t addr;
	uint64_t len;
};

#define PACKET_PIECE_CNT 8u

_Static_assert(sizeof(struct packet_piece) == 16, "layout");

_Static_assert(sizeof(struct packet_rts) == 24, "fits behind the header in one cache line");

struct packet_cts {
	/* bytes wanted, from the start */
	uint64_t len;
	/* ... of which the receiver has read so many */
	uint64_t from;
};

_Static_assert(sizeof(struct packet_cts) == 16, "layout");

#define PACKET_TARGET_MAX 8u

/* Registered memory of the receiver. */
struct packet_target {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
};

_Static_assert(sizeof(struct packet_target) == 24, "layout");

struct packet_targets {
	/* 1 to PACKET_TARGET_MAX */
	uint32_t cnt;
	/* zero */
	uint32_t reserved;
	/* only cnt of them are there */
	struct packet_target target[PACKET_TARGET_MAX];
};

_Static_assert(offsetof(struct packet_targets, target) == 8, "layout");

/* packet_targets_len - bytes of a struct packet_targets with so many */
static inline size_t packet_targets_len(uint32_t cnt)
{
	return offsetof(struct packet_targets, target) + cnt * sizeof(struct packet_target);
}

struct packet_read {
	/* to be echoed in RESPONSE */
	uint64_t id;
	/* bytes */
	uint64_t len;
};

_Static_assert(sizeof(struct packet_read) == 16, "layout");

struct packet_atomic {
	/* to be echoed in RESPONSE; 0: nothing is asked back, ACK does */
	uint64_t id;
	/* elements */
	uint32_t cnt;
	/* enum atomics_kind */
	uint8_t kind;
	/* enum fi_datatype */
	uint8_t datatype;
	/* enum fi_op */
	uint8_t op;
	/* zero */
	uint8_t reserved;
};

_Static_assert(sizeof(struct packet_atomic) == 16,
	       "with 8 bytes of operand one cache line, header included");

/* engine_is_request - is this a one-sided request, rather than a message */
static inline bool engine_is_request(const struct packet *packet)
{
	uint32_t op = packet->op;

	return op == PACKET_WRITE || op == PACKET_READ || op == PACKET_ATOMIC ||
	       (op == PACKET_RTS && packet->flags & PACKET_TARGETS);
}

/* engine_request_plain - is this a write of some bytes to the one place that its header names */
static inline bool engine_request_plain(const struct packet *packet)
{
	return packet->op == PACKET_WRITE &&
	       !(packet->flags & ~(uint32_t)(PACKET_COUNTED | PACKET_ACKED)) && packet->len;
}

#define HELLO_MAGIC   0x74666577u /* "weft" */
#define HELLO_VERSION 5u

/*
 * First bytes of each direction of a connection, whatever the wire.
 */
struct hello {
	uint32_t magic;
	uint16_t version;
	/* none defined: zero */
	uint16_t flags;
	/* random, one per fi_enable: another one is another incarnation */
	uint64_t epoch;
	/* eager payload that the receiver of this may send at once, bytes */
	uint32_t window;
	/* seq of the first message that the sender of this will send */
	uint32_t seq;
	/* counts the connections to this peer that the sender of this has given up */
	uint32_t incarnation;
	/* of the sender's authorization key (auth.h); 0: it has none */
	uint32_t proof;
	/* full address of the sender */
	struct weft_addr addr;
};

_Static_assert(sizeof(struct hello) == 80, "layout");
_Static_assert(offsetof(struct hello, epoch) == 8, "layout");
_Static_assert(offsetof(struct hello, window) == 16, "layout");
_Static_assert(offsetof(struct hello, incarnation) == 24, "layout");
_Static_assert(offsetof(struct hello, proof) == 28, "layout");
_Static_assert(offsetof(struct hello, addr) == 32, "layout");

/*
 * hello_check - 0, or why this hello can't be answered: -FI_ENOPROTOOPT for another version,
 * -FI_EINVAL for anything else that no peer of this version sends
 */
int hello_check(const struct hello *h);

#endif
