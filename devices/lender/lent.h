/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A device that a lender lends: its controller, the leases on it, and what each has of it. The controller knows which
 * leases run and until when; what is here follows it. Any thread.
 *
 * A lease is used by its number and generation, which a later lease of the same number does not have, and by its token,
 * which only its borrower knows. Calls on a lease return -ESTALE when it has ended, and -EACCES for a wrong token.
 *
 * All calls return -ENODEV, and nothing was done, while the controller is not there; the one that finds that out returns
 * -ENODEV, -ETIMEDOUT, -ENOTRECOVERABLE (it has failed) or -EPROTO, and something may have been done. The controller is
 * given up then, and looked for at its slot: its leases go on while it is the same run of it.
 */
#ifndef WEFT_DEVICES_LENDER_LENT_H
#define WEFT_DEVICES_LENDER_LENT_H

#include <stdint.h>
#include <sys/types.h>
#include <weft/device.h>

#include "spec.h"
#include "token.h"

struct lent;

/*
 * What ends a lease, a pair or a window waits for the commands that use it, for @wait_ms at most, while others have the
 * device. -EINPROGRESS: some still do; no further one begins, and the call is to be repeated.
 */
#define LENT_WAIT_MS 300u

/*
 * struct lent_lease - how a lease is named
 * @token: none: whoever asks may do as the borrower may (the lender's own user)
 */
struct lent_lease {
	uint32_t lease;
	uint32_t generation;
	struct lease_token token;
};

/* struct lent_borrower - who has a lease */
struct lent_borrower {
	pid_t pid;
	uid_t uid;
};

/*
 * struct lent_state - a lease as tools see it
 * @flags:  LEASE_SHARED, LEASE_KEPT
 */
struct lent_state {
	struct lent_lease lease;
	struct lent_borrower borrower;
	uint32_t flags;
	uint32_t ms;
	uint32_t queue_pairs;
};

/*
 * lent_open - take the controller at a slot, and the leases that its last lender left
 * @node:  of this host
 * @state: folder where leases are kept in mind
 * @tell:  called, on a thread of the device's, with an event: enum weft_event_kind, and the lease that has ended by
 *	   itself, or 0
 * Returns 0 or -errno.
 */
int lent_open(const char *slot, uint64_t node, const char *state,
	      void (*tell)(void *arg, struct lent *lent, uint32_t kind, uint32_t lease),
	      void *arg, struct lent **lent);

/* lent_close - let go of the controller, which goes on with the leases that it has */
void lent_close(struct lent *lent);

/* lent_info - out: as it is now; never waits for the controller */
void lent_info(struct lent *lent, struct weft_device_info *info);

uint64_t lent_id(struct lent *lent);

/*
 * lent_borrow - begin a lease of @ms
 * @flags: LEASE_SHARED, LEASE_KEPT
 * @lease: out
 * Returns 0; -EBUSY: it is borrowed otherwise; -ENOSPC: there are no more numbers; -EINVAL: @ms.
 */
int lent_borrow(struct lent *lent, const struct lent_borrower *by, uint32_t flags, uint32_t ms,
		struct lent_lease *lease);

int lent_renew(struct lent *lent, const struct lent_lease *lease, uint32_t ms);
int lent_share(struct lent *lent, const struct lent_lease *lease);

/*
 * lent_end - end a lease
 * Returns 0 once the device accesses nothing of the lease any more, and what it had is free. After -EINPROGRESS the lease is
 * of no use any more, but has what it had until the controller is done with it, which is told then. Where the controller
 * does not answer, the lease is forgotten, and ended when the controller is there again, or by its time.
 */
int lent_end(struct lent *lent, const struct lent_lease *lease, uint32_t wait_ms);

/*
 * lent_hold - have a lease that is not kept end with one connection more
 * lent_let_go - a connection has ended: the lease ends with the last one
 */
int lent_hold(struct lent *lent, const struct lent_lease *lease);
void lent_let_go(struct lent *lent, const struct lent_lease *lease);

