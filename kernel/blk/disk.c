/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Disks: their requests, and what becomes of these without a queue pair; blk.h has the contract. */
#include <linux/highmem.h>
#include <linux/idr.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include <rdma/fi_errno.h>

#include "blk.h"

#define NAME	   "kofiblk"
#define BLOCKS_MAX 65536u /* of a command */
#define SILENT_S   30	  /* until a request without an answer ends the pair */
#define AGAIN_MS   1000	  /* until one is tried again that the controller was not ready for */
#define FEATURES \
	(KOFI_BLK_CACHE | KOFI_BLK_WRITE_ZEROES | KOFI_BLK_DEALLOCATE | KOFI_BLK_READ_ONLY)

static DEFINE_IDA(numbers);

/* Disks whose memory has not been freed, and who waits until there are none */
static atomic_t disk_cnt;
static DECLARE_WAIT_QUEUE_HEAD(disks_over);

DECLARE_WAIT_QUEUE_HEAD(blk_wanted);

static u64 lba_of(const struct blk_disk *d, const struct request *rq)
{
	return blk_rq_pos(rq) >> (ilog2(d->block_size) - SECTOR_SHIFT);
}

void blk_request_copy(struct blk_disk *d, struct request *rq)
{
	u8 *to = blk_data(d, rq);
	struct req_iterator iter;
	struct bio_vec bvec;

	rq_for_each_segment(bvec, rq, iter) {
		memcpy_from_bvec(to, &bvec);
		to += bvec.bv_len;
	}
}

static void copy_out(struct blk_disk *d, struct request *rq)
{
	const u8 *from = blk_data(d, rq);
	struct req_iterator iter;
	struct bio_vec bvec;

	rq_for_each_segment(bvec, rq, iter) {
		memcpy_to_bvec(&bvec, from);
		from += bvec.bv_len;
	}
}

/* A range is data that goes along. Returns its bytes. */
static u32 range_of(struct blk_disk *d, struct request *rq)
{
	struct nvme_dsm_range *range = (void *)blk_data(d, rq);

	*range = (struct nvme_dsm_range){ .lba = lba_of(d, rq),
					  .blocks = blk_rq_bytes(rq) / d->block_size };
	return sizeof(*range);
}

/*
 * The command of a request, without its data pointers.
 * @len: out: bytes of data, @in: which go to the lender
 */
static blk_status_t describe(struct blk_disk *d, struct request *rq, struct nvme_sqe *sqe,
			     u32 *len, bool *in)
{
	u64 lba = lba_of(d, rq);

	*sqe = (struct nvme_sqe){ .cid = rq->tag, .nsid = d->nsid };
	*len = 0;
	*in = true;
	if (req_op(rq) == REQ_OP_FLUSH) {
		sqe->opcode = NVME_IO_FLUSH;
		return BLK_STS_OK;
	}
	if (req_op(rq) == REQ_OP_DISCARD) {
		sqe->opcode = NVME_IO_DSM;
		sqe->cdw11 = NVME_DSM_DEALLOCATE;
		*len = range_of(d, rq);
		return BLK_STS_OK;
	}
	sqe->cdw10 = lower_32_bits(lba);
	sqe->cdw11 = upper_32_bits(lba);
	sqe->cdw12 = (blk_rq_bytes(rq) / d->block_size - 1) |
		     (rq->cmd_flags & REQ_FUA ? NVME_RW_FUA : 0);
	switch (req_op(rq)) {
	case REQ_OP_READ:
		sqe->opcode = NVME_IO_READ;
		*in = false;
		*len = blk_rq_bytes(rq);
		return BLK_STS_OK;
	case REQ_OP_WRITE:
		sqe->opcode = NVME_IO_WRITE;
		*len = blk_rq_bytes(rq);
		return BLK_STS_OK;
	case REQ_OP_WRITE_ZEROES:
		sqe->opcode = NVME_IO_WRITE_ZEROES;
		return BLK_STS_OK;
	default:
		return BLK_STS_NOTSUPP;
	}
}

