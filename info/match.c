/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Comparison of the hints of fi_getinfo(3) with an offer, one after the other; the first hint that is not met
 * gives the reason.
 *
 * Runs inside a provider's getinfo, on the application's thread, without locks. The hints
 * come from the application through the core, which may be an older stock one: fields
 * are read only as far as that core's structures reach, and newer meanings only if the
 * application asked for an API version that has them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

#include "info.h"
#include "mr_mode.h"
#include "names.h"
#include "query.h"

static bool format_is_ip(uint32_t format)
{
	return format == FI_SOCKADDR_IP || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
}

/* FI_SOCKADDR and FI_SOCKADDR_IP stand for several formats on either side. */
static bool format_fits(uint32_t offered, uint32_t asked)
{
	if (asked == FI_FORMAT_UNSPEC || asked == offered)
		return true;
	switch (offered) {
	case FI_SOCKADDR:
		return format_is_ip(asked) || asked == FI_SOCKADDR_IB;
	case FI_SOCKADDR_IP:
		return format_is_ip(asked) || asked == FI_SOCKADDR;
	case FI_SOCKADDR_IN:
	case FI_SOCKADDR_IN6:
		return asked == FI_SOCKADDR_IP || asked == FI_SOCKADDR;
	case FI_SOCKADDR_IB:
		return asked == FI_SOCKADDR;
	default:
		return false;
	}
}

static int check_info(const struct info_query *q)
{
	const struct fi_info *offer = q->offer, *hints = q->hints;

	if (hints->ep_attr && hints->ep_attr->type != FI_EP_UNSPEC &&
	    hints->ep_attr->type != offer->ep_attr->type)
		return query_refuse(q, "the hints ask for %s endpoints, and these are %s",
				    info_name_of(info_names_ep_type, hints->ep_attr->type),
				    info_name_of(info_names_ep_type, offer->ep_attr->type));
	if (hints->caps & ~offer->caps)
		return query_refuse_flags(q, "", info_names_caps, hints->caps & ~offer->caps);
	if (!format_fits(offer->addr_format, hints->addr_format))
		return query_refuse(
			q, "the hints ask for %s addresses, and those of %s are %s",
			info_name_of(info_names_addr_format, hints->addr_format), q->prov->name,
			offer->addr_format == FI_FORMAT_UNSPEC
				? "of its own format"
				: info_name_of(info_names_addr_format, offer->addr_format));
	if (offer->mode & ~hints->mode)
		return query_refuse_mode(q, "", info_names_mode, offer->mode & ~hints->mode);
	return 0;
}

static int check_fabric(const struct info_query *q)
{
	const struct fi_fabric_attr *asked = q->hints->fabric_attr;
	const char *name = q->offer->fabric_attr->name;

	if (!asked)
		return 0;
	if (asked->name && name && strcasecmp(asked->name, name))
		return query_refuse(q, "the hints ask for the fabric %s, and this one is %s",
				    asked->name, name);
	if (asked->prov_version > q->prov->version)
		return query_refuse(
			q, "the hints ask for provider version %u.%u, and %s is %u.%u",
			FI_MAJOR(asked->prov_version), FI_MINOR(asked->prov_version),
			q->prov->name, FI_MAJOR(q->prov->version), FI_MINOR(q->prov->version));
	return 0;
}

/* Each level includes all that follow it. An unspecified hint is met by every level. */
static const enum fi_threading threading_order[] = {
	FI_THREAD_SAFE,	      FI_THREAD_FID,	FI_THREAD_ENDPOINT,
	FI_THREAD_COMPLETION, FI_THREAD_DOMAIN, FI_THREAD_UNSPEC,
};

static int threading_rank(enum fi_threading threading)
{
	int i;

	for (i = 0; i < (int)(sizeof(threading_order) / sizeof(threading_order[0])); i++)
		if (threading_order[i] == threading)
			return i;
	return -1;
}

