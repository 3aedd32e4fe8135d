/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A loadable provider for ../compat_test.c, written as ours are: it answers with info/ and
 * refers to symbols of FABRIC_1.0 alone, so that libfabrics of any age can load it. Its
 * fi_domain reads the fi_info that it is given, and opens nothing.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include "info.h"

static int answer_getinfo(uint32_t version, const char *node, const char *service,
			  uint64_t flags, const struct fi_info *hints, struct fi_info **info);
static int answer_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

static struct fi_provider prov = {
	.version = FI_VERSION(4, 2),
	.fi_version = FI_VERSION(1, 17),
	.name = "answer",
	.getinfo = answer_getinfo,
	.fabric = answer_fabric,
};

static struct fi_tx_attr tx_attr = {
	.caps = FI_TAGGED | FI_SEND,
	.size = 64,
	.tclass = FI_TC_BULK_DATA,
};
static struct fi_rx_attr rx_attr = { .caps = FI_TAGGED | FI_RECV, .size = 64 };
static struct fi_ep_attr ep_attr = { .type = FI_EP_RDM, .tx_ctx_cnt = 1, .rx_ctx_cnt = 1 };
static struct fi_domain_attr domain_attr = {
	.name = "domain",
	.threading = FI_THREAD_SAFE,
	.max_ep_tx_ctx = 1,
	.max_ep_rx_ctx = 1,
	.mr_key_size = 8,
	.max_cntr_value = 77,
};
static struct fi_fabric_attr fabric_attr = { .name = "fabric" };
static const struct fi_info offer = {
	.caps = FI_TAGGED | FI_SEND | FI_RECV,
	.tx_attr = &tx_attr,
	.rx_attr = &rx_attr,
	.ep_attr = &ep_attr,
	.domain_attr = &domain_attr,
	.fabric_attr = &fabric_attr,
};

static int answer_getinfo(uint32_t version, const char *node, const char *service,
			  uint64_t flags, const struct fi_info *hints, struct fi_info **info)
{
	return info_answer(&prov, &offer, NULL, hints, version, info);
}

/* -FI_ENOSYS: the info was read and is what was answered. */
static int answer_domain(struct fid_fabric *fabric, struct fi_info *info,
			 struct fid_domain **domain, void *context)
{
	struct fi_info *whole = info_dup(info, info_layout_of_core(fi_version()));
	bool right;

	if (!whole)
		return -FI_ENOMEM;
	right = whole->caps & FI_TAGGED && !strcmp(whole->domain_attr->name, "domain") &&
		whole->domain_attr->mr_key_size == 8 && !whole->domain_attr->max_ep_auth_key;
	info_free(whole);
	return right ? -FI_ENOSYS : -FI_EINVAL;
}

static int answer_close(struct fid *fid)
{
	free(fid);
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = answer_close,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = answer_domain,
};

static int answer_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct fid_fabric *open;

	if (strcmp(attr->name, "fabric"))
		return -FI_ENODATA;
	open = calloc(1, sizeof(*open));
	if (!open)
		return -FI_ENOMEM;
	open->fid.fclass = FI_CLASS_FABRIC;
	open->fid.context = context;
	open->fid.ops = &fabric_fid_ops;
	open->ops = &fabric_ops;
	*fabric = open;
	return 0;
}

struct fi_provider *fi_prov_ini(void);

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void)
{
	return &prov;
}
