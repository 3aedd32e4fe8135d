/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A controller for tests of the lender; fake_device.h has the contract.
 */
#define _GNU_SOURCE
#include "fake_device.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define GRANULE 4096u

/* struct fake_owner - a handle; @ends: of its socket, the second one is the controller's */
struct fake_owner {
	struct function function;
	struct fake_device *dev;
	int ends[2];
};

static struct fake_owner *owner_of(const struct function *function)
{
	return (struct fake_owner *)((char *)function - offsetof(struct fake_owner, function));
}

static int sealed_file(size_t len)
{
	int fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)len) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		abort();
	return fd;
}

static void drop_mapping(struct fake_device *dev, uint32_t idx)
{
	struct fake_mapping *mapping = &dev->mappings[idx];

	if (mapping->mem)
		munmap(mapping->mem, mapping->len);
	while (mapping->fd_cnt)
		close(mapping->fds[--mapping->fd_cnt]);
	dev->mapping_cnt--;
	memmove(mapping, mapping + 1, (dev->mapping_cnt - idx) * sizeof(*mapping));
}

static void drop_page(struct fake_device *dev, uint32_t qid)
{
	if (!dev->pages[qid])
		return;
	munmap(dev->pages[qid], NVME_PAGE);
	close(dev->page_fds[qid]);
	close(dev->kicks[qid]);
	dev->pages[qid] = NULL;
}

static void new_page(struct fake_device *dev, uint32_t qid)
{
	void *mem;

	drop_page(dev, qid);
	dev->page_fds[qid] = sealed_file(NVME_PAGE);
	dev->kicks[qid] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	mem = mmap(NULL, NVME_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, dev->page_fds[qid], 0);
	if (mem == MAP_FAILED || dev->kicks[qid] < 0)
		abort();
	dev->pages[qid] = mem;
}

static void drop_vector(struct fake_device *dev, uint32_t vector)
{
	if (dev->vectors[vector] >= 0)
		close(dev->vectors[vector]);
	dev->vectors[vector] = -1;
}

static void drop_queues(struct fake_device *dev, uint32_t lease)
{
	uint32_t qid;

	for (qid = 1; qid <= FAKE_PAIRS; qid++)
		if ((dev->queues[qid].sq || dev->queues[qid].cq) &&
		    dev->queues[qid].lease == lease) {
			dev->queues[qid] = (struct fake_queue){ 0 };
			drop_page(dev, qid);
			drop_vector(dev, qid);
		}
}

static void drop_domain(struct fake_device *dev, uint32_t domain)
{
	uint32_t i = dev->mapping_cnt;

	while (i)
		if (dev->mappings[--i].domain == domain)
			drop_mapping(dev, i);
}

/* Where an address of the owner's is; of several files the first one. NULL: nowhere */
static uint8_t *reach(const struct fake_device *dev, uint64_t addr, size_t len)
{
	uint32_t i;

	for (i = 0; i < dev->mapping_cnt; i++) {
		const struct fake_mapping *m = &dev->mappings[i];

		if (m->mem && addr >= m->addr && addr - m->addr < m->len &&
		    len <= m->len - (addr - m->addr))
			return m->mem + (addr - m->addr);
	}
	return NULL;
}

static void put(struct fake_device *dev, uint64_t addr, const void *data, size_t len)
{
	uint8_t *at = reach(dev, addr, len);

	if (at)
		memcpy(at, data, len);
}

static void get(struct fake_device *dev, uint64_t addr, void *data, size_t len)
{
	const uint8_t *at = reach(dev, addr, len);

	memset(data, 0, len);
	if (at)
		memcpy(data, at, len);
}

static void complete(struct fake_device *dev, uint16_t cid, uint16_t status, uint32_t result)
{
	uint32_t entries = NVME_AQA_ACQS(dev->aqa) + 1;
	struct nvme_cqe cqe = { .result = result,
				.sq_head = dev->sq_head,
				.cid = cid,
				.status = (uint16_t)(status << 1 | dev->phase) };
	uint64_t one = 1;

	put(dev, dev->acq + dev->cq_tail * sizeof(cqe), &cqe, offsetof(struct nvme_cqe, status));
	atomic_thread_fence(memory_order_release);
	put(dev, dev->acq + dev->cq_tail * sizeof(cqe) + offsetof(struct nvme_cqe, status),
	    &cqe.status, sizeof(cqe.status));
	dev->cq_tail = (uint16_t)((dev->cq_tail + 1) % entries);
	if (!dev->cq_tail)
		dev->phase ^= 1;
	if (dev->vectors[0] >= 0 && write(dev->vectors[0], &one, sizeof(one)) < 0)
		return;
}

