/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A device that pins nothing: it counts what is registered with it, takes its time, and refuses. For
 * tests and benchmarks, any thread.
 */
#ifndef WEFT_MEM_FAKE_DEVICE_H
#define WEFT_MEM_FAKE_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include "pin_ops.h"
#include "platform.h"

#define FAKE_PINS 4096u
#define FAKE_PAGE 4096u

struct fake_pin {
	uintptr_t addr;
	/* bytes; 0: not in use */
	size_t len;
	uint64_t access;
	/* generations of its pages when it was made, owned; NULL: not all of them have one */
	uint32_t *generations;
};

struct fake_device {
	/* Bytes and registrations that there is room for; 0: any */
	size_t room;
	uint32_t table;
	/* Least time that a registration takes */
	uint64_t delay_ns;
	/* -FI_E*: what every registration fails with; 0: none */
	int refuse;
	/* Generations of the pages from @base on: a page that is taken away has another one; NULL: none */
	const _Atomic uint32_t *generations;
	uintptr_t base;
	size_t page_cnt;
	/* bytes of a page; FAKE_PAGE */
	size_t page;
	/* called with @arg by a registration that has looked: something changes meanwhile; may be NULL */
	void (*meanwhile)(void *arg);
	void *arg;

	/* Read them by the functions below while other threads register. */
	pthread_mutex_t lock;
	size_t pinned_len;
	uint32_t pinned;
	/* registrations that were made, and refused */
	uint64_t made, refused;
	struct fake_pin pins[FAKE_PINS];
};

extern const struct mem_pin_ops fake_device_ops;

/*
 * fake_addresses - returns so many addresses that nothing else has, from a multiple of @align on, without
 * memory, for as long as the process lives
 */
uintptr_t fake_addresses(size_t len, size_t align);

/* fake_device_init - zeroed, and without limits */
void fake_device_init(struct fake_device *device);
/* fake_device_fini - it has no registrations any more */
void fake_device_fini(struct fake_device *device);

/* fake_device_cnt - returns the registrations that there are */
uint32_t fake_device_cnt(struct fake_device *device);

/*
 * fake_device_reaches - returns true if a registration has these bytes, and the device reaches the pages
 * that are there now
 */
bool fake_device_reaches(struct fake_device *device, uint64_t handle, const void *addr,
			 size_t len);

#endif
