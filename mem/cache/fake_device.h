/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A device of the tests, that remembers which generation each page of an area had when it was registered.
 * What pins and unpins is called by the test and by the cache's thread.
 */
#ifndef WEFT_MEM_FAKE_DEVICE_H
#define WEFT_MEM_FAKE_DEVICE_H

#include "cache.h"

#define AREA_PAGES 64u

struct fake_device {
	struct platform_lock lock;
	/* of the test: memory of AREA_PAGES pages, and what is behind each address of it now */
	uint8_t *area;
	size_t page;
	_Atomic uint32_t generation[AREA_PAGES];
	/* registrations that it takes at most */
	uint32_t max;
	/* not 0: what pin() returns from now on */
	int error;
	/* called by pin() once it has the pages, with @arg: something changes meanwhile; may be NULL */
	void (*meanwhile)(void *arg);
	void *arg;
	/* calls, and registrations that there are */
	uint32_t pins;
	uint32_t cnt;
	struct fake_pin {
		bool used;
		uint8_t *addr;
		size_t len;
		uint64_t access;
		uint32_t generation[AREA_PAGES];
	} all[256];
};

extern const struct mem_pin_ops fake_device_ops;

/* fake_device_init - with an area that is mapped and touched */
void fake_device_init(struct fake_device *device);
/* fake_device_fini - nothing is registered with it any more */
void fake_device_fini(struct fake_device *device);

/* fake_device_stale - returns true if a registration that reaches a range has not its pages of now */
bool fake_device_stale(struct fake_device *device, uint64_t handle, const uint8_t *addr,
		       size_t len);

/* fake_device_cnt - registrations that there are */
uint32_t fake_device_cnt(struct fake_device *device);

#endif
