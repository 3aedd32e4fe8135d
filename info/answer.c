/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The answer to hints that an offer meets: the offer, narrowed to what was asked for.
 *
 * Runs inside a provider's getinfo, on the application's thread, without locks. The caller
 * has checked that the offer meets the hints.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "info.h"
#include "mr_mode.h"
#include "query.h"

#define MSG_MODIFIERS (FI_SEND | FI_RECV)
#define RMA_MODIFIERS (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define PRIMARY_CAPS                                                              \
	(FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_MULTICAST | FI_COLLECTIVE | \
	 FI_NAMED_RX_CTX | FI_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV |           \
	 FI_EXACT_DIRECTED_RECV | FI_HMEM | FI_XPU | FI_AV_USER_ID | FI_PEER)
/* Secondary capabilities that cost time in each operation: answered only if asked for. */
#define COSTLY_CAPS (FI_SOURCE | FI_SOURCE_ERR | FI_RMA_EVENT)
/* Capabilities that confuse programs which do not know them: answered only if asked for. */
#define RECENT_CAPS (FI_TAGGED_MULTI_RECV | FI_RMA_PMEM)

/* Transfers for which no direction is asked (FI_SEND, FI_READ, ...) get every direction of the offer. */
static uint64_t caps_whole(uint64_t caps, uint64_t offered)
{
	if ((caps & (FI_MSG | FI_TAGGED)) && !(caps & MSG_MODIFIERS))
		caps |= offered & MSG_MODIFIERS;
	if ((caps & (FI_RMA | FI_ATOMIC)) && !(caps & RMA_MODIFIERS))
		caps |= offered & RMA_MODIFIERS;
	return caps;
}

/* The capabilities of an answer: primary ones as asked (@asked is not 0), secondary ones as offered. */
static uint64_t caps_granted(uint64_t asked, uint64_t offered)
{
	uint64_t secondary = ~(PRIMARY_CAPS | MSG_MODIFIERS | RMA_MODIFIERS | COSTLY_CAPS |
			       RECENT_CAPS);

	return caps_whole((asked | secondary) & offered, offered);
}

/*
 * Hints without capabilities get those that are possible in the modes that they grant: without the
 * registration modes that a target needs, no capabilities of a target.
 */
static uint64_t caps_in_granted_modes(const struct fi_info *offer, const struct fi_info *hints,
				      uint32_t api_version)
{
	const struct fi_domain_attr *domain = hints->domain_attr;

	if (!domain || mr_mode_is_old(domain->mr_mode, api_version) ||
	    !(mr_mode_required(offer->domain_attr->mr_mode, offer->caps) & ~domain->mr_mode))
		return offer->caps;
	return offer->caps & ~(FI_REMOTE_READ | FI_REMOTE_WRITE);
}

static uint64_t answer_caps(const struct fi_info *offer, const struct fi_info *hints,
			    uint32_t api_version)
{
	if (!hints)
		return offer->caps & ~RECENT_CAPS;
	if (!hints->caps)
		return caps_in_granted_modes(offer, hints, api_version) & ~RECENT_CAPS;
	return caps_granted(hints->caps, offer->caps);
}

/*
 * The part of an answer's capabilities that a context has. A context with transfers has the directions of its
 * own side, also for FI_RMA with only FI_REMOTE_READ, as in libfabric.
 */
static uint64_t answer_part_caps(uint64_t info_caps, uint64_t asked, uint64_t offered)
{
	uint64_t caps = asked ? caps_granted(asked, offered) : offered;

	return caps_whole(caps & info_caps, offered);
}

/* How to read the hints: the lengths of their structures, and the API version of the program. */
struct reader {
	uint32_t api_version;
	const struct info_layout *layout;
	/* the identity that it asks for, or NULL */
	const struct info_identity *as;
};

static void answer_tx(struct fi_tx_attr *tx, const struct fi_tx_attr *hints, uint64_t info_caps,
		      const struct reader *reader)
{
	tx->caps = answer_part_caps(info_caps, hints ? hints->caps : 0, tx->caps);
	tx->op_flags = hints ? hints->op_flags : 0;
	if (reader->as && reader->as->size)
		tx->size = reader->as->size;
	if (!hints)
		return;
	if (hints->inject_size)
		tx->inject_size = hints->inject_size;
	if (hints->size)
		tx->size = hints->size;
	if (hints->iov_limit)
		tx->iov_limit = hints->iov_limit;
	if (hints->rma_iov_limit)
		tx->rma_iov_limit = hints->rma_iov_limit;
	if (reader->api_version >= FI_VERSION(1, 9) && INFO_HAS_TX(reader->layout, tclass) &&
	    hints->tclass)
		tx->tclass = hints->tclass;
}

static void answer_rx(struct fi_rx_attr *rx, const struct fi_rx_attr *hints, uint64_t info_caps,
		      const struct reader *reader)
{
	rx->caps = answer_part_caps(info_caps, hints ? hints->caps : 0, rx->caps);
	rx->op_flags = hints ? hints->op_flags : 0;
	if (reader->as && reader->as->size)
		rx->size = reader->as->size;
	if (!hints)
		return;
	if (hints->size)
		rx->size = hints->size;
	if (hints->iov_limit)
		rx->iov_limit = hints->iov_limit;
}

