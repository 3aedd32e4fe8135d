/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider kofi_ibverbs: endpoints over RDMA devices. What it offers for each address of this machine that belongs to
 * one, and how addresses look. Process context; no state.
 */
#include <stdio.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "engine.h"
#include "info.h"
#include "kofi_ibverbs.h"
#include "link.h"
#include "mr.h"
#include "routed.h"

/* Addresses of this machine that are answered for */
#define PLACES_MAX 32

/* Addresses as Linux has them: struct sockaddr_in and sockaddr_in6. Ports are in the network's byte order. */
struct kib_sockaddr {
	uint16_t family;
	uint8_t port[2];
	union {
		struct {
			uint8_t ip[4];
			uint8_t zero[8];
		} in;
		struct {
			uint32_t flow;
			uint8_t ip[16];
			uint32_t scope;
		} in6;
	};
};

#define SOCKADDR_IN_LEN	 16u
#define SOCKADDR_IN6_LEN 28u

_Static_assert(sizeof(struct kib_sockaddr) == SOCKADDR_IN6_LEN, "layout");
_Static_assert(offsetof(struct kib_sockaddr, in.ip) == 4, "layout");
_Static_assert(offsetof(struct kib_sockaddr, in6.ip) == 8, "layout");
_Static_assert(offsetof(struct kib_sockaddr, in6.scope) == 24, "layout");

static struct fi_provider kib_provider = {
	.version = FI_VERSION(1, 0),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "ibverbs",
};

static size_t sockaddr_len(uint16_t family)
{
	return family == ADDR_FAMILY_INET    ? SOCKADDR_IN_LEN
	       : family == ADDR_FAMILY_INET6 ? SOCKADDR_IN6_LEN
					     : 0;
}

/* Returns the bytes of @out that are used. */
static size_t sockaddr_put(struct kib_sockaddr *out, const struct kib_address *from)
{
	memset(out, 0, sizeof(*out));
	out->family = from->family;
	out->port[0] = (uint8_t)(from->port >> 8);
	out->port[1] = (uint8_t)from->port;
	if (from->family == ADDR_FAMILY_INET) {
		memcpy(out->in.ip, from->ip, sizeof(out->in.ip));
	} else {
		memcpy(out->in6.ip, from->ip, sizeof(out->in6.ip));
		out->in6.scope = from->scope;
	}
	return sockaddr_len(from->family);
}

/* @len: bytes that are there. Returns false if they are no address. */
static bool sockaddr_get(struct kib_address *out, const void *bytes, size_t len)
{
	struct kib_sockaddr from = { .family = 0 };

	if (!bytes || len < sizeof(from.family))
		return false;
	memcpy(&from.family, bytes, sizeof(from.family));
	if (!sockaddr_len(from.family) || len < sockaddr_len(from.family))
		return false;
	memcpy(&from, bytes, sockaddr_len(from.family));
	memset(out, 0, sizeof(*out));
	out->family = from.family;
	out->port = (uint16_t)(from.port[0] << 8 | from.port[1]);
	if (from.family == ADDR_FAMILY_INET) {
		memcpy(out->ip, from.in.ip, sizeof(from.in.ip));
	} else {
		memcpy(out->ip, from.in6.ip, sizeof(from.in6.ip));
		out->scope = from.in6.scope;
	}
	return true;
}

static bool is_any(const struct kib_address *a)
{
	static const uint8_t any[sizeof(a->ip)];

	return !memcmp(a->ip, any, sizeof(any));
}

/* Formats of the engine's families */

static void service_address(struct weft_addr *out, const struct kib_address *from)
{
	*out = (struct weft_addr){ .version = ADDR_VERSION,
				   .kind = ADDR_SERVICE,
				   .family = from->family,
				   .port = from->port,
				   .scope = from->scope };
	memcpy(out->ip, from->ip, sizeof(out->ip));
}

