/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_fabric: find the provider, let it open the fabric, and hold it until the fabric is closed. Process context.
 *
 * Later calls go through the fabric's own op tables and not through the core: a call is one indirect call, as in user
 * space. Only fi_close comes here, by a copy of the fid's op table with another close function.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "core.h"

/* Holds the op table that the fid of an open fabric points to. */
struct fabric_hold {
	struct fi_ops *provider_ops;
	struct kofi_entry *entry;
	/* last member: as long as the provider's op table */
	struct fi_ops ops;
};

static int fabric_close(struct fid *fid)
{
	struct fabric_hold *hold = container_of(fid->ops, struct fabric_hold, ops);
	int ret;

	might_sleep();
	fid->ops = hold->provider_ops;
	ret = fi_close(fid);
	if (ret) {
		/* The fabric is still open, because a domain is; the caller may retry. */
		fid->ops = &hold->ops;
		return ret;
	}
	kofi_entry_put(hold->entry);
	kfree(hold);
	return 0;
}

/* On success the fabric owns the hold of the entry. */
static int fabric_hold(struct fid_fabric *fabric, struct kofi_entry *entry)
{
	struct fi_ops *ops = fabric->fid.ops;
	size_t len = max(ops->size, sizeof(*ops));
	struct fabric_hold *hold = kzalloc(offsetof(struct fabric_hold, ops) + len, GFP_KERNEL);

	if (!hold)
		return -FI_ENOMEM;
	unsafe_memcpy(&hold->ops, ops, ops->size,
		      /* the table is the last member, and may be longer */);
	hold->ops.close = fabric_close;
	hold->provider_ops = ops;
	hold->entry = entry;
	fabric->fid.ops = &hold->ops;
	return 0;
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric_out, void *context)
{
	struct fid_fabric *fabric = NULL;
	struct kofi_entry *entry;
	int ret;

	might_sleep();
	if (!attr || !attr->prov_name || !attr->name || !fabric_out)
		return -FI_EINVAL;
	entry = kofi_entry_find(attr->prov_name);
	if (!entry) {
		kofi_complain("fi_fabric: no provider %s", attr->prov_name);
		return -FI_ENODEV;
	}
	ret = entry->provider->fabric(attr, &fabric, context);
	if (ret)
		goto err_put;
	fabric->api_version = attr->api_version;
	ret = fabric_hold(fabric, entry);
	if (ret)
		goto err_close;
	kofi_entry_opened(entry);
	*fabric_out = fabric;
	return 0;

err_close:
	fi_close(&fabric->fid);
err_put:
	kofi_entry_put(entry);
	return ret;
}
EXPORT_SYMBOL_GPL(fi_fabric);

int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric, uint64_t flags, void *context)
{
	if (!info || flags)
		return -FI_EINVAL;
	return fi_fabric(info->fabric_attr, fabric, context);
}
EXPORT_SYMBOL_GPL(fi_fabric2);
