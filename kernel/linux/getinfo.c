/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo, fi_dupinfo and fi_freeinfo for consumers in the kernel. Each provider that the hints may mean is asked;
 * a consumer gets a copy of the answers, which no provider has a part in. Process context; all of it may sleep.
 */
#include <linux/module.h>
#include <linux/string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "core.h"
#include "info.h"

/* A query, and the list of its answers. */
struct query {
	uint32_t version;
	const char *node, *service;
	uint64_t flags;
	const struct fi_info *hints;
	struct fi_info *head;
};

static bool is_meant(const struct query *q, const struct kofi_provider *provider)
{
	const struct fi_fabric_attr *fabric = q->hints ? q->hints->fabric_attr : NULL;

	return !fabric || !fabric->prov_name || !strcasecmp(fabric->prov_name, provider->name);
}

static bool differs(const char *asked, const char *name)
{
	return asked && (!name || strcasecmp(asked, name));
}

/* Returns false for an answer that lacks a part, or is for another domain or fabric than the hints name. */
static bool is_answer(const struct query *q, const struct fi_info *info)
{
	const struct fi_info *hints = q->hints;

	if (!info->tx_attr || !info->rx_attr || !info->ep_attr || !info->domain_attr ||
	    !info->fabric_attr)
		return false;
	if (hints && hints->domain_attr &&
	    differs(hints->domain_attr->name, info->domain_attr->name))
		return false;
	return !hints || !hints->fabric_attr ||
	       !differs(hints->fabric_attr->name, info->fabric_attr->name);
}

/* Appends a copy of one answer. Returns 0 or -FI_ENOMEM. */
static int answer_take(struct query *q, const struct kofi_provider *provider,
		       const struct fi_info *info)
{
	struct fi_info *copy = info_dup(info, NULL);
	char *name = kofi_text_copy(provider->name);

	if (!copy || !name) {
		info_free(copy);
		kofi_text_free(name);
		return -FI_ENOMEM;
	}
	kofi_text_free(copy->fabric_attr->prov_name);
	copy->fabric_attr->prov_name = name;
	copy->fabric_attr->prov_version = provider->version;
	copy->fabric_attr->api_version = q->version;
	info_append(&q->head, copy);
	return 0;
}

/* Asks one provider. Returns 0, also when it refuses, or -FI_ENOMEM. */
static int provider_ask(struct query *q, struct kofi_entry *entry)
{
	const struct kofi_provider *provider = entry->provider;
	struct fi_info *answers = NULL;
	const struct fi_info *info;
	int ret;

	ret = provider->getinfo(q->version, q->node, q->service, q->flags, q->hints, &answers);
	kofi_entry_asked(entry, !ret);
	if (ret)
		return ret == -FI_ENOMEM ? ret : 0;
	for (info = answers; info && !ret; info = info->next)
		if (is_answer(q, info))
			ret = answer_take(q, provider, info);
	provider->freeinfo(answers);
	return ret;
}

/* FI_PROV_ATTR_ONLY: the name and version of a provider. Returns 0 or -FI_ENOMEM. */
static int provider_list(struct query *q, const struct kofi_provider *provider)
{
	struct fi_info *info = info_alloc();
	int ret = info ? answer_take(q, provider, info) : -FI_ENOMEM;

	info_free(info);
	return ret;
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **info)
{
	struct query q = {
		.version = version,
		.node = node,
		.service = service,
		.flags = flags,
		.hints = hints,
	};
	struct kofi_entry *entry = NULL;
	int ret = 0;

	might_sleep();
	if (!info)
		return -FI_EINVAL;
	*info = NULL;
	if (version > fi_version())
		return -FI_ENOSYS;
	while (!ret && (entry = kofi_entry_next(entry))) {
		if (flags & FI_PROV_ATTR_ONLY)
			ret = provider_list(&q, entry->provider);
		else if (is_meant(&q, entry->provider))
			ret = provider_ask(&q, entry);
	}
	if (entry)
		kofi_entry_put(entry);
	if (ret) {
		info_free(q.head);
		return ret;
	}
	*info = q.head;
	return q.head ? 0 : -FI_ENODATA;
}
EXPORT_SYMBOL_GPL(fi_getinfo);

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	might_sleep();
	return info_dup(info, NULL);
}
EXPORT_SYMBOL_GPL(fi_dupinfo);

void fi_freeinfo(struct fi_info *info)
{
	might_sleep();
	info_free(info);
}
EXPORT_SYMBOL_GPL(fi_freeinfo);