static int check_progress(const struct info_query *q, const char *name, enum fi_progress asked)
{
	if (asked > FI_PROGRESS_CONTROL_UNIFIED ||
	    (asked == FI_PROGRESS_AUTO && q->offer->domain_attr->progress != FI_PROGRESS_AUTO))
		return query_refuse(q, "the hints ask for %s %s, which %s does not offer", name,
				    info_name_of(info_names_progress, asked), q->prov->name);
	return 0;
}

static int check_mr_mode(const struct info_query *q)
{
	int offered = q->offer->domain_attr->mr_mode;
	int asked = q->hints->domain_attr->mr_mode;
	int missing;

	if (!mr_mode_is_old(asked, q->api_version)) {
		missing = mr_mode_required(offered, q->hints->caps) & ~asked;
		/* FI_LOCAL_MR in mode grants the same as FI_MR_LOCAL here. */
		if (q->hints->mode & INFO_MODE_LOCAL_MR)
			missing &= ~FI_MR_LOCAL;
		if (missing)
			return query_refuse_mode(q, "mr_mode ", info_names_mr_mode,
						 (unsigned int)missing);
		return 0;
	}
	if (mr_mode_old_answer(offered, asked) < 0)
		return query_refuse(
			q,
			"the hints ask for the mr_mode 0x%x of an API before 1.5, which %s does "
			"not offer",
			(unsigned int)asked, q->prov->name);
	if ((offered & FI_MR_LOCAL) && !(q->hints->mode & INFO_MODE_LOCAL_MR))
		return query_refuse(q, "the hints do not grant FI_LOCAL_MR, which %s needs",
				    q->prov->name);
	return 0;
}

static int check_domain_auth(const struct info_query *q)
{
	const struct fi_domain_attr *asked = q->hints->domain_attr;
	const struct fi_domain_attr *offered = q->offer->domain_attr;

	if (q->api_version < FI_VERSION(1, 5) || !INFO_HAS_DOMAIN(q->layout, auth_key_size))
		return 0;
	if (asked->auth_key_size == FI_AV_AUTH_KEY && q->api_version >= FI_VERSION(1, 20)) {
		if (asked->auth_key)
			return query_refuse(
				q, "the hints give a domain key together with FI_AV_AUTH_KEY");
		if (!offered->max_ep_auth_key)
			return query_refuse(
				q, "the hints ask for FI_AV_AUTH_KEY, which %s does not offer",
				q->prov->name);
		return 0;
	}
	if (asked->auth_key_size > offered->auth_key_size)
		return query_refuse(
			q, "the hints ask for a domain key of %zu bytes, and %s takes up to %zu",
			asked->auth_key_size, q->prov->name, offered->auth_key_size);
	return 0;
}

/* What a domain of 1.5 and later says of itself, beyond the fi_info that it is in. */
static int check_domain_bits(const struct info_query *q)
{
	const struct fi_domain_attr *asked = q->hints->domain_attr;
	const struct fi_domain_attr *offered = q->offer->domain_attr;

	if (q->api_version < FI_VERSION(1, 5) || !INFO_HAS_DOMAIN(q->layout, mode))
		return 0;
	if (asked->caps & ~offered->caps)
		return query_refuse_flags(q, "domain_attr->caps ", info_names_caps,
					  asked->caps & ~offered->caps);
	if (offered->mode & ~asked->mode)
		return query_refuse_mode(q, "domain_attr->mode ", info_names_mode,
					 offered->mode & ~asked->mode);
	return 0;
}

