/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A controller for tests of the lender, as its owner handles it; fake_device.h has the contract.
 */
#define _GNU_SOURCE
#include "fake_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static struct fake_owner *owner_of(const struct function *function)
{
	return (struct fake_owner *)((char *)function - offsetof(struct fake_owner, function));
}

static void reset(struct fake_device *dev)
{
	uint32_t i;

	for (i = 1; i <= NVME_LEASES; i++)
		fake_over(dev, i);
	fake_drop_queues(dev, 0);
	dev->asked_cnt = dev->pending_cnt = dev->masked = 0;
	dev->sq_head = dev->cq_tail = 0;
	dev->phase = 1;
	dev->csts = 0;
	if (dev->pages[0])
		dev->pages[0]->sq_tail = dev->pages[0]->cq_head = 0;
}

/* Enter an operation of the owner's: the lock is held if it returns 0. */
static int enter(const struct function *function, enum fake_op op, struct fake_device **out)
{
	struct fake_owner *owner = owner_of(function);
	struct fake_device *dev = owner->dev;
	int err = 0;

	pthread_mutex_lock(&dev->lock);
	dev->ops[op]++;
	if (dev->gone || dev->owner != owner)
		err = -ENODEV;
	else if (dev->err[op] && !dev->skip[op])
		err = dev->err[op];
	else if (dev->err[op])
		dev->skip[op]--;
	if (err)
		pthread_mutex_unlock(&dev->lock);
	*out = dev;
	return err;
}