static void network_address(struct kib_address *out, const struct weft_addr *from)
{
	*out = (struct kib_address){ .family = from->family,
				     .port = from->port,
				     .scope = from->scope };
	memcpy(out->ip, from->ip, sizeof(out->ip));
}

static int own_read(const void *bytes, uint16_t family, struct weft_addr *out, char *why,
		    size_t why_len)
{
	struct kib_address address;

	if (!sockaddr_get(&address, bytes, sockaddr_len(family)) || address.family != family) {
		snprintf(why, why_len, "not a socket address of the fabric's family");
		return -FI_EINVAL;
	}
	service_address(out, &address);
	return 0;
}

static int peer_read(const void *bytes, uint16_t family, struct weft_addr *out, char *why,
		     size_t why_len)
{
	struct kib_address address;
	int ret = own_read(bytes, family, out, why, why_len);

	if (ret)
		return ret;
	network_address(&address, out);
	if (address.port && !is_any(&address))
		return 0;
	snprintf(why, why_len, "an address without a port or without a host names no endpoint");
	return -FI_EINVAL;
}

static int in_read(const void *bytes, size_t len, struct weft_addr *out, char *why,
		   size_t why_len)
{
	return peer_read(bytes, ADDR_FAMILY_INET, out, why, why_len);
}

static int in6_read(const void *bytes, size_t len, struct weft_addr *out, char *why,
		    size_t why_len)
{
	return peer_read(bytes, ADDR_FAMILY_INET6, out, why, why_len);
}

static int in_bind_read(const void *bytes, size_t len, struct weft_addr *out, char *why,
			size_t why_len)
{
	return own_read(bytes, ADDR_FAMILY_INET, out, why, why_len);
}

static int in6_bind_read(const void *bytes, size_t len, struct weft_addr *out, char *why,
			 size_t why_len)
{
	return own_read(bytes, ADDR_FAMILY_INET6, out, why, why_len);
}

static size_t addr_write(const struct weft_addr *addr, void *out)
{
	struct kib_sockaddr sock;
	struct kib_address address;
	size_t len;

	network_address(&address, addr);
	len = sockaddr_put(&sock, &address);
	memcpy(out, &sock, len);
	return len;
}

static size_t in_str(const void *bytes, size_t bytes_len, char *buf, size_t len)
{
	struct kib_address a = { .family = 0 };

	sockaddr_get(&a, bytes, SOCKADDR_IN_LEN);
	return (size_t)snprintf(buf, len, "fi_sockaddr_in://%u.%u.%u.%u:%u", a.ip[0], a.ip[1],
				a.ip[2], a.ip[3], a.port) +
	       1;
}

static size_t in6_str(const void *bytes, size_t bytes_len, char *buf, size_t len)
{
	struct kib_address a = { .family = 0 };
	uint32_t part[8];

	sockaddr_get(&a, bytes, SOCKADDR_IN6_LEN);
	for (size_t i = 0; i < 8; i++)
		part[i] = (uint32_t)a.ip[2 * i] << 8 | a.ip[2 * i + 1];
	return (size_t)snprintf(buf, len, "fi_sockaddr_in6://[%x:%x:%x:%x:%x:%x:%x:%x]:%u",
				part[0], part[1], part[2], part[3], part[4], part[5], part[6],
				part[7], a.port) +
	       1;
}

static int resolve(const char *node, const char *service, uint64_t flags, struct weft_addr *out)
{
	struct kib_address address;
	int ret = kib_address_read(node, service, &address);

	if (ret)
		return ret;
	service_address(out, &address);
	return 0;
}

static struct fi_info *info_copy(const struct fi_info *info, const struct weft_addr *src,
				 const struct weft_addr *dest)
{
	return info_dup_between(info, NULL, addr_write, src, dest);
}

