/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Leases, at the borrower; weft/device.h has the contract.
 */
#define _GNU_SOURCE
#include "lenders.h"
#include "nvme.h"
#include "spec.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MS 10000u

/* How long after its time a lease has surely been ended by a controller that runs. */
#define MARGIN_MS 500u

void device_end(struct weft_device *dev, int err)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&dev->ended, &none, err))
		keeper_wake(dev->lender);
}

void device_wake(struct weft_device *dev)
{
	struct weft_nvme *qp;

	pthread_mutex_lock(&dev->lock);
	for (qp = dev->pairs; qp; qp = qp->next)
		nvme_wake(qp);
	pthread_mutex_unlock(&dev->lock);
}

int device_ended(struct weft_device *dev, bool look)
{
	int err = atomic_load_explicit(&dev->ended, memory_order_acquire);

	if (!err && look && client_now_ms() > atomic_load(&dev->over_ms)) {
		device_end(dev, -ESTALE);
		err = -ESTALE;
	}
	return err;
}

void device_name(const struct weft_device *dev, struct lease_message *msg)
{
	msg->device = dev->info.id;
	msg->lease = dev->lease;
	msg->generation = dev->generation;
	msg->token = dev->token;
}

int device_ask(struct weft_device *dev, struct request *request)
{
	uint64_t over = atomic_load(&dev->over_ms) + 1;
	int err = device_ended(dev, false);

	device_name(dev, &request->msg);
	if (!request->until_ms || over < request->until_ms)
		request->until_ms = over;
	if (!err)
		err = lender_ask(dev->lender, request);
	if (err == -ETIMEDOUT && device_ended(dev, true))
		err = -ESTALE;
	if (err == -ESTALE)
		device_end(dev, err);
	return err;
}

/* Between two requests others have the connection, and the keeper renews the lease. */
int device_ask_end(struct weft_device *dev, const struct lease_message *msg, uint64_t until_ms)
{
	int err;

	for (;;) {
		struct request request = { .msg = *msg };

		err = device_ask(dev, &request);
		if (err != -EINPROGRESS || client_now_ms() >= until_ms)
			return err;
		poll(NULL, 0, LENDER_PAUSE_MS);
	}
}

/* A device that nothing is known of yet. */
static struct weft_device *create(struct weft_lender *lender)
{
	struct weft_device *dev = calloc(1, sizeof(*dev));

	if (!dev)
		return NULL;
	dev->lender = lender;
	atomic_init(&dev->refs, 1);
	pthread_mutex_init(&dev->lock, NULL);
	return dev;
}

/* Send a request that is answered with the device, and have its lease. */
static int take(struct weft_device *dev, struct request *request, struct weft_device **out)
{
	struct weft_lender *lender = dev->lender;
	int err = lender_ask(lender, request);

	if (!err)
		err = lender_take_info(request, &dev->info);
	if (err) {
		device_unref(dev);
		return err;
	}
	dev->lease = request->msg.lease;
	dev->generation = request->msg.generation;
	dev->token = request->msg.token;
	dev->kept = request->msg.flags & LEASE_KEPT;
	dev->ms = request->msg.ms;
	atomic_store(&dev->over_ms, client_now_ms() + dev->ms + MARGIN_MS);
	dev->renew_ms = client_now_ms() + dev->ms / 3;
	pthread_mutex_lock(&lender->devices_lock);
	dev->next = lender->devices;
	lender->devices = dev;
	pthread_mutex_unlock(&lender->devices_lock);
	keeper_wake(lender);
	*out = dev;
	return 0;
}

int weft_device_borrow(struct weft_lender *lender, const struct weft_borrow_attr *attr,
		       struct weft_device **out)
{
	static const struct weft_borrow_attr none = { .size = sizeof(none) };
	union {
		char name[WEFT_DEVICE_NAME_MAX];
		struct weft_device_info info;
	} data;
	struct request request = { .msg = { .kind = LEASE_BORROW },
				   .data = &data,
				   .data_room = sizeof(data) };
	struct weft_device *dev;