static blk_status_t queue_locked(struct blk_disk *d, struct request *rq)
{
	struct blk_request *r = blk_mq_rq_to_pdu(rq);
	struct nvme_sqe sqe;
	blk_status_t status;
	bool in;
	u32 len;
	int ret;

	if (!d->pair)
		return d->failing ? BLK_STS_IOERR : BLK_STS_RESOURCE;
	/* One that comes again has RQF_DONTPREP. */
	if (!(rq->rq_flags & RQF_DONTPREP)) {
		rq->rq_flags |= RQF_DONTPREP;
		r->until = 0;
	}
	blk_mq_start_request(rq);
	status = describe(d, rq, &sqe, &len, &in);
	if (status)
		return status;
	ret = blk_pair_send(d->pair, rq, &sqe, len, in);
	if (!ret)
		return BLK_STS_OK;
	/* With the next pair, if not soon with this one. */
	if (ret != -FI_EAGAIN)
		blk_pair_lose(d->pair, -ENOTCONN);
	return BLK_STS_RESOURCE;
}

static blk_status_t queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *bd)
{
	struct blk_disk *d = hctx->queue->queuedata;
	/* A disk takes what memory is written back to. */
	unsigned int noio = memalloc_noio_save();
	blk_status_t status;

	mutex_lock(&d->lock);
	status = queue_locked(d, bd->rq);
	mutex_unlock(&d->lock);
	memalloc_noio_restore(noio);
	return status;
}

void blk_request_end(struct blk_disk *d, struct request *rq)
{
	struct blk_request *r = blk_mq_rq_to_pdu(rq);

	/* The controller's device is being reset: that is waited for as a lender is, as long and where nobody waits for more. */
	if (r->again && !r->until)
		r->until = (jiffies + msecs_to_jiffies(d->fail_ms)) | 1;
	if (r->again && READ_ONCE(d->added) && !READ_ONCE(d->leaving) &&
	    time_before(jiffies, r->until)) {
		blk_mq_requeue_request(rq, false);
		/* A kick that is due takes it along; another one would put that off. */
		if (!delayed_work_pending(&rq->q->requeue_work))
			blk_mq_delay_kick_requeue_list(rq->q, AGAIN_MS);
		return;
	}
	if (!r->status && req_op(rq) == REQ_OP_READ)
		copy_out(d, rq);
	blk_mq_set_request_complete(rq);
	blk_mq_end_request(rq, r->status);
}

/* The lender says nothing: its pair is of no use. The request goes to the next one. */
static enum blk_eh_timer_return timed_out(struct request *rq)
{
	struct blk_disk *d = rq->q->queuedata;

	mutex_lock(&d->lock);
	if (d->pair)
		blk_pair_lose(d->pair, -ETIMEDOUT);
	mutex_unlock(&d->lock);
	return BLK_EH_RESET_TIMER;
}

static const struct blk_mq_ops mq_ops = {
	.queue_rq = queue_rq,
	.timeout = timed_out,
};

/* Under @lock: dispatch again. What there is no pair for fails. */
static void go_on(struct blk_disk *d)
{
	if (d->stopped)
		blk_mq_unquiesce_queue(d->disk->queue);
	d->stopped = false;
	blk_mq_kick_requeue_list(d->disk->queue);
}

static void fail_locked(struct blk_disk *d)
{
	if (d->pair || d->gone)
		return;
	d->failing = true;
	go_on(d);
}

static void fail_all(struct blk_disk *d)
{
	mutex_lock(&d->lock);
	fail_locked(d);
	mutex_unlock(&d->lock);
}

static void fail_work(struct work_struct *work)
{
	struct blk_disk *d = container_of(to_delayed_work(work), struct blk_disk, fail);

	pr_warn_ratelimited(NAME "%u: there is no lender, and requests fail\n", d->number);
	fail_all(d);
}

/* It has a pair: begin with what has waited. */
static void start(struct blk_disk *d, struct blk_pair *pair)
{
	cancel_delayed_work_sync(&d->fail);
	mutex_lock(&d->lock);
	d->pair = d->last = pair;
	d->failing = false;
	go_on(d);
	mutex_unlock(&d->lock);
	blk_pair_start(pair);
}

void blk_disk_stop(struct blk_disk *d, int why)
{
	if (why != -ESHUTDOWN)
		pr_warn_ratelimited(NAME "%u: the queue pair is lost (%d)\n", d->number, why);
	mutex_lock(&d->lock);
	d->pair = NULL;
	d->stopped = !d->gone;
	if (d->stopped)
		blk_mq_quiesce_queue_nowait(d->disk->queue);
	mutex_unlock(&d->lock);
	/* Not under the lock, which who dispatches takes. */
	blk_mq_wait_quiesce_done(d->disk->queue);
}

