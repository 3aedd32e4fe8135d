/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo of the tcp provider: one fi_info for each address of this host that the program can
 * use, the best first. Called by the core, on any thread.
 */
#include <rdma/fi_errno.h>
#include "engine.h"
#include "iface.h"
#include "info.h"
#include "mr.h"
#include "tcp.h"

#define RESOLVED_MAX 16

static const char *const rxm_spellings[] = { "ofi_rxm", "ofi_rxm;tcp", NULL };
static const char *const rxd_spellings[] = { "ofi_rxd", "ofi_rxd;udp", NULL };

/*
 * The protocol is the one that programs expect of a provider name, and ask for: they compare it
 * with what their peers have. The wire format is Weft's own under every name: a peer with another
 * libfabric can't use it.
 */
const struct info_identity weft_tcp_identities[] = {
	{ .name = "tcp",
	  .control = FI_PROGRESS_AUTO,
	  .data = FI_PROGRESS_AUTO,
	  .protocol = FI_PROTO_XNET,
	  .protocol_version = 1,
	  .ctx_cnt = 1 },
	{ .name = "tcp;ofi_rxm",
	  .control = FI_PROGRESS_AUTO,
	  .data = FI_PROGRESS_MANUAL,
	  .spellings = rxm_spellings,
	  .protocol = FI_PROTO_RXM,
	  .protocol_version = 1,
	  .ctx_cnt = 1,
	  .size = 2048 },
	{ .name = "sockets",
	  .control = FI_PROGRESS_AUTO,
	  .data = FI_PROGRESS_AUTO,
	  .protocol = FI_PROTO_SOCK_TCP,
	  .protocol_version = 2,
	  .ctx_cnt = 16 },
	{ .name = "udp;ofi_rxd",
	  .control = FI_PROGRESS_MANUAL,
	  .data = FI_PROGRESS_MANUAL,
	  .spellings = rxd_spellings,
	  .protocol = FI_PROTO_RXD,
	  .protocol_version = 1,
	  .ctx_cnt = 1 },
	{ 0 },
};

static struct fi_ep_attr ep_offer = {
	ENGINE_EP_OFFER,
};

/* A connection has one source, so that nothing names it, and no group. */
#define MSG_CTX_CNT \
	8192 /* as libfabric answers: an endpoint for each peer; memory bounds them */
#define MSG_LACKS                                                                        \
	(FI_DIRECTED_RECV | FI_SOURCE | FI_NAMED_RX_CTX | FI_COLLECTIVE | FI_SHARED_AV | \
	 FI_AV_USER_ID)

static const struct fi_domain_attr domain_offer = {
	ENGINE_DOMAIN_OFFER,
	.caps = ENGINE_DOMAIN_CAPS | FI_LOCAL_COMM | FI_REMOTE_COMM,
};

/* The state of one fi_getinfo. */
struct query {
	uint32_t version;
	const struct fi_info *hints;
	/* Owned */
	struct tcp_iface *ifaces;
	int iface_cnt;
	/* Source addresses asked for; 0 of them: any address of the host */
	union tcp_sockaddr src[RESOLVED_MAX];
	int src_cnt;
	union tcp_sockaddr dest[RESOLVED_MAX];
	int dest_cnt;
	/* Answers are of FI_EP_MSG endpoints; @besides: of whose type the hints say nothing */
	bool connects, besides;
	struct fi_info *answers;
	int err;
};

/* Returns the interface that has this address; for any address of 127.0.0.0/8, the loopback. */
static const struct tcp_iface *iface_of(const struct query *q, const union tcp_sockaddr *addr)
{
	const struct tcp_iface *iface;
	int i;

	for (i = 0; i < q->iface_cnt; i++) {
		iface = &q->ifaces[i];
		if (tcp_sockaddr_same_ip(&iface->addr, addr))
			return iface;
	}
	for (i = 0; i < q->iface_cnt && tcp_sockaddr_loopback(addr); i++) {
		iface = &q->ifaces[i];
		if (iface->rank ==
		    (addr->sa.sa_family == AF_INET ? TCP_RANK_LOOP4 : TCP_RANK_LOOP6))
			return iface;
	}
	return NULL;
}

