/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device of the tests. Any thread, under its lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "fake_device.h"

static int pin_locked(struct fake_device *d, void *addr, size_t len, uint64_t access,
		      uint64_t *handle)
{
	uint32_t slot = 0;

	d->pins++;
	if (d->error)
		return d->error;
	if (d->cnt == d->max)
		return -FI_ENOMEM;
	while (d->all[slot].used)
		slot++;
	d->all[slot] =
		(struct fake_pin){ .used = true, .addr = addr, .len = len, .access = access };
	for (uint32_t i = 0; i < AREA_PAGES; i++)
		d->all[slot].generation[i] = d->generation[i];
	d->cnt++;
	*handle = slot;
	return 0;
}

static int pin(void *device, void *addr, size_t len, uint64_t access, uint64_t *handle)
{
	struct fake_device *d = device;
	int ret;

	platform_lock(&d->lock);
	ret = pin_locked(d, addr, len, access, handle);
	platform_unlock(&d->lock);
	if (!ret && d->meanwhile)
		d->meanwhile(d->arg);
	return ret;
}

static void unpin(void *device, uint64_t handle)
{
	struct fake_device *d = device;

	platform_lock(&d->lock);
	assert_true(d->all[handle].used);
	d->all[handle].used = false;
	d->cnt--;
	platform_unlock(&d->lock);
}

const struct mem_pin_ops fake_device_ops = { pin, unpin };

void fake_device_init(struct fake_device *d)
{
	*d = (struct fake_device){ .max = 256, .page = (size_t)sysconf(_SC_PAGESIZE) };
	platform_lock_init(&d->lock);
	d->area = mmap(NULL, AREA_PAGES * d->page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(d->area, MAP_FAILED);
	memset(d->area, 1, AREA_PAGES * d->page);
}

void fake_device_fini(struct fake_device *d)
{
	assert_int_equal(d->cnt, 0);
	munmap(d->area, AREA_PAGES * d->page);
	platform_lock_fini(&d->lock);
}

bool fake_device_stale(struct fake_device *d, uint64_t handle, const uint8_t *addr, size_t len)
{
	struct fake_pin *p = &d->all[handle];
	size_t first = (size_t)(addr - d->area) / d->page;
	size_t last = (size_t)(addr - d->area + len - 1) / d->page;
	bool stale = false;

	platform_lock(&d->lock);
	assert_true(p->used);
	assert_true(p->addr <= addr && addr + len <= p->addr + p->len);
	for (size_t i = first; i <= last; i++)
		stale |= p->generation[i] != d->generation[i];
	platform_unlock(&d->lock);
	return stale;
}

uint32_t fake_device_cnt(struct fake_device *d)
{
	uint32_t cnt;

	platform_lock(&d->lock);
	cnt = d->cnt;
	platform_unlock(&d->lock);
	return cnt;
}