static bool give_back(struct request *rq, void *arg)
{
	struct blk_request *r = blk_mq_rq_to_pdu(rq);
	struct blk_disk *d = arg;
	bool sent = r->sending;

	r->sending = false;
	if (d->waiting[rq->tag] == rq) {
		d->waiting[rq->tag] = NULL;
		r->until = 0;
		blk_mq_requeue_request(rq, false);
	} else if (sent) {
		blk_request_end(d, rq);
	}
	return true;
}

void blk_disk_give_back(struct blk_disk *d)
{
	blk_mq_tagset_busy_iter(&d->set, give_back, d);
	mutex_lock(&d->lock);
	/*
	 * Who removes it from now on has what waits fail. Nor does anybody wait for another pair while the disk
	 * appears: its keeper reads the partitions, and can't give it one meanwhile.
	 */
	if (d->leaving || !READ_ONCE(d->added))
		fail_locked(d);
	else
		/* On a workqueue that has a thread without asking for memory, which may wait for this disk. */
		kblockd_mod_delayed_work_on(WORK_CPU_UNBOUND, &d->fail,
					    msecs_to_jiffies(d->fail_ms));
	mutex_unlock(&d->lock);
	wake_up(&blk_wanted);
}

static int disk_open(struct block_device *bdev, fmode_t mode)
{
	struct blk_disk *d = bdev->bd_disk->private_data;

	return d->removed ? -ENXIO : 0;
}

static void memory_free(struct blk_disk *d)
{
	ida_free(&numbers, d->number);
	kvfree(d->buffers);
	kfree(d);
	/* Between the exit function, which the last one lets go on, and its code the module waits for readers. */
	rcu_read_lock();
	if (atomic_dec_and_test(&disk_cnt))
		wake_up(&disks_over);
	rcu_read_unlock();
}

/* Nobody has it open any more. */
static void disk_free(struct gendisk *disk)
{
	memory_free(disk->private_data);
}

/* Linux gives its reference to the module back before the last one of the disk, which calls disk_free(). */
void blk_disks_end(void)
{
	wait_event(disks_over, !atomic_read(&disk_cnt));
}

static const struct block_device_operations disk_ops = {
	.owner = THIS_MODULE,
	.open = disk_open,
	.free_disk = disk_free,
};

static bool is_sound(const struct kofi_blk_add *add)
{
	return add->version == KOFI_BLK_VERSION && add->nsid && add->blocks &&
	       is_power_of_2(add->block_size) && add->block_size >= 512 &&
	       add->block_size <= PAGE_SIZE && add->blocks <= LLONG_MAX / add->block_size &&
	       !(add->transfer_max % add->block_size) &&
	       (!add->transfer_max || add->transfer_max >= PAGE_SIZE) && add->depth &&
	       add->depth <= KOFI_BLK_DEPTH_MAX && !(add->features & ~FEATURES) &&
	       add->fail_ms <= KOFI_BLK_FAIL_MAX && !add->rsvd40;
}

static void set_limits(struct blk_disk *d, const struct kofi_blk_add *add)
{
	struct request_queue *q = d->disk->queue;
	u32 most = BLOCKS_MAX * (add->block_size >> SECTOR_SHIFT);
	u32 len = BLK_DATA_MAX;

	if (add->transfer_max && add->transfer_max < len)
		len = add->transfer_max;
	blk_queue_logical_block_size(q, add->block_size);
	blk_queue_max_hw_sectors(q, len >> SECTOR_SHIFT);
	blk_queue_max_segments(q, USHRT_MAX);
	blk_queue_max_segment_size(q, UINT_MAX);
	blk_queue_flag_set(QUEUE_FLAG_NONROT, q);
	blk_queue_flag_clear(QUEUE_FLAG_ADD_RANDOM, q);
	blk_queue_rq_timeout(q, SILENT_S * HZ);
	blk_queue_write_cache(q, add->features & KOFI_BLK_CACHE, add->features & KOFI_BLK_CACHE);
	if (add->features & KOFI_BLK_WRITE_ZEROES)
		blk_queue_max_write_zeroes_sectors(q, most);
	if (add->features & KOFI_BLK_DEALLOCATE) {
		blk_queue_max_discard_sectors(q, most);
		q->limits.discard_granularity = add->block_size;
	}
	set_capacity(d->disk, add->blocks * (add->block_size >> SECTOR_SHIFT));
	set_disk_ro(d->disk, add->features & KOFI_BLK_READ_ONLY);
}

