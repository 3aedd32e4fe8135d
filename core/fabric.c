/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_fabric and fi_fabric2: find the provider, let it open the fabric, and hold a reference
 * to it until the fabric is closed. Called by programs on any thread.
 *
 * Later calls go through the fabric's own op tables and not through the core. Only fi_close comes here, by a
 * copy of the fid's op table with another close function.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

#include "export.h"
#include "log.h"
#include "naming.h"
#include "registry.h"
#include "start.h"

/* Holds the op table that the fid of an open fabric points to. */
struct fabric_hold {
	struct fi_ops *provider_ops;
	struct registry_entry *entry;
	/* last member: as long as the provider's op table */
	struct fi_ops ops;
};

static int fabric_close(struct fid *fid)
{
	struct fabric_hold *hold;
	int err;

	hold = (struct fabric_hold *)((char *)fid->ops - offsetof(struct fabric_hold, ops));
	fid->ops = hold->provider_ops;
	err = fi_close(fid);
	if (err) {
		/* The fabric is still open, for example because a domain is; the caller may retry. */
		fid->ops = &hold->ops;
		return err;
	}
	registry_put(hold->entry);
	free(hold);
	return 0;
}

/* On success the fabric owns the reference to the entry. */
static int fabric_hold(struct fid_fabric *fabric, struct registry_entry *entry)
{
	struct fi_ops *ops = fabric->fid.ops;
	size_t len = ops->size > sizeof(*ops) ? ops->size : sizeof(*ops);
	struct fabric_hold *hold;

	hold = calloc(1, offsetof(struct fabric_hold, ops) + len);
	if (!hold)
		return -FI_ENOMEM;
	memcpy(&hold->ops, ops, ops->size);
	hold->ops.close = fabric_close;
	hold->provider_ops = ops;
	hold->entry = entry;
	fabric->fid.ops = &hold->ops;
	return 0;
}

static int fabric_open(const struct naming *naming, struct fi_fabric_attr *attr,
		       struct fid_fabric **fabric_out, void *context)
{
	struct registry_entry *entry = naming_target(naming);
	struct fi_fabric_attr own = *attr;
	struct fid_fabric *fabric = NULL;
	int err;

	if (!entry) {
		FI_WARN(&core_provider, FI_LOG_CORE, "fi_fabric: no provider %s\n",
			attr->prov_name);
		return -FI_ENODEV;
	}
	/* A provider is passed the name of its identity, as by fi_getinfo; it is only read. */
	if (naming->identity)
		own.prov_name = (char *)naming->identity->name;
	err = entry->prov->fabric(&own, &fabric, context);
	if (err)
		goto err_put;
	fabric->api_version = attr->api_version;
	err = fabric_hold(fabric, entry);
	if (err)
		goto err_close;
	FI_INFO(&core_provider, FI_LOG_CORE, "opened the fabric %s of %s\n", attr->name,
		entry->prov->name);
	*fabric_out = fabric;
	return 0;

err_close:
	fi_close(&fabric->fid);
err_put:
	registry_put(entry);
	return err;
}

CORE_EXPORT int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct naming naming;
	int err;

	if (!attr || !attr->prov_name || !attr->name || !fabric)
		return -FI_EINVAL;
	core_start();
	err = naming_init(&naming, attr->prov_name);
	if (err)
		return err;
	err = fabric_open(&naming, attr, fabric, context);
	naming_fini(&naming);
	return err;
}

CORE_EXPORT int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric, uint64_t flags,
			   void *context)
{
	if (!info || flags)
		return -FI_EINVAL;
	return fi_fabric(info->fabric_attr, fabric, context);
}