	if (!attr)
		attr = &none;
	if (attr->size < sizeof(*attr) || attr->flags & ~WEFT_BORROW_SHARED)
		return -EINVAL;
	if (lender->directory)
		return directory_borrow(lender->directory, attr, out);
	request.msg.flags = (attr->flags & WEFT_BORROW_SHARED ? LEASE_SHARED : 0) |
			    (attr->keep ? LEASE_KEPT : 0);
	request.msg.ms = attr->ms ? attr->ms : DEFAULT_MS;
	request.msg.device = attr->device_class;
	request.msg.count = attr->vendor;
	if (attr->name) {
		if (strlen(attr->name) >= sizeof(data.name))
			return -ENODEV;
		request.msg.data_len = (uint32_t)strlen(attr->name);
		memcpy(data.name, attr->name, request.msg.data_len);
	}
	dev = create(lender);
	return dev ? take(dev, &request, out) : -ENOMEM;
}

int weft_device_attach(struct weft_lender *lender, const char *ticket, struct weft_device **out)
{
	struct weft_device_info info;
	struct request request = { .msg = { .kind = LEASE_ATTACH },
				   .data = &info,
				   .data_room = sizeof(info) };
	struct weft_device *dev;
	const char *place;

	if (lender->directory)
		return directory_attach(lender->directory, ticket, out);
	if (device_ticket(ticket, &request.msg, &place))
		return -EINVAL;
	dev = create(lender);
	if (!dev)
		return -ENOMEM;
	dev->attached = true;
	return take(dev, &request, out);
}

const struct weft_device_info *weft_device_info(const struct weft_device *dev)
{
	return &dev->info;
}

uint32_t weft_device_lease(const struct weft_device *dev)
{
	return dev->lease;
}

static int renew(struct weft_device *dev, uint32_t ms, uint64_t until_ms)
{
	struct request request = { .msg = { .kind = LEASE_RENEW, .ms = ms },
				   .until_ms = until_ms };
	int err = device_ask(dev, &request);

	if (!err)
		atomic_store(&dev->over_ms, client_now_ms() + ms + MARGIN_MS);
	return err;
}

int weft_device_renew(struct weft_device *dev, uint32_t ms)
{
	if (!ms || ms > WEFT_LEASE_MS_MAX)
		return -EINVAL;
	return renew(dev, ms, 0);
}

int device_keep(struct weft_device *dev, uint64_t until_ms)
{
	struct weft_device_info info;
	struct request request = { .msg = { .kind = LEASE_ATTACH },
				   .data = &info,
				   .data_room = sizeof(info),
				   .until_ms = until_ms };
	int err;

	if (!dev->kept && !dev->attached)
		return renew(dev, dev->ms, until_ms);
	err = device_ask(dev, &request);
	if (err)
		return err;
	dev->ms = request.msg.ms;
	atomic_store(&dev->over_ms, client_now_ms() + dev->ms + MARGIN_MS);
	return 0;
}

int weft_device_share(struct weft_device *dev)
{
	struct request request = { .msg = { .kind = LEASE_SHARE } };

	return device_ask(dev, &request);
}

static void unlink_device(struct weft_device *dev)
{
	struct weft_lender *lender = dev->lender;
	struct weft_device **at = &lender->devices;

	pthread_mutex_lock(&lender->devices_lock);
	while (*at != dev)
		at = &(*at)->next;
	*at = dev->next;
	pthread_mutex_unlock(&lender->devices_lock);
}

/* Nothing is asked of the lender about the lease any more, and what was open on it is closed. */
static void leave(struct weft_device *dev)
{
	struct weft_lender *lender = dev->lender;

	device_end(dev, -ESTALE);
	while (dev->pairs)
		weft_nvme_close(dev->pairs);
	while (dev->windows)
		weft_window_close(dev->windows);
	device_unref(dev);
	lender_release(lender);
}

int weft_device_return(struct weft_device *dev)
{
	const struct lease_message msg = { .kind = LEASE_RETURN };

	unlink_device(dev);
	device_ask_end(dev, &msg, client_now_ms() + LENDER_ANSWER_MS);
	leave(dev);
	return 0;
}