/* The key the application gave, and its size in place of the longest that the offer takes. */
static int answer_key(uint8_t **key, size_t *key_size, const uint8_t *asked, size_t size)
{
	uint8_t *copy;

	if (!asked || !size || size == FI_AV_AUTH_KEY)
		return 0;
	*key_size = size;
	copy = malloc(size);
	if (!copy)
		return -FI_ENOMEM;
	memcpy(copy, asked, size);
	free(*key);
	*key = copy;
	return 0;
}

static int answer_ep(struct fi_ep_attr *ep, const struct fi_ep_attr *hints, uint64_t info_caps,
		     const struct reader *reader)
{
	ep->auth_key_size = 0; /* without a key there is none */
	if (!hints)
		return 0;
	if (info_caps & (FI_RMA | FI_ATOMIC)) {
		if (hints->max_order_raw_size)
			ep->max_order_raw_size = hints->max_order_raw_size;
		if (hints->max_order_war_size)
			ep->max_order_war_size = hints->max_order_war_size;
		if (hints->max_order_waw_size)
			ep->max_order_waw_size = hints->max_order_waw_size;
	}
	if (hints->tx_ctx_cnt)
		ep->tx_ctx_cnt = hints->tx_ctx_cnt;
	if (hints->rx_ctx_cnt)
		ep->rx_ctx_cnt = hints->rx_ctx_cnt;
	if (reader->api_version >= FI_VERSION(2, 7) && INFO_HAS_EP(reader->layout, xpu_ctx))
		ep->xpu_ctx = hints->xpu_ctx;
	if (reader->api_version < FI_VERSION(1, 5) || !INFO_HAS_EP(reader->layout, auth_key))
		return 0;
	return answer_key(&ep->auth_key, &ep->auth_key_size, hints->auth_key,
			  hints->auth_key_size);
}

static void answer_mr_mode(struct fi_info *info, const struct fi_info *hints,
			   uint32_t api_version)
{
	struct fi_domain_attr *domain = info->domain_attr;
	int asked = hints && hints->domain_attr ? hints->domain_attr->mr_mode : 0;
	int offered = domain->mr_mode;

	if (!mr_mode_is_old(asked, api_version)) {
		domain->mr_mode = mr_mode_required(offered, info->caps);
		return;
	}
	domain->mr_mode = mr_mode_old_answer(offered, asked);
	if (domain->mr_mode < 0) /* NULL hints, and the offer has neither */
		domain->mr_mode = INFO_MR_BASIC;
	if (offered & FI_MR_LOCAL)
		info->mode |= INFO_MODE_LOCAL_MR;
}

/* The first value that is specified; FI_PROGRESS_MANUAL if none is. */
static enum fi_progress first_progress(enum fi_progress a, enum fi_progress b,
				       enum fi_progress c)
{
	if (a != FI_PROGRESS_UNSPEC)
		return a;
	if (b != FI_PROGRESS_UNSPEC)
		return b;
	return c != FI_PROGRESS_UNSPEC ? c : FI_PROGRESS_MANUAL;
}

/* data_progress applies to control_progress too, unless that is specified. */
static void answer_progress(struct fi_domain_attr *domain, const struct fi_domain_attr *hints,
			    const struct info_identity *as)
{
	static const struct fi_domain_attr unstated;
	static const struct info_identity nobody;

	if (!hints)
		hints = &unstated;
	if (!as)
		as = &nobody;
	domain->data_progress = first_progress(hints->data_progress, as->data,
					       FI_PROGRESS_UNSPEC);
	domain->control_progress = first_progress(hints->control_progress, hints->data_progress,
						  as->control);
}

/* Of its primary capabilities a domain reports those that were asked for. */
static uint64_t answer_domain_caps(uint64_t offered, const struct fi_info *hints,
				   const struct reader *reader)
{
	uint64_t asked;

	if (!hints || !hints->caps)
		return offered;
	asked = hints->caps;
	if (hints->domain_attr && reader->api_version >= FI_VERSION(1, 5) &&
	    INFO_HAS_DOMAIN(reader->layout, caps))
		asked |= hints->domain_attr->caps;
	return offered & (asked | ~PRIMARY_CAPS);
}

static int answer_domain_auth(struct fi_domain_attr *domain, const struct fi_domain_attr *hints,
			      const struct reader *reader)
{
	if (reader->api_version < FI_VERSION(1, 5) ||
	    !INFO_HAS_DOMAIN(reader->layout, auth_key_size))
		return 0;
	if (reader->api_version >= FI_VERSION(1, 20) &&
	    INFO_HAS_DOMAIN(reader->layout, max_ep_auth_key)) {
		if (hints->max_ep_auth_key)
			domain->max_ep_auth_key = hints->max_ep_auth_key;
		if (hints->auth_key_size == FI_AV_AUTH_KEY)
			domain->auth_key_size = FI_AV_AUTH_KEY;
	}
	return answer_key(&domain->auth_key, &domain->auth_key_size, hints->auth_key,
			  hints->auth_key_size);
}

