/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The format of packets: one header for every packet on every wire, and the hello that opens a
 * connection. Integers are little-endian. A wire hands a header to the engine as a private copy
 * that it has read once.
 */
#ifndef WEFT_PACKET_H
#define WEFT_PACKET_H

#include "addr.h"

enum packet_op {
	/* A message with its payload */
	PACKET_EAGER = 1,
	/* A message whose payload stays with the sender; payload: struct packet_rts */
	PACKET_RTS = 2,
	/*
	 * The receiver asks for the payload. tag: the sender's id; data: the receiver's id;
	 * payload: struct packet_cts
	 */
	PACKET_CTS = 3,
	/* Payload after a CTS. tag: the receiver's id; data: offset in the message, bytes */
	PACKET_DATA = 4,
	/*
	 * The receiver is done. tag: the sender's id, or seq of an EAGER; data: bytes that were
	 * received
	 */
	PACKET_FIN = 5,
	/* Carries only what every header does: acknowledgement and credits */
	PACKET_CREDIT = 6,

	/*
	 * WRITE, READ and ATOMIC are one-sided requests. The target carries them out in sequence
	 * with messages. Their memory is named by tag (address) and data (key); with
	 * PACKET_TARGETS, by a struct packet_targets in the payload, which follows the struct of
	 * the request and precedes everything else.
	 */
	/* Payload: the bytes to write */
	PACKET_WRITE = 7,
	/* Payload: struct packet_read */
	PACKET_READ = 8,
	/* Result of a READ or ATOMIC. tag: its id; data: offset, bytes; payload: what was read */
	PACKET_RESPONSE = 9,
	/* Payload: struct packet_atomic, operands, values to compare with */
	PACKET_ATOMIC = 10,
	/*
	 * Everything before seq = data has arrived, and the requests among it are carried out. tag:
	 * number of NAKs with a seq that were sent before
	 */
	PACKET_ACK = 11,
	/* A request was refused. tag: its id, or seq; data: FI_E* */
	PACKET_NAK = 12,
};

enum packet_flag {
	PACKET_TAGGED = 1 << 0,
	/* data is remote CQ data (EAGER, RTS; WRITE and ATOMIC with PACKET_TARGETS) */
	PACKET_CQ_DATA = 1 << 1,
	/* RTS: the receiver may read the payload from the sender's memory */
	PACKET_PULL = 1 << 2,
	/*
	 * Request: a struct packet_targets names its memory. RTS: a write; targets follow
	 * packet_rts
	 */
	PACKET_TARGETS = 1 << 3,
	/* EAGER with PACKET_DELIVERY: FIN is sent after a receive has matched, not before */
	PACKET_MATCH = 1 << 2,
	/* EAGER, RTS: the sender waits for FIN */
	PACKET_DELIVERY = 1 << 4,
	/*
	 * EAGER, CREDIT, WRITE, ATOMIC without a result: the sender waits for the ACK. Without this
	 * flag a WRITE or ATOMIC is acknowledged too, but not urgently.
	 */
	PACKET_ACKED = 1 << 5,
	/* RTS with PACKET_PULL: packet_rts.addr is the address of a list of struct packet_piece */
	PACKET_PIECES = 1 << 5,
	/*
	 * EAGER, RTS, with PACKET_TAGGED: message of a collective group, matched apart from others
	 */
	PACKET_GROUP = 1 << 6,
	/*
	 * WRITE, alone or with PACKET_ACKED: its payload uses credit, like that of a message, and
	 * may be held until its turn
	 */
	PACKET_COUNTED = 1 << 7,
};

/* The flags that a send takes from its caller. */
#define PACKET_FLAGS_TX                                                                   \
	(PACKET_TAGGED | PACKET_CQ_DATA | PACKET_DELIVERY | PACKET_ACKED | PACKET_MATCH | \
	 PACKET_GROUP)

/*
 * packet.epoch: the low byte is the index of the receive context that a message or request is for,
 * the high byte holds bits of the epoch of the sender's incarnation. One comparison of the field
 * tells whether a packet belongs to the present incarnation and to context 0.
 */
