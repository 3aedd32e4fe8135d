/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A device that really pins: the fixed buffers of an io_uring. What is registered is reached by the
 * kernel at the pages that were there then, whatever happens to the addresses. For tests and
 * benchmarks, any thread.
 */
#ifndef WEFT_MEM_URING_DEVICE_H
#define WEFT_MEM_URING_DEVICE_H

#include <liburing.h>
#include "pin_ops.h"
#include "platform.h"

#define URING_PINS 1024u

struct uring_device {
	struct io_uring ring;
	/* Protects what follows, and submission. */
	pthread_mutex_t lock;
	/* places of the table that are free */
	uint32_t free[URING_PINS];
	uint32_t free_cnt;
};

/* Its pin returns -FI_ENOMEM for a range of more than 1 GiB too. */
extern const struct mem_pin_ops uring_device_ops;

/* uring_device_open - returns 0, or -FI_E*: there is no io_uring here, or it is not allowed */
int uring_device_open(struct uring_device *device);
void uring_device_close(struct uring_device *device);

/*
 * uring_device_write - have the device write registered bytes to a file
 * uring_device_read - have the device read from a file into them
 * @handle: reaches all of [@addr, @addr + @len)
 * Returns 0 or -FI_E*.
 */
int uring_device_write(struct uring_device *device, uint64_t handle, const void *addr,
		       size_t len, int fd, off_t at);
int uring_device_read(struct uring_device *device, uint64_t handle, void *addr, size_t len,
		      int fd, off_t at);

#endif
