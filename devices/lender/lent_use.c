/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a lease has of its device: windows, queue pairs, memory, and the admin commands that borrowers may give. lent.h
 * has the contract.
 */
#define _GNU_SOURCE
#include "lent_types.h"
#include "log.h"
#include "message.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define QUEUE_PAIRS_OF_A_LEASE 64u

static uint32_t dma_access(uint32_t access)
{
	return (access & WEFT_WINDOW_READ ? SLOT_DMA_READ : 0) |
	       (access & WEFT_WINDOW_WRITE ? SLOT_DMA_WRITE : 0);
}

/* What the answer to a borrower is where a mapping fails; its lease may have ended just now. */
static int map_error(int err)
{
	switch (err) {
	case -ENXIO:
		return -ESTALE;
	case -ENOMEM:
	case -EMFILE:
		return -ENOSPC;
	default:
		return err;
	}
}

int lent_window(struct lent *lent, const struct lent_lease *lease, uint32_t access,
		uint64_t offset, uint64_t len, const int *fds, uint32_t fd_cnt, uint64_t *addr)
{
	struct function_mapping mapping = {
		.domain = lease->lease,
		.access = dma_access(access),
		.len = len,
		.offset = offset,
		.fds = fds,
		.fd_cnt = fd_cnt,
	};
	struct lent_record *record;
	uint64_t *next;
	int err;

	if (!fd_cnt || fd_cnt > SLOT_FDS_MAX || !len || len % NVME_PAGE || offset % NVME_PAGE ||
	    len > LENT_ADDR_LIMIT || !access || access & ~WEFT_WINDOW_RW)
		return -EINVAL;
	err = lent_enter(lent, lease, &record);
	if (err)
		return err;
	/* Addresses of a device are of all its leases. */
	next = lent->function->info.direct ? &lent->next_addr : &record->next_addr;
	mapping.addr = *next > LENT_ADDR_BASE ? *next : LENT_ADDR_BASE;
	if (len > LENT_ADDR_LIMIT - mapping.addr)
		err = -ENOSPC;
	else
		err = map_error(
			lent_check(lent, lent->function->ops->map(lent->function, &mapping)));
	if (!err) {
		*next = mapping.addr + len;
		*addr = mapping.addr;
	}
	lent_unlock(lent);
	return err;
}

static int unmap(struct lent *lent, uint32_t lease, uint64_t addr, uint64_t len)
{
	int err = lent_check(lent, lent->function->ops->unmap(lent->function, lease, addr, len));

	/* Of a lease that has ended just now it is gone. */
	if (err == -ENOENT && lent_runs(lent, lease) == -ESTALE)
		err = -ESTALE;
	return err;
}

int lent_unwindow(struct lent *lent, const struct lent_lease *lease, uint64_t addr,
		  uint64_t len, uint32_t wait_ms)
{
	struct lent_wait wait = lent_wait_begin(wait_ms);
	struct lent_record *record;
	int err = lent_enter_ending(lent, lease, &record);

	if (err)
		return err;
	err = unmap(lent, lease->lease, addr, len);
	while (err == -EINPROGRESS) {
		err = lent_give_way(lent, lease, &wait);
		if (err)
			break;
		err = unmap(lent, lease->lease, addr, len);
		if (err == -ENOENT)
			err = 0;
	}
	lent_unlock(lent);
	return err;
}

/*
 * A command about queues. -EINVAL: the controller refuses what the borrower asks for; -ESTALE: its lease has ended;
 * -EINPROGRESS: commands are under way
 */
static int about_queue(struct lent *lent, uint32_t lease, struct nvme_sqe *sqe)
{
	struct nvme_cqe cqe;
	int err = admin_command(lent->admin, sqe, NULL, &cqe);

	if (err)
		return err;
	if (!NVME_CQE_STATUS(cqe.status))
		return cqe.result & NVME_UNDER_WAY ? -EINPROGRESS : 0;
	err = lent_runs(lent, lease);
	return err ? err : -EINVAL;
}

static int create(struct lent *lent, uint32_t lease, const struct lent_queues *queues,
		  uint32_t qid)
{
	uint32_t size = qid | (queues->entries - 1) << 16;
	struct nvme_sqe cq = {
		.opcode = NVME_ADMIN_CREATE_CQ,
		.prp1 = queues->cq,
		.cdw10 = size,
		.cdw11 = NVME_QUEUE_CONTIGUOUS |
			 (queues->vector >= 0 ? NVME_CQ_INTERRUPTS | qid << 16 : 0),
		.cdw14 = lease,
	};
	struct nvme_sqe sq = {
		.opcode = NVME_ADMIN_CREATE_SQ,
		.prp1 = queues->sq,
		.cdw10 = size,
		.cdw11 = NVME_QUEUE_CONTIGUOUS | qid << 16,
		.cdw14 = lease,
	};
	struct nvme_sqe undo = { .opcode = NVME_ADMIN_DELETE_CQ, .cdw10 = qid };
	int err = about_queue(lent, lease, &cq);

	if (err)
		return err;
	err = about_queue(lent, lease, &sq);
	if (err)
		about_queue(lent, lease, &undo);
	return err;
}