static const struct engine_family in_family = {
	.provider = &kib_provider,
	.wires = { "ibverbs" },
	.addr_format = FI_SOCKADDR_IN,
	.addr_len = SOCKADDR_IN_LEN,
	.closes_last = true,
	.addr_read = in_read,
	.bind_read = in_bind_read,
	.addr_write = addr_write,
	.addr_str = in_str,
	.resolve = resolve,
	.msg = &engine_routed_msg_ops,
	.tagged = &engine_routed_tagged_ops,
	.info_copy = info_copy,
	.info_free = info_free,
};

static const struct engine_family in6_family = {
	.provider = &kib_provider,
	.wires = { "ibverbs" },
	.addr_format = FI_SOCKADDR_IN6,
	.addr_len = SOCKADDR_IN6_LEN,
	.closes_last = true,
	.addr_read = in6_read,
	.bind_read = in6_bind_read,
	.addr_write = addr_write,
	.addr_str = in6_str,
	.resolve = resolve,
	.msg = &engine_routed_msg_ops,
	.tagged = &engine_routed_tagged_ops,
	.info_copy = info_copy,
	.info_free = info_free,
};

#define FABRIC	"ibverbs"
#define FABRIC6 "ibverbs6"

/* Offers */

static struct fi_ep_attr ep_offer = {
	ENGINE_EP_OFFER,
};

static const struct fi_domain_attr domain_offer = {
	ENGINE_DOMAIN_OFFER,
	.caps = ENGINE_DOMAIN_CAPS | FI_LOCAL_COMM | FI_REMOTE_COMM,
};

/* A connection has one source, so that nothing names it, and no group. */
#define MSG_LACKS                                                                        \
	(FI_DIRECTED_RECV | FI_SOURCE | FI_NAMED_RX_CTX | FI_COLLECTIVE | FI_SHARED_AV | \
	 FI_AV_USER_ID)
/* Endpoints of a domain: memory bounds them */
#define MSG_CTX_CNT 8192

/* One fi_getinfo. An address of family 0 is not asked for. */
struct query {
	uint32_t version;
	const struct fi_info *hints;
	struct kib_address src, dest;
	struct fi_info *answers;
	int err;
};

/* What an answer points to until it is copied. */
struct offer {
	struct fi_info info;
	struct fi_tx_attr tx;
	struct fi_rx_attr rx;
	struct fi_ep_attr ep;
	struct fi_domain_attr domain;
	struct fi_fabric_attr fabric;
	struct kib_sockaddr src, dest;
};

static void offer_connects(struct offer *offer)
{
	offer->ep.type = FI_EP_MSG;
	offer->info.caps &= ~MSG_LACKS;
	offer->tx.caps &= ~MSG_LACKS;
	offer->rx.caps &= ~MSG_LACKS;
	offer->domain.caps &= ~MSG_LACKS;
	offer->domain.max_ep_tx_ctx = offer->domain.max_ep_rx_ctx = 1;
	offer->domain.tx_ctx_cnt = offer->domain.rx_ctx_cnt = offer->domain.max_ep_srx_ctx =
		MSG_CTX_CNT;
}

static void offer_make(struct offer *offer, const struct query *q, struct kib_place *place,
		       bool connects)
{
	bool six = place->address.family == ADDR_FAMILY_INET6;

	offer->tx = engine_tx_offer;
	offer->rx = engine_rx_offer;
	offer->ep = ep_offer;
	offer->domain = domain_offer;
	offer->domain.name = place->device;
	offer->fabric.name = (char *)(six ? FABRIC6 : FABRIC);
	offer->info = (struct fi_info){
		.caps = ENGINE_KERNEL_CAPS | ENGINE_DOMAIN_CAPS | FI_LOCAL_COMM | FI_REMOTE_COMM,
		.addr_format = six ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN,
		.src_addr = &offer->src,
		.src_addrlen = sockaddr_put(&offer->src, &place->address),
		.tx_attr = &offer->tx,
		.rx_attr = &offer->rx,
		.ep_attr = &offer->ep,
		.domain_attr = &offer->domain,
		.fabric_attr = &offer->fabric,
	};
	if (q->dest.family) {
		offer->info.dest_addr = &offer->dest;
		offer->info.dest_addrlen = sockaddr_put(&offer->dest, &q->dest);
	}
	if (connects)
		offer_connects(offer);
}

