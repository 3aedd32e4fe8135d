/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The owner's side of a slot: each operation of function.h is a message of slot.h and its answer.
 */
#define _GNU_SOURCE
#include "function.h"
#include "packet.h"
#include "spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* As long as a command is waited for: who runs answers within that on a host with much to do, too. */
#define ANSWER_MS 5000

/*
 * struct slot - a controller process
 * @fd:   the socket
 * @seq:  of the last request
 * @lost: 0, or why it is not used any more
 */
struct slot {
	struct function function;
	int fd;
	int lost;
	uint32_t seq;
};

static struct slot *slot_of(const struct function *function)
{
	return (struct slot *)((char *)function - offsetof(struct slot, function));
}

static int lose(struct slot *slot, int err)
{
	slot->lost = err;
	return err;
}

/* Whether an answer is as long as it says. */
static bool is_whole(const struct slot_message *msg, size_t n)
{
	bool has_data = msg->kind == SLOT_REMOTE && !msg->status;

	return n >= sizeof(*msg) && n - sizeof(*msg) == (has_data ? msg->len : 0);
}

/*
 * Send a request, and take its answer in its place, with the descriptors of both in @fds, and what follows it in @data
 * (SLOT_DATA_MAX bytes, or NULL).
 */
static int ask_for(struct slot *slot, struct slot_message *msg, int *fds, uint32_t fd_room,
		   void *data)
{
	struct iovec iov[2] = { { msg, sizeof(*msg) }, { data, data ? SLOT_DATA_MAX : 0 } };
	uint32_t kind = msg->kind, fd_cnt;
	int came[PACKET_FDS_MAX];
	ssize_t n;
	int err;

	if (slot->lost)
		return slot->lost;
	msg->version = SLOT_VERSION;
	msg->seq = ++slot->seq;
	err = packet_send(slot->fd, iov, 1, fds, msg->fd_cnt);
	/* Where the system has no room nothing was sent. */
	if (err && err != -EPIPE && err != -ETIMEDOUT)
		return err;
	if (err)
		return lose(slot, err == -EPIPE ? -ENODEV : err);
	n = packet_recv(slot->fd, iov, data ? 2 : 1, came, &fd_cnt, ANSWER_MS);
	/* That was the answer; what was beside it has no room in this process. */
	if (n == -EMFILE)
		return -EMFILE;
	if (n <= 0)
		return lose(slot, n == -ETIMEDOUT ? -ETIMEDOUT : n ? -EPROTO : -ENODEV);
	if (!is_whole(msg, (size_t)n) || msg->version != SLOT_VERSION || msg->kind != kind ||
	    msg->seq != slot->seq || msg->status > 0 || msg->fd_cnt != fd_cnt ||
	    fd_cnt > fd_room || (msg->status && fd_cnt)) {
		packet_close_fds(came, fd_cnt);
		return lose(slot, -EPROTO);
	}
	if (fd_cnt)
		memcpy(fds, came, fd_cnt * sizeof(int));
	return msg->status;
}

static int ask(struct slot *slot, struct slot_message *msg, int *fds, uint32_t fd_room)
{
	return ask_for(slot, msg, fds, fd_room, NULL);
}

static int slot_read(struct function *function, uint32_t reg, uint32_t width, uint64_t *value)
{
	struct slot_message msg = { .kind = SLOT_READ, .addr = reg, .len = width };
	int err = ask(slot_of(function), &msg, NULL, 0);

	if (!err)
		*value = msg.value;
	return err;
}

static int slot_write(struct function *function, uint32_t reg, uint32_t width, uint64_t value)
{
	struct slot_message msg = {
		.kind = SLOT_WRITE, .addr = reg, .len = width, .value = value
	};

	return ask(slot_of(function), &msg, NULL, 0);
}

static int slot_map(struct function *function, const struct function_mapping *mapping)
{
	struct slot_message msg = {
		.kind = SLOT_MAP,
		.domain = mapping->domain,
		.access = mapping->access,
		.addr = mapping->addr,
		.len = mapping->len,
		.offset = mapping->offset,
		.fd_cnt = mapping->fd_cnt,
	};

	return ask(slot_of(function), &msg, (int *)mapping->fds, 0);
}

static int slot_unmap(struct function *function, uint32_t domain, uint64_t addr, uint64_t len)
{
	struct slot_message msg = {
		.kind = SLOT_UNMAP, .domain = domain, .addr = addr, .len = len
	};

	return ask(slot_of(function), &msg, NULL, 0);
}

static int slot_vector(struct function *function, uint32_t vector, int fd)
{
	struct slot_message msg = { .kind = SLOT_VECTOR, .index = vector, .fd_cnt = fd >= 0 };

	return ask(slot_of(function), &msg, &fd, 0);
}

