/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * nbdkit-weft-plugin.so: a borrowed NVMe as an NBD server's disk. nbdkit calls what is configured and borrowed on its
 * main thread, and requests on any thread, several at a time, also of one connection.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <weft/nvme.h>
#include "lanes.h"
#include "status_errno.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

#define BLOCK_PREFERRED 4096u
#define QUEUES_MAX	256u

static const char *lender_name;
static const char *device_name;
static const char *ticket;
static uint32_t nsid = 1;
static unsigned queue_cnt = 4;
static int shared, blocking = 1, near_device;
static uint32_t lease_ms;

static struct weft_lender *lender;
static struct weft_device *dev;
static struct lanes *lanes;

static int config_bool(const char *value, int *out)
{
	int it = nbdkit_parse_bool(value);

	if (it < 0)
		return -1;
	*out = it;
	return 0;
}

static int weft_config(const char *key, const char *value)
{
	if (!strcmp(key, "lender")) {
		lender_name = value;
		return 0;
	}
	if (!strcmp(key, "device")) {
		device_name = value;
		return 0;
	}
	if (!strcmp(key, "ticket")) {
		ticket = value;
		return 0;
	}
	if (!strcmp(key, "nsid"))
		return nbdkit_parse_uint32_t(key, value, &nsid);
	if (!strcmp(key, "queues"))
		return nbdkit_parse_unsigned(key, value, &queue_cnt);
	if (!strcmp(key, "shared"))
		return config_bool(value, &shared);
	if (!strcmp(key, "blocking"))
		return config_bool(value, &blocking);
	if (!strcmp(key, "near_device"))
		return config_bool(value, &near_device);
	if (!strcmp(key, "lease_ms"))
		return nbdkit_parse_uint32_t(key, value, &lease_ms);
	nbdkit_error("unknown parameter '%s'", key);
	return -1;
}

static int weft_config_complete(void)
{
	if (!nsid || !queue_cnt || queue_cnt > QUEUES_MAX || lease_ms > WEFT_LEASE_MS_MAX) {
		nbdkit_error("nsid is from 1 on, queues 1 to %u, lease_ms at most %u",
			     QUEUES_MAX, WEFT_LEASE_MS_MAX);
		return -1;
	}
	return 0;
}

/* A lease that was someone else's goes on. */
static void give_back(void)
{
	if (ticket)
		weft_device_leave(dev);
	else
		weft_device_return(dev);
	dev = NULL;
}

/* After nbdkit has gone to the background: a lease does not outlive a fork. */
static int weft_after_fork(void)
{
	const struct weft_borrow_attr attr = {
		.size = sizeof(attr),
		.name = device_name,
		.device_class = WEFT_CLASS_NVME,
		.flags = shared ? WEFT_BORROW_SHARED : 0,
		.ms = lease_ms,
	};
	const uint32_t flags = (blocking ? WEFT_NVME_BLOCKING : 0) |
			       (near_device ? WEFT_NVME_NEAR_DEVICE : 0);
	const char *what = "no lender";
	int ret;

	if (!ticket)
		ticket = getenv("WEFT_TICKET");
	if (ticket)
		ret = weft_lender_open_ticket(lender_name, ticket, NULL, &lender);
	else
		ret = weft_lender_open(lender_name, NULL, &lender);
	if (ret)
		goto err;
	what = "borrowing the device";
	if (ticket)
		ret = weft_device_attach(lender, ticket, &dev);
	else
		ret = weft_device_borrow(lender, &attr, &dev);
	if (ret)
		goto err_close;
	what = "opening a queue pair";
	ret = lanes_create(dev, nsid, queue_cnt, flags, &lanes);
	if (ret)
		goto err_return;
	return 0;

err_return:
	give_back();
err_close:
	weft_lender_close(lender);
	lender = NULL;
err:
	nbdkit_error("%s: %s", what, strerror(-ret));
	return -1;
}

static void weft_cleanup(void)
{
	if (lanes)
		lanes_destroy(lanes);
	if (dev)
		give_back();
	if (lender)
		weft_lender_close(lender);
	lanes = NULL;
	lender = NULL;
}

