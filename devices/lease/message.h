/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a borrower and a lender tell each other. The borrower asks and is answered, in order, over a connection that
 * keeps messages apart; descriptors travel beside them, within a host. A lease that is not kept ends with the last of the
 * connections by which its borrower has borrowed it or attached to it, and with the process at its other end. Another
 * process that attaches to it uses it as long as that.
 *
 *	borrower asks	the lender answers
 *	HELLO		its node
 *	LIST		the device @index; -ENOENT ends them
 *	BORROW		a lease
 *	ATTACH		the same lease, over another connection: the borrower shows its token
 *	RENEW		once the controller has it
 *	SHARE		others may borrow the device
 *	RETURN		once the controller has ended the lease
 *	WINDOW		the address of DMA at which the device accesses the file beside it
 *	UNWINDOW	once it does not any more
 *	QUEUES		a queue pair: its number, the doorbells' file, and the eventfd that wakes the controller, if it sleeps;
 *			to a borrower elsewhere: where the controller serves it (remote/wire.h)
 *	UNQUEUES	once it is gone
 *	MEMORY		granules of the device's memory: their files
 *	UNMEMORY	once they are free
 *	ADMIN		the completion, and what the device returned: Identify, Get Log Page and Get Features alone
 *	LEASES		the first lease whose number is above @lease; -ENOENT ends them
 *	REVOKE		once a lease that another has is ended: for the lender's user, and root
 *	EXPORT		the number and generation of a segment, whose files are beside the request
 *	UNEXPORT	once nobody gets them any more; who has them keeps them
 *	IMPORT		the files of a segment
 *	WATCH		nothing more: from now on EVENT messages arrive, and nothing is asked over this connection
 */
#ifndef WEFT_DEVICES_LEASE_MESSAGE_H
#define WEFT_DEVICES_LEASE_MESSAGE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "token.h"

#define LEASE_VERSION  2u
#define LEASE_DATA_MAX 4096u

enum lease_kind {
	LEASE_HELLO = 1,
	LEASE_LIST,
	LEASE_BORROW,
	LEASE_ATTACH,
	LEASE_RENEW,
	LEASE_SHARE,
	LEASE_RETURN,
	LEASE_WINDOW,
	LEASE_UNWINDOW,
	LEASE_QUEUES,
	LEASE_UNQUEUES,
	LEASE_MEMORY,
	LEASE_UNMEMORY,
	LEASE_ADMIN,
	LEASE_LEASES,
	LEASE_REVOKE,
	LEASE_EXPORT,
	LEASE_UNEXPORT,
	LEASE_IMPORT,
	LEASE_WATCH,
	LEASE_EVENT,
	LEASE_KINDS,
};

/* flags of BORROW, ATTACH and LEASES */
#define LEASE_SHARED 1u
#define LEASE_KEPT   2u /* it outlives its connection */

/*
 * struct lease_message - a request, its answer, or an event, little-endian; what a kind does not name is zero
 * @data_len: bytes that follow the message
 * @status:   of an answer: 0 or a negative errno
 * @lease, @generation, @token: the lease that a request is about, as BORROW has answered them. EVENT: @lease. LEASES:
 *	      @lease is 0 or that of the last answer. EXPORT: the answer, UNEXPORT, IMPORT: @generation of the segment
 * @index:    LIST: the device; EXPORT: the answer, UNEXPORT, IMPORT: the segment; QUEUES: the answer, UNQUEUES: number of
 *	      the queue pair; EVENT: enum weft_event_kind; MEMORY: the answer, UNMEMORY: the first granule
 * @flags:    EXPORT: WEFT_EXPORT_*; BORROW, and answers of ATTACH and LEASES: LEASE_*; WINDOW: WEFT_WINDOW_*; QUEUES:
 *	      WEFT_NVME_BLOCKING: an eventfd is beside it
 * @ms:       BORROW, RENEW, and answers of LEASES and ATTACH: until the lease ends
 * @count:    BORROW: vendor; QUEUES: entries of both queues; MEMORY, UNMEMORY: granules; LEASES: queue pairs
 * @device:   answers of BORROW and ATTACH, EVENT, LEASES: its id; HELLO: the node; BORROW: its class
 * @addr:     WINDOW: the answer, UNWINDOW: address of DMA; QUEUES: of the submission queue; ADMIN: cdw10 and 11
 * @len:      EXPORT, the answer of IMPORT: bytes of each file; WINDOW, UNWINDOW: bytes; MEMORY: bytes, answer: bytes of a
 *	      granule; ADMIN: cdw12 and 13; LEASES: the borrower's pid, and its uid in the upper half
 * @offset:   WINDOW: in the file; QUEUES: address of the completion queue; ADMIN: opcode, and nsid in the upper half;
 *	      answer: dword 0 of the completion, and its status in the upper half
 *
 * The answer of QUEUES says where the doorbells are: @addr, @len: in which part of the file, @offset: where in that the one
 * of the submission queue is, and that of the completion queue in the upper half.
 *
 * What follows: LIST, BORROW, ATTACH: struct weft_device_info in the answer; BORROW: a name, in the request; ADMIN: what
 * the device returned; QUEUES: struct remote_place, in the answer to a borrower elsewhere.
 */
struct lease_message {
	uint16_t version;
	uint16_t kind;
	uint32_t seq;
	int32_t status;
	uint32_t fd_cnt;
	uint32_t data_len;
	uint32_t lease;
	uint32_t generation;
	uint32_t index;
	uint32_t flags;
	uint32_t ms;
	uint32_t count;
	uint32_t rsvd44;
	struct lease_token token;
	uint64_t device;
	uint64_t addr;
	uint64_t len;
	uint64_t offset;
};

static_assert(sizeof(struct lease_message) == 96, "on a connection");
static_assert(offsetof(struct lease_message, token) == 48, "on a connection");
static_assert(offsetof(struct lease_message, device) == 64, "on a connection");
static_assert(offsetof(struct lease_message, offset) == 88, "on a connection");

/*
 * Borrowers elsewhere send requests as messages to the lender's door, an endpoint of an OFI provider, and have answers and
 * events sent to theirs, whose name is in each request. Such a connection has no end that the lender sees: leases end when
 * they are returned, revoked, or not renewed; and WATCH is asked again and again, or ends after LEASE_WATCH_MS. A request
 * that comes twice is carried out once, and answered twice. There are no descriptors:
 * WINDOW, UNWINDOW, MEMORY, UNMEMORY, EXPORT, UNEXPORT and IMPORT are refused with -EOPNOTSUPP, and REVOKE with -EACCES.
 */
#define LEASE_WATCH_MS 10000u

/* Where a door is, if nobody says. */
#define LEASE_PORT "7471"

#define LEASE_NAME_MAX 256u

/*
 * struct lease_envelope - before each message to or from a door
 * @life:     a number that the borrower's endpoint has by chance, and no other; in answers and events the same
 * @name_len: bytes of the name of the endpoint to which the answer goes; 0 in answers and events
 */
struct lease_envelope {
	uint16_t version;
	uint16_t name_len;
	uint32_t rsvd4;
	uint64_t life;
	uint8_t name[LEASE_NAME_MAX];
};

static_assert(sizeof(struct lease_envelope) == 272, "on a wire");

#define LEASE_LETTER_MAX \
	(sizeof(struct lease_envelope) + sizeof(struct lease_message) + LEASE_DATA_MAX)

#endif