static int check_domain(const struct info_query *q)
{
	const struct fi_domain_attr *asked = q->hints->domain_attr;
	const struct fi_domain_attr *offered = q->offer->domain_attr;
	int err;

	if (!asked)
		return 0;
	if (asked->name && offered->name && strcasecmp(asked->name, offered->name))
		return query_refuse(q, "the hints ask for the domain %s, and this one is %s",
				    asked->name, offered->name);
	if (threading_rank(asked->threading) < threading_rank(offered->threading))
		return query_refuse(q, "the hints ask for %s, which %s does not offer",
				    info_name_of(info_names_threading, asked->threading),
				    q->prov->name);
	err = check_progress(q, "data", asked->data_progress);
	if (!err)
		err = check_progress(q, "control", asked->control_progress);
	if (err)
		return err;
	if (asked->resource_mgmt == FI_RM_ENABLED && offered->resource_mgmt != FI_RM_ENABLED)
		return query_refuse(q,
				    "the hints ask for FI_RM_ENABLED, which %s does not offer",
				    q->prov->name);
	if (asked->av_type != FI_AV_UNSPEC && offered->av_type != FI_AV_UNSPEC &&
	    asked->av_type != offered->av_type)
		return query_refuse(q, "the hints ask for %s, and %s has %s",
				    info_name_of(info_names_av_type, asked->av_type),
				    q->prov->name,
				    info_name_of(info_names_av_type, offered->av_type));
	err = check_mr_mode(q);
	if (!err)
		err = check_domain_bits(q);
	return err ? err : check_domain_auth(q);
}

/* A number of contexts of an endpoint, or FI_SHARED_CONTEXT. */
static int check_ctx_cnt(const struct info_query *q, const char *name, size_t asked, size_t max,
			 size_t max_shared)
{
	if (asked == FI_SHARED_CONTEXT && !max_shared)
		return query_refuse(
			q, "the hints ask for a shared context by %s, which %s does not offer",
			name, q->prov->name);
	if (asked != FI_SHARED_CONTEXT && asked > max)
		return query_refuse(q, "the hints ask for %s %zu, and %s offers at most %zu",
				    name, asked, q->prov->name, max);
	return 0;
}

static int check_ep(const struct info_query *q)
{
	const struct fi_ep_attr *asked = q->hints->ep_attr;
	const struct fi_ep_attr *offered = q->offer->ep_attr;
	const struct fi_domain_attr *domain = q->offer->domain_attr;
	int err;

	if (!asked)
		return 0;
	if (asked->protocol != FI_PROTO_UNSPEC && asked->protocol != offered->protocol)
		return query_refuse(q, "the hints ask for the protocol %s, and %s speaks %s",
				    info_name_of(info_names_protocol, asked->protocol),
				    q->prov->name,
				    info_name_of(info_names_protocol, offered->protocol));
	err = check_ctx_cnt(q, "ep_attr->tx_ctx_cnt", asked->tx_ctx_cnt, domain->max_ep_tx_ctx,
			    domain->max_ep_stx_ctx);
	if (!err)
		err = check_ctx_cnt(q, "ep_attr->rx_ctx_cnt", asked->rx_ctx_cnt,
				    domain->max_ep_rx_ctx, domain->max_ep_srx_ctx);
	if (err)
		return err;
	/* Below FI_TAG_MAX_FORMAT are named formats, narrower than the bits they stand for. */
	if ((q->hints->caps & FI_TAGGED) && asked->mem_tag_format >= FI_TAG_MAX_FORMAT &&
	    __builtin_clzll(asked->mem_tag_format) <
		    (offered->mem_tag_format ? __builtin_clzll(offered->mem_tag_format) : 0))
		return query_refuse(
			q, "the hints ask for the tag format 0x%llx, and %s offers 0x%llx",
			(unsigned long long)asked->mem_tag_format, q->prov->name,
			(unsigned long long)offered->mem_tag_format);
	if (q->api_version >= FI_VERSION(1, 5) && INFO_HAS_EP(q->layout, auth_key_size) &&
	    asked->auth_key_size > offered->auth_key_size)
		return query_refuse(
			q,
			"the hints ask for an endpoint key of %zu bytes, and %s takes up to %zu",
			asked->auth_key_size, q->prov->name, offered->auth_key_size);
	if (q->api_version >= FI_VERSION(2, 7) && INFO_HAS_EP(q->layout, xpu_ctx) &&
	    asked->xpu_ctx && !(q->offer->caps & FI_XPU))
		return query_refuse_flags(q, "", info_names_caps, FI_XPU);
	return 0;
}

