/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is behind the namespace: bytes at offsets, moved in pieces between it and windows of a domain. A backend carries
 * a piece out within start(), or takes it and ends it in reap(). The loop's thread calls everything.
 */
#ifndef WEFT_NVMED_BACKEND_H
#define WEFT_NVMED_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "prp.h"

enum piece_op {
	PIECE_READ,
	PIECE_WRITE,
	PIECE_COMPARE,
	PIECE_ZERO,	  /* bytes become zeros */
	PIECE_DEALLOCATE, /* likewise, and their memory is given back where that is possible */
	PIECE_DISCARD,	  /* what they are is of no matter any more */
	PIECE_FLUSH,
};

/* Most bytes of a piece that has data, and its segments: PRP_SEGMENTS() of that. */
#define PIECE_LEN_MAX  (128u * 1024)
#define PIECE_SEGS_MAX (PIECE_LEN_MAX / 4096 + 2)

/*
 * struct piece - a step of a command
 * @owner:   for whom; NULL: for the controller itself
 * @durable: it has to be on the medium when it ends
 * @status:  NVMe status, set when it ends
 * @began:   of CLOCK_BOOTTIME, if its time tells what the backend takes while little is under way; else UINT64_MAX
 * @buf:     the backend's
 */
struct piece {
	struct piece *next;
	void *owner;
	enum piece_op op;
	bool durable;
	uint16_t status;
	uint64_t offset;
	uint64_t len;
	uint64_t began;
	void *buf;
	uint32_t seg_cnt;
	struct segment segs[PIECE_SEGS_MAX];
};

struct backend;

/*
 * struct backend_ops
 * @slice:  bytes of a piece of data at most, a power of two from 4096 to PIECE_LEN_MAX
 * @zeroes: bytes of a PIECE_ZERO, PIECE_DEALLOCATE or PIECE_DISCARD at most
 * @depth:  pieces under way at most; 0: every piece ends within start()
 * @bytes:  of them, about at most: a queue waits for its turn here, where turns are fair, and not in a device
 * @start:  carry out or take a piece, of which no more are under way than @depth. Returns whether it has ended.
 * @submit: pieces taken since the last call set out now
 * @reap:   calls @done for each piece that has ended. Returns 0 if there was nothing, and nothing is to be tried again
 * @event:  a descriptor that is readable while there is something to reap; with @due: an eventfd that is written
 *	    whenever there is something new; -1: none
 * @due:    NULL: nothing has a deadline. Else look at those that have passed by @now, of CLOCK_BOOTTIME; returns
 *	    when it is to be called next at the latest, UINT64_MAX: as it is, never
 * @alarm:  with @due: a descriptor that is readable when @due has something to do at once; -1: none
 * @log:    NULL: the device has no logs. Else a log page of the device, NVME_PAGE bytes at most. Returns an NVMe status
 * @close:  nothing is under way; what was written is on the medium after it
 */
struct backend_ops {
	uint32_t slice;
	uint64_t zeroes;
	uint32_t depth;
	uint64_t bytes;
	bool (*start)(struct backend *b, struct piece *p);
	void (*submit)(struct backend *b);
	uint32_t (*reap)(struct backend *b, void (*done)(void *arg, struct piece *p), void *arg);
	int (*event)(struct backend *b);
	uint64_t (*due)(struct backend *b, uint64_t now);
	int (*alarm)(struct backend *b);
	int (*log)(struct backend *b, uint8_t id, void *page, uint32_t len);
	void (*close)(struct backend *b);
};

/* Where the doorbells of a pair are: in a part of a file, at @sq and @cq bytes in it */
struct backend_page {
	int fd;
	uint64_t offset;
	uint32_t len;
	uint32_t sq;
	uint32_t cq;
};

/* A queue to make, which was checked: all of it is in one window, at @addr. */
struct backend_queue {
	uint16_t qid;
	uint16_t vector; /* of a completion queue */
	bool interrupts;
	uint32_t size;
	uint64_t addr;
};

