/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a controller process and its owner, a lender, tell each other over a Unix socket of packets: what a slot of PCI
 * Express would carry. The controller listens; the one owner asks and is answered, in order. Descriptors travel beside
 * the messages. A controller goes on with what it has when its owner goes away, and the next owner finds it so.
 *
 * BAR 0 is the controller registers, then a page for each queue pair (CAP.DSTRD says so), which is a file of its own:
 * whoever has it rings this pair's doorbells and no other's. BAR 2 is memory of the controller (CMB) in granules, each
 * a file of its own. Addresses of DMA are of a domain: that of the owner (0), or of a lease. A queue pair accesses
 * what is mapped in its domain.
 *
 *	owner asks		the controller answers
 *	ATTACH			who it is; the file of the registers, which the owner may read
 *	READ, WRITE		a register, or nothing; a write has taken effect
 *	MAP			once its queues may access the range
 *	UNMAP			at once: no access begins any more; -EINPROGRESS while some are under way
 *	VECTOR			once interrupts of the vector go to the eventfd
 *	REGION			the file of a doorbell page, and behind it the eventfd that wakes the controller; or of
 *				granules, in order
 *	DOMAIN			a mapping that a domain has, with its file, for a new owner that adopts it
 *	QUEUE			where a queue stands, likewise
 *	REMOTE			once there is a queue pair that the controller serves over a network by itself, for a borrower
 *				elsewhere: behind the answer it says where (struct remote_place)
 *
 * A doorbell page is of one life of its pair: while the pair has no queue each REGION makes a new page, and a borrower of
 * an earlier one rings nothing any more; once a queue of it is there REGION gives this page again; with the last queue of
 * the pair (deleted, by the end of its lease, by a reset) the page ends. That of the admin pair is new after each ATTACH,
 * and stays over resets. Nobody reads the eventfd. A granule that was lent is likewise asked for anew, with a value of 1: it
 * becomes a new file, of zeros; what has the old one keeps that. Where it is memory of a device, which can't become another
 * one, the mappings of the old one end, in whichever domain, and -EBUSY says that something is still under way by them.
 *
 * A controller whose queue pairs are those of a device (SLOT_DIRECT) gives, for a pair that is not the admin one, a part
 * of the device's file. Beside REGION is a pidfd of the process that is to map it; it is killed when the controller ends
 * before it lets go. Whoever has that file can do anything to the device. There are no words beside the doorbells.
 *
 * MAP into the domain of a lease is refused with -ENXIO until the lease has been armed, and its end (by its deadline, by
 * command, by a reset) unmaps all of it and lets go the vectors of its completion queues. What is in domain 0, and the
 * vectors of its queues, stays over resets and owners.
 */
#ifndef WEFT_DEVICES_SLOT_H
#define WEFT_DEVICES_SLOT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define SLOT_VERSION 1u

/* Descriptors beside a message at most. A map of more than one is a multicast: what is written goes to all of them. */
#define SLOT_FDS_MAX 32u

/* Bytes that follow an answer at most. */
#define SLOT_DATA_MAX 512u

enum slot_kind {
	SLOT_ATTACH = 1,
	SLOT_READ,
	SLOT_WRITE,
	SLOT_MAP,
	SLOT_UNMAP,
	SLOT_VECTOR,
	SLOT_REGION,
	SLOT_DOMAIN,
	SLOT_QUEUE,
	SLOT_REMOTE,
	SLOT_KINDS,
};

/* In the answer of ATTACH: queue pairs are a device's, and so are addresses of DMA in domains of leases. */
#define SLOT_DIRECT 1u

/* What a controller does to mapped memory. */
#define SLOT_DMA_READ  1u /* the controller reads it: data of writes, queue entries */
#define SLOT_DMA_WRITE 2u