static int slot_region(struct function *function, uint32_t bar, uint64_t offset, uint64_t len,
		       bool anew, int *fds, uint32_t *fd_cnt)
{
	struct slot_message msg = {
		.kind = SLOT_REGION, .index = bar, .addr = offset, .len = len, .value = anew
	};
	int err = ask(slot_of(function), &msg, fds, SLOT_FDS_MAX);

	if (!err)
		*fd_cnt = msg.fd_cnt;
	return err;
}

static int slot_page(struct function *function, uint16_t qid, int pidfd, int *fd,
		     struct function_page *page)
{
	struct slot_message msg = { .kind = SLOT_REGION,
				    .addr = NVME_REG_DOORBELLS + (uint64_t)qid * NVME_PAGE,
				    .len = NVME_PAGE,
				    .fd_cnt = 1 };
	int fds[SLOT_FDS_MAX] = { pidfd };
	int err = ask(slot_of(function), &msg, fds, SLOT_FDS_MAX);

	if (err)
		return err;
	if (msg.fd_cnt != 1 || !msg.len || msg.len > 2 * NVME_PAGE ||
	    (uint32_t)msg.value > msg.len - 4 || msg.value >> 32 > msg.len - 4) {
		packet_close_fds(fds, msg.fd_cnt);
		return lose(slot_of(function), -EPROTO);
	}
	*fd = fds[0];
	*page = (struct function_page){ .offset = msg.offset,
					.len = (uint32_t)msg.len,
					.sq = (uint32_t)msg.value,
					.cq = (uint32_t)(msg.value >> 32) };
	return 0;
}

static int slot_mapping(struct function *function, uint32_t idx,
			struct function_mapping *mapping, int *fds)
{
	struct slot_message msg = { .kind = SLOT_DOMAIN,
				    .domain = mapping->domain,
				    .index = idx };
	int err = ask(slot_of(function), &msg, fds, SLOT_FDS_MAX);

	if (err)
		return err;
	mapping->access = msg.access;
	mapping->addr = msg.addr;
	mapping->len = msg.len;
	mapping->offset = msg.offset;
	mapping->fds = fds;
	mapping->fd_cnt = msg.fd_cnt;
	return 0;
}

static int slot_queue(struct function *function, uint16_t qid, struct function_queue *queue)
{
	struct slot_message msg = { .kind = SLOT_QUEUE, .index = qid };
	int err = ask(slot_of(function), &msg, NULL, 0);

	if (err)
		return err;
	*queue = (struct function_queue){
		.domain = msg.domain,
		.sq_tail = (uint16_t)msg.addr,
		.sq_head = (uint16_t)(msg.addr >> 32),
		.cq_tail = (uint16_t)msg.len,
		.cq_head = (uint16_t)(msg.len >> 32),
		.cq_phase = msg.len >> 63,
	};
	return 0;
}

static int slot_remote(struct function *function, uint32_t domain, uint16_t qid, uint32_t depth,
		       void *place, uint32_t *len)
{
	struct slot_message msg = {
		.kind = SLOT_REMOTE, .domain = domain, .index = qid, .len = depth
	};
	int err = ask_for(slot_of(function), &msg, NULL, 0, place);

	if (!err)
		*len = (uint32_t)msg.len;
	return err;
}

static void slot_close(struct function *function)
{
	struct slot *slot = slot_of(function);

	close(slot->fd);
	free(slot);
}

static const struct function_ops slot_ops = {
	.read = slot_read,
	.write = slot_write,
	.map = slot_map,
	.unmap = slot_unmap,
	.vector = slot_vector,
	.region = slot_region,
	.page = slot_page,
	.mapping = slot_mapping,
	.queue = slot_queue,
	.remote = slot_remote,
	.close = slot_close,
};

static int attach(struct slot *slot)
{
	struct slot_message msg = { .kind = SLOT_ATTACH };
	int fds[SLOT_FDS_MAX];
	int err = ask(slot, &msg, fds, SLOT_FDS_MAX);

	if (err)
		return err;
	packet_close_fds(fds, msg.fd_cnt);
	slot->function.info = (struct function_info){
		.queue_pairs = msg.offset > UINT16_MAX ? UINT16_MAX : (uint32_t)msg.offset,
		.memory = msg.addr,
		.granule = msg.len,
		.serial = msg.value,
		.direct = msg.index & SLOT_DIRECT,
	};
	return 0;
}

int function_open_slot(const char *path, struct function **function)
{
	struct slot *slot = calloc(1, sizeof(*slot));
	int err;

	if (!slot)
		return -ENOMEM;
	slot->function.ops = &slot_ops;
	slot->fd = packet_connect(path);
	err = slot->fd < 0 ? slot->fd : attach(slot);
	if (!err) {
		*function = &slot->function;
		return 0;
	}
	if (slot->fd >= 0)
		close(slot->fd);
	free(slot);
	return err;
}

int function_slot_fd(const struct function *function)
{
	return slot_of(function)->fd;
}