/*
 * The identity under which MSG endpoints are answered: their protocol is the same under each
 * name that has them. Returns 0, or -FI_ENODATA for the name of a layer over them.
 */
static int msg_identity(const struct query *q, struct info_identity *as)
{
	*as = *info_identity_of(weft_tcp_identities, q->hints);
	if (as->spellings)
		return info_refuse(&tcp_provider,
				   "has no FI_EP_MSG endpoints under the name %s", as->name);
	as->protocol = FI_PROTO_SOCK_TCP;
	as->protocol_version = 0;
	return 0;
}

/*
 * Returns true if MSG endpoints meet hints that leave the type open. Without a log line: why RDM
 * endpoints do not is what a program wants to know that gets nothing.
 */
static bool msg_fits(const struct query *q, struct fi_info *offer, struct fi_ep_attr *ep,
		     const struct info_identity *as)
{
	ep->protocol = as->protocol;
	ep->protocol_version = as->protocol_version;
	ep->tx_ctx_cnt = ep->rx_ctx_cnt = as->ctx_cnt;
	return !info_refusal(&tcp_provider, offer, q->hints, q->version, NULL, 0);
}

/* An offer of MSG endpoints: less than the others, in memory of the caller. */
struct msg_offer {
	struct fi_tx_attr tx;
	struct fi_rx_attr rx;
	struct fi_ep_attr ep;
	struct info_identity as;
};

static int msg_offer_make(const struct query *q, struct msg_offer *msg, struct fi_info *offer)
{
	msg->tx = engine_tx_offer;
	msg->rx = engine_rx_offer;
	msg->ep = ep_offer;
	msg->tx.caps &= ~MSG_LACKS;
	msg->rx.caps &= ~MSG_LACKS;
	msg->ep.type = FI_EP_MSG;
	if (q->hints && !(q->hints->caps & FI_TAGGED) &&
	    info_identity_of(weft_tcp_identities, q->hints) == weft_tcp_identities)
		msg->ep.mem_tag_format = 0; /* as libfabric's tcp answers, not its sockets */
	offer->caps &= ~MSG_LACKS;
	offer->tx_attr = &msg->tx;
	offer->rx_attr = &msg->rx;
	offer->ep_attr = &msg->ep;
	offer->domain_attr->caps &= ~MSG_LACKS;
	offer->domain_attr->tx_ctx_cnt = offer->domain_attr->rx_ctx_cnt =
		offer->domain_attr->max_ep_srx_ctx = MSG_CTX_CNT;
	return msg_identity(q, &msg->as);
}

/* Adds one answer: from @src, an address of @iface, to @dest, which may be NULL. */
static void answer(struct query *q, const struct tcp_iface *iface, union tcp_sockaddr *src,
		   union tcp_sockaddr *dest)
{
	const struct info_identity *as = info_identity_of(weft_tcp_identities, q->hints);
	struct fi_domain_attr domain = domain_offer;
	struct fi_fabric_attr fabric = { .prov_version = FI_VERSION(FI_MAJOR_VERSION,
								    FI_MINOR_VERSION) };
	char iface_name[IF_NAMESIZE], net[INET6_ADDRSTRLEN + 8];
	struct fi_info offer = {
		.caps = ENGINE_CAPS | ENGINE_DOMAIN_CAPS | FI_LOCAL_COMM | FI_REMOTE_COMM,
		.addr_format = src->sa.sa_family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6,
		.src_addr = src,
		.src_addrlen = tcp_sockaddr_len(src),
		.dest_addr = dest,
		.dest_addrlen = dest ? tcp_sockaddr_len(dest) : 0,
		.tx_attr = &engine_tx_offer,
		.rx_attr = &engine_rx_offer,
		.ep_attr = &ep_offer,
		.domain_attr = &domain,
		.fabric_attr = &fabric,
	};
	struct msg_offer msg;
	struct fi_info *info;
	int err = 0;

	memcpy(iface_name, iface->name, sizeof(iface_name));
	tcp_iface_net(iface, net, sizeof(net));
	domain.name = iface_name;
	fabric.name = net;
	if (q->connects) {
		as = &msg.as;
		err = msg_offer_make(q, &msg, &offer);
		if (q->besides && !msg_fits(q, &offer, &msg.ep, as))
			return;
	}
	if (!err)
		err = info_answer(&tcp_provider, &offer, as, q->hints, q->version, &info);
	if (!err)
		info_append(&q->answers, info);
	else
		q->err = err;
}

