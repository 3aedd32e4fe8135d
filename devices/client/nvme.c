/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs: opening and closing them; weft/nvme.h has the contract, client/nvme_io.c the way of a command.
 *
 * The memory of a queue pair is a segment of its own: the submission queue, the completion queue, and a page for each
 * command that may be under way, for its PRP list.
 */
#define _GNU_SOURCE
#include "nvme.h"
#include "bridge.h"
#include "bridged.h"
#include "remote.h"
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEFAULT_DEPTH 128u
#define DEPTH_MAX     1023u

/* Two doorbells are at most a page apart. */
#define BELLS_LEN_MAX (2 * NVME_PAGE)

static uint64_t address_of(const struct weft_window *window, const void *mem)
{
	return window->spans[0].addr + ((uintptr_t)mem - window->spans[0].mem);
}

static int open_memory(struct weft_nvme *qp)
{
	size_t sq = nvme_page_len(qp->entries * sizeof(struct nvme_sqe));
	size_t cq = nvme_page_len(qp->entries * sizeof(struct nvme_cqe));
	uint8_t *mem;
	int err = weft_segment_alloc(NULL, sq + cq + (size_t)qp->depth * NVME_PAGE, 0,
				     &qp->memory);

	if (!err)
		err = weft_window_open(qp->dev, qp->memory, WEFT_WINDOW_RW, &qp->window);
	if (err)
		return err;
	mem = weft_segment_mem(qp->memory);
	qp->sq = (struct nvme_sqe *)mem;
	qp->cq = (struct nvme_cqe *)(mem + sq);
	qp->lists = (uint64_t(*)[NVME_PAGE / 8])(mem + sq + cq);
	qp->lists_addr = address_of(qp->window, qp->lists);
	return 0;
}

/* The submission queue in the device's memory, whose first file has room for it. */
static int open_near(struct weft_nvme *qp)
{
	size_t len = qp->entries * sizeof(struct nvme_sqe);
	int err = weft_segment_alloc(qp->dev, len, 0, &qp->near);

	if (!err && qp->near->hidden)
		err = -EOPNOTSUPP;
	if (!err)
		err = weft_window_open(qp->dev, qp->near, WEFT_WINDOW_READ, &qp->near_window);
	if (!err && qp->near->part < len)
		err = -EOPNOTSUPP;
	if (!err)
		qp->sq = weft_segment_mem(qp->near);
	return err;
}

static int open_commands(struct weft_nvme *qp)
{
	uint32_t i;

	qp->commands = calloc(qp->depth, sizeof(*qp->commands));
	qp->free = calloc(qp->depth, sizeof(*qp->free));
	if (!qp->commands || !qp->free)
		return -ENOMEM;
	for (i = 0; i < qp->depth; i++)
		qp->free[i] = (uint16_t)(qp->depth - 1 - i);
	qp->free_cnt = qp->depth;
	return 0;
}

/* Where the lender has said that the doorbells are */
static int map_bells(struct weft_nvme *qp, const struct lease_message *msg)
{
	uint32_t sq = (uint32_t)msg->offset, cq = (uint32_t)(msg->offset >> 32);
	void *mem;

	if (msg->len < 2 * sizeof(uint32_t) || msg->len > BELLS_LEN_MAX ||
	    msg->len % NVME_PAGE || sq > msg->len - sizeof(uint32_t) ||
	    cq > msg->len - sizeof(uint32_t) || (sq | cq) % sizeof(uint32_t) ||
	    (qp->kick >= 0 &&
	     (msg->len != sizeof(struct slot_doorbells) || msg->addr > INT64_MAX - msg->len ||
	      !client_file_has(qp->page, msg->addr + msg->len))))
		return -ENOPROTOOPT;
	mem = mmap(NULL, msg->len, PROT_READ | PROT_WRITE, MAP_SHARED, qp->page,
		   (off_t)msg->addr);
	if (mem == MAP_FAILED)
		return -errno;
	qp->bells = mem;
	qp->bells_len = msg->len;
	qp->sq_bell = (uint32_t *)(qp->bells + sq);
	qp->cq_bell = (uint32_t *)(qp->bells + cq);
	if (qp->kick >= 0) {
		qp->doorbells = mem;
		return 0;
	}
	/* What is mapped is enough, and the descriptor is one of the whole device. */
	close(qp->page);
	qp->page = -1;
	return 0;
}

static int open_pair(struct weft_nvme *qp)
{
	const struct weft_window *sq = qp->near_window ? qp->near_window : qp->window;
	struct request request = {
		.msg = { .kind = LEASE_QUEUES,
			 .count = qp->entries,
			 .addr = address_of(sq, qp->sq),
			 .offset = address_of(qp->window, qp->cq) },
		.fds = &qp->vector,
	};
	int err;

	if (qp->blocking) {
		request.msg.flags = WEFT_NVME_BLOCKING;
		request.msg.fd_cnt = 1;
	}
	err = device_ask(qp->dev, &request);
	/* Closing has to end the pair. */
	if (request_fds_lost(&request, err))
		qp->qid = (uint16_t)request.msg.index;
	if (err)
		return err;
	if (!request.msg.fd_cnt || request.msg.fd_cnt > 2) {
		packet_close_fds(request.got, request.msg.fd_cnt);
		return -ENOPROTOOPT;
	}
	qp->qid = (uint16_t)request.msg.index;
	if (request.msg.fd_cnt == 2)
		qp->kick = request.got[1];
	qp->page = request.got[0];
	return map_bells(qp, &request.msg);
}