/* Returns 0 once the submission queue is gone. */
static int remove_sq(struct lent *lent, const struct lent_lease *lease, uint32_t qid,
		     uint32_t wait_ms)
{
	struct nvme_sqe sqe = { .opcode = NVME_ADMIN_DELETE_SQ,
				.cdw10 = qid,
				.cdw14 = NVME_DELETE_ASK };
	struct lent_wait wait = lent_wait_begin(wait_ms);
	int err = about_queue(lent, lease->lease, &sqe);

	while (err == -EINPROGRESS) {
		err = lent_give_way(lent, lease, &wait);
		if (!err && lent->owner[qid] != lease->lease)
			err = -ENOENT;
		if (err)
			break;
		err = about_queue(lent, lease->lease, &sqe);
	}
	return err;
}

static int remove_pair(struct lent *lent, const struct lent_lease *lease, uint32_t qid,
		       uint32_t wait_ms)
{
	struct nvme_sqe cq = { .opcode = NVME_ADMIN_DELETE_CQ, .cdw10 = qid };
	int err = remove_sq(lent, lease, qid, wait_ms);

	if (!err)
		err = about_queue(lent, lease->lease, &cq);
	if (!err)
		err = lent->function->ops->vector(lent->function, qid, -1);
	return err;
}

/* The page of a pair of the controller process's: two doorbells, and words about who sleeps. */
static int own_bells(struct function *f, uint32_t qid, struct lent_bells *bells)
{
	int got[SLOT_FDS_MAX];
	uint32_t cnt = 0;
	int err = f->ops->region(f, 0, NVME_REG_DOORBELLS + (uint64_t)qid * NVME_PAGE,
				 NVME_PAGE, false, got, &cnt);

	if (err)
		return err;
	if (cnt != 2) {
		while (cnt)
			close(got[--cnt]);
		return -EPROTO;
	}
	*bells = (struct lent_bells){ .fd = got[0],
				      .kick = got[1],
				      .len = NVME_PAGE,
				      .sq = offsetof(struct slot_doorbells, sq_tail),
				      .cq = offsetof(struct slot_doorbells, cq_head) };
	return 0;
}

/* Those of a device are for the lender's own user: who has them can do anything to it. */
static int device_bells(struct function *f, uint32_t qid, const struct lent_queues *queues,
			struct lent_bells *bells)
{
	struct function_page page;
	int fd, err;

	if (queues->uid != geteuid() || queues->pidfd < 0)
		return -EACCES;
	err = f->ops->page(f, (uint16_t)qid, queues->pidfd, &fd, &page);
	if (!err)
		*bells = (struct lent_bells){ .fd = fd,
					      .kick = -1,
					      .offset = page.offset,
					      .len = page.len,
					      .sq = page.sq,
					      .cq = page.cq };
	return err;
}

static void close_bells(const struct lent_bells *bells)
{
	close(bells->fd);
	if (bells->kick >= 0)
		close(bells->kick);
}

static int add_pair(struct lent *lent, uint32_t lease, const struct lent_queues *queues,
		    uint32_t qid, struct lent_bells *bells)
{
	struct function *f = lent->function;
	int err = queues->vector >= 0 ? f->ops->vector(f, qid, queues->vector) : 0;

	if (err)
		return err;
	err = f->info.direct ? device_bells(f, qid, queues, bells) : own_bells(f, qid, bells);
	if (err)
		goto err_vector;
	err = create(lent, lease, queues, qid);
	if (!err)
		return 0;
	close_bells(bells);
err_vector:
	if (queues->vector >= 0)
		f->ops->vector(f, qid, -1);
	return err;
}

/* The number of a pair that a lease can have; 0: there is none. */
static uint32_t free_pair(const struct lent *lent, const struct lent_record *record)
{
	uint32_t qid;

	for (qid = 1; qid <= lent->info.queue_pairs && lent->owner[qid]; qid++)
		;
	return qid > lent->info.queue_pairs || record->queue_pairs >= QUEUE_PAIRS_OF_A_LEASE
		       ? 0
		       : qid;
}

static void have_pair(struct lent *lent, struct lent_record *record, uint32_t lease,
		      uint32_t qid)
{
	lent->owner[qid] = (uint16_t)lease;
	lent->info.queue_pairs_free--;
	record->queue_pairs++;
}

int lent_queue_pair(struct lent *lent, const struct lent_lease *lease,
		    const struct lent_queues *queues, uint16_t *out, struct lent_bells *bells)
{
	struct lent_record *record;
	uint32_t qid;
	int err;

	if (queues->entries < 2 || queues->entries > 65536)
		return -EINVAL;
	err = lent_enter(lent, lease, &record);
	if (err)
		return err;
	qid = free_pair(lent, record);
	err = qid ? lent_check(lent, add_pair(lent, lease->lease, queues, qid, bells)) : -ENOSPC;
	if (!err) {
		have_pair(lent, record, lease->lease, qid);
		*out = (uint16_t)qid;
	}
	lent_unlock(lent);
	return err;
}

