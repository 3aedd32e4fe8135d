/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Leases in a controller: vendor-specific commands and a log page by which its owner lends queue pairs. The controller
 * alone ends a lease whose time has run out, without its owner, in this order: it stops taking doorbells of the lease's
 * queues, deletes their submission queues and waits for commands under way, deletes the completion queues, unmaps the
 * domain's memory, and closes its files. What is under way ends with Command Aborted due to SQ Deletion as long as
 * the completion queue is there.
 */
#ifndef WEFT_DEVICES_NVME_LEASE_H
#define WEFT_DEVICES_NVME_LEASE_H

#include <assert.h>
#include <stdint.h>

enum nvme_lease_opcode {
	/*
	 * Arm: have lease cdw10 (1 to NVME_LEASES) of generation cdw11 end cdw12 milliseconds from now, 1 to
	 * NVME_LEASE_MS_MAX. The first one of a generation begins the lease; a later one moves its deadline, to an
	 * earlier time too. Completes with Invalid Field for a generation that is not above every earlier one of this
	 * lease, and for a lease that has ended; with Command Sequence Error while an earlier generation has not ended.
	 */
	NVME_ADMIN_LEASE_ARM = 0xc0,
	/*
	 * End: end lease cdw10 of generation cdw11 now. It has ended, and its memory is no longer accessed, if dword 0 is
	 * zero. NVME_UNDER_WAY: commands of it are; it ends with them, which is an event, and who does not wait for that
	 * asks again. Invalid Field for a generation that never ran.
	 */
	NVME_ADMIN_LEASE_END = 0xc4,
};

#define NVME_LEASES	  1024u
#define NVME_LEASE_MS_MAX 86400000u

/* A reset of the controller (CC.EN to 0) ends all leases, in the same order; generations count on. */

/*
 * Create I/O Completion Queue and Create I/O Submission Queue have the lease, which is the domain of the queue's
 * addresses and of its commands', in cdw14. 0: the owner's. A submission queue and its completion queue are of one lease.
 *
 * Delete I/O Submission Queue with NVME_DELETE_ASK in cdw14 never waits: NVME_UNDER_WAY in dword 0: it is asked again until
 * the queue is gone, which is no error then.
 */
#define NVME_DELETE_ASK 1u

/* In dword 0 of a completion: commands are under way in what is to end. */
#define NVME_UNDER_WAY 1u

/* The log page of leases that run: an entry for each, then one that is zero. */
#define NVME_LOG_LEASES 0xc0

struct nvme_lease_log {
	uint32_t lease;
	uint32_t generation;
	uint32_t remaining_ms;
	uint32_t queue_pairs;
	uint64_t commands; /* completed since it began */
	uint64_t bytes;
};

static_assert(sizeof(struct nvme_lease_log) == 32, "a log page");

/*
 * An entry of the error log that is about a queue and no command has the queue's lease in its command_specific: the
 * number, and the generation in the upper half. When it is read the queue may be another lease's.
 */

/* An asynchronous event of type 7: a lease has ended by its deadline, or some time after End; the log page has it no more. */
#define NVME_EVENT_LEASE_ENDED 1u

#endif