/*
 * struct slot_message - a request or its answer, little-endian; what a kind does not name is zero
 * @kind:   an answer has that of its request
 * @fd_cnt: descriptors beside it
 * @seq:    of the request, and of its answer
 * @status: of an answer: 0 or a negative errno. A request has 0.
 * @domain: MAP, UNMAP, DOMAIN, REMOTE; the answer of QUEUE: that of the queue
 * @access: MAP, and the answer of DOMAIN: SLOT_DMA_*
 * @index:  VECTOR: which; DOMAIN: the mapping's number, from 0 on (-ENOENT ends them); QUEUE, REMOTE: which; REGION: the BAR
 * @addr:   MAP, UNMAP: address of DMA; READ, WRITE, REGION: offset in the BAR. Answers: DOMAIN: as in MAP;
 *	    ATTACH: bytes of BAR 2; QUEUE: the submission queue's tail, and its head in the upper half
 * @len:    MAP, UNMAP, REGION: bytes; READ, WRITE: 4 or 8; REMOTE: commands under way, and its answer: bytes behind it.
 *	    Answers: DOMAIN: as in MAP; ATTACH: bytes of a granule; QUEUE: the completion queue's tail, its head in bits 32
 *	    to 47, the phase of the next entry in bit 63
 * @offset: MAP, and the answer of DOMAIN: where in the files; else of ATTACH: queue pairs beside the admin one
 * @value:  WRITE: what is written; REGION of BAR 2: 1: files anew, else 0. Answers: READ: what was read; ATTACH: the
 *	    serial of this run of the controller
 *
 * With SLOT_DIRECT the answers have more: ATTACH: @index: SLOT_DIRECT; REGION of a pair: @offset, @len: the part of the
 * file, @value: where in that the submission queue's doorbell is, and the completion queue's in the upper half.
 * MAP of a lease: -EEXIST also when another lease has the address, -EINVAL when the device can't use it, -EOPNOTSUPP for a
 * multicast.
 *
 * Files in MAP are memfds (not of huge pages) sealed against shrinking, which reach to the end of the mapping; other ones
 * are refused with -EBADF. Addresses, lengths and offsets of MAP are of whole pages; what is read of a multicast comes
 * from its first file. MAP with an address that overlaps a mapping of the domain: -EEXIST; UNMAP takes exactly what one
 * MAP has mapped: -ENOENT. After -EINPROGRESS UNMAP is asked again, until it is -ENOENT. VECTOR without a descriptor lets the
 * vector go; it has as many as there are queue pairs, the admin one's with them. REMOTE: -EOPNOTSUPP: the controller serves no network; -EEXIST: there is such a queue;
 * -ENXIO: the lease does not run. REGION of BAR 0 is about a page, of BAR 2 about at most SLOT_FDS_MAX granules. Other errors:
 * -EPROTO: no such message; -EPERM: not after ATTACH, or an ATTACH by another user; -EBUSY: there is an owner;
 * -ENOENT: no such queue, page or granule; -EINVAL; -ENOMEM, -EMFILE.
 */
struct slot_message {
	uint16_t version;
	uint16_t kind;
	uint32_t fd_cnt;
	uint32_t seq;
	int32_t status;
	uint32_t domain;
	uint32_t access;
	uint32_t index;
	uint32_t rsvd28;
	uint64_t addr;
	uint64_t len;
	uint64_t offset;
	uint64_t value;
};

static_assert(sizeof(struct slot_message) == 64, "on a socket");

/* The page of a queue pair: both doorbells, as NVMe with CAP.DSTRD has them, and who sleeps. */
#define SLOT_DSTRD 9u

/*
 * struct slot_doorbells - the page of a queue pair
 * @sq_tail: written by the queue's owner
 * @asleep:  written by the controller: not 0: whoever writes a doorbell then writes the eventfd too. The writer has a
 *	     full barrier between its doorbell and this load; the controller one between this store and its last look at
 *	     the doorbells.
 * @ended:   written by the controller: not 0: this page and its queues have ended (their lease has, they are deleted,
 *	     or the controller was reset). It stays so. What has no completion by then has none. An interrupt of the
 *	     completion queue, if it has some, tells a sleeper to look.
 * @cq_head: written by the queue's owner
 * @polling: written by the completion queue's owner: not 0: it needs no interrupts now. Before it sleeps it stores 0 and
 *	     looks at the queue once more, with a full barrier between; the controller has one between an entry and its
 *	     load of this.
 *
 * While the page has not ended, the controller's process holds a lock on the file, of the first byte, as F_SETLK sets it:
 * another process to which F_GETLK shows none knows that the controller is gone without having said so.
 */
struct slot_doorbells {
	uint32_t sq_tail;
	uint32_t rsvd4[31];
	uint32_t asleep;
	uint32_t ended;
	uint32_t rsvd136[478];
	uint32_t cq_head;
	uint32_t polling;
	uint32_t rsvd2056[510];
};

static_assert(sizeof(struct slot_doorbells) == 4096, "a page");
static_assert(offsetof(struct slot_doorbells, asleep) == 128, "a cache line of its own");
static_assert(offsetof(struct slot_doorbells, cq_head) == (4u << SLOT_DSTRD), "CAP.DSTRD");

#endif
