/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What serves borrowers of other hosts, where something does: it has queue pairs of their leases in this process, as a
 * borrower would. devices/remote/ and devices/bridge/ have it; the controller itself knows no network. The loop's thread
 * alone.
 */
#ifndef WEFT_NVMED_REMOTE_H
#define WEFT_NVMED_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

struct nvmed;
struct remote;

/*
 * struct remote_ops
 * @open:  make queue pair @qid of a lease for a borrower elsewhere, with @depth commands under way. @place: out: where it
 *	   is, for the borrower; @len: in: the room there, out: bytes. Returns 0 or a negative errno, as slot.h has them
 * @poll:  do what there is to do. Returns whether anything moved
 * @sleep: whether nothing is to be done until a descriptor of NVMED_TAG_REMOTE in the epoll set is ready
 * @ended: a completion queue goes, whose submission queue has: take its last entries, and nothing of it any more
 */
struct remote_ops {
	int (*open)(struct remote *r, uint32_t lease, uint16_t qid, uint32_t depth, void *place,
		    uint32_t *len);
	bool (*poll)(struct remote *r);
	bool (*sleep)(struct remote *r);
	void (*ended)(struct remote *r, uint16_t qid);
};

struct remote {
	const struct remote_ops *ops;
};

/* The window of a pair in its lease's domain: above those of the lease's owner, which end at 1 << 52, and no other pair's. */
#define REMOTE_ADDR(qid) ((1ull << 56) + ((uint64_t)(qid) << 32))

/*
 * remote_refusal - why a queue pair can't be made
 * @depth: commands under way; @most: how many there may be
 * Returns 0: it can be; -EINVAL: no lease, or no such depth; -ENOENT: no such number; -EEXIST; -ENXIO: the controller is
 * not enabled, or the lease has ended.
 */
int remote_refusal(struct nvmed *c, uint32_t lease, uint16_t qid, uint32_t depth, uint32_t most);

/*
 * remote_queues_make - make the queues of a pair, which remote_refusal() has nothing against
 * @entries: of each; @sq, @cq: where they are in the pair's window, which is mapped
 * Returns 0 or -ENOMEM.
 */
int remote_queues_make(struct nvmed *c, uint32_t lease, uint16_t qid, uint32_t entries,
		       uint64_t sq, uint64_t cq);

/* remote_window_end - unmap the window of a pair, of @len bytes */
void remote_window_end(struct nvmed *c, uint32_t lease, uint16_t qid, uint64_t len);

#endif