static bool family_asked(const struct query *q, sa_family_t family)
{
	switch (q->hints ? q->hints->addr_format : FI_FORMAT_UNSPEC) {
	case FI_SOCKADDR_IN:
		return family == AF_INET;
	case FI_SOCKADDR_IN6:
		return family == AF_INET6;
	default:
		return true; /* info_answer checks other protocols */
	}
}

/* Returns true if the program or FI_TCP_IFACE names an interface. */
static bool iface_named(const struct query *q)
{
	const struct fi_info *hints = q->hints;

	return tcp_settings.iface ||
	       (hints && hints->domain_attr && hints->domain_attr->name) ||
	       (hints && hints->fabric_attr && hints->fabric_attr->name);
}

/*
 * A port without a host means to listen at all addresses: peers connect to any name of this host.
 * The domain is that of the interface whose address fi_getname returns.
 */
static void answer_wildcard(struct query *q, union tcp_sockaddr *src)
{
	int i;

	if (!tcp_sockaddr_port(src) || iface_named(q) || !family_asked(q, src->sa.sa_family))
		return;
	for (i = 0; i < q->iface_cnt; i++) {
		if (q->ifaces[i].addr.sa.sa_family != src->sa.sa_family)
			continue;
		answer(q, &q->ifaces[i], src, NULL);
		return;
	}
}

/* Answers for every interface. @src: NULL, or a wildcard address with the port asked for. */
static void answer_ifaces(struct query *q, union tcp_sockaddr *src)
{
	union tcp_sockaddr from;
	int i;

	if (src)
		answer_wildcard(q, src);

	for (i = 0; i < q->iface_cnt; i++) {
		from = q->ifaces[i].addr;
		if (!family_asked(q, from.sa.sa_family) ||
		    (src && src->sa.sa_family != from.sa.sa_family))
			continue;
		if (src)
			tcp_sockaddr_set_port(&from, tcp_sockaddr_port(src));
		answer(q, &q->ifaces[i], &from, NULL);
	}
}

/* Answers for one destination, from the source that the routing table gives or that was asked for. */
static void answer_dest(struct query *q, union tcp_sockaddr *dest)
{
	const struct tcp_iface *iface;
	union tcp_sockaddr from;
	char name[80];
	uint16_t port = 0;
	int i;

	for (i = 0; i < q->src_cnt && q->src[i].sa.sa_family != dest->sa.sa_family; i++)
		;
	if (i < q->src_cnt) {
		from = q->src[i];
		port = tcp_sockaddr_port(&from);
	} else if (q->src_cnt) {
		return;
	}
	tcp_sockaddr_str(dest, name, sizeof(name));
	if (i == q->src_cnt || tcp_sockaddr_any(&from)) {
		if (tcp_iface_route(dest, &from)) {
			q->err = info_refuse(&tcp_provider, "has no route to %s", name);
			return;
		}
		tcp_sockaddr_set_port(&from, port);
	}
	iface = iface_of(q, &from);
	if (iface)
		answer(q, iface, &from, dest);
	else
		q->err = info_refuse(&tcp_provider,
				     "reaches %s from no interface that it may use", name);
}

static void answer_src(struct query *q, union tcp_sockaddr *src)
{
	const struct tcp_iface *iface;
	char name[80];

	if (tcp_sockaddr_any(src)) {
		answer_ifaces(q, src);
		return;
	}
	iface = iface_of(q, src);
	if (iface) {
		answer(q, iface, src, NULL);
		return;
	}
	tcp_sockaddr_str(src, name, sizeof(name));
	q->err = info_refuse(&tcp_provider, "no interface of this host has the address %s",
			     name);
}

/* Reads an address of the hints. Returns 1, 0 when there is none, or -FI_ENODATA. */
static int hint_addr(const void *addr, size_t len, const char *which, union tcp_sockaddr *out)
{
	if (!addr)
		return 0;
	if (tcp_sockaddr_copy(out, addr, len))
		return info_refuse(&tcp_provider,
				   "the %s address of %zu bytes is not an IP socket address",
				   which, len);
	return 1;
}