int lent_remote_pair(struct lent *lent, const struct lent_lease *lease, uint32_t depth,
		     uint16_t *out, void *place, uint32_t *len)
{
	struct lent_record *record;
	struct function *f;
	uint32_t qid;
	int err = lent_enter(lent, lease, &record);

	if (err)
		return err;
	f = lent->function;
	qid = free_pair(lent, record);
	if (!f->ops->remote)
		err = -EOPNOTSUPP;
	else
		err = qid ? lent_check(lent, f->ops->remote(f, lease->lease, (uint16_t)qid,
							    depth, place, len))
			  : -ENOSPC;
	if (!err) {
		have_pair(lent, record, lease->lease, qid);
		*out = (uint16_t)qid;
	}
	lent_unlock(lent);
	return err;
}

int lent_unqueue_pair(struct lent *lent, const struct lent_lease *lease, uint16_t qid,
		      uint32_t wait_ms)
{
	struct lent_record *record;
	int err = lent_enter_ending(lent, lease, &record);

	if (err)
		return err;
	if (!qid || qid > lent->info.queue_pairs || lent->owner[qid] != lease->lease)
		err = -ENOENT;
	else
		err = lent_check(lent, remove_pair(lent, lease, qid, wait_ms));
	/* The controller has deleted its completion queue, and is at the rest of the lease. */
	if (err == -EINVAL && record->ends)
		err = -ESTALE;
	if (!err) {
		lent->owner[qid] = 0;
		lent->info.queue_pairs_free++;
		record->queue_pairs--;
	}
	lent_unlock(lent);
	return err;
}

/* The first of @cnt free granules in a row; or as many as there are: there is none. */
static uint32_t free_granules(const struct lent *lent, uint32_t cnt)
{
	uint32_t i, row = 0;

	for (i = 0; i < lent->granule_cnt; i++) {
		row = lent->granules[i] ? 0 : row + 1;
		if (row == cnt)
			return i + 1 - cnt;
	}
	return lent->granule_cnt;
}

int lent_memory(struct lent *lent, const struct lent_lease *lease, uint64_t len,
		uint32_t *first, uint32_t *cnt, uint64_t *granule, int *fds)
{
	struct lent_record *record;
	uint32_t n, at, i, got;
	int err = lent_enter(lent, lease, &record);

	if (err)
		return err;
	*granule = lent->function->info.granule;
	n = lent->granule_cnt && len && len <= *granule * SLOT_FDS_MAX
		    ? (uint32_t)((len + *granule - 1) / *granule)
		    : 0;
	at = n ? free_granules(lent, n) : 0;
	if (!lent->granule_cnt)
		err = -EOPNOTSUPP;
	else if (!n)
		err = -EINVAL;
	else if (at == lent->granule_cnt)
		err = -ENOSPC;
	else
		err = lent_check(lent,
				 lent->function->ops->region(lent->function, 2, at * *granule,
							     n * *granule, true, fds, &got));
	/* Who had it last has left a window there, by which something is under way. */
	if (err == -EBUSY)
		err = -ENOSPC;
	if (!err && got != n) {
		while (got)
			close(fds[--got]);
		err = lent_check(lent, -EPROTO);
	}
	if (!err) {
		for (i = at; i < at + n; i++)
			lent->granules[i] = (uint16_t)lease->lease;
		*first = at;
		*cnt = n;
	}
	lent_unlock(lent);
	return err;
}

int lent_unmemory(struct lent *lent, const struct lent_lease *lease, uint32_t first,
		  uint32_t cnt)
{
	struct lent_record *record;
	uint32_t i;
	int err = lent_enter(lent, lease, &record);

	if (err)
		return err;
	if (!cnt || first >= lent->granule_cnt || cnt > lent->granule_cnt - first)
		err = -EINVAL;
	for (i = first; !err && i < first + cnt; i++)
		if (lent->granules[i] != lease->lease)
			err = -ENOENT;
	for (i = first; !err && i < first + cnt; i++)
		lent->granules[i] = 0;
	lent_unlock(lent);
	return err;
}

/* What reads, and reads nothing of others. */
static bool may(const struct nvme_sqe *sqe)
{
	switch (sqe->opcode) {
	case NVME_ADMIN_IDENTIFY:
		return true;
	case NVME_ADMIN_GET_FEATURES:
		return true;
	case NVME_ADMIN_GET_LOG_PAGE:
		/* one page at most is what there is room for */
		return (sqe->cdw10 & 0xff) < NVME_LOG_LEASES && !(sqe->cdw11 & 0xffff) &&
		       (sqe->cdw10 >> 16 & 0xfff) < NVME_PAGE / 4 && !(sqe->cdw10 >> 28);
	default:
		return false;
	}
}

int lent_admin(struct lent *lent, struct nvme_sqe *sqe, void *data, struct nvme_cqe *cqe)
{
	int err;

	if (!may(sqe))
		return -EPERM;
	memset(data, 0, NVME_PAGE);
	lent_lock(lent);
	if (lent->failed)
		err = -ENODEV;
	else
		err = lent_check(lent, admin_command(lent->admin, sqe, data, cqe));
	lent_unlock(lent);
	return err;
}