static void answer(struct query *q, struct kib_place *place, bool connects)
{
	struct offer *offer = platform_alloc(sizeof(*offer));
	struct fi_info *info;
	int err = -FI_ENOMEM;

	if (offer) {
		offer_make(offer, q, place, connects);
		err = info_answer(&kib_provider, &offer->info, NULL, q->hints, q->version,
				  &info);
	}
	platform_free(offer);
	if (!err)
		info_append(&q->answers, info);
	else
		q->err = err;
}

/* Returns true if an endpoint may be at that place. */
static bool place_fits(const struct query *q, const struct kib_address *at)
{
	uint16_t family = q->src.family ? q->src.family : q->dest.family;

	if (family && at->family != family)
		return false;
	return !q->src.family || is_any(&q->src) || !memcmp(at->ip, q->src.ip, sizeof(at->ip));
}

static void answer_places(struct query *q, struct kib_place *places, int cnt, bool connects)
{
	for (int i = 0; i < cnt; i++) {
		if (!place_fits(q, &places[i].address))
			continue;
		places[i].address.port = q->src.port;
		answer(q, &places[i], connects);
	}
}

static int query_read(struct query *q, const char *node, const char *service, uint64_t flags)
{
	bool source = flags & FI_SOURCE, named = node || service;
	const struct fi_info *hints = q->hints;
	struct kib_address *to = source ? &q->src : &q->dest;

	if (hints && hints->src_addr && !(named && source) &&
	    !sockaddr_get(&q->src, hints->src_addr, hints->src_addrlen))
		return info_refuse(&kib_provider, "the source is not a socket address");
	if (hints && hints->dest_addr && (!named || source) &&
	    !sockaddr_get(&q->dest, hints->dest_addr, hints->dest_addrlen))
		return info_refuse(&kib_provider, "the destination is not a socket address");
	if (named && kib_address_read(node, service, to))
		return info_refuse(&kib_provider,
				   "%s is no number of a host, or its port is none",
				   node ? node : service);
	if (!source && named && !node)
		return info_refuse(&kib_provider, "a destination has a host");
	return 0;
}

int kofi_ibverbs_getinfo(uint32_t version, const char *node, const char *service,
			 uint64_t flags, const struct fi_info *hints, struct fi_info **info)
{
	enum fi_ep_type type = hints && hints->ep_attr ? hints->ep_attr->type : FI_EP_UNSPEC;
	struct query q = { .version = version, .hints = hints, .err = -FI_ENODATA };
	struct kib_place *places;
	int cnt, ret = query_read(&q, node, service, flags);

	if (ret)
		return ret;
	places = platform_alloc(PLACES_MAX * sizeof(*places));
	if (!places)
		return -FI_ENOMEM;
	cnt = kib_places(places, PLACES_MAX);
	if (!cnt)
		q.err = info_refuse(&kib_provider, "no address belongs to an RDMA device");
	if (type != FI_EP_MSG)
		answer_places(&q, places, cnt, false);
	if (type == FI_EP_MSG || type == FI_EP_UNSPEC)
		answer_places(&q, places, cnt, true);
	platform_free(places);
	if (!q.answers)
		return cnt < 0 ? cnt : q.err;
	*info = q.answers;
	return 0;
}

void kofi_ibverbs_freeinfo(struct fi_info *info)
{
	info_free(info);
}

int kofi_ibverbs_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	bool six = attr && attr->name && !strcmp(attr->name, FABRIC6);

	return engine_fabric_open(six ? &in6_family : &in_family, attr, fabric, context);
}