static int open_disk(struct blk_disk *d, const struct kofi_blk_add *add)
{
	int ret;

	d->set = (struct blk_mq_tag_set){
		.ops = &mq_ops,
		.nr_hw_queues = 1,
		.queue_depth = d->depth,
		.numa_node = NUMA_NO_NODE,
		.cmd_size = sizeof(struct blk_request),
		.flags = BLK_MQ_F_SHOULD_MERGE | BLK_MQ_F_BLOCKING |
			 BLK_MQ_F_NO_SCHED_BY_DEFAULT,
	};
	d->buffers = kvzalloc((size_t)d->depth * BLK_BUFFER_LEN, GFP_KERNEL);
	if (!d->buffers)
		return -ENOMEM;
	ret = blk_mq_alloc_tag_set(&d->set);
	if (ret)
		return ret;
	d->disk = blk_mq_alloc_disk(&d->set, d);
	if (IS_ERR(d->disk)) {
		blk_mq_free_tag_set(&d->set);
		return PTR_ERR(d->disk);
	}
	d->disk->private_data = d;
	d->disk->fops = &disk_ops;
	snprintf(d->disk->disk_name, sizeof(d->disk->disk_name), NAME "%u", d->number);
	set_limits(d, add);
	return 0;
}

int blk_disk_create(struct kofi_blk_add *add, struct blk_disk **out)
{
	struct blk_disk *d;
	int ret;

	if (!is_sound(add))
		return -EINVAL;
	d = kzalloc(sizeof(*d), GFP_KERNEL);
	if (!d)
		return -ENOMEM;
	mutex_init(&d->lock);
	INIT_DELAYED_WORK(&d->fail, fail_work);
	d->depth = add->depth;
	d->nsid = add->nsid;
	d->block_size = add->block_size;
	d->fail_ms = add->fail_ms;
	ret = ida_alloc(&numbers, GFP_KERNEL);
	if (ret < 0)
		goto err_free;
	d->number = ret;
	atomic_inc(&disk_cnt);
	ret = open_disk(d, add);
	if (ret) {
		memory_free(d);
		return ret;
	}
	add->number = d->number;
	*out = d;
	return 0;
err_free:
	kfree(d);
	return ret;
}

/* Returns 0, and that nobody can open it any more, or -EBUSY. */
static int lock_out(struct blk_disk *d, bool force)
{
	bool busy;

	mutex_lock(&d->disk->open_mutex);
	busy = disk_openers(d->disk) && !force;
	d->removed |= !busy;
	mutex_unlock(&d->disk->open_mutex);
	return busy ? -EBUSY : 0;
}

/* Where nobody has ever opened it: what else disk_free() does. */
static void free_unseen(struct blk_disk *d)
{
	put_disk(d->disk);
	blk_mq_free_tag_set(&d->set);
	memory_free(d);
}

int blk_disk_remove(struct blk_disk *d, bool force)
{
	int ret = lock_out(d, force);

	if (ret)
		return ret;
	/* From now on nothing waits for another pair. What is to be written goes to the one that there is. */
	mutex_lock(&d->lock);
	d->leaving = true;
	mutex_unlock(&d->lock);
	fail_all(d);
	if (d->added)
		del_gendisk(d->disk);
	mutex_lock(&d->lock);
	d->gone = true;
	mutex_unlock(&d->lock);
	if (d->last)
		blk_pair_close(d->last);
	cancel_delayed_work_sync(&d->fail);
	/* A pair that was lost behind del_gendisk()'s own look may have had the queue run. Its memory goes next. */
	cancel_delayed_work_sync(&d->disk->queue->requeue_work);
	if (!d->added) {
		free_unseen(d);
		return 0;
	}
	blk_mq_free_tag_set(&d->set);
	put_disk(d->disk);
	return 0;
}

/* With its first pair a disk appears: the kernel reads its partitions then. */
static int appear(struct blk_disk *d)
{
	int ret;

	if (d->added)
		return 0;
	ret = device_add_disk(NULL, d->disk, NULL);
	WRITE_ONCE(d->added, !ret);
	return ret;
}

int blk_disk_connect(struct blk_disk *d, const struct kofi_blk_pair *where)
{
	struct blk_pair *pair;
	int ret;

	if (blk_disk_has_pair(d))
		return -EBUSY;
	if (d->last)
		blk_pair_close(d->last);
	d->last = NULL;
	ret = blk_pair_open(d, where, &pair);
	if (ret)
		return ret;
	start(d, pair);
	return appear(d);
}

bool blk_disk_has_pair(struct blk_disk *d)
{
	bool has;

	mutex_lock(&d->lock);
	has = d->pair;
	mutex_unlock(&d->lock);
	return has;
}