static int open_local(struct weft_nvme *qp, uint32_t flags)
{
	int err = open_memory(qp);

	if (!err && flags & WEFT_NVME_NEAR_DEVICE)
		err = open_near(qp);
	return err ? err : open_pair(qp);
}

/* Of a device of another host: the lender says where the controller serves the pair. */
static int open_far(struct weft_nvme *qp, uint32_t flags)
{
	union {
		struct remote_place remote;
		struct bridge_place bridge;
	} place;
	struct request request = {
		.msg = { .kind = LEASE_QUEUES, .count = qp->depth },
		.data = &place,
		.data_room = sizeof(place),
	};
	int err = device_ask(qp->dev, &request);

	if (err)
		return err;
	qp->qid = (uint16_t)request.msg.index;
	if (bridge_is_place(&place, request.msg.data_len))
		return bridge_open(qp, &place.bridge);
	if (request.msg.data_len != sizeof(place.remote))
		return -ENOPROTOOPT;
	return remote_open(qp, &place.remote, flags);
}

static bool is_valid(const struct weft_nvme_attr *attr)
{
	const uint32_t near = WEFT_NVME_NEAR_DEVICE | WEFT_NVME_NEAR_BORROWER;

	return attr->size >= sizeof(*attr) && attr->depth <= 65535 &&
	       !(attr->flags & ~(WEFT_NVME_BLOCKING | near)) && (attr->flags & near) != near;
}

int weft_nvme_open(struct weft_device *dev, const struct weft_nvme_attr *attr,
		   struct weft_nvme **out)
{
	static const struct weft_nvme_attr none = { .size = sizeof(none) };
	struct weft_nvme *qp;
	int err;

	if (!attr)
		attr = &none;
	if (!is_valid(attr))
		return -EINVAL;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->dev = dev;
	qp->depth = attr->depth ? attr->depth : DEFAULT_DEPTH;
	qp->depth = qp->depth > DEPTH_MAX ? DEPTH_MAX : qp->depth;
	qp->entries = qp->depth + 1;
	qp->blocking = attr->flags & WEFT_NVME_BLOCKING;
	qp->vector = qp->kick = qp->page = -1;
	qp->phase = 1;
	qp->asleep = true;
	err = open_commands(qp);
	if (!err && qp->blocking) {
		qp->vector = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		err = qp->vector < 0 ? -errno : 0;
	}
	if (!err)
		err = dev->lender->remote ? open_far(qp, attr->flags)
					  : open_local(qp, attr->flags);
	if (err) {
		weft_nvme_close(qp);
		return err;
	}
	pthread_mutex_lock(&dev->lock);
	qp->next = dev->pairs;
	dev->pairs = qp;
	pthread_mutex_unlock(&dev->lock);
	*out = qp;
	return 0;
}

static void close_memory(struct weft_window *window, struct weft_segment *seg)
{
	/*
	 * Where the lender does not answer, or commands use it for too long, the window stays until the lease is returned, and
	 * its memory with it.
	 */
	if (window) {
		window->last = true;
		weft_window_close(window);
	} else if (seg) {
		weft_segment_free(seg);
	}
}

/*
 * A near controller accesses this process's memory, which stays while commands are under way. A far one, or one behind a
 * bridge, does not.
 */
static int end_pair(struct weft_nvme *qp)
{
	const struct lease_message msg = { .kind = LEASE_UNQUEUES, .index = qp->qid };
	bool is_near = !qp->remote && !qp->bridge;

	if (!qp->qid)
		return 0;
	return device_ask_end(qp->dev, &msg,
			      is_near ? UINT64_MAX : client_now_ms() + LENDER_ANSWER_MS);
}

int weft_nvme_close(struct weft_nvme *qp)
{
	struct weft_device *dev = qp->dev;
	struct weft_nvme **at;

	pthread_mutex_lock(&dev->lock);
	for (at = &dev->pairs; *at && *at != qp; at = &(*at)->next)
		;
	if (*at)
		*at = qp->next;
	pthread_mutex_unlock(&dev->lock);
	if (end_pair(qp) == -ESTALE)
		nvme_outlast(qp);
	if (qp->remote)
		remote_close(qp);
	if (qp->bridge)
		bridge_close(qp);
	close_memory(qp->near_window, qp->near);
	close_memory(qp->window, qp->memory);
	if (qp->bells)
		munmap(qp->bells, qp->bells_len);
	if (qp->page >= 0)
		close(qp->page);
	if (qp->kick >= 0)
		close(qp->kick);
	if (qp->vector >= 0)
		close(qp->vector);
	free(qp->spans);
	free(qp->commands);
	free(qp->free);
	free(qp);
	return 0;
}

int weft_nvme_namespace(struct weft_device *dev, uint32_t nsid, struct weft_nvme_namespace *out)
{
	struct namespace ns;
	int err = device_namespace(dev, nsid, &ns);

	if (!err)
		*out = (struct weft_nvme_namespace){ ns.blocks, ns.block_size, ns.transfer_max };
	return err;
}

void nvme_wake(struct weft_nvme *qp)
{
	uint64_t one = 1;

	if (qp->vector >= 0 && write(qp->vector, &one, sizeof(one)) < 0)
		return; /* it is full: it is readable */
}

uint32_t weft_nvme_depth(const struct weft_nvme *qp)
{
	return qp->depth;
}

int weft_nvme_fd(struct weft_nvme *qp)
{
	if (!qp->blocking)
		return -EOPNOTSUPP;
	return qp->remote ? remote_fd(qp) : qp->vector;
}