static void tell_events(struct fake_device *dev)
{
	uint32_t i = 0;

	while (dev->asked_cnt && i < dev->pending_cnt) {
		uint32_t event = dev->pending[i];

		if (dev->masked >> (event & 7) & 1) {
			i++;
			continue;
		}
		dev->masked |= 1u << (event & 7);
		dev->pending_cnt--;
		memmove(dev->pending + i, dev->pending + i + 1,
			(dev->pending_cnt - i) * sizeof(uint32_t));
		complete(dev, dev->asked[0], 0, event);
		dev->asked_cnt--;
		memmove(dev->asked, dev->asked + 1, dev->asked_cnt * sizeof(uint16_t));
	}
}

static void add_event(struct fake_device *dev, uint32_t event)
{
	uint32_t i;

	for (i = 0; i < dev->pending_cnt; i++)
		if (dev->pending[i] == event)
			return;
	assert(dev->pending_cnt < 16);
	dev->pending[dev->pending_cnt++] = event;
	tell_events(dev);
}

/* All of a lease is gone. */
static void over(struct fake_device *dev, uint32_t number)
{
	struct fake_lease *lease = &dev->leases[number];

	drop_queues(dev, number);
	drop_domain(dev, number);
	lease->runs = lease->ends = false;
	if (lease->has_ender)
		complete(dev, lease->ender, 0, 0);
	lease->has_ender = false;
}

static uint16_t arm(struct fake_device *dev, const struct nvme_sqe *sqe)
{
	struct fake_lease *lease = &dev->leases[sqe->cdw10];

	if (!sqe->cdw10 || sqe->cdw10 > NVME_LEASES || !sqe->cdw12 ||
	    sqe->cdw12 > NVME_LEASE_MS_MAX || sqe->cdw11 < lease->generation ||
	    (sqe->cdw11 == lease->generation && !lease->runs))
		return NVME_SC_INVALID_FIELD;
	if (sqe->cdw11 > lease->generation && (lease->runs || lease->ends))
		return NVME_SC_SEQUENCE;
	lease->runs = true;
	lease->generation = sqe->cdw11;
	lease->remaining_ms = dev->armed = sqe->cdw12;
	return 0;
}

/* Returns whether the command is completed here. */
static bool end(struct fake_device *dev, const struct nvme_sqe *sqe, uint16_t *status)
{
	struct fake_lease *lease = &dev->leases[sqe->cdw10 <= NVME_LEASES ? sqe->cdw10 : 0];

	*status = 0;
	if (!sqe->cdw10 || sqe->cdw10 > NVME_LEASES || !lease->generation ||
	    sqe->cdw11 > lease->generation) {
		*status = NVME_SC_INVALID_FIELD;
		return true;
	}
	if (sqe->cdw11 < lease->generation || (!lease->runs && !lease->ends))
		return true;
	if (lease->has_ender) {
		*status = NVME_SC_SEQUENCE;
		return true;
	}
	lease->runs = false;
	lease->ends = true;
	lease->has_ender = true;
	lease->ender = sqe->cid;
	if (!dev->slow)
		over(dev, sqe->cdw10);
	return false;
}

static uint16_t create(struct fake_device *dev, const struct nvme_sqe *sqe, bool cq)
{
	uint32_t qid = sqe->cdw10 & 0xffff, entries = (sqe->cdw10 >> 16) + 1;
	struct fake_queue *queue = &dev->queues[qid <= FAKE_PAIRS ? qid : 0];
	uint32_t i;

	if (!qid || qid > FAKE_PAIRS || (cq ? queue->cq : queue->sq))
		return NVME_SC_INVALID_QID;
	if (entries > 4096)
		return NVME_SC_INVALID_QUEUE_SIZE;
	if (sqe->cdw14 > NVME_LEASES || (sqe->cdw14 && !dev->leases[sqe->cdw14].runs))
		return NVME_SC_INVALID_FIELD;
	for (i = 0; i < dev->mapping_cnt; i++)
		if (dev->mappings[i].domain == sqe->cdw14 &&
		    sqe->prp1 >= dev->mappings[i].addr &&
		    sqe->prp1 - dev->mappings[i].addr < dev->mappings[i].len)
			break;
	if (i == dev->mapping_cnt)
		return NVME_SC_DATA_TRANSFER;
	if (!cq && !queue->cq)
		return NVME_SC_INVALID_CQ;
	queue->lease = sqe->cdw14;
	queue->entries = entries;
	if (cq) {
		queue->cq = true;
		queue->cq_addr = sqe->prp1;
	} else {
		queue->sq = true;
		queue->sq_addr = sqe->prp1;
	}
	return 0;
}

