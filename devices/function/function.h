/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A PCI Express function as its owner, a lender, handles it: registers, mappings for DMA, interrupts, and parts of BARs
 * that others may map. It is a controller process in a slot (function/slot.c); a real one is behind such a process, too,
 * which ends leases on time whatever becomes of the lender. Calls on a function are made by one thread at a time, and
 * wait; how long at most is said by the kind.
 */
#ifndef WEFT_DEVICES_FUNCTION_H
#define WEFT_DEVICES_FUNCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slot.h"

struct function;

/*
 * struct function_info - what a function is
 * @queue_pairs: I/O queue pairs, which others may have
 * @memory:      bytes of its memory (BAR 2), in granules of @granule bytes
 * @serial:      of this run: another one means that it has forgotten everything
 * @direct:      queue pairs are a device's, and so are addresses in domains of leases: each is in one domain alone
 */
struct function_info {
	uint32_t queue_pairs;
	uint64_t memory;
	uint64_t granule;
	uint64_t serial;
	bool direct;
};

/* struct function_page - where in a file the doorbells of a pair are: @sq and @cq bytes into the part */
struct function_page {
	uint64_t offset;
	uint32_t len;
	uint32_t sq;
	uint32_t cq;
};

/*
 * struct function_mapping - memory that the function may access
 * @access: SLOT_DMA_*
 * @fds:    of files; more than one: what is written goes to each of them
 */
struct function_mapping {
	uint32_t domain;
	uint32_t access;
	uint64_t addr;
	uint64_t len;
	uint64_t offset;
	const int *fds;
	uint32_t fd_cnt;
};

/* struct function_queue - where a queue stands, for who adopts it */
struct function_queue {
	uint32_t domain;
	uint16_t sq_tail, sq_head;
	uint16_t cq_tail, cq_head;
	bool cq_phase;
};

/*
 * struct function_ops - what a kind of function does; all but @close return 0 or -errno: -ENODEV: the function is gone;
 * -ETIMEDOUT: it doesn't answer, and is not used any more
 * @read:    a register of 4 or 8 bytes
 * @write:   returns once it has taken effect
 * @map:     returns once the function may access the memory; the files stay the caller's
 * @unmap:   no access to what a map has mapped begins any more. -EINPROGRESS: some are under way: asked again until it is
 *	     -ENOENT
 * @vector:  have interrupts of a vector written to an eventfd, which stays the caller's; -1: nowhere
 * @region:  out: files of a part of a BAR, owned; of a doorbell page also the eventfd that wakes the function. @anew: of
 *	     the function's memory: fresh files, of zeros, which who had the part before does not reach
 * @page:    with @direct: out: the file of a pair's doorbells, owned, for the process of @pidfd, which is killed if the
 *	     function's ends before it
 * @mapping: the @idx-th mapping that a domain has; -ENOENT: there are no more. @fds: out, room for SLOT_FDS_MAX, owned
 * @queue:   -ENOENT: there is no such one
 * @remote:  make a queue pair that the function serves over a network by itself. @place: out: where, SLOT_DATA_MAX bytes;
 *	     @len: out. -EOPNOTSUPP: it does no such thing
 */
struct function_ops {
	int (*read)(struct function *function, uint32_t reg, uint32_t width, uint64_t *value);
	int (*write)(struct function *function, uint32_t reg, uint32_t width, uint64_t value);
	int (*map)(struct function *function, const struct function_mapping *mapping);
	int (*unmap)(struct function *function, uint32_t domain, uint64_t addr, uint64_t len);
	int (*vector)(struct function *function, uint32_t vector, int fd);
	int (*region)(struct function *function, uint32_t bar, uint64_t offset, uint64_t len,
		      bool anew, int *fds, uint32_t *fd_cnt);
	int (*page)(struct function *function, uint16_t qid, int pidfd, int *fd,
		    struct function_page *page);
	int (*mapping)(struct function *function, uint32_t idx,
		       struct function_mapping *mapping, int *fds);
	int (*queue)(struct function *function, uint16_t qid, struct function_queue *queue);
	int (*remote)(struct function *function, uint32_t domain, uint16_t qid, uint32_t depth,
		      void *place, uint32_t *len);
	void (*close)(struct function *function);
};

struct function {
	const struct function_ops *ops;
	struct function_info info;
};

/*
 * function_open_slot - own the controller process at a socket
 * A call waits for 2 seconds at most. Returns 0 or -errno: -EBUSY: it has an owner; -EPROTO: of another version.
 */
int function_open_slot(const char *path, struct function **function);

/* function_slot_fd - the descriptor of its socket, which ends when the controller process does */
int function_slot_fd(const struct function *function);

#endif
