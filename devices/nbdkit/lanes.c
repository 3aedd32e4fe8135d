/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A request longer than a command becomes several, begun together as far as the lane's memory and depth go.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "lanes.h"
#include "status_errno.h"

#define BLOCKS_MAX 65536u

struct lane {
	struct lane *next;
	struct lanes *lanes;
	struct weft_nvme *qp;
	struct weft_segment *seg;
	struct weft_window *window;
	struct weft_nvme_command commands[LANE_DEPTH];
};

/*
 * struct lanes - all lanes of the device
 * @piece:    bytes of the longest command that moves data
 * @lock:     protects what follows; not held while anyone waits for the device
 * @open_cnt: lanes that there are, or are being opened
 */
struct lanes {
	struct weft_device *dev;
	struct weft_nvme_namespace ns;
	uint32_t nsid;
	uint32_t flags;
	uint32_t piece;

	pthread_mutex_t lock;
	pthread_cond_t given;
	struct lane *free;
	unsigned open_cnt;
	unsigned most;
};

static void lane_close(struct lane *lane)
{
	if (lane->qp)
		weft_nvme_close(lane->qp);
	if (lane->window)
		weft_window_close(lane->window);
	if (lane->seg)
		weft_segment_free(lane->seg);
	free(lane);
}

static int lane_open(struct lanes *lanes, struct lane **lane)
{
	const struct weft_nvme_attr attr = {
		.size = sizeof(attr),
		.depth = LANE_DEPTH,
		.flags = lanes->flags,
	};
	struct lane *it = calloc(1, sizeof(*it));
	int ret;

	if (!it)
		return -ENOMEM;
	it->lanes = lanes;
	ret = weft_segment_alloc(NULL, LANE_BYTES, 0, &it->seg);
	if (!ret)
		ret = weft_window_open(lanes->dev, it->seg, WEFT_WINDOW_RW, &it->window);
	if (!ret)
		ret = weft_nvme_open(lanes->dev, &attr, &it->qp);
	if (ret)
		lane_close(it);
	else
		*lane = it;
	return ret;
}

int lanes_create(struct weft_device *dev, uint32_t nsid, unsigned most, uint32_t flags,
		 struct lanes **lanes)
{
	struct lanes *it = calloc(1, sizeof(*it));
	int ret;

	if (!it)
		return -ENOMEM;
	it->dev = dev;
	it->nsid = nsid;
	it->flags = flags;
	it->most = most;
	it->open_cnt = 1;
	ret = weft_nvme_namespace(dev, nsid, &it->ns);
	if (!ret)
		ret = lane_open(it, &it->free);
	if (ret) {
		free(it);
		return ret;
	}
	it->piece = LANE_BYTES;
	if (it->ns.transfer_max && it->ns.transfer_max < it->piece)
		it->piece = it->ns.transfer_max;
	it->piece -= it->piece % it->ns.block_size;
	pthread_mutex_init(&it->lock, NULL);
	pthread_cond_init(&it->given, NULL);
	*lanes = it;
	return 0;
}

void lanes_destroy(struct lanes *lanes)
{
	struct lane *it, *next;

	for (it = lanes->free; it; it = next) {
		next = it->next;
		lane_close(it);
	}
	pthread_cond_destroy(&lanes->given);
	pthread_mutex_destroy(&lanes->lock);
	free(lanes);
}

const struct weft_nvme_namespace *lanes_namespace(const struct lanes *lanes)
{
	return &lanes->ns;
}

struct lane *lane_take(struct lanes *lanes)
{
	struct lane *lane = NULL;

	pthread_mutex_lock(&lanes->lock);
	while (!lanes->free && !lane) {
		if (lanes->open_cnt == lanes->most) {
			pthread_cond_wait(&lanes->given, &lanes->lock);
			continue;
		}
		lanes->open_cnt++;
		pthread_mutex_unlock(&lanes->lock);
		if (lane_open(lanes, &lane))
			lane = NULL;
		pthread_mutex_lock(&lanes->lock);
		if (!lane) /* the device has no more: those that there are serve */
			lanes->most = --lanes->open_cnt;
	}
	if (!lane) {
		lane = lanes->free;
		lanes->free = lane->next;
	}
	pthread_mutex_unlock(&lanes->lock);
	return lane;
}

void lane_give(struct lane *lane)
{
	struct lanes *lanes = lane->lanes;

	pthread_mutex_lock(&lanes->lock);
	lane->next = lanes->free;
	lanes->free = lane;
	pthread_cond_signal(&lanes->given);
	pthread_mutex_unlock(&lanes->lock);
}