static uint16_t delete (struct fake_device *dev, const struct nvme_sqe *sqe, bool cq)
{
	uint32_t qid = sqe->cdw10 & 0xffff;
	struct fake_queue *queue = &dev->queues[qid <= FAKE_PAIRS ? qid : 0];

	if (!qid || qid > FAKE_PAIRS || !(cq ? queue->cq : queue->sq))
		return NVME_SC_INVALID_QID;
	if (cq && queue->sq)
		return NVME_SC_INVALID_QUEUE_DELETION;
	if (cq)
		queue->cq = false;
	else
		queue->sq = false;
	if (!queue->cq && !queue->sq)
		drop_page(dev, qid);
	return 0;
}

static uint16_t identify(struct fake_device *dev, const struct nvme_sqe *sqe)
{
	union {
		struct nvme_id_ctrl ctrl;
		struct nvme_id_ns ns;
		uint8_t bytes[NVME_IDENTIFY_LEN];
	} page = { .bytes = { 0 } };

	if (sqe->cdw10 == NVME_CNS_CONTROLLER) {
		page.ctrl.vid = 0x1234;
		memset(page.ctrl.sn, ' ', sizeof(page.ctrl.sn) + sizeof(page.ctrl.mn));
		memcpy(page.ctrl.sn, dev->sn, strnlen(dev->sn, sizeof(dev->sn)));
		memcpy(page.ctrl.mn, "Fake", 4);
	} else if (sqe->cdw10 == NVME_CNS_NAMESPACE && sqe->nsid == 1) {
		page.ns.nsze = 1000;
		page.ns.lbaf[0].lbads = 9;
	} else if (sqe->cdw10 != NVME_CNS_NAMESPACE) {
		return NVME_SC_INVALID_FIELD;
	}
	put(dev, sqe->prp1, &page, sizeof(page));
	return 0;
}

static size_t leases_log(struct fake_device *dev, struct nvme_lease_log *log)
{
	uint32_t i, n = 0, qid;

	for (i = 1; i <= NVME_LEASES; i++) {
		if (!dev->leases[i].runs && !dev->leases[i].ends)
			continue;
		log[n] = (struct nvme_lease_log){ .lease = i,
						  .generation = dev->leases[i].generation,
						  .remaining_ms = dev->leases[i].remaining_ms };
		for (qid = 1; qid <= FAKE_PAIRS; qid++)
			log[n].queue_pairs += dev->queues[qid].sq && dev->queues[qid].lease == i;
		n++;
	}
	memset(&log[n], 0, sizeof(*log));
	return (n + 1) * sizeof(*log);
}

static uint16_t get_log(struct fake_device *dev, const struct nvme_sqe *sqe)
{
	static struct nvme_lease_log log[NVME_LEASES + 1];
	uint8_t page[NVME_PAGE] = { 0 };
	size_t len = ((sqe->cdw10 >> 16) + 1) * 4, have = 0;
	const void *from = page;

	switch (sqe->cdw10 & 0xff) {
	case NVME_LOG_ERROR:
		from = dev->errors;
		have = dev->error_cnt * sizeof(dev->errors[0]);
		dev->masked &= ~(1u << NVME_EVENT_TYPE_ERROR);
		break;
	case NVME_LOG_SMART:
		have = 512;
		break;
	case NVME_LOG_LEASES:
		from = log;
		have = leases_log(dev, log);
		dev->masked &= ~(1u << NVME_EVENT_TYPE_VENDOR);
		break;
	default:
		return NVME_SC_INVALID_LOG_PAGE;
	}
	if (len > NVME_PAGE || sqe->cdw12 > have)
		return NVME_SC_INVALID_FIELD;
	if (from != page)
		memcpy(page, (const uint8_t *)from + sqe->cdw12,
		       len < have - sqe->cdw12 ? len : have - sqe->cdw12);
	put(dev, sqe->prp1, page, len);
	if (dev->reading && from == log)
		dev->reading(dev, sqe->cdw12);
	return 0;
}

