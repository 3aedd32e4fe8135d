/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of kofi_blk share: a disk, and the queue pair that it has at a time.
 *
 * A request is sent by the thread that dispatches it, in one message, and its data is in the buffer of its
 * tag: the lender never has an address of other memory, and what it writes late, or in vain, is written
 * there. The pair's thread takes completions, and ends requests. When the pair is lost that thread stops the
 * queue, closes the endpoint, and gives all requests that have not ended back to the queue, which waits for
 * the next pair. So what a lender has not acknowledged is carried out again, before anything that comes
 * later.
 */
#ifndef KOFI_BLK_BLK_H
#define KOFI_BLK_BLK_H

#include <linux/blk-mq.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <rdma/fabric.h>

#include "kofi_blk.h"

/* Bytes of a request's data at most */
#define BLK_DATA_MAX (128u << 10)

/* A tag's buffer: a message ends where data begins, so that short data to be written is part of it. */
#define BLK_DATA_AT    NVME_PAGE
#define BLK_BUFFER_LEN (BLK_DATA_AT + BLK_DATA_MAX)

struct blk_disk;
struct blk_pair;

/*
 * struct blk_request - what is known of a request that is under way
 * @context: of its message, while @sending
 * @status:  how it has ended at the lender
 * @again:   another try may do, @until then, in jiffies; 0: there was none yet
 */
struct blk_request {
	struct fi_context2 context;
	bool sending;
	blk_status_t status;
	bool again;
	unsigned long until;
};

/*
 * struct blk_disk - a disk
 * @lock:    protects @pair, what is said of requests and pairs, @waiting, and @failing to @gone. Taken by who
 *	     dispatches, and by the pair's thread
 * @pair:    that it has; @last: that it had last, which may be the same; of its keeper
 * @failing: requests fail: there has been no pair for @fail_ms, or there is none to come (@leaving)
 * @stopped: the queue does not dispatch
 * @gone:    there are no requests any more
 * @added:   the kernel knows it; of its keeper
 * @removed: nobody may open it any more; under the disk's open_mutex
 * @buffers: BLK_BUFFER_LEN for each tag
 * @waiting: requests that wait for the lender, by tag. The kernel's own table has those that have ended, too, whose
 *	     memory goes with the I/O scheduler that has allocated it
 */
struct blk_disk {
	struct mutex lock;
	struct gendisk *disk;
	struct blk_mq_tag_set set;
	struct blk_pair *pair, *last;
	bool failing, leaving, stopped, gone;
	bool added;
	bool removed;
	struct delayed_work fail;
	u8 *buffers;
	struct request *waiting[KOFI_BLK_DEPTH_MAX];
	u32 depth, nsid, block_size, fail_ms, number;
};

/* Woken when a disk has no pair any more */
extern wait_queue_head_t blk_wanted;

static inline u8 *blk_data(struct blk_disk *d, const struct request *rq)
{
	return d->buffers + (size_t)rq->tag * BLK_BUFFER_LEN + BLK_DATA_AT;
}

/*
 * blk_disk_create - make a disk without a queue pair
 * @add: from outside; out: @number
 * Returns 0 or a negative errno, as KOFI_BLK_ADD.
 */
int blk_disk_create(struct kofi_blk_add *add, struct blk_disk **disk);

/*
 * blk_disk_remove - the disk goes; with @force also one that is open, whose requests fail from then on
 * Its memory goes with the last who has it open. Returns 0 or -EBUSY.
 */
int blk_disk_remove(struct blk_disk *d, bool force);

/*
 * blk_disk_connect - give it a queue pair, and begin with what has waited
 * @where: from outside
 * Returns 0 or a negative errno, as KOFI_BLK_PAIR.
 */
int blk_disk_connect(struct blk_disk *d, const struct kofi_blk_pair *where);

/* blk_disks_end - wait until the memory of all is free. Nobody has a keeper's file open any more */
void blk_disks_end(void);

/* blk_disk_has_pair - returns true if it can be asked something */
bool blk_disk_has_pair(struct blk_disk *d);

/*
 * blk_disk_stop - it has a pair no more: dispatch nothing. On return no request is being sent
 * The pair's thread; blk_disk_give_back() follows.
 */
void blk_disk_stop(struct blk_disk *d, int why);

/* blk_disk_give_back - what has not ended is the queue's again, and nobody accesses its buffers */
void blk_disk_give_back(struct blk_disk *d);

/* blk_request_copy - copy what is to be written to blk_data() */
void blk_request_copy(struct blk_disk *d, struct request *rq);

/* blk_request_end - it has ended: copy what was read, and tell. Any thread */
void blk_request_end(struct blk_disk *d, struct request *rq);

/*
 * blk_pair_open - connect to a place
 * Returns 0 or a negative errno, as KOFI_BLK_PAIR.
 */
int blk_pair_open(struct blk_disk *d, const struct kofi_blk_pair *where, struct blk_pair **pair);

/* blk_pair_start - begin to take completions: it is the disk's */
void blk_pair_start(struct blk_pair *pair);

/* blk_pair_close - end its thread and free it. Of the disk's keeper, without @lock */
void blk_pair_close(struct blk_pair *pair);

/* blk_pair_lose - have its thread give the pair up. Of that thread, or under @lock while the disk has it */
void blk_pair_lose(struct blk_pair *pair, int why);

/*
 * blk_pair_send - send the command of a request
 * @sqe:  without its data pointers
 * @len:  bytes of data
 * @in:   data goes to the lender: of a write that of its pages, of others that behind blk_data()
 * Under the disk's @lock. Returns 0 or -FI_E*; -FI_EAGAIN: nothing was sent.
 */
int blk_pair_send(struct blk_pair *pair, struct request *rq, struct nvme_sqe *sqe, u32 len,
		  bool in);

#endif
