/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo of the tcp provider: one fi_info for each address of this host that the program can
 * use, the best first. Called by the core, on any thread.
 */
#include <rdma/fi_errno.h>
#include "engine.h"
#include "info.h"
#include "list.h"
#include "mr.h"
#include "question.h"
#include "tcp.h"

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
	struct ip_question q;
	/* Answers are of FI_EP_MSG endpoints; @besides: of whose type the hints say nothing */
	bool connects, besides;
};

/*
 * The identity under which MSG endpoints are answered: their protocol is the same under each
 * name that has them. Returns 0, or -FI_ENODATA for the name of a layer over them.
 */
static int msg_identity(const struct ip_question *q, struct info_identity *as)
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
 * Returns true if MSG endpoints meet hints that leave the type open. Without a log line: a program
 * that gets nothing wants to know why RDM endpoints do not meet them.
 */
static bool msg_fits(const struct ip_question *q, struct fi_info *offer, struct fi_ep_attr *ep,
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

static int msg_offer_make(const struct ip_question *q, struct msg_offer *msg,
			  struct fi_info *offer)
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
static void answer(struct ip_question *q, const struct ip_iface *iface, union ip_sockaddr *src,
		   union ip_sockaddr *dest)
{
	const struct query *query = container_of(q, struct query, q);
	const struct info_identity *as = info_identity_of(weft_tcp_identities, q->hints);
	struct fi_domain_attr domain = domain_offer;
	struct fi_fabric_attr fabric = { .prov_version = FI_VERSION(FI_MAJOR_VERSION,
								    FI_MINOR_VERSION) };
	char iface_name[IF_NAMESIZE], net[INET6_ADDRSTRLEN + 8];
	struct fi_info offer = {
		.caps = tcp_caps | ENGINE_DOMAIN_CAPS | FI_LOCAL_COMM | FI_REMOTE_COMM,
		.addr_format = src->sa.sa_family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6,
		.src_addr = src,
		.src_addrlen = ip_sockaddr_len(src),
		.dest_addr = dest,
		.dest_addrlen = dest ? ip_sockaddr_len(dest) : 0,
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
	ip_iface_net(iface, net, sizeof(net));
	domain.name = iface_name;
	fabric.name = net;
	if (query->connects) {
		as = &msg.as;
		err = msg_offer_make(q, &msg, &offer);
		if (query->besides && !msg_fits(q, &offer, &msg.ep, as))
			return;
	}
	if (!err)
		err = info_answer(&tcp_provider, &offer, as, q->hints, q->version, &info);
	if (!err)
		info_append(&q->answers, info);
	else
		q->err = err;
}

/*
 * A query that leaves the type open gets RDM endpoints and, behind them, MSG endpoints, as from
 * libfabric: a program that takes the first answer reaches any number of peers by it.
 */
static void answer_besides(struct query *query)
{
	int err = query->q.err;

	if (info_identity_of(weft_tcp_identities, query->q.hints)->spellings)
		return; /* the name of a layer over them */
	query->connects = query->besides = true;
	ip_question_answer(&query->q);
	query->q.err = err;
}

int tcp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info)
{
	enum fi_ep_type type = hints && hints->ep_attr ? hints->ep_attr->type : FI_EP_UNSPEC;
	struct query query = {
		.q = {
			.provider = &tcp_provider,
			.socktype = SOCK_STREAM,
			.setting = { TCP_IFACE_VARIABLE, tcp_settings.iface },
			.version = version,
			.hints = hints,
			.answer = answer,
		},
		.connects = type == FI_EP_MSG,
	};
	int err = ip_question_read(&query.q, node, service, flags);

	if (err)
		return err;
	ip_question_answer(&query.q);
	if (type == FI_EP_UNSPEC)
		answer_besides(&query);
	return ip_question_end(&query.q, info);
}