static void run_command(struct fake_device *dev, const struct nvme_sqe *sqe)
{
	uint16_t status = dev->status[sqe->opcode];
	uint32_t result = 0;

	__atomic_fetch_add(&dev->commands[sqe->opcode], 1, __ATOMIC_RELAXED);
	if (status) {
		complete(dev, sqe->cid, status, 0);
		return;
	}
	switch (sqe->opcode) {
	case NVME_ADMIN_IDENTIFY:
		status = identify(dev, sqe);
		break;
	case NVME_ADMIN_GET_LOG_PAGE:
		status = get_log(dev, sqe);
		break;
	case NVME_ADMIN_SET_FEATURES:
	case NVME_ADMIN_GET_FEATURES:
		result = (FAKE_PAIRS - 1) | (FAKE_PAIRS - 1) << 16;
		break;
	case NVME_ADMIN_CREATE_CQ:
	case NVME_ADMIN_CREATE_SQ:
		status = create(dev, sqe, sqe->opcode == NVME_ADMIN_CREATE_CQ);
		break;
	case NVME_ADMIN_DELETE_CQ:
	case NVME_ADMIN_DELETE_SQ:
		status = delete (dev, sqe, sqe->opcode == NVME_ADMIN_DELETE_CQ);
		break;
	case NVME_ADMIN_ASYNC_EVENT:
		if (dev->asked_cnt < dev->asked_max) {
			dev->asked[dev->asked_cnt++] = sqe->cid;
			tell_events(dev);
			return;
		}
		status = NVME_SC_AER_LIMIT;
		break;
	case NVME_ADMIN_LEASE_ARM:
		status = arm(dev, sqe);
		break;
	case NVME_ADMIN_LEASE_END:
		if (!end(dev, sqe, &status))
			return;
		break;
	default:
		status = NVME_SC_INVALID_OPCODE;
	}
	complete(dev, sqe->cid, status, result);
	tell_events(dev);
}

static bool run(struct fake_device *dev)
{
	uint32_t entries = NVME_AQA_ASQS(dev->aqa) + 1;
	bool any = false;

	if (dev->mute || dev->gone || !(dev->csts & NVME_CSTS_RDY) || !dev->pages[0])
		return false;
	while (dev->sq_head !=
	       __atomic_load_n(&dev->pages[0]->sq_tail, __ATOMIC_ACQUIRE) % entries) {
		struct nvme_sqe sqe;

		get(dev, dev->asq + dev->sq_head * sizeof(sqe), &sqe, sizeof(sqe));
		dev->sq_head = (uint16_t)((dev->sq_head + 1) % entries);
		run_command(dev, &sqe);
		any = true;
	}
	return any;
}

bool fake_device_run(struct fake_device *dev)
{
	bool any;

	pthread_mutex_lock(&dev->lock);
	any = run(dev);
	pthread_mutex_unlock(&dev->lock);
	return any;
}