#define PACKET_EPOCH(epoch)	  ((uint16_t)((epoch) << 8))
#define PACKET_INCARNATION(epoch) ((epoch)&0xff00u)
#define PACKET_RX_IDX(epoch)	  ((epoch)&0x00ffu)
/* Most receive contexts of an endpoint */
#define PACKET_RX_MAX 256u

struct packet {
	/* enum packet_op */
	uint8_t op;
	/* enum packet_flag */
	uint8_t flags;
	/* PACKET_EPOCH() | index; a packet of an older incarnation ends the connection */
	uint16_t epoch;
	/* Length of the payload, bytes */
	uint32_t len;
	/* Message or request: sequence number among those of the sender to this peer */
	uint32_t seq;
	/* Cumulative acknowledgement: low bits of the next seq that the sender expects */
	uint16_t ack;
	/* Eager payload granted to the receiver of this packet, in units of CREDIT_UNIT bytes */
	uint16_t credits;
	uint64_t tag;
	uint64_t data;
};

_Static_assert(sizeof(struct packet) == 32, "half a cache line");
_Static_assert(offsetof(struct packet, seq) == 8, "layout");
_Static_assert(offsetof(struct packet, ack) == 12, "layout");
_Static_assert(offsetof(struct packet, tag) == 16, "layout");
_Static_assert(offsetof(struct packet, data) == 24, "layout");

/* packet_head - op, flags and epoch as one number, to be compared at once */
static inline uint32_t packet_head(const struct packet *packet)
{
	uint32_t head;

	_Static_assert(offsetof(struct packet, len) == sizeof(head), "all before the length");
	__builtin_memcpy(&head, packet, sizeof(head));
	return head;
}

/*
 * packet_answers_send - returns true for a packet by which the memory of a send or write whose payload stayed with its sender
 * may be given up, or sent again; @id: out: that operation's, the id in its packet_rts
 */
static inline bool packet_answers_send(const struct packet *packet, uint64_t *id)
{
	*id = packet->tag;
	return packet->op == PACKET_CTS || packet->op == PACKET_FIN || packet->op == PACKET_NAK;
}

#define CREDIT_UNIT 256u

struct packet_rts {
	/* Length of the whole message, bytes */
	uint64_t len;
	/* Id of the sender's operation, returned in CTS or FIN */
	uint64_t id;
	/*
	 * PACKET_PULL: address of the payload in the sender's memory. With PACKET_PIECES: address
	 * of an array of PACKET_PIECE_CNT struct packet_piece there; the first ones describe the
	 * payload
	 */
	uint64_t addr;
};

/* A contiguous part of a payload in the sender's memory. */
struct packet_piece {
	uint64_t addr;
	uint64_t len;
};

#define PACKET_PIECE_CNT 8u

_Static_assert(sizeof(struct packet_piece) == 16, "layout");

_Static_assert(sizeof(struct packet_rts) == 24, "fits behind the header in one cache line");

struct packet_cts {
	/* End of what the receiver asks for, bytes from the start of the message */
	uint64_t len;
	/* Start of it; the receiver has read the bytes before by itself */
	uint64_t from;
};

_Static_assert(sizeof(struct packet_cts) == 16, "layout");

#define PACKET_TARGET_MAX 8u

/* Registered memory of the target. */
struct packet_target {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
};

_Static_assert(sizeof(struct packet_target) == 24, "layout");

struct packet_targets {
	/* 1 to PACKET_TARGET_MAX */
	uint32_t cnt;
	/* Zero */
	uint32_t reserved;
	/* Only @cnt entries are sent */
	struct packet_target target[PACKET_TARGET_MAX];
};

_Static_assert(offsetof(struct packet_targets, target) == 8, "layout");

/* packet_targets_len - returns the length of a struct packet_targets with @cnt entries, bytes */
static inline size_t packet_targets_len(uint32_t cnt)
{
	return offsetof(struct packet_targets, target) + cnt * sizeof(struct packet_target);
}

struct packet_read {
	/* Id of the initiator's operation, returned in RESPONSE */
	uint64_t id;
	/* Bytes to read */
	uint64_t len;
};