/* Executes the @cnt first commands. Returns 0, or the first errno once none is under way. */
static int lane_run(struct lane *lane, uint32_t cnt)
{
	struct weft_nvme_completion done[LANE_DEPTH];
	uint32_t begun = 0, ended = 0;
	int err = 0, one;
	ssize_t ret, i;

	while (ended < cnt) {
		if (begun < cnt && !err) {
			ret = weft_nvme_submit(lane->qp, lane->commands + begun, cnt - begun);
			if (ret >= 0)
				begun += (uint32_t)ret;
			else if (ret != -EAGAIN)
				err = (int)-ret;
		}
		if (err && ended == begun)
			break;
		ret = weft_nvme_wait(lane->qp, done, LANE_DEPTH, -1);
		if (ret < 0 && ret != -EINTR && ret != -EAGAIN)
			return (int)-ret; /* the lease has ended: nothing more comes */
		for (i = 0; i < ret; i++, ended++) {
			one = nvme_to_errno(&done[i]);
			if (!err)
				err = one;
		}
	}
	return err;
}

static char *lane_mem(const struct lane *lane)
{
	return weft_segment_mem(lane->seg);
}

static struct weft_nvme_command *lane_command(struct lane *lane, uint32_t idx, uint8_t opcode,
					      uint64_t offset, uint32_t len)
{
	struct weft_nvme_command *cmd = &lane->commands[idx];
	const uint32_t size = lane->lanes->ns.block_size;

	*cmd = (struct weft_nvme_command){
		.opcode = opcode,
		.nsid = lane->lanes->nsid,
		.lba = offset / size,
		.blocks = len / size,
	};
	return cmd;
}

/* Commands for the first of @len bytes, into the lane's memory. Returns how many bytes they are for. */
static uint32_t lane_fill(struct lane *lane, uint8_t opcode, uint8_t flags, uint64_t offset,
			  uint32_t len, uint32_t *cnt)
{
	struct weft_nvme_command *cmd;
	uint32_t done = 0, part;

	for (*cnt = 0; done < len && *cnt < LANE_DEPTH; (*cnt)++, done += part) {
		part = len - done < lane->lanes->piece ? len - done : lane->lanes->piece;
		if (done + part > LANE_BYTES)
			break;
		cmd = lane_command(lane, *cnt, opcode, offset + done, part);
		cmd->flags = flags;
		cmd->buf = lane_mem(lane) + done;
	}
	return done;
}

int lane_read(struct lane *lane, void *buf, uint32_t len, uint64_t offset)
{
	uint32_t done, cnt;
	int err;

	for (; len; len -= done, offset += done, buf = (char *)buf + done) {
		done = lane_fill(lane, WEFT_NVME_READ, 0, offset, len, &cnt);
		err = lane_run(lane, cnt);
		if (err)
			return err;
		memcpy(buf, lane_mem(lane), done);
	}
	return 0;
}

int lane_write(struct lane *lane, const void *buf, uint32_t len, uint64_t offset, uint8_t flags)
{
	uint32_t done, cnt;
	int err;

	for (; len; len -= done, offset += done, buf = (const char *)buf + done) {
		done = lane_fill(lane, WEFT_NVME_WRITE, flags, offset, len, &cnt);
		memcpy(lane_mem(lane), buf, done);
		err = lane_run(lane, cnt);
		if (err)
			return err;
	}
	return 0;
}

/* Commands without data for the first of @len bytes. Returns how many bytes they are for. */
static uint32_t lane_fill_ranges(struct lane *lane, uint8_t opcode, uint8_t flags,
				 uint64_t offset, uint32_t len, uint32_t *cnt)
{
	const uint64_t most = (uint64_t)BLOCKS_MAX * lane->lanes->ns.block_size;
	struct weft_nvme_command *cmd;
	uint32_t done = 0, part;

	for (*cnt = 0; done < len && *cnt < LANE_DEPTH; (*cnt)++, done += part) {
		part = len - done < most ? len - done : (uint32_t)most;
		cmd = lane_command(lane, *cnt, opcode, offset + done, part);
		cmd->flags = flags;
	}
	return done;
}

static int lane_ranges(struct lane *lane, uint8_t opcode, uint8_t flags, uint64_t offset,
		       uint32_t len)
{
	uint32_t done, cnt;
	int err;

	for (; len; len -= done, offset += done) {
		done = lane_fill_ranges(lane, opcode, flags, offset, len, &cnt);
		err = lane_run(lane, cnt);
		if (err)
			return err;
	}
	return 0;
}

int lane_write_zeroes(struct lane *lane, uint32_t len, uint64_t offset, uint8_t flags)
{
	return lane_ranges(lane, WEFT_NVME_WRITE_ZEROES, flags, offset, len);
}

int lane_deallocate(struct lane *lane, uint32_t len, uint64_t offset)
{
	return lane_ranges(lane, WEFT_NVME_DEALLOCATE, 0, offset, len);
}

int lane_flush(struct lane *lane)
{
	lane_command(lane, 0, WEFT_NVME_FLUSH, 0, 0);
	return lane_run(lane, 1);
}
