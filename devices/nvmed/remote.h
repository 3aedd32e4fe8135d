/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What serves borrowers of other hosts, where something does: it has queue pairs of their leases in this process, as a
 * borrower would. devices/remote/ has it; the controller itself knows no network. The loop's thread alone.
 */
#ifndef WEFT_NVMED_REMOTE_H
#define WEFT_NVMED_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