static int fake_read(struct function *function, uint32_t reg, uint32_t width, uint64_t *value)
{
	struct fake_device *dev;
	int err = enter(function, FAKE_READ, &dev);

	if (err)
		return err;
	*value = reg == NVME_REG_CAP	? dev->cap
		 : reg == NVME_REG_CC	? dev->cc
		 : reg == NVME_REG_CSTS ? dev->csts
					: 0;
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

static void write_cc(struct fake_device *dev, uint32_t cc)
{
	if (!(cc & NVME_CC_EN))
		reset(dev);
	else if (!(dev->cc & NVME_CC_EN) && !dev->never_ready)
		dev->csts = fake_reach(dev, dev->asq, NVME_PAGE) ? NVME_CSTS_RDY : NVME_CSTS_CFS;
	dev->cc = cc;
}

static int fake_write(struct function *function, uint32_t reg, uint32_t width, uint64_t value)
{
	struct fake_device *dev;
	int err = enter(function, FAKE_WRITE, &dev);

	if (err)
		return err;
	if (reg == NVME_REG_CC)
		write_cc(dev, (uint32_t)value);
	else if (reg == NVME_REG_AQA)
		dev->aqa = (uint32_t)value;
	else if (reg == NVME_REG_ASQ)
		dev->asq = value;
	else if (reg == NVME_REG_ACQ)
		dev->acq = value;
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

static bool is_memory(int fd, uint64_t end)
{
	int seals = fcntl(fd, F_GET_SEALS);
	off_t len = lseek(fd, 0, SEEK_END);

	return seals >= 0 && seals & F_SEAL_SHRINK && len >= 0 && (uint64_t)len >= end;
}

static int map(struct fake_device *dev, const struct function_mapping *m)
{
	struct fake_mapping *mapping = &dev->mappings[dev->mapping_cnt];
	uint64_t end;
	uint32_t i;

	if (m->domain && !dev->leases[m->domain].runs)
		return -ENXIO;
	if (__builtin_add_overflow(m->offset, m->len, &end))
		return -EINVAL;
	for (i = 0; i < dev->mapping_cnt; i++)
		if (dev->mappings[i].domain == m->domain &&
		    m->addr < dev->mappings[i].addr + dev->mappings[i].len &&
		    dev->mappings[i].addr < m->addr + m->len)
			return -EEXIST;
	for (i = 0; i < m->fd_cnt; i++)
		if (!is_memory(m->fds[i], end))
			return -EBADF;
	if (dev->mapping_cnt == FAKE_MAPPINGS)
		return -ENOMEM;
	*mapping = (struct fake_mapping){ .domain = m->domain,
					  .access = m->access,
					  .addr = m->addr,
					  .len = m->len,
					  .offset = m->offset };
	for (i = 0; i < m->fd_cnt; i++)
		mapping->fds[mapping->fd_cnt++] = fcntl(m->fds[i], F_DUPFD_CLOEXEC, 0);
	if (!m->domain) {
		void *mem = mmap(NULL, m->len, PROT_READ | PROT_WRITE, MAP_SHARED, m->fds[0],
				 (off_t)m->offset);

		if (mem == MAP_FAILED)
			abort();
		mapping->mem = mem;
	}
	dev->mapping_cnt++;
	return 0;
}

static int fake_map(struct function *function, const struct function_mapping *mapping)
{
	struct fake_device *dev;
	int err = enter(function, FAKE_MAP, &dev);

	if (err)
		return err;
	err = map(dev, mapping);
	pthread_mutex_unlock(&dev->lock);
	return err;
}

static int fake_unmap(struct function *function, uint32_t domain, uint64_t addr, uint64_t len)
{
	struct fake_device *dev;
	uint32_t i;
	int err = enter(function, FAKE_UNMAP, &dev);

	if (err)
		return err;
	err = -ENOENT;
	for (i = 0; i < dev->mapping_cnt; i++)
		if (dev->mappings[i].domain == domain && dev->mappings[i].addr == addr &&
		    dev->mappings[i].len == len) {
			fake_drop_mapping(dev, i);
			err = 0;
			break;
		}
	if (dev->slow)
		err = -EINPROGRESS;
	pthread_mutex_unlock(&dev->lock);
	return err;
}

static int fake_vector(struct function *function, uint32_t vector, int fd)
{
	struct fake_device *dev;
	int err = enter(function, FAKE_VECTOR, &dev);

	if (err)
		return err;
	if (vector > FAKE_PAIRS) {
		err = -EINVAL;
	} else {
		fake_drop_vector(dev, vector);
		if (fd >= 0)
			dev->vectors[vector] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
	pthread_mutex_unlock(&dev->lock);
	return err;
}

static int region(struct fake_device *dev, uint32_t bar, uint64_t offset, uint64_t len,
		  bool anew, int *fds, uint32_t *fd_cnt)
{
	uint64_t qid = (offset - NVME_REG_DOORBELLS) / NVME_PAGE, i;

	*fd_cnt = 0;
	if (!bar) {
		if (qid > FAKE_PAIRS)
			return -ENOENT;
		if (qid && !dev->queues[qid].sq && !dev->queues[qid].cq)
			fake_new_page(dev, (uint32_t)qid);
		fds[(*fd_cnt)++] = fcntl(dev->page_fds[qid], F_DUPFD_CLOEXEC, 0);
		fds[(*fd_cnt)++] = fcntl(dev->kicks[qid], F_DUPFD_CLOEXEC, 0);
		return 0;
	}
	if (!len || offset % GRANULE || len % GRANULE || offset + len > FAKE_GRANULES * GRANULE)
		return -EINVAL;
	for (i = offset / GRANULE; i < (offset + len) / GRANULE; i++) {
		if (anew) {
			close(dev->granules[i]);
			dev->granules[i] = fake_sealed_file(GRANULE);
		}
		fds[(*fd_cnt)++] = fcntl(dev->granules[i], F_DUPFD_CLOEXEC, 0);
	}
	return 0;
}

static int fake_region(struct function *function, uint32_t bar, uint64_t offset, uint64_t len,
		       bool anew, int *fds, uint32_t *fd_cnt)
{
	struct fake_device *dev;
	int err = enter(function, FAKE_REGION, &dev);

	if (err)
		return err;
	err = region(dev, bar, offset, len, anew, fds, fd_cnt);
	pthread_mutex_unlock(&dev->lock);
	return err;
}

static int fake_mapping(struct function *function, uint32_t idx,
			struct function_mapping *mapping, int *fds)
{
	struct fake_device *dev;
	uint32_t i, f;
	int err = enter(function, FAKE_MAPPING, &dev);

	if (err)
		return err;
	err = -ENOENT;
	for (i = 0; i < dev->mapping_cnt; i++) {
		const struct fake_mapping *m = &dev->mappings[i];

		if (m->domain != mapping->domain || idx--)
			continue;
		*mapping = (struct function_mapping){ .domain = m->domain,
						      .access = m->access,
						      .addr = m->addr,
						      .len = m->len,
						      .offset = m->offset,
						      .fds = fds,
						      .fd_cnt = m->fd_cnt };
		for (f = 0; f < m->fd_cnt; f++)
			fds[f] = fcntl(m->fds[f], F_DUPFD_CLOEXEC, 0);
		err = 0;
		break;
	}
	pthread_mutex_unlock(&dev->lock);
	return err;
}

static int fake_queue(struct function *function, uint16_t qid, struct function_queue *queue)
{
	struct fake_device *dev;
	int err = enter(function, FAKE_QUEUE, &dev);

	if (err)
		return err;
	if (qid > FAKE_PAIRS || (qid && !dev->queues[qid].sq && !dev->queues[qid].cq)) {
		err = -ENOENT;
	} else {
		*queue = (struct function_queue){ .domain = dev->queues[qid].lease };
		if (!qid) {
			queue->sq_tail = queue->sq_head = dev->sq_head;
			queue->cq_tail = dev->cq_tail;
			queue->cq_phase = dev->phase;
		}
	}
	pthread_mutex_unlock(&dev->lock);
	return err;
}

static void fake_close(struct function *function)
{
	struct fake_owner *owner = owner_of(function);
	struct fake_device *dev = owner->dev;

	pthread_mutex_lock(&dev->lock);
	if (dev->owner == owner)
		dev->owner = NULL;
	pthread_mutex_unlock(&dev->lock);
	close(owner->ends[0]);
	if (owner->ends[1] >= 0)
		close(owner->ends[1]);
	free(owner);
}

static const struct function_ops fake_ops = {
	.read = fake_read,
	.write = fake_write,
	.map = fake_map,
	.unmap = fake_unmap,
	.vector = fake_vector,
	.region = fake_region,
	.mapping = fake_mapping,
	.queue = fake_queue,
	.close = fake_close,
};

int fake_device_open(struct fake_device *dev, struct function **function)
{
	struct fake_owner *owner = calloc(1, sizeof(*owner));
	uint32_t tail;

	if (!owner || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, owner->ends))
		abort();
	pthread_mutex_lock(&dev->lock);
	if (dev->gone || dev->owner || dev->busy) {
		int err = dev->gone ? -ECONNREFUSED : -EBUSY;

		dev->busy -= dev->busy && !dev->gone;
		pthread_mutex_unlock(&dev->lock);
		close(owner->ends[0]);
		close(owner->ends[1]);
		free(owner);
		return err;
	}
	owner->dev = dev;
	owner->function.ops = &fake_ops;
	owner->function.info = (struct function_info){ .queue_pairs = FAKE_PAIRS,
						       .memory = FAKE_GRANULES * GRANULE,
						       .granule = GRANULE,
						       .serial = dev->serial };
	dev->owner = owner;
	dev->attached++;
	tail = dev->pages[0] ? dev->sq_head : 0;
	fake_new_page(dev, 0);
	dev->pages[0]->sq_tail = tail;
	/* Whoever rings writes the eventfd too; nobody reads it. */
	dev->pages[0]->asleep = 1;
	pthread_mutex_unlock(&dev->lock);
	*function = &owner->function;
	return 0;
}

int fake_function_fd(const struct function *function)
{
	return owner_of(function)->ends[0];
}