/* Keeps the first address of a family that was asked for. Returns the number of addresses kept. */
static int keep_first(const struct query *q, const union tcp_sockaddr *found, int cnt,
		      sa_family_t family, union tcp_sockaddr *out)
{
	int i;

	for (i = 0; i < cnt && family_asked(q, family); i++) {
		if (found[i].sa.sa_family != family)
			continue;
		*out = found[i];
		return 1;
	}
	return 0;
}

/*
 * Resolves node and service to one address of each requested family. IPv4 is first, whatever the
 * resolver prefers: endpoints listen there by default.
 */
static int resolve(struct query *q, const char *node, const char *service, uint64_t flags,
		   union tcp_sockaddr *out)
{
	union tcp_sockaddr found[RESOLVED_MAX];
	int cnt, kept;
	char why[128];

	cnt = tcp_resolve(node, service, flags, AF_UNSPEC, found, RESOLVED_MAX, why,
			  sizeof(why));
	if (cnt < 0)
		return info_refuse(&tcp_provider, "%s", why);
	kept = keep_first(q, found, cnt, AF_INET, out);
	kept += keep_first(q, found, cnt, AF_INET6, out + kept);
	if (kept)
		return kept;
	return info_refuse(&tcp_provider, "finds no address of the requested format for %s",
			   node ? node : service);
}

/* Reads the parameters of fi_getinfo. Returns 0 or -FI_ENODATA. */
static int read_question(struct query *q, const char *node, const char *service, uint64_t flags)
{
	bool named = node || service, source = flags & FI_SOURCE;
	int cnt;

	if (named && source) {
		cnt = resolve(q, node, service, flags, q->src);
		if (cnt < 0)
			return cnt;
		q->src_cnt = cnt;
	} else if (q->hints) {
		cnt = hint_addr(q->hints->src_addr, q->hints->src_addrlen, "source", q->src);
		if (cnt < 0)
			return cnt;
		q->src_cnt = cnt;
	}
	if (named && !source) {
		cnt = resolve(q, node, service, flags, q->dest);
		if (cnt < 0)
			return cnt;
		q->dest_cnt = cnt;
	} else if (q->hints) {
		cnt = hint_addr(q->hints->dest_addr, q->hints->dest_addrlen, "destination",
				q->dest);
		if (cnt < 0)
			return cnt;
		q->dest_cnt = cnt;
	}
	return 0;
}

static void answer_all(struct query *q)
{
	int i;

	q->err = -FI_ENODATA;
	for (i = 0; i < q->dest_cnt; i++)
		answer_dest(q, &q->dest[i]);
	for (i = 0; i < q->src_cnt && !q->dest_cnt; i++)
		answer_src(q, &q->src[i]);
	if (!q->dest_cnt && !q->src_cnt)
		answer_ifaces(q, NULL);
}

/*
 * A query that leaves the type open gets RDM endpoints and, behind them, MSG endpoints, as from
 * libfabric: a program that takes the first answer reaches any number of peers by it.
 */
static void answer_besides(struct query *q)
{
	int err = q->err;

	if (info_identity_of(weft_tcp_identities, q->hints)->spellings)
		return; /* the name of a layer over them */
	q->connects = q->besides = true;
	answer_all(q);
	q->err = err;
}

int tcp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info)
{
	struct query q = { .version = version, .hints = hints };
	enum fi_ep_type type;
	char why[128];
	int err;

	err = read_question(&q, node, service, flags);
	if (err)
		return err;
	q.iface_cnt = tcp_ifaces(&q.ifaces, why, sizeof(why));
	if (q.iface_cnt < 0)
		return q.iface_cnt == -FI_ENOMEM ? -FI_ENOMEM
						 : info_refuse(&tcp_provider, "%s", why);
	type = hints && hints->ep_attr ? hints->ep_attr->type : FI_EP_UNSPEC;
	q.connects = type == FI_EP_MSG;
	answer_all(&q);
	if (type == FI_EP_UNSPEC)
		answer_besides(&q);
	free(q.ifaces);
	if (!q.answers)
		return q.err;
	*info = q.answers;
	return 0;
}
