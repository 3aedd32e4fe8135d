/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finding devices. Called by btl/transport.c. */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "device.h"

/* What registrations may have to be: btl/mem.c does it. */
#define MR_MODES                                                                               \
	(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY | \
	 FI_MR_RMA_EVENT | FI_MR_ENDPOINT)

static char *copy_of(const char *name)
{
	return name ? strdup(name) : NULL;
}

/*
 * The first version of Weft's providers. Theirs is the automatic progress that fi_domain(3) describes; libfabric's
 * tcp promises it and serves no peer while its program makes no calls.
 */
#define WEFT_VERSION FI_VERSION(1000, 0)

static struct fi_info *hints_create(const struct weft_btl_attr *attr, enum fi_progress progress)
{
	struct fi_info *hints = btl_info_create();

	if (!hints)
		return NULL;
	hints->caps = FI_RMA | FI_ATOMIC;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->domain_attr->mr_mode = MR_MODES;
	/* control calls, as registering is, come from any thread */
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->data_progress = progress;
	hints->fabric_attr->prov_name = copy_of(attr->provider);
	hints->domain_attr->name = copy_of(attr->device);
	if (!hints->fabric_attr->prov_name != !attr->provider ||
	    !hints->domain_attr->name != !attr->device) {
		btl_info_destroy(hints);
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

/* Before 1.5 two words stood for what single bits say since. */
static int mr_mode_of(const struct fi_info *info)
{
	switch (info->domain_attr->mr_mode) {
	case FI_MR_BASIC:
		return FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	case FI_MR_SCALABLE:
		return 0;
	default:
		return info->domain_attr->mr_mode;
	}
}

static int device_open(struct btl_device *device, const struct fi_info *info)
{
	int ret;

	device->info = btl_info_copy(info);
	if (!device->info)
		return -FI_ENOMEM;
	ret = btl_fabric_open(device->info->fabric_attr, &device->fabric);
	if (ret) {
		btl_info_destroy(device->info);
		return ret;
	}
	device->mr_mode = mr_mode_of(info);
	device->serves = info->domain_attr->data_progress == FI_PROGRESS_AUTO &&
			 info->fabric_attr->prov_version >= WEFT_VERSION;
	device->max = info->ep_attr->max_msg_size ? info->ep_attr->max_msg_size : SIZE_MAX;
	return 0;
}

static int find(const struct weft_btl_attr *attr, struct fi_info **list)
{
	static const enum fi_progress kinds[] = { FI_PROGRESS_AUTO, FI_PROGRESS_UNSPEC };
	int ret = -FI_ENODATA;

	for (size_t i = 0; i < 2 && ret == -FI_ENODATA; i++) {
		struct fi_info *hints = hints_create(attr, kinds[i]);

		if (!hints)
			return -FI_ENOMEM;
		ret = btl_getinfo(hints, list);
		btl_info_destroy(hints);
	}
	return ret;
}

int btl_devices_open(const struct weft_btl_attr *attr, struct btl_device *devices, size_t max)
{
	struct fi_info *list;
	int cnt = 0, ret = find(attr, &list);

	if (ret)
		return ret;
	for (const struct fi_info *info = list; info && (size_t)cnt < max; info = info->next) {
		if (!is_another(info, devices, cnt))
			continue;
		ret = device_open(&devices[cnt], info);
		if (ret)
			break;
		cnt++;
	}
	btl_info_destroy(list);
	return cnt ? cnt : ret;
}

void btl_devices_close(struct btl_device *devices, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		fi_close(&devices[i].fabric->fid);
		btl_info_destroy(devices[i].info);
	}
}