static void reset(struct fake_device *dev)
{
	uint32_t i;

	for (i = 1; i <= NVME_LEASES; i++) {
		dev->leases[i].has_ender = false;
		over(dev, i);
	}
	drop_queues(dev, 0);
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
		dev->csts = reach(dev, dev->asq, NVME_PAGE) ? NVME_CSTS_RDY : NVME_CSTS_CFS;
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
			drop_mapping(dev, i);
			err = 0;
			break;
		}
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
		drop_vector(dev, vector);
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
			new_page(dev, (uint32_t)qid);
		fds[(*fd_cnt)++] = fcntl(dev->page_fds[qid], F_DUPFD_CLOEXEC, 0);
		fds[(*fd_cnt)++] = fcntl(dev->kicks[qid], F_DUPFD_CLOEXEC, 0);
		return 0;
	}
	if (!len || offset % GRANULE || len % GRANULE || offset + len > FAKE_GRANULES * GRANULE)
		return -EINVAL;
	for (i = offset / GRANULE; i < (offset + len) / GRANULE; i++) {
		if (anew) {
			close(dev->granules[i]);
			dev->granules[i] = sealed_file(GRANULE);
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
						       .dstrd = SLOT_DSTRD,
						       .memory = FAKE_GRANULES * GRANULE,
						       .granule = GRANULE,
						       .serial = dev->serial,
						       .domains = true };
	dev->owner = owner;
	dev->attached++;
	tail = dev->pages[0] ? dev->sq_head : 0;
	new_page(dev, 0);
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

void fake_device_init(struct fake_device *dev)
{
	uint32_t i;

	*dev = (struct fake_device){ .lock = PTHREAD_MUTEX_INITIALIZER,
				     .serial = 1,
				     .sn = "FAKE1",
				     .cap = 4095 | 1ULL << NVME_CAP_TO_SHIFT | NVME_CAP_CSS_NVM,
				     .asked_max = 4,
				     .phase = 1 };
	for (i = 0; i <= FAKE_PAIRS; i++)
		dev->vectors[i] = -1;
	for (i = 0; i < FAKE_GRANULES; i++)
		dev->granules[i] = sealed_file(GRANULE);
}

static void drop_all(struct fake_device *dev)
{
	uint32_t i;

	while (dev->mapping_cnt)
		drop_mapping(dev, 0);
	for (i = 0; i <= FAKE_PAIRS; i++) {
		drop_page(dev, i);
		drop_vector(dev, i);
		dev->queues[i] = (struct fake_queue){ 0 };
	}
	for (i = 0; i < FAKE_GRANULES; i++)
		close(dev->granules[i]);
}

void fake_device_fini(struct fake_device *dev)
{
	drop_all(dev);
}

void fake_device_expire(struct fake_device *dev, uint32_t lease)
{
	pthread_mutex_lock(&dev->lock);
	over(dev, lease);
	add_event(dev,
		  NVME_EVENT(NVME_EVENT_TYPE_VENDOR, NVME_EVENT_LEASE_ENDED, NVME_LOG_LEASES));
	pthread_mutex_unlock(&dev->lock);
}

void fake_device_end(struct fake_device *dev, uint32_t lease)
{
	over(dev, lease);
}

void fake_device_finish(struct fake_device *dev)
{
	uint32_t i;

	pthread_mutex_lock(&dev->lock);
	for (i = 1; i <= NVME_LEASES; i++)
		if (dev->leases[i].ends)
			over(dev, i);
	pthread_mutex_unlock(&dev->lock);
}

void fake_device_event(struct fake_device *dev, uint32_t event)
{
	pthread_mutex_lock(&dev->lock);
	add_event(dev, event);
	pthread_mutex_unlock(&dev->lock);
}

void fake_device_error(struct fake_device *dev, uint16_t sq_id)
{
	uint32_t lease;

	pthread_mutex_lock(&dev->lock);
	assert(dev->error_cnt < 8);
	memmove(dev->errors + 1, dev->errors, dev->error_cnt * sizeof(dev->errors[0]));
	dev->error_cnt++;
	lease = dev->queues[sq_id].lease;
	dev->errors[0] = (struct nvme_error_log){
		.count = dev->error_cnt,
		.sq_id = sq_id,
		.cid = 0xffff,
		.location = 0xffff,
		.command_specific = lease | (uint64_t)dev->leases[lease].generation << 32,
	};
	pthread_mutex_unlock(&dev->lock);
}

void fake_device_die(struct fake_device *dev)
{
	pthread_mutex_lock(&dev->lock);
	dev->gone = true;
	if (dev->owner) {
		close(dev->owner->ends[1]);
		dev->owner->ends[1] = -1;
	}
	pthread_mutex_unlock(&dev->lock);
}

void fake_device_renew(struct fake_device *dev)
{
	uint32_t i;

	pthread_mutex_lock(&dev->lock);
	drop_all(dev);
	memset(dev->leases, 0, sizeof(dev->leases));
	for (i = 0; i < FAKE_GRANULES; i++)
		dev->granules[i] = sealed_file(GRANULE);
	dev->cc = dev->csts = 0;
	dev->sq_head = dev->cq_tail = 0;
	dev->phase = 1;
	dev->asked_cnt = dev->pending_cnt = dev->masked = dev->error_cnt = 0;
	dev->gone = false;
	dev->serial++;
	pthread_mutex_unlock(&dev->lock);
}

uint32_t fake_device_mappings(struct fake_device *dev, uint32_t domain)
{
	uint32_t i, cnt = 0;

	pthread_mutex_lock(&dev->lock);
	for (i = 0; i < dev->mapping_cnt; i++)
		cnt += dev->mappings[i].domain == domain;
	pthread_mutex_unlock(&dev->lock);
	return cnt;
}
