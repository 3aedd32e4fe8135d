/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * NVMe controllers that were borrowed (weft/device.h): queue pairs that belong to this process, and reads and writes by
 * them. A queue pair is mapped memory and doorbells: an I/O takes no system call and nobody's help while both sides poll.
 *
 *	weft_nvme_open(dev, NULL, &qp);
 *	weft_nvme_read(qp, 1, lba, blocks, buf);		buf is in a segment with a window to dev
 *
 * Threads: a queue pair belongs to one thread at a time.
 */
#ifndef WEFT_NVME_H
#define WEFT_NVME_H

#include <weft/device.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_nvme;

#define WEFT_NVME_BLOCKING \
	(1u << 0) /* the device interrupts: weft_nvme_wait() sleeps, weft_nvme_fd() works */
#define WEFT_NVME_NEAR_DEVICE (1u << 1) /* queues in the device's memory, where it has some */

/*
 * Of a device of another host: queues in this process's memory, to which the device comes. Else they are where the device
 * is, and commands are sent there, which takes a round trip less.
 */
#define WEFT_NVME_NEAR_BORROWER (1u << 2)

/*
 * struct weft_nvme_attr - a queue pair
 * @size:  sizeof(struct weft_nvme_attr); the struct only grows at its end
 * @depth: commands under way at most; 0: 128; bounded by the device
 * @flags: WEFT_NVME_*
 */
struct weft_nvme_attr {
	size_t size;
	uint32_t depth;
	uint32_t flags;
};

/*
 * struct weft_nvme_namespace - a namespace of a device
 * @blocks, @block_size: how many there are, and the bytes of each
 * @transfer_max: bytes of the longest command; 0: no limit
 */
struct weft_nvme_namespace {
	uint64_t blocks;
	uint32_t block_size;
	uint32_t transfer_max;
};

/* enum weft_nvme_opcode - what a command does; WEFT_NVME_DEALLOCATE: the device may forget the blocks */
enum weft_nvme_opcode {
	WEFT_NVME_FLUSH = 0x00,
	WEFT_NVME_WRITE = 0x01,
	WEFT_NVME_READ = 0x02,
	WEFT_NVME_COMPARE = 0x05,
	WEFT_NVME_WRITE_ZEROES = 0x08,
	WEFT_NVME_DEALLOCATE = 0x09,
};

#define WEFT_NVME_FUA (1u << 0) /* ends when the data is on the medium */

/*
 * struct weft_nvme_command - a command to submit
 * @opcode: enum weft_nvme_opcode; @flags: WEFT_NVME_FUA
 * @nsid:   namespace, from 1 on
 * @lba:    the first block; @blocks: 1 to 65536; FLUSH: 0
 * @reserved, @reserved2: 0
 * @buf:    in a segment with a window to the device, a multiple of 4 bytes; NULL where no data moves
 * @arg:    returned with the completion
 */
struct weft_nvme_command {
	uint8_t opcode;
	uint8_t flags;
	uint16_t reserved;
	uint32_t nsid;
	uint64_t lba;
	uint32_t blocks;
	uint32_t reserved2;
	void *buf;
	void *arg;
};

/*
 * struct weft_nvme_completion - a command that has ended
 * @arg:    of the command
 * @status: 0, or a negative errno: -EIO and what @nvme says; -ECANCELED: the lease has ended under it
 * @nvme:   the device's status: type in bits 8 to 10, code below
 */
struct weft_nvme_completion {
	void *arg;
	int status;
	uint32_t nvme;
};

/*
 * weft_nvme_open - have a queue pair of one's own
 * Returns 0; -ESTALE; -ENOSPC: the device has no more; -EINVAL; -ETIMEDOUT.
 */
int weft_nvme_open(struct weft_device *dev, const struct weft_nvme_attr *attr,
		   struct weft_nvme **qp);

/*
 * weft_nvme_close - end it; what is under way is lost
 * A controller of this host may be at a command for long, or late at one of a lease that has ended: that is waited for, until
 * it has been silent for 10 seconds. Returns 0.
 */
int weft_nvme_close(struct weft_nvme *qp);

/* weft_nvme_namespace - returns 0, or -ENODEV: no such one, and what weft_nvme_open() returns */
int weft_nvme_namespace(struct weft_device *dev, uint32_t nsid, struct weft_nvme_namespace *ns);

/*
 * weft_nvme_identify - what a device says of itself
 * @device: its id; it need not be borrowed
 * @cns:    as NVMe has them: 0 a namespace, 1 the controller, ...
 * @page:   out: 4096 bytes
 * Returns 0; -ENODEV; -EIO: the device refuses; -ETIMEDOUT.
 */
