/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device of uring_device.h. A handle is a place in the table of fixed buffers. */
#include <rdma/fi_errno.h>
#include "uring_device.h"

#define LEN_MAX ((size_t)1 << 30)

/* Puts a range into a place of the table, or nothing. Returns 0 or -FI_E*. */
static int update(struct uring_device *device, uint64_t handle, void *addr, size_t len)
{
	struct iovec iov = { addr, len };
	__u64 tag = 0;
	int ret = io_uring_register_buffers_update_tag(&device->ring, (unsigned)handle, &iov,
						       &tag, 1);

	return ret == 1 ? 0 : ret ? ret : -FI_EIO;
}

static int uring_pin(void *arg, void *addr, size_t len, uint64_t access, uint64_t *handle)
{
	struct uring_device *device = arg;
	int err = -FI_ENOSPC;
	uint32_t place = 0;

	if (len > LEN_MAX)
		return -FI_ENOMEM;
	pthread_mutex_lock(&device->lock);
	if (device->free_cnt) {
		place = device->free[--device->free_cnt];
		err = 0;
	}
	pthread_mutex_unlock(&device->lock);
	if (err)
		return err;
	err = update(device, place, addr, len);
	if (!err) {
		*handle = place;
		return 0;
	}
	pthread_mutex_lock(&device->lock);
	device->free[device->free_cnt++] = place;
	pthread_mutex_unlock(&device->lock);
	return err;
}

static void uring_unpin(void *arg, uint64_t handle)
{
	struct uring_device *device = arg;

	if (update(device, handle, NULL, 0))
		abort();
	pthread_mutex_lock(&device->lock);
	device->free[device->free_cnt++] = (uint32_t)handle;
	pthread_mutex_unlock(&device->lock);
}

const struct mem_pin_ops uring_device_ops = { .pin = uring_pin, .unpin = uring_unpin };

int uring_device_open(struct uring_device *device)
{
	int err = io_uring_queue_init(8, &device->ring, 0);

	if (err)
		return err;
	err = io_uring_register_buffers_sparse(&device->ring, URING_PINS);
	if (err) {
		io_uring_queue_exit(&device->ring);
		return err;
	}
	pthread_mutex_init(&device->lock, NULL);
	for (device->free_cnt = 0; device->free_cnt < URING_PINS; device->free_cnt++)
		device->free[device->free_cnt] = URING_PINS - 1 - device->free_cnt;
	return 0;
}

void uring_device_close(struct uring_device *device)
{
	if (device->free_cnt != URING_PINS)
		abort();
	io_uring_queue_exit(&device->ring);
	pthread_mutex_destroy(&device->lock);
}

/* Submits what was prepared, and waits for it. Returns 0 or -FI_E*. */
static int submit(struct uring_device *device, size_t len)
{
	struct io_uring_cqe *cqe;
	int ret = io_uring_submit_and_wait(&device->ring, 1);

	if (ret < 0)
		return ret;
	ret = io_uring_wait_cqe(&device->ring, &cqe);
	if (ret)
		return ret;
	ret = cqe->res;
	io_uring_cqe_seen(&device->ring, cqe);
	if (ret < 0)
		return ret;
	return (size_t)ret == len ? 0 : -FI_EIO;
}

int uring_device_write(struct uring_device *device, uint64_t handle, const void *addr,
		       size_t len, int fd, off_t at)
{
	int ret;

	pthread_mutex_lock(&device->lock);
	io_uring_prep_write_fixed(io_uring_get_sqe(&device->ring), fd, addr, (unsigned)len,
				  (__u64)at, (int)handle);
	ret = submit(device, len);
	pthread_mutex_unlock(&device->lock);
	return ret;
}

int uring_device_read(struct uring_device *device, uint64_t handle, void *addr, size_t len,
		      int fd, off_t at)
{
	int ret;

	pthread_mutex_lock(&device->lock);
	io_uring_prep_read_fixed(io_uring_get_sqe(&device->ring), fd, addr, (unsigned)len,
				 (__u64)at, (int)handle);
	ret = submit(device, len);
	pthread_mutex_unlock(&device->lock);
	return ret;
}
