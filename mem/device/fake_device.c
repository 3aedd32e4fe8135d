/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device of fake_device.h. A handle is an index, and more than 0. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <rdma/fi_errno.h>
#include "fake_device.h"

static size_t page_of(const struct fake_device *device, uintptr_t addr)
{
	return (addr - device->base) / device->page;
}

/* Returns true if all of its pages have a generation. */
static bool is_watched(const struct fake_device *device, uintptr_t addr, size_t len)
{
	return device->generations && addr >= device->base &&
	       page_of(device, addr + len - 1) < device->page_cnt;
}

/* What the device finds in the page tables. */
static uint32_t *look(const struct fake_device *device, uintptr_t addr, size_t len)
{
	size_t first = page_of(device, addr), cnt = page_of(device, addr + len - 1) - first + 1;
	uint32_t *seen = calloc(cnt, sizeof(*seen));

	for (size_t i = 0; seen && i < cnt; i++)
		seen[i] = atomic_load_explicit(&device->generations[first + i],
					       memory_order_relaxed);
	return seen;
}

static int shortage(const struct fake_device *device, size_t len)
{
	if (device->pinned == (device->table ? device->table : FAKE_PINS - 1))
		return -FI_ENOSPC;
	return device->room && len > device->room - device->pinned_len ? -FI_ENOMEM : 0;
}

static int refusal(struct fake_device *device, size_t len)
{
	int err = device->refuse ? device->refuse : shortage(device, len);

	device->refused += err != 0;
	return err;
}

/* A registration takes its room at once, and is made once the device has looked. */
static int fake_pin(void *arg, void *addr, size_t len, uint64_t access, uint64_t *handle)
{
	struct fake_device *device = arg;
	uint64_t end = device->delay_ns ? platform_now_ns() + device->delay_ns : 0;
	struct fake_pin *pin = &device->pins[1];
	int err;

	pthread_mutex_lock(&device->lock);
	err = refusal(device, len);
	if (err) {
		pthread_mutex_unlock(&device->lock);
		return err;
	}
	while (pin->len)
		pin++;
	*pin = (struct fake_pin){ .addr = (uintptr_t)addr, .len = len, .access = access };
	device->pinned_len += len;
	device->pinned++;
	device->made++;
	pthread_mutex_unlock(&device->lock);
	if (is_watched(device, (uintptr_t)addr, len))
		pin->generations = look(device, (uintptr_t)addr, len);
	while (end && platform_now_ns() < end)
		platform_yield();
	if (device->meanwhile)
		device->meanwhile(device->arg);
	*handle = (uint64_t)(pin - device->pins);
	return 0;
}

static void fake_unpin(void *arg, uint64_t handle)
{
	struct fake_device *device = arg;
	struct fake_pin *pin = &device->pins[handle];

	pthread_mutex_lock(&device->lock);
	if (!handle || handle >= FAKE_PINS || !pin->len)
		abort();
	device->pinned_len -= pin->len;
	device->pinned--;
	free(pin->generations);
	*pin = (struct fake_pin){ 0 };
	pthread_mutex_unlock(&device->lock);
}

const struct mem_pin_ops fake_device_ops = { .pin = fake_pin, .unpin = fake_unpin };

uintptr_t fake_addresses(size_t len, size_t align)
{
	void *addr = mmap(NULL, len + align, PROT_NONE,
			  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (addr == MAP_FAILED)
		abort();
	return ((uintptr_t)addr + align - 1) & ~(uintptr_t)(align - 1);
}

void fake_device_init(struct fake_device *device)
{
	*device = (struct fake_device){ .page = FAKE_PAGE };
	pthread_mutex_init(&device->lock, NULL);
}

void fake_device_fini(struct fake_device *device)
{
	if (device->pinned || device->pinned_len)
		abort();
	pthread_mutex_destroy(&device->lock);
}

uint32_t fake_device_cnt(struct fake_device *device)
{
	uint32_t cnt;

	pthread_mutex_lock(&device->lock);
	cnt = device->pinned;
	pthread_mutex_unlock(&device->lock);
	return cnt;
}

bool fake_device_reaches(struct fake_device *device, uint64_t handle, const void *addr,
			 size_t len)
{
	const struct fake_pin *pin = &device->pins[handle];
	uintptr_t at = (uintptr_t)addr;
	size_t first;
	bool reached;

	pthread_mutex_lock(&device->lock);
	reached = handle && handle < FAKE_PINS && at >= pin->addr &&
		  at - pin->addr <= pin->len && len <= pin->len - (at - pin->addr);
	if (reached && pin->generations) {
		first = page_of(device, pin->addr);
		for (size_t i = page_of(device, at); i <= page_of(device, at + len - 1); i++)
			reached &= pin->generations[i - first] ==
				   atomic_load_explicit(&device->generations[i],
							memory_order_relaxed);
	}
	pthread_mutex_unlock(&device->lock);
	return reached;
}
