/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What two ends of kofi_ibverbs say to each other. The greeting is the private data of a connection's request and of its
 * answer. Everything after it is a message: a head, and what follows it by its op. Integers are little-endian. The
 * receiver of payload lets the sender write it: it asks with a key of memory that it has just registered, and the
 * sender's last message of that names the key to be given up.
 */
#ifndef KOFI_IBVERBS_PROTOCOL_H
#define KOFI_IBVERBS_PROTOCOL_H

#include "link.h"
#include "packet.h"

#define KIB_MAGIC   0x6269666bu /* "kfib" */
#define KIB_VERSION 1u
#define KIB_NAME    "kofi_ibverbs"

struct kib_greeting {
	/* KIB_MAGIC */
	uint32_t magic;
	/* KIB_VERSION */
	uint16_t version;
	/* Receives that are posted ahead: messages that the other side may send at once */
	uint16_t depth;
	/* Bytes of the longest message that is received, and of the longest window that is asked for */
	uint32_t message_max, window_max;
	/* KIB_NAME, filled up with zeros */
	char name[16];
};

_Static_assert(sizeof(struct kib_greeting) == 32, "layout");
_Static_assert(sizeof(struct kib_greeting) <= KIB_GREETING_MAX, "fits");

enum kib_op {
	/* struct hello: the first message of either side */
	KIB_HELLO = 1,
	/* struct kib_refusal: in the place of the second one's */
	KIB_REFUSE = 2,
	/* struct packet, and its payload */
	KIB_PACKET = 3,
	/* struct kib_offer_say: a packet whose payload waits to be asked for */
	KIB_OFFER = 4,
	/* struct kib_ask */
	KIB_ASK = 5,
	/* struct kib_answer: what was asked for is written, or will not be */
	KIB_DONE = 6,
	/* struct kib_answer: the payload of an offer is not wanted; token: the offer's id */
	KIB_TAKEN = 7,
	/* Carries what every head does */
	KIB_REPOSTED = 8,
	/* Nothing follows, and nothing is lost */
	KIB_BYE = 9,
};

struct kib_head {
	/* enum kib_op */
	uint8_t op;
	/* Zero */
	uint8_t reserved;
	/* Messages that the sender of this one has received and that may be sent again */
	uint16_t reposted;
	/* Bytes that follow */
	uint32_t len;
};

_Static_assert(sizeof(struct kib_head) == 8, "packets behind it are aligned");

struct kib_refusal {
	/* FI_E*, not negative */
	uint32_t err;
	/* Zero */
	uint32_t reserved;
	struct hello_data data;
};

_Static_assert(sizeof(struct kib_refusal) == 272, "layout");

struct kib_offer_say {
	struct packet packet;
	uint32_t id;
	/* Zero */
	uint32_t reserved;
};

_Static_assert(sizeof(struct kib_offer_say) == 40, "layout");

enum kib_ask_flag {
	/* Of an offer, by its id; else of a send, by the id that the sender's engine has given it */
	KIB_ASK_OFFER = 1 << 0,
	/* Nothing more of that offer is asked for */
	KIB_ASK_LAST = 1 << 1,
};

struct kib_ask {
	uint64_t id;
	/* Which part of the payload, bytes; at most the window_max of the greeting */
	uint64_t skip, len;
	/* Where it is to be written */
	uint64_t at;
	uint32_t key;
	/* Comes back with the answer */
	uint32_t token;
	/* enum kib_ask_flag */
	uint32_t flags;
	/* Zero */
	uint32_t reserved;
};

_Static_assert(sizeof(struct kib_ask) == 48, "layout");

struct kib_answer {
	uint32_t token;
	/* 0, or FI_E*, not negative: nothing was written */
	uint32_t err;
};

_Static_assert(sizeof(struct kib_answer) == 8, "layout");
_Static_assert(sizeof(struct kib_head) + sizeof(struct packet) + 8192 <= KIB_MESSAGE_MAX,
	       "fits");

#endif