/*
 * struct backend_pairs - queue pairs of the device itself, for borrowers that are trusted with it
 *
 * Their numbers are 1 to @cnt. A completion queue has the submission queue of its number.
 * @hooks:      of windows of leases: there addresses of DMA are the device's
 * @create_cq, @create_sq: return an NVMe status
 * @delete_sq:  returns whether the device accesses nothing for it any more; if not: it is to be asked again
 * @delete_cq:  likewise, once
 * @set_vector: where interrupts of a vector go; -1: nowhere. Borrows the descriptor. Returns 0 or a negative errno
 * @find_page:  of a pair, for the process of @pidfd (borrowed), which is ended when this one ends and it still has the
 *		page. Returns 0; -ENOSPC: nobody would end it; -ENOMEM
 */
struct backend_pairs {
	uint32_t cnt;
	const struct window_hooks *hooks;
	int (*create_cq)(struct backend *b, const struct backend_queue *q);
	int (*create_sq)(struct backend *b, const struct backend_queue *q);
	bool (*delete_sq)(struct backend *b, uint16_t qid);
	void (*delete_cq)(struct backend *b, uint16_t qid);
	int (*set_vector)(struct backend *b, uint32_t vector, int fd);
	int (*find_page)(struct backend *b, uint16_t qid, int pidfd, struct backend_page *page);
};

/*
 * struct backend_device - a real controller, of which the namespace is
 * @block:  bytes of a block of the namespace
 * @vendor, @subsystem, @serial, @model, @firmware: as it says in Identify
 * @oncs:   of Compare, Write Zeroes and Dataset Management what it has
 * @dlfeat: what deallocated blocks are
 * @mdts:   the longest command that it takes
 * @warm, @hot: kelvins from which on it says that it is; 0: it does not
 */
struct backend_device {
	uint32_t block;
	uint16_t vendor;
	uint16_t subsystem;
	uint16_t oncs;
	uint8_t dlfeat;
	uint8_t mdts;
	uint16_t warm;
	uint16_t hot;
	char serial[21];
	char model[41];
	char firmware[9];
};

/*
 * struct backend_memory - memory of a device (CMB), of which it knows the addresses alone
 * @base: mapped here
 * @addr: where it is for the device
 */
struct backend_memory {
	uint8_t *base;
	uint64_t len;
	uint64_t addr;
};

/*
 * struct backend
 * @len:         bytes, a multiple of the block size
 * @write_cache: what was written is on the medium only after a flush
 * @gone:        it can't go on, and the controller ends
 * @how:         for people
 * @device:      NULL: none
 * @hooks:       NULL: it needs none
 * @pairs:       NULL: all queue pairs are of the controller here, and it carries their commands out
 * @memory:      NULL: the device has none
 * @losses:      how often a device has lost all of these
 */
struct backend {
	const struct backend_ops *ops;
	uint64_t len;
	bool write_cache;
	bool gone;
	const char *how;
	const struct backend_device *device;
	const struct window_hooks *hooks;
	const struct backend_pairs *pairs;
	const struct backend_memory *memory;
	uint32_t losses;
};

/*
 * backend_memory_open - anonymous memory of the controller
 * @b: out: returns owned
 *
 * Returns 0 or a negative errno.
 */
int backend_memory_open(uint64_t len, struct backend **b);

/*
 * backend_file_open - a regular file or a block device
 * @block: bytes of a block of the namespace; the rest behind the last whole one is left alone
 *
 * Returns 0 or a negative errno.
 */
int backend_file_open(const char *path, uint32_t block, bool read_only, struct backend **b);

/* Of backend_vfio_open() */
#define BACKEND_WHY_MAX 512u

/*
 * struct backend_vfio - a real controller
 * @address:     of the PCI function
 * @deadline_ms: how long a command may take, until the controller is reset
 * @direct:      borrowers have queue pairs of its own
 */
struct backend_vfio {
	const char *address;
	uint32_t deadline_ms;
	bool direct;
};

/*
 * backend_vfio_open - the first namespace of a real controller, by VFIO
 * @why:         out, on error: BACKEND_WHY_MAX bytes, what is wrong and what is to be done, for people
 *
 * Returns 0 or a negative errno.
 */
int backend_vfio_open(const struct backend_vfio *from, struct backend **b, char *why);

static inline void backend_close(struct backend *b)
{
	b->ops->close(b);
}

#endif
