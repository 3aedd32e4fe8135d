/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finding devices. Called by btl/transport.c. */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "client.h"
#include "device.h"
#include "fabric.h"
#include "mr.h"

/* The interface that is asked for: the first with all modes of registration that are known here. */
#define BTL_API_VERSION FI_VERSION(1, 9)

/* Bytes of remote CQ data that the ids of messages need. */
#define CQ_DATA_MIN 2u

/* What registrations may have to be: btl/mem.c does it. */
#define MR_MODES                                                                               \
	(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY | \
	 FI_MR_RMA_EVENT | FI_MR_ENDPOINT)

static char *copy_of(const char *name)
{
	return name ? strdup(name) : NULL;
}

/*
 * The first version of Weft's providers. Theirs is the automatic progress that fi_domain(3)
 * describes; libfabric's tcp promises it and serves no peer while its program makes no calls.
 */
#define WEFT_VERSION FI_VERSION(1000, 0)

/*
 * What is asked for, the best first: with automatic progress, and without; without atomics; without
 * one-sided operations, or without completions that say that they have been carried out.
 */
static const struct wanted {
	uint64_t caps, op_flags;
	enum fi_progress progress;
} wanted[] = {
	{ FI_MSG | FI_RMA | FI_ATOMIC, FI_DELIVERY_COMPLETE, FI_PROGRESS_AUTO },
	{ FI_MSG | FI_RMA | FI_ATOMIC, FI_DELIVERY_COMPLETE, FI_PROGRESS_UNSPEC },
	{ FI_MSG | FI_RMA, FI_DELIVERY_COMPLETE, FI_PROGRESS_UNSPEC },
	{ FI_MSG, 0, FI_PROGRESS_UNSPEC },
};

static struct fi_info *hints_create(const struct weft_btl_attr *attr, const struct wanted *w)
{
	struct fi_info *hints = fabric_info_create();

	if (!hints)
		return NULL;
	hints->caps = w->caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->op_flags = w->op_flags;
	hints->domain_attr->mr_mode = MR_MODES;
	/* control calls, as registering is, come from any thread */
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->data_progress = w->progress;
	hints->fabric_attr->prov_name = copy_of(attr->provider);
	hints->domain_attr->name = copy_of(attr->device);
	if (!hints->fabric_attr->prov_name != !attr->provider ||
	    !hints->domain_attr->name != !attr->device) {
		fabric_info_destroy(hints);
		return NULL;
	}
	return hints;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* Whether @info is another device of the provider of the first. */
static bool is_another(const struct fi_info *info, const struct btl_device *devices, int cnt)
{
	for (int i = 0; i < cnt; i++) {
		const struct fi_info *other = devices[i].info;

		if (!same_text(info->fabric_attr->prov_name, other->fabric_attr->prov_name) ||
		    same_text(info->domain_attr->name, other->domain_attr->name))
			return false;
	}
	return true;
}

static int device_open(struct btl_device *device, const struct fi_info *info)
{
	int ret;

	device->info = fabric_info_copy(info);
	device->later_info = fabric_info_copy(info);
	ret = device->info && device->later_info
		      ? fabric_open(device->info->fabric_attr, &device->fabric)
		      : -FI_ENOMEM;
	if (ret) {
		fabric_info_destroy(device->info);
		fabric_info_destroy(device->later_info);
		return ret;
	}
	device->later_info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	device->later_info->domain_attr->threading = FI_THREAD_DOMAIN;
	device->mr_mode = fabric_mr_mode(info);
	device->serves = info->domain_attr->data_progress == FI_PROGRESS_AUTO &&
			 info->fabric_attr->prov_version >= WEFT_VERSION;
	device->max = info->ep_attr->max_msg_size ? info->ep_attr->max_msg_size : SIZE_MAX;
	device->inject_max = info->tx_attr->inject_size;
	device->has_messages = info->domain_attr->cq_data_size >= CQ_DATA_MIN;
	return 0;
}

/* Finds the best that there is. @w: out: which */
static int find(const struct weft_btl_attr *attr, struct fi_info **list, const struct wanted **w)
{
	int ret = -FI_ENODATA;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted) && ret == -FI_ENODATA; i++) {
		struct fi_info *hints = hints_create(attr, &wanted[i]);

		if (!hints)
			return -FI_ENOMEM;
		*w = &wanted[i];
		ret = fabric_getinfo(BTL_API_VERSION, NULL, NULL, 0, hints, list);
		fabric_info_destroy(hints);
	}
	return ret;
}

bool btl_device_takes(const struct btl_device *device, const unsigned char *addr, size_t len)
{
	if (device->info->addr_format == FI_ADDR_STR)
		return len && !addr[len - 1];
	return len == device->addr_len;
}

bool btl_device_has_atomic(struct fid_domain *domain, enum fi_op fi_op, enum fi_datatype type)
{
	uint64_t flags = fi_op == FI_CSWAP ? FI_COMPARE_ATOMIC : FI_FETCH_ATOMIC;
	struct fi_atomic_attr attr = { 0 };

	return !fi_query_atomic(domain, type, fi_op, &attr, flags) && attr.count;
}

void btl_device_probe(struct btl_device *device, struct fid_domain *domain)
{
	static const enum fi_op ops[] = { FI_SUM, FI_BAND, FI_BOR,	    FI_BXOR,
					  FI_MIN, FI_MAX,  FI_ATOMIC_WRITE, FI_CSWAP };
	static const enum fi_datatype types[] = { FI_INT32, FI_UINT32, FI_INT64, FI_UINT64 };

	for (size_t op = 0; op < sizeof(ops) / sizeof(*ops); op++)
		for (size_t type = 0; type < sizeof(types) / sizeof(*types); type++)
			if (!device->has_atomics ||
			    !btl_device_has_atomic(domain, ops[op], types[type])) {
				device->has_atomics = false;
				return;
			}
}

int btl_devices_open(const struct weft_btl_attr *attr, struct btl_device *devices, size_t max)
{
	const struct wanted *w;
	struct fi_info *list;
	int cnt = 0, ret = find(attr, &list, &w);

	if (ret)
		return ret;
	for (const struct fi_info *info = list; info && (size_t)cnt < max; info = info->next) {
		if (!is_another(info, devices, cnt))
			continue;
		/* peers are asked by messages, whose ids are remote CQ data */
		if (!(w->caps & FI_ATOMIC) && info->domain_attr->cq_data_size < CQ_DATA_MIN)
			continue;
		ret = device_open(&devices[cnt], info);
		if (ret)
			break;
		/* but for a thread of ours that serves */
		if (attr->flags & WEFT_BTL_ONE_THREAD && devices[cnt].serves)
			devices[cnt].info->domain_attr->threading = FI_THREAD_DOMAIN;
		devices[cnt].has_rma = w->caps & FI_RMA;
		if (!devices[cnt].has_rma)
			devices[cnt].max = BTL_REQUEST_DATA_MAX;
		devices[cnt].has_atomics = w->caps & FI_ATOMIC;
		cnt++;
	}
	fabric_info_destroy(list);
	return cnt ? cnt : ret ? ret : -FI_ENODATA;
}

void btl_devices_close(struct btl_device *devices, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		fi_close(&devices[i].fabric->fid);
		fabric_info_destroy(devices[i].info);
		fabric_info_destroy(devices[i].later_info);
	}
}