/* lent_state - out: a lease that runs. @state->lease says which; -ESTALE: it doesn't */
int lent_state(struct lent *lent, struct lent_state *state);

/* lent_next - out: the first lease that runs, of a number above @after. Returns 0 or -ENOENT */
int lent_next(struct lent *lent, uint32_t after, struct lent_state *state);

/*
 * lent_window - let the device access a file for a lease
 * @access: WEFT_WINDOW_*
 * @addr:   out: at which address of DMA
 * Returns 0; -EINVAL; -EBADF: no memory that is sealed against shrinking; -ENOSPC: the controller has no room for more.
 */
int lent_window(struct lent *lent, const struct lent_lease *lease, uint32_t access,
		uint64_t offset, uint64_t len, const int *fds, uint32_t fd_cnt, uint64_t *addr);

/* lent_unwindow - returns 0 once it does no more; -ENOENT: no such window; -EINPROGRESS */
int lent_unwindow(struct lent *lent, const struct lent_lease *lease, uint64_t addr,
		  uint64_t len, uint32_t wait_ms);

/*
 * struct lent_queues - a queue pair to make
 * @sq, @cq: addresses of DMA of the lease
 * @vector:  an eventfd for interrupts, the caller's; -1: none
 * @uid, @pidfd: of whom it is for, the caller's; -1: not known
 */
struct lent_queues {
	uint64_t sq, cq;
	uint32_t entries;
	int vector;
	uid_t uid;
	int pidfd;
};

/* struct lent_bells - where a pair's doorbells are: in a part of a file; @kick: an eventfd that wakes the controller, or -1 */
struct lent_bells {
	int fd;
	int kick;
	uint64_t offset;
	uint32_t len;
	uint32_t sq;
	uint32_t cq;
};

/*
 * lent_queue_pair - make a queue pair for a lease
 * @qid: out; @bells: out, with descriptors that are owned
 * Returns 0; -ENOSPC; -EINVAL: entries or addresses; -EBADF: @vector is no eventfd; -EACCES: the pair is a device's own,
 * and not for another user.
 */
int lent_queue_pair(struct lent *lent, const struct lent_lease *lease,
		    const struct lent_queues *queues, uint16_t *qid, struct lent_bells *bells);

/*
 * lent_remote_pair - have the controller make a queue pair for a lease of a borrower elsewhere, and serve it by itself
 * @depth: commands under way
 * @place: out: where it does, SLOT_DATA_MAX bytes (struct remote_place); @len: out
 * Returns as lent_queue_pair(), and -EOPNOTSUPP: the controller serves no network.
 */
int lent_remote_pair(struct lent *lent, const struct lent_lease *lease, uint32_t depth,
		     uint16_t *qid, void *place, uint32_t *len);

/* lent_unqueue_pair - returns 0 once it is gone; -ENOENT: no such pair; -EINPROGRESS: it is stopped, and there still */
int lent_unqueue_pair(struct lent *lent, const struct lent_lease *lease, uint16_t qid,
		      uint32_t wait_ms);

/*
 * lent_memory - give a lease granules of the device's memory
 * @first, @cnt, @granule: out: which, how many, and the bytes of each
 * @fds: out: room for PACKET_FDS_MAX; owned
 * Returns 0; -EOPNOTSUPP: it has none; -ENOSPC; -EINVAL.
 */
int lent_memory(struct lent *lent, const struct lent_lease *lease, uint64_t len,
		uint32_t *first, uint32_t *cnt, uint64_t *granule, int *fds);

int lent_unmemory(struct lent *lent, const struct lent_lease *lease, uint32_t first,
		  uint32_t cnt);

/*
 * lent_admin - carry out a command of anyone's: Identify, Get Log Page (not of leases) and Get Features
 * @data: out: NVME_PAGE bytes
 * Returns 0: @cqe has its status; -EPERM: another command.
 */
int lent_admin(struct lent *lent, struct nvme_sqe *sqe, void *data, struct nvme_cqe *cqe);

#endif
