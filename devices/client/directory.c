/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What programs ask of a directory as if it were a lender; lenders.h and weft/device.h have the contracts. The directory
 * itself is asked nothing here: what it has said is known, and lenders are asked for the rest.
 */
#define _GNU_SOURCE
#include "lenders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Devices that seem to be borrowed are asked for too, as that may have changed; but not all of a large site. */
#define BUSY_ASKED_MAX 64u

int directory_ask(struct directory *d, struct request *request)
{
	struct weft_lender *lender;
	int err;

	if (request->msg.kind == LEASE_IMPORT) {
		err = directory_hold_node(d, request->msg.device, &lender);
		err = err == -ENODEV ? -EHOSTUNREACH : err;
	} else {
		err = directory_hold_device(d, request->msg.device, &lender);
	}
	if (err)
		return err;
	err = lender_ask(lender, request);
	lender_release(lender);
	return err;
}

int directory_list(struct directory *d, struct weft_device_info *infos, size_t *cnt)
{
	struct weft_device_info *all;
	ssize_t n = directory_devices(d, &all);
	size_t room = *cnt;

	if (n < 0)
		return (int)n;
	/* Without room there may be no memory either. */
	if (room)
		memcpy(infos, all, ((size_t)n < room ? (size_t)n : room) * sizeof(*infos));
	free(all);
	*cnt = (size_t)n;
	return (size_t)n > room ? -FI_ETOOSMALL : 0;
}

/* How promising it is to ask for a device. */
enum rank { RANK_FREE, RANK_SHARED, RANK_BUSY, RANKS };

static enum rank rank_of(const struct weft_device_info *info, uint32_t flags)
{
	if (info->state == WEFT_DEVICE_FREE)
		return RANK_FREE;
	return info->state == WEFT_DEVICE_SHARED && flags & WEFT_BORROW_SHARED ? RANK_SHARED
									       : RANK_BUSY;
}

static bool fits(const struct weft_device_info *info, const struct weft_borrow_attr *attr)
{
	return info->state != WEFT_DEVICE_FAILED &&
	       (!attr->device_class || info->device_class == attr->device_class) &&
	       (!attr->vendor || info->vendor == attr->vendor) &&
	       (!attr->name || !strncmp(info->name, attr->name, strlen(attr->name)));
}

/*
 * Leave those that fit. Returns how many, or -ENOTUNIQ: several have names that begin so, and none has the whole name
 * alone.
 */
static ssize_t leave_fitting(struct weft_device_info *infos, size_t cnt,
			     const struct weft_borrow_attr *attr)
{
	size_t i, left = 0;

	for (i = 0; i < cnt; i++) {
		if (!fits(&infos[i], attr))
			continue;
		infos[left++] = infos[i];
		if (attr->name && !strcmp(infos[i].name, attr->name)) {
			infos[0] = infos[i];
			return 1;
		}
	}
	return attr->name && left > 1 ? -ENOTUNIQ : (ssize_t)left;
}

/* Borrow a device from its lender, which stays held until it is returned. */
static int borrow_one(struct directory *d, const struct weft_device_info *info,
		      const struct weft_borrow_attr *attr, struct weft_device **dev)
{
	struct weft_borrow_attr one = *attr;
	struct weft_lender *lender;
	int err = directory_hold_node(d, info->node, &lender);

	if (err)
		return err;
	one.size = sizeof(one);
	one.name = info->name;
	err = weft_device_borrow(lender, &one, dev);
	if (err)
		lender_release(lender);
	return err;
}

/* The first that can be had, the promising ones first. A lender that does not answer is not asked again. */
static int borrow_first(struct directory *d, struct weft_device_info *infos, size_t cnt,
			const struct weft_borrow_attr *attr, struct weft_device **dev)
{
	size_t i, k, busy = 0;
	int err = -ENODEV, why;
	enum rank rank;
	uint64_t node;

	for (rank = RANK_FREE; rank < RANKS; rank++)
		for (i = 0; i < cnt; i++) {
			if (!infos[i].node || rank_of(&infos[i], attr->flags) != rank)
				continue;
			if (rank == RANK_BUSY && ++busy > BUSY_ASKED_MAX)
				return err;
			why = borrow_one(d, &infos[i], attr, dev);
			if (!why || why == -EINVAL)
				return why;
			node = infos[i].node;
			for (k = 0; why == -ETIMEDOUT && k < cnt; k++)
				if (infos[k].node == node)
					infos[k].node = 0;
			/* That one is there and borrowed says more than that another one is not. */
			if (err == -ENODEV || why == -EBUSY)
				err = why;
		}
	return err;
}

int directory_borrow(struct directory *d, const struct weft_borrow_attr *attr,
		     struct weft_device **dev)
{
	struct weft_device_info *infos;
	ssize_t cnt = directory_devices(d, &infos);
	int err;

	if (cnt < 0)
		return (int)cnt;
	cnt = leave_fitting(infos, (size_t)cnt, attr);
	err = cnt < 0 ? (int)cnt : borrow_first(d, infos, (size_t)cnt, attr, dev);
	free(infos);
	return err;
}

int directory_attach(struct directory *d, const char *ticket, struct weft_device **dev)
{
	struct lease_message msg;
	struct weft_lender *lender;
	const char *place;
	int err = device_ticket(ticket, &msg, &place);

	if (!err)
		err = directory_hold_device(d, msg.device, &lender);
	if (err)
		return err;
	err = weft_device_attach(lender, ticket, dev);
	if (err)
		lender_release(lender);
	return err;
}