_Static_assert(sizeof(struct packet_read) == 16, "layout");

struct packet_atomic {
	/* Id of the initiator's operation, returned in RESPONSE; 0: no result, only an ACK */
	uint64_t id;
	/* Number of elements */
	uint32_t cnt;
	/* enum atomics_kind */
	uint8_t kind;
	/* enum fi_datatype */
	uint8_t datatype;
	/* enum fi_op */
	uint8_t op;
	/* Zero */
	uint8_t reserved;
};

_Static_assert(sizeof(struct packet_atomic) == 16,
	       "with 8 bytes of operand one cache line, header included");

/*
 * engine_is_request - returns true for a one-sided request, false for a message or control packet
 */
static inline bool engine_is_request(const struct packet *packet)
{
	uint32_t op = packet->op;

	return op == PACKET_WRITE || op == PACKET_READ || op == PACKET_ATOMIC ||
	       (op == PACKET_RTS && packet->flags & PACKET_TARGETS);
}

/*
 * engine_request_plain - returns true for a write with payload to the one target that its header
 * names
 */
static inline bool engine_request_plain(const struct packet *packet)
{
	return packet->op == PACKET_WRITE &&
	       !(packet->flags & ~(uint32_t)(PACKET_COUNTED | PACKET_ACKED)) && packet->len;
}

#define HELLO_MAGIC   0x74666577u /* "weft" */
#define HELLO_VERSION 8u
/* Most conns of two endpoints over one wire */
#define HELLO_RAILS 8u

/* Of which kind the endpoint is that sends a hello: each connects to its own. */
enum hello_kind {
	HELLO_RDM,
	HELLO_MSG,
};

/* Most bytes of a struct hello_data: FI_OPT_CM_DATA_SIZE */
#define HELLO_DATA_MAX 256u

/* Private data of one side's program for the other's, with a request or with its answer. */
struct hello_data {
	/* At most HELLO_DATA_MAX */
	uint32_t len;
	/* Zero */
	uint32_t reserved;
	uint8_t bytes[HELLO_DATA_MAX];
};

_Static_assert(sizeof(struct hello_data) == 264, "layout");

/*
 * The first bytes in each direction of a connection, on every wire.
 */
struct hello {
	/* HELLO_MAGIC */
	uint32_t magic;
	/* HELLO_VERSION */
	uint16_t version;
	/* Number of the conn among those of the two endpoints over this wire; below HELLO_RAILS */
	uint8_t rail;
	/* enum hello_kind */
	uint8_t kind;
	/*
	 * Random, drawn by each fi_enable; a different epoch is a different incarnation of the
	 * endpoint
	 */
	uint64_t epoch;
	/* Eager payload that the receiver of this hello may send at once, bytes */
	uint32_t window;
	/* Sequence number of the first message that the sender will send */
	uint32_t seq;
	/* Number of times that the sender has given up its connections to this peer */
	uint32_t incarnation;
	/* Proof of the sender's authorization key (auth.h); 0: no key */
	uint32_t proof;
	/* Full address of the sender */
	struct weft_addr addr;
	struct hello_data data;
};

_Static_assert(sizeof(struct hello) == 344, "layout");
_Static_assert(offsetof(struct hello, data) == 80, "layout");
_Static_assert(offsetof(struct hello, rail) == 6, "layout");
_Static_assert(offsetof(struct hello, epoch) == 8, "layout");
_Static_assert(offsetof(struct hello, window) == 16, "layout");
_Static_assert(offsetof(struct hello, incarnation) == 24, "layout");
_Static_assert(offsetof(struct hello, proof) == 28, "layout");
_Static_assert(offsetof(struct hello, addr) == 32, "layout");

/*
 * hello_check - check a hello from a peer before anything in it is used
 * @h: private copy
 * Returns 0, -FI_ENOPROTOOPT for another version, or -FI_EINVAL for a hello that no peer of this
 * version sends.
 */
int hello_check(const struct hello *h);

/* hello_data_check - check the data of a refusal. Returns 0 or -FI_EINVAL */
int hello_data_check(const struct hello_data *data);

#endif
