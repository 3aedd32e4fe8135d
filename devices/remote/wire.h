/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a borrower on another host and a controller tell each other, by messages and one-sided transfers of any OFI
 * provider between a reliable datagram endpoint of each, for one queue pair: a session. A lender makes it, and has
 * answered the borrower with a struct remote_place; from then on it is asked nothing.
 *
 *	borrower	controller
 *	CONNECT		CONNECTED: from now on it knows the borrower's endpoint
 *	SUBMIT		reads what is to be written from the borrower's memory, unless it came along; writes what was read
 *			there, with remote CQ data that says which command has succeeded; or COMPLETE
 *	DOORBELL	of queues in the borrower's memory: reads entries of the submission queue from there, and does the
 *			same; writes an entry to the completion queue there, with remote CQ data
 *	PING		nothing: who sends hears from its provider whether the other one is there
 *			END: the session is over: its lease has ended, or it was closed
 *
 * All integers are little-endian. A message has a head with the session's key, and what is of another key, or longer than
 * there may be, is a stranger's and dropped; a message of another kind, version or length than there may be ends the
 * session at the controller, and is dropped by the borrower. Neither relies on what the
 * other one says: a controller transfers to and from the memory that a command names only, by the key that it names, and
 * a borrower takes a completion for a command that is under way only.
 */
#ifndef WEFT_DEVICES_REMOTE_WIRE_H
#define WEFT_DEVICES_REMOTE_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spec.h"

#define REMOTE_VERSION 2u

enum remote_kind {
	REMOTE_CONNECT = 1,
	REMOTE_CONNECTED,
	REMOTE_SUBMIT,
	REMOTE_DOORBELL,
	REMOTE_COMPLETE,
	REMOTE_PING,
	REMOTE_END,
};

#define REMOTE_NAME_MAX	    256u
#define REMOTE_PROVIDER_MAX 32u

/* Commands that a borrower has under way at most, and entries of a COMPLETE. */
#define REMOTE_DEPTH_MAX    1023u
#define REMOTE_COMPLETE_MAX 16u

/* struct remote_key - 128 random bits of a session, which its two ends and the lender know */
struct remote_key {
	uint64_t half[2];
};

/* remote_key_same - in the same time wherever they differ */
static inline bool remote_key_same(const struct remote_key *a, const struct remote_key *b)
{
	return !((a->half[0] ^ b->half[0]) | (a->half[1] ^ b->half[1]));
}

/*
 * struct remote_head - how each message begins
 * @count: SUBMIT: commands; COMPLETE: entries; DOORBELL: the tail of the submission queue; else 0
 * @key:   of the session
 */
struct remote_head {
	uint16_t version;
	uint16_t kind;
	uint32_t count;
	struct remote_key key;
};

static_assert(sizeof(struct remote_head) == 24, "on a wire");

/*
 * struct remote_place - where a session is
 * @data_len:    bytes of remote CQ data that both ends need: 8, 4, or 0 where there is none
 * @data_key:    random bits in it
 * @name_len, @name: the controller's endpoint
 * @depth:       commands that may be under way
 * @message_max: bytes of a SUBMIT
 * @inline_max:  bytes of data that may come along with a command
 * @provider:    of both endpoints, with a zero byte
 */
struct remote_place {
	uint16_t version;
	uint16_t data_len;
	uint32_t name_len;
	struct remote_key key;
	uint64_t data_key;
	uint32_t depth;
	uint32_t message_max;
	uint32_t inline_max;
	uint32_t rsvd44;
	char provider[REMOTE_PROVIDER_MAX];
	uint8_t name[REMOTE_NAME_MAX];
};

static_assert(sizeof(struct remote_place) == 336, "on a wire");
static_assert(offsetof(struct remote_place, provider) == 48, "on a wire");

/*
 * struct remote_connect - a borrower's endpoint
 * @sq_addr, @sq_key, @cq_addr, @cq_key: queues of @entries in its memory, which the controller may read and write;
 *				    zero: none, commands come by SUBMIT
 */
struct remote_connect {
	struct remote_head head;
	uint32_t name_len;
	uint32_t entries;
	uint64_t sq_addr;
	uint64_t sq_key;
	uint64_t cq_addr;
	uint64_t cq_key;
	uint8_t name[REMOTE_NAME_MAX];
};

static_assert(sizeof(struct remote_connect) == 320, "on a wire");
static_assert(offsetof(struct remote_connect, name) == 64, "on a wire");

/*
 * A command is a submission queue entry whose data pointer says where the borrower's data is: PRP1 is the address, PRP2
 * the key of its memory. The metadata pointer, which has no other use, is REMOTE_INLINE where the data follows the entry
 * in a SUBMIT, up to a multiple of 8 bytes; else 0. How much data there is follows from the command.
 */
#define REMOTE_INLINE 1u

#define REMOTE_PAD(len) (((len) + 7) & ~(size_t)7)

/*
 * Remote CQ data: of a command that has succeeded, its id; of an entry that was written to a completion queue, 0. Above it
 * are as many bits of @data_key as there is room for: a stranger can write no bytes to memory whose key it does not know, and
 * with them any data.
 */
#define REMOTE_ID_BITS 10

static_assert(REMOTE_DEPTH_MAX < 1u << REMOTE_ID_BITS, "ids have room");

static inline uint64_t remote_data(const struct remote_place *place, uint16_t cid)
{
	uint64_t data = place->data_key << REMOTE_ID_BITS | cid;

	return place->data_len < sizeof(data) ? (uint32_t)data : data;
}

/* remote_data_id - the id in remote CQ data; -1: it is not of this session */
static inline int remote_data_id(const struct remote_place *place, uint64_t data)
{
	return (data ^ remote_data(place, 0)) >> REMOTE_ID_BITS
		       ? -1
		       : (int)(data & ((1u << REMOTE_ID_BITS) - 1));
}

/*
 * remote_data_len - bytes of data that a command moves
 * @block: bytes of a block of its namespace
 */
static inline uint64_t remote_data_len(const struct nvme_sqe *sqe, uint32_t block)
{
	switch (sqe->opcode) {
	case NVME_IO_READ:
	case NVME_IO_WRITE:
	case NVME_IO_COMPARE:
		return ((uint64_t)(sqe->cdw12 & 0xffff) + 1) * block;
	case NVME_IO_DSM:
		return ((sqe->cdw10 & 0xff) + 1) * sizeof(struct nvme_dsm_range);
	default:
		return 0;
	}
}

/* struct remote_complete - entries, whose phase is 0 and whose queue numbers are of no matter */
struct remote_complete {
	struct remote_head head;
	struct nvme_cqe entries[REMOTE_COMPLETE_MAX];
};

static_assert(sizeof(struct remote_complete) == 280, "on a wire");

#endif
