/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the model of a controller has, and what a test does to it; fake_device.h and fake_parts.h have the contracts. */
#define _GNU_SOURCE
#include "fake_parts.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

int fake_sealed_file(size_t len)
{
	int fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)len) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		abort();
	return fd;
}

void fake_drop_mapping(struct fake_device *dev, uint32_t idx)
{
	struct fake_mapping *mapping = &dev->mappings[idx];

	if (mapping->mem)
		munmap(mapping->mem, mapping->len);
	while (mapping->fd_cnt)
		close(mapping->fds[--mapping->fd_cnt]);
	dev->mapping_cnt--;
	memmove(mapping, mapping + 1, (dev->mapping_cnt - idx) * sizeof(*mapping));
}

void fake_drop_page(struct fake_device *dev, uint32_t qid)
{
	if (!dev->pages[qid])
		return;
	munmap(dev->pages[qid], NVME_PAGE);
	close(dev->page_fds[qid]);
	close(dev->kicks[qid]);
	dev->pages[qid] = NULL;
}

void fake_new_page(struct fake_device *dev, uint32_t qid)
{
	void *mem;

	fake_drop_page(dev, qid);
	dev->page_fds[qid] = fake_sealed_file(NVME_PAGE);
	dev->kicks[qid] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	mem = mmap(NULL, NVME_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, dev->page_fds[qid], 0);
	if (mem == MAP_FAILED || dev->kicks[qid] < 0)
		abort();
	dev->pages[qid] = mem;
}

void fake_drop_vector(struct fake_device *dev, uint32_t vector)
{
	if (dev->vectors[vector] >= 0)
		close(dev->vectors[vector]);
	dev->vectors[vector] = -1;
}

void fake_drop_queues(struct fake_device *dev, uint32_t lease)
{
	uint32_t qid;

	for (qid = 1; qid <= FAKE_PAIRS; qid++)
		if ((dev->queues[qid].sq || dev->queues[qid].cq) &&
		    dev->queues[qid].lease == lease) {
			dev->queues[qid] = (struct fake_queue){ 0 };
			fake_drop_page(dev, qid);
			fake_drop_vector(dev, qid);
		}
}

void fake_drop_domain(struct fake_device *dev, uint32_t domain)
{
	uint32_t i = dev->mapping_cnt;

	while (i)
		if (dev->mappings[--i].domain == domain)
			fake_drop_mapping(dev, i);
}

/* Where an address of the owner's is; of several files the first one. NULL: nowhere */
uint8_t *fake_reach(const struct fake_device *dev, uint64_t addr, size_t len)
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

void fake_put(struct fake_device *dev, uint64_t addr, const void *data, size_t len)
{
	uint8_t *at = fake_reach(dev, addr, len);

	if (at)
		memcpy(at, data, len);
}

void fake_get(struct fake_device *dev, uint64_t addr, void *data, size_t len)
{
	const uint8_t *at = fake_reach(dev, addr, len);

	memset(data, 0, len);
	if (at)
		memcpy(data, at, len);
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
		dev->granules[i] = fake_sealed_file(GRANULE);
}

static void drop_all(struct fake_device *dev)
{
	uint32_t i;

	while (dev->mapping_cnt)
		fake_drop_mapping(dev, 0);
	for (i = 0; i <= FAKE_PAIRS; i++) {
		fake_drop_page(dev, i);
		fake_drop_vector(dev, i);
		dev->queues[i] = (struct fake_queue){ 0 };
	}
	for (i = 0; i < FAKE_GRANULES; i++)
		close(dev->granules[i]);
}

void fake_device_fini(struct fake_device *dev)
{
	drop_all(dev);
}

#define LEASE_ENDED NVME_EVENT(NVME_EVENT_TYPE_VENDOR, NVME_EVENT_LEASE_ENDED, NVME_LOG_LEASES)

void fake_device_expire(struct fake_device *dev, uint32_t lease)
{
	pthread_mutex_lock(&dev->lock);
	fake_over(dev, lease);
	fake_add_event(dev, LEASE_ENDED);
	pthread_mutex_unlock(&dev->lock);
}

void fake_device_end(struct fake_device *dev, uint32_t lease)
{
	fake_over(dev, lease);
}

void fake_device_finish(struct fake_device *dev)
{
	uint32_t i;

	pthread_mutex_lock(&dev->lock);
	for (i = 1; i <= NVME_LEASES; i++)
		if (dev->leases[i].ends) {
			fake_over(dev, i);
			fake_add_event(dev, LEASE_ENDED);
		}
	pthread_mutex_unlock(&dev->lock);
}

void fake_device_event(struct fake_device *dev, uint32_t event)
{
	pthread_mutex_lock(&dev->lock);
	fake_add_event(dev, event);
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
		dev->granules[i] = fake_sealed_file(GRANULE);
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