/* Programs set the same capabilities in both contexts; those of the other side are ignored. */
#define NOT_FOR_TX                                                                        \
	(FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RECV | FI_DIRECTED_RECV | FI_MULTI_RECV |  \
	 FI_SOURCE | FI_RMA_EVENT | FI_SOURCE_ERR | FI_TAGGED_DIRECTED_RECV |             \
	 FI_TAGGED_MULTI_RECV | FI_EXACT_DIRECTED_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM | \
	 FI_SHARED_AV)
#define NOT_FOR_RX                                                                  \
	(FI_READ | FI_WRITE | FI_SEND | FI_FENCE | FI_MULTICAST | FI_NAMED_RX_CTX | \
	 FI_LOCAL_COMM | FI_REMOTE_COMM | FI_SHARED_AV)

/* The hints that both contexts have. */
struct context_hints {
	const char *name;
	uint64_t caps;
	uint64_t mode;
	uint64_t op_flags;
	uint64_t msg_order;
};

static int check_context(const struct info_query *q, const struct context_hints *asked,
			 const struct context_hints *offered)
{
	uint64_t mode = asked->mode ? asked->mode : q->hints->mode;
	char where[24];

	snprintf(where, sizeof(where), "%s ", asked->name);
	if (asked->caps & ~offered->caps)
		return query_refuse_flags(q, where, info_names_caps,
					  asked->caps & ~offered->caps);
	if (offered->mode & ~mode)
		return query_refuse_mode(q, where, info_names_mode, offered->mode & ~mode);
	if (asked->op_flags & ~offered->op_flags)
		return query_refuse_flags(q, where, info_names_op_flags,
					  asked->op_flags & ~offered->op_flags);
	if (asked->msg_order & ~offered->msg_order)
		return query_refuse_flags(q, where, info_names_msg_order,
					  asked->msg_order & ~offered->msg_order);
	return 0;
}

/*
 * Returns what an endpoint lacks, so that none of its contexts has it: the offers for contexts are those of the library and of
 * the kernel.
 */
static uint64_t lacked(const struct info_query *q)
{
	return (FI_COLLECTIVE | FI_TRIGGER) & ~q->offer->caps;
}

static int check_tx(const struct info_query *q)
{
	const struct fi_tx_attr *asked = q->hints->tx_attr, *offered = q->offer->tx_attr;

	if (!asked)
		return 0;
	return check_context(
		q,
		&(struct context_hints){ "tx_attr", asked->caps & ~NOT_FOR_TX, asked->mode,
					 asked->op_flags, asked->msg_order },
		&(struct context_hints){ "tx_attr", offered->caps & ~lacked(q), offered->mode,
					 offered->op_flags & ~lacked(q), offered->msg_order });
}

static int check_rx(const struct info_query *q)
{
	const struct fi_rx_attr *asked = q->hints->rx_attr, *offered = q->offer->rx_attr;

	if (!asked)
		return 0;
	return check_context(
		q,
		&(struct context_hints){ "rx_attr", asked->caps & ~NOT_FOR_RX, asked->mode,
					 asked->op_flags, asked->msg_order },
		&(struct context_hints){ "rx_attr", offered->caps & ~lacked(q), offered->mode,
					 offered->op_flags & ~lacked(q), offered->msg_order });
}

int info_refusal(const struct fi_provider *prov, const struct fi_info *offer,
		 const struct fi_info *hints, uint32_t api_version, char *why, size_t len)
{
	static int (*const checks[])(const struct info_query *q) = {
		check_info, check_fabric, check_domain, check_ep,
		check_tx,   check_rx,	  query_limits,
	};
	const struct info_query q = {
		.prov = prov,
		.offer = offer,
		.hints = hints,
		.layout = info_layout_of_core(fi_version()),
		.api_version = api_version,
		.why = why,
		.len = len,
	};
	size_t i;
	int err;

	if (!hints)
		return 0;
	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		err = checks[i](&q);
		if (err)
			return err;
	}
	return 0;
}

int info_match(const struct fi_provider *prov, const struct fi_info *offer,
	       const struct fi_info *hints, uint32_t api_version)
{
	char why[INFO_REASON_MAX] = "";

	if (!info_refusal(prov, offer, hints, api_version, why, sizeof(why)))
		return 0;
	return info_refuse(prov, "%s", why);
}
