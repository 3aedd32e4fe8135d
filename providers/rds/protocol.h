/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What two ends say to each other: datagrams of RDS, each a head and what follows it by its op. Integers are
 * little-endian. The end that connects says hello from a socket that it has opened for the conn to the one that the
 * other endpoint is known by; the answer comes from a socket that was opened for it too. After that both are alone
 * with each other. RDS delivers all in order and once while both hosts live: a number that is missing is an error.
 */
#ifndef WEFT_RDS_PROTOCOL_H
#define WEFT_RDS_PROTOCOL_H

#include "packet.h"

#define RDS_MAGIC   0x73647266u /* "frds" */
#define RDS_VERSION 1u

/* Bytes of a datagram, at most: pages of RDS' own */
#define RDS_DATAGRAM_MAX 65536u

enum rds_op {
	/* struct rds_greeting: of the end that connects, again and again until it has an answer */
	RDS_HELLO = 1,
	/* struct rds_greeting */
	RDS_ANSWER = 2,
	/* struct rds_refusal: in the place of the answer */
	RDS_REFUSE = 3,
	/* struct packet, and its payload */
	RDS_PACKET = 4,
	/* struct packet, and the first bytes of its payload; what is missing follows as RDS_MORE */
	RDS_FIRST = 5,
	/* The next bytes of that payload */
	RDS_MORE = 6,
	/* Nothing follows: the sender's host lives, and its endpoint is open */
	RDS_ALIVE = 7,
	/* struct rds_end, and zeros up to RDS_END_LEN bytes: the last one */
	RDS_END = 8,
};

struct rds_head {
	/* RDS_MAGIC */
	uint32_t magic;
	/* RDS_VERSION */
	uint8_t version;
	/* enum rds_op */
	uint8_t op;
	/* Zero */
	uint16_t reserved;
	/* The receiver's id of the conn; of a RDS_HELLO 0 */
	uint64_t to;
	/* Counts what is sent on the conn, from 0 on; of greetings, refusals and RDS_ALIVE 0 */
	uint32_t number;
	/* Bytes that follow */
	uint32_t len;
};

_Static_assert(sizeof(struct rds_head) == 24, "packets behind it are aligned");
_Static_assert(offsetof(struct rds_head, to) == 8, "layout");

struct rds_greeting {
	/* The sender's id of the conn, random and not 0: what is sent to it has that */
	uint64_t id;
	struct hello hello;
};

_Static_assert(sizeof(struct rds_greeting) == 352, "layout");

struct rds_refusal {
	/* FI_E*, not negative */
	uint32_t err;
	/* Zero */
	uint32_t reserved;
	struct hello_data data;
};

_Static_assert(sizeof(struct rds_refusal) == 272, "layout");

struct rds_end {
	/* FI_E*, not negative; 0: nothing is lost */
	uint32_t err;
	/* Zero */
	uint32_t reserved;
};

_Static_assert(sizeof(struct rds_end) == 8, "layout");

/* Bytes behind the head of a RDS_END: by its length its sender knows when all has arrived (datagram.h) */
#define RDS_END_LEN 4096u

/* Payload that goes with its packet in a datagram, or with none, bytes */
#define RDS_PACKET_AT	sizeof(struct rds_head)
#define RDS_PAYLOAD_AT	(RDS_PACKET_AT + sizeof(struct packet))
#define RDS_PAYLOAD_MAX (RDS_DATAGRAM_MAX - (uint32_t)RDS_PAYLOAD_AT)
#define RDS_MORE_MAX	(RDS_DATAGRAM_MAX - (uint32_t)sizeof(struct rds_head))

#endif