void weft_device_leave(struct weft_device *dev)
{
	struct weft_window *window, *next;

	if (!dev->kept && !dev->attached) {
		weft_device_return(dev);
		return;
	}
	unlink_device(dev);
	/* What this process has open is of no use to the next one that attaches. */
	while (dev->pairs)
		weft_nvme_close(dev->pairs);
	for (window = dev->windows; window; window = next) {
		next = window->next;
		weft_window_close(window);
	}
	leave(dev);
}

void device_unref(struct weft_device *dev)
{
	if (atomic_fetch_sub(&dev->refs, 1) > 1)
		return;
	free(dev->spans);
	pthread_mutex_destroy(&dev->lock);
	free(dev);
}

/* An admin command that reads: out: NVME_PAGE bytes */
static int ask_controller(struct weft_lender *lender, struct lease_message msg, void *page)
{
	struct request request = { .msg = msg, .data = page, .data_room = NVME_PAGE };
	int err;

	request.msg.kind = LEASE_ADMIN;
	err = lender_ask(lender, &request);
	if (err)
		return err;
	if (request.msg.data_len != NVME_PAGE)
		return -ENOPROTOOPT;
	return request.msg.offset >> 32 ? -EIO : 0;
}

int weft_nvme_identify(struct weft_lender *lender, uint64_t device, uint32_t nsid, uint32_t cns,
		       void *page)
{
	struct lease_message msg = { .device = device,
				     .addr = cns,
				     .offset = NVME_ADMIN_IDENTIFY | (uint64_t)nsid << 32 };

	return ask_controller(lender, msg, page);
}

int weft_nvme_log(struct weft_lender *lender, uint64_t device, uint8_t id, void *out, size_t len)
{
	struct lease_message msg = {
		.device = device,
		.addr = id | (uint64_t)(len / 4 - 1) << 16,
		.offset = NVME_ADMIN_GET_LOG_PAGE | (uint64_t)UINT32_MAX << 32,
	};
	uint8_t page[NVME_PAGE];
	int err;

	if (!len || len % 4 || len > sizeof(page))
		return -EINVAL;
	err = ask_controller(lender, msg, page);
	if (!err)
		memcpy(out, page, len);
	return err;
}

static int ask_namespace(struct weft_device *dev, uint32_t nsid, struct namespace *out)
{
	union {
		struct nvme_id_ctrl ctrl;
		struct nvme_id_ns ns;
	} *page = malloc(sizeof(*page));
	uint32_t transfer_max = 0;
	uint8_t shift;
	int err;

	if (!page)
		return -ENOMEM;
	err = weft_nvme_identify(dev->lender, dev->info.id, 0, NVME_CNS_CONTROLLER, page);
	if (!err && page->ctrl.mdts && page->ctrl.mdts < 20)
		transfer_max = NVME_PAGE << page->ctrl.mdts;
	if (!err)
		err = weft_nvme_identify(dev->lender, dev->info.id, nsid, NVME_CNS_NAMESPACE,
					 page);
	err = err == -EIO ? -ENODEV : err;
	shift = page->ns.lbaf[page->ns.flbas & 0xf].lbads;
	/* What is not active is all zeros. */
	if (!err && (shift < 9 || shift > 16 || !page->ns.nsze))
		err = -ENODEV;
	if (!err)
		*out = (struct namespace){ page->ns.nsze, 1u << shift, transfer_max };
	free(page);
	return err;
}

int device_namespace(struct weft_device *dev, uint32_t nsid, struct namespace *ns)
{
	int err = 0;

	if (!nsid || nsid > DEVICE_NAMESPACES)
		return -ENODEV;
	pthread_mutex_lock(&dev->lock);
	*ns = dev->namespaces[nsid];
	pthread_mutex_unlock(&dev->lock);
	if (ns->block_size)
		return 0;
	err = ask_namespace(dev, nsid, ns);
	if (err)
		return err;
	pthread_mutex_lock(&dev->lock);
	dev->namespaces[nsid] = *ns;
	pthread_mutex_unlock(&dev->lock);
	return 0;
}