int weft_nvme_identify(struct weft_lender *lender, uint64_t device, uint32_t nsid, uint32_t cns,
		       void *page);

/*
 * weft_nvme_log - a log page of a device, likewise
 * @id:  as NVMe has them: 1 errors, 2 SMART, ...
 * @len: bytes at @page, a multiple of 4, 4096 at most
 * Returns as weft_nvme_identify(), and -EPERM: a log that is not for borrowers.
 */
int weft_nvme_log(struct weft_lender *lender, uint64_t device, uint8_t id, void *page,
		  size_t len);

/* weft_nvme_depth - commands that may be under way at once */
uint32_t weft_nvme_depth(const struct weft_nvme *qp);

/*
 * weft_nvme_submit - begin commands, whose doorbell is rung once
 * Returns how many have begun, the first ones; or, if none: -EAGAIN: as many as may are under way; -EINVAL; -EFAULT:
 * the memory isn't in a window, or not all of it (of a device of another host: in one); -EMSGSIZE: longer
 * than the device takes; -ESTALE: the lease has ended; -ENOTCONN: a controller of another host is not reached any more.
 */
ssize_t weft_nvme_submit(struct weft_nvme *qp, const struct weft_nvme_command *commands,
			 size_t cnt);

/* weft_nvme_poll - take what has ended: returns how many, @cnt at most, 0: nothing has; or -ESTALE: the lease has ended */
ssize_t weft_nvme_poll(struct weft_nvme *qp, struct weft_nvme_completion *done, size_t cnt);

/*
 * weft_nvme_wait - the same, and wait until at least one has ended
 * It polls as long as completions have taken of late, and then sleeps if the queue pair interrupts (WEFT_NVME_BLOCKING).
 * @ms: how long at most; -1: no limit
 */
ssize_t weft_nvme_wait(struct weft_nvme *qp, struct weft_nvme_completion *done, size_t cnt,
		       int ms);

/*
 * weft_nvme_fd - a descriptor that is readable when the device has interrupted; of the queue pair
 * weft_nvme_poll() is called until it returns 0 before one sleeps on it. Returns it, or -EOPNOTSUPP without
 * WEFT_NVME_BLOCKING.
 */
int weft_nvme_fd(struct weft_nvme *qp);

#define WEFT_NVME_PLACE_MAX 512u

/*
 * struct weft_nvme_session - a queue pair of a device of another host, for someone else than this library to use
 * @size:  sizeof(struct weft_nvme_session); the struct only grows at its end
 * @id:    of the lease
 * @place: @place_len bytes: where the controller serves it, as Weft's kernel module kofi_blk takes it. A secret
 * @host:  the lender's, as it was named
 */
struct weft_nvme_session {
	size_t size;
	uint32_t id;
	uint32_t place_len;
	uint8_t place[WEFT_NVME_PLACE_MAX];
	char host[256];
};

/*
 * weft_nvme_session_open - have a queue pair that this library does not connect to
 * @depth:   commands under way at most
 * @session: has its size set
 * Returns 0; -EINVAL; -EOPNOTSUPP: of a device of this host, or one behind a bridge; -ESTALE; -ENOSPC: the device has no
 * more; -ETIMEDOUT.
 */
int weft_nvme_session_open(struct weft_device *dev, uint32_t depth,
			   struct weft_nvme_session *session);

/*
 * weft_nvme_session_close - end it
 * When 0 is returned nothing of it is under way at the device any more. Returns 0, -ESTALE: the lease has ended, and
 * that with it; -EINPROGRESS: commands of it are under way still after 10 seconds: close it again; -ENOENT: there is no such
 * one; -ETIMEDOUT: the lender does not answer.
 */
int weft_nvme_session_close(struct weft_device *dev, uint32_t id);

/*
 * weft_nvme_read - read and wait. Nothing else is under way on the queue pair.
 * Returns 0, or a negative errno as weft_nvme_submit() and struct weft_nvme_completion.
 */
int weft_nvme_read(struct weft_nvme *qp, uint32_t nsid, uint64_t lba, uint32_t blocks,
		   void *buf);

/* weft_nvme_write - write and wait, likewise */
int weft_nvme_write(struct weft_nvme *qp, uint32_t nsid, uint64_t lba, uint32_t blocks,
		    const void *buf);

/* weft_nvme_flush - have what was written be on the medium, and wait, likewise */
int weft_nvme_flush(struct weft_nvme *qp, uint32_t nsid);

#ifdef __cplusplus
}
#endif

#endif