static int answer_domain(struct fi_info *info, const struct fi_info *all_hints,
			 const struct reader *reader)
{
	const struct fi_domain_attr *hints = all_hints ? all_hints->domain_attr : NULL;
	struct fi_domain_attr *domain = info->domain_attr;

	answer_mr_mode(info, all_hints, reader->api_version);
	answer_progress(domain, hints, reader->as);
	domain->caps = answer_domain_caps(domain->caps, all_hints, reader);
	domain->auth_key_size = 0;
	if (!hints)
		return 0;

	domain->domain = hints->domain;
	if (hints->threading != FI_THREAD_UNSPEC)
		domain->threading = hints->threading;
	if (hints->resource_mgmt != FI_RM_UNSPEC)
		domain->resource_mgmt = hints->resource_mgmt;
	if (hints->av_type != FI_AV_UNSPEC)
		domain->av_type = hints->av_type;
	if (reader->api_version >= FI_VERSION(1, 9) &&
	    INFO_HAS_DOMAIN(reader->layout, tclass) && hints->tclass)
		domain->tclass = hints->tclass;
	return answer_domain_auth(domain, hints, reader);
}

/* The core names the provider. */
static void answer_fabric(struct fi_info *info, const struct fi_info *hints,
			  const struct fi_provider *prov, uint32_t api_version)
{
	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = NULL;
	info->fabric_attr->prov_version = prov->version;
	info->fabric_attr->api_version = api_version;
	if (hints && hints->fabric_attr)
		info->fabric_attr->fabric = hints->fabric_attr->fabric;
}

/* Contexts of each kind: as asked for, else as the identity says; at most as offered. */
static size_t ctx_granted(size_t usual, size_t of_ep, size_t of_domain, size_t most)
{
	size_t cnt = usual;

	if (of_ep != FI_SHARED_CONTEXT && of_ep > cnt)
		cnt = of_ep;
	if (of_domain > cnt)
		cnt = of_domain;
	return cnt < most ? cnt : most;
}

static void answer_contexts(struct fi_info *info, const struct fi_info *hints, size_t usual)
{
	static const struct fi_ep_attr no_ep;
	static const struct fi_domain_attr no_domain;
	const struct fi_ep_attr *ep = hints && hints->ep_attr ? hints->ep_attr : &no_ep;
	const struct fi_domain_attr *asked = hints && hints->domain_attr ? hints->domain_attr
									 : &no_domain;
	struct fi_domain_attr *domain = info->domain_attr;

	domain->max_ep_tx_ctx = ctx_granted(usual, ep->tx_ctx_cnt, asked->max_ep_tx_ctx,
					    domain->max_ep_tx_ctx);
	domain->max_ep_rx_ctx = ctx_granted(usual, ep->rx_ctx_cnt, asked->max_ep_rx_ctx,
					    domain->max_ep_rx_ctx);
}

/* A copy of the parts of an offer that differ under an identity. */
struct disguise {
	/* provider with the identity's name, for the reasons */
	struct fi_provider prov;
	struct fi_info offer;
	struct fi_ep_attr ep;
};

static void disguise_wear(struct disguise *d, const struct fi_provider *prov,
			  const struct fi_info *offer, const struct info_identity *as)
{
	d->prov = *prov;
	d->offer = *offer;
	d->ep = *offer->ep_attr;
	d->offer.ep_attr = &d->ep;
	if (!as)
		return;
	d->prov.name = as->name;
	d->ep.protocol = as->protocol;
	d->ep.protocol_version = as->protocol_version;
	d->ep.tx_ctx_cnt = d->ep.rx_ctx_cnt = as->ctx_cnt;
}

int info_answer(const struct fi_provider *prov, const struct fi_info *offer,
		const struct info_identity *as, const struct fi_info *hints,
		uint32_t api_version, struct fi_info **out)
{
	const struct info_query q = { .hints = hints,
				      .layout = info_layout_of_core(fi_version()),
				      .api_version = api_version };
	const struct reader reader = { api_version, q.layout, as };
	struct disguise d;
	struct fi_info *info;
	int err;

	disguise_wear(&d, prov, offer, as);
	err = info_match(&d.prov, &d.offer, hints, api_version);
	if (err)
		return err;
	info = info_dup(&d.offer, NULL);
	if (!info)
		return -FI_ENOMEM;
	answer_fabric(info, hints, prov, api_version);
	info->caps = answer_caps(offer, hints, api_version);
	if (hints)
		info->handle = hints->handle;
	answer_tx(info->tx_attr, hints ? hints->tx_attr : NULL, info->caps, &reader);
	answer_rx(info->rx_attr, hints ? hints->rx_attr : NULL, info->caps, &reader);
	err = answer_domain(info, hints, &reader);
	if (as)
		answer_contexts(info, hints, as->ctx_cnt);
	if (hints)
		query_counts(&q, info);
	if (!err)
		err = answer_ep(info->ep_attr, hints ? hints->ep_attr : NULL, info->caps,
				&reader);
	if (err) {
		info_free(info);
		return err;
	}
	*out = info;
	return 0;
}