static void *weft_open(int readonly)
{
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t weft_get_size(void *handle)
{
	const struct weft_nvme_namespace *ns = lanes_namespace(lanes);

	return (int64_t)(ns->blocks * ns->block_size);
}

static int weft_block_size(void *handle, uint32_t *minimum, uint32_t *preferred,
			   uint32_t *maximum)
{
	*minimum = lanes_namespace(lanes)->block_size;
	*preferred = *minimum > BLOCK_PREFERRED ? *minimum : BLOCK_PREFERRED;
	*maximum = UINT32_MAX;
	return 0;
}

static int weft_yes(void *handle)
{
	return 1;
}

static int weft_can_fua(void *handle)
{
	return NBDKIT_FUA_NATIVE;
}

/* Returns what a request's call returns to nbdkit. */
static int answer(int err)
{
	if (!err)
		return 0;
	nbdkit_error("%s", strerror(err));
	nbdkit_set_error(err == ESTALE || err == ECANCELED ? EIO : err);
	return -1;
}

static bool whole_blocks(uint32_t len, uint64_t offset)
{
	const uint32_t size = lanes_namespace(lanes)->block_size;

	if (len % size == 0 && offset % size == 0)
		return true;
	nbdkit_error("blocks have %u bytes; --filter=blocksize serves others", size);
	nbdkit_set_error(EINVAL);
	return false;
}

static uint8_t fua_of(uint32_t flags)
{
	return flags & NBDKIT_FLAG_FUA ? WEFT_NVME_FUA : 0;
}

static int weft_pread(void *handle, void *buf, uint32_t len, uint64_t offset, uint32_t flags)
{
	struct lane *lane;
	int err;

	if (!whole_blocks(len, offset))
		return -1;
	lane = lane_take(lanes);
	err = lane_read(lane, buf, len, offset);
	lane_give(lane);
	return answer(err);
}

static int weft_pwrite(void *handle, const void *buf, uint32_t len, uint64_t offset,
		       uint32_t flags)
{
	struct lane *lane;
	int err;

	if (!whole_blocks(len, offset))
		return -1;
	lane = lane_take(lanes);
	err = lane_write(lane, buf, len, offset, fua_of(flags));
	lane_give(lane);
	return answer(err);
}

static int weft_flush(void *handle, uint32_t flags)
{
	struct lane *lane = lane_take(lanes);
	int err = lane_flush(lane);

	lane_give(lane);
	return answer(err);
}

/* NVMe has no FUA for this: the flush after it is that. */
static int weft_trim(void *handle, uint32_t len, uint64_t offset, uint32_t flags)
{
	struct lane *lane;
	int err;

	if (!whole_blocks(len, offset))
		return -1;
	lane = lane_take(lanes);
	err = lane_deallocate(lane, len, offset);
	if (!err && flags & NBDKIT_FLAG_FUA)
		err = lane_flush(lane);
	lane_give(lane);
	return answer(err);
}

static int weft_zero(void *handle, uint32_t len, uint64_t offset, uint32_t flags)
{
	struct lane *lane;
	int err;

	if (!whole_blocks(len, offset))
		return -1;
	lane = lane_take(lanes);
	err = lane_write_zeroes(lane, len, offset, fua_of(flags));
	lane_give(lane);
	return answer(err);
}

#define CONFIG_HELP                                                                               \
	"lender=SOCKET|HOST  the lender (default: WEFT_LENDER, WEFT_DIRECTORY, or this user's)\n" \
	"device=NAME         the device, or the beginning of its name (default: a free one)\n"    \
	"ticket=TEXT         of a lease to use (default: WEFT_TICKET, else it borrows)\n"         \
	"nsid=N              the namespace (default: 1)\n"                                        \
	"shared=BOOL         whether others may borrow it too (default: no)\n"                    \
	"queues=N            queue pairs at most (default: 4)\n"                                  \
	"blocking=BOOL       sleep until the device interrupts (default: yes)\n"                  \
	"near_device=BOOL    queues in the device's memory (default: no)\n"                       \
	"lease_ms=N          how long it stays borrowed if nbdkit no longer runs"

static struct nbdkit_plugin plugin = {
	.name = "weft",
	.longname = "Weft borrowed NVMe",
	.version = WEFT_VERSION,
	.description = "an NVMe namespace that a lender lends",
	.config = weft_config,
	.config_complete = weft_config_complete,
	.config_help = CONFIG_HELP,
	.magic_config_key = "device",
	.after_fork = weft_after_fork,
	.cleanup = weft_cleanup,
	.open = weft_open,
	.get_size = weft_get_size,
	.block_size = weft_block_size,
	.can_write = weft_yes,
	.can_flush = weft_yes,
	.can_trim = weft_yes,
	.can_zero = weft_yes,
	.can_fua = weft_can_fua,
	.can_multi_conn = weft_yes,
	.pread = weft_pread,
	.pwrite = weft_pwrite,
	.flush = weft_flush,
	.trim = weft_trim,
	.zero = weft_zero,
	.errno_is_preserved = 1,
};

/* What nbdkit calls; its macro defines it without a declaration, of which clang warns. */
struct nbdkit_plugin *plugin_init(void);
NBDKIT_REGISTER_PLUGIN(plugin)
