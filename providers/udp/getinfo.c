/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo of the udp provider: datagram endpoints, one fi_info for each address of this host
 * that the program can use, the best first. Called by the core, on any thread.
 */
#include <rdma/fi_errno.h>
#include <string.h>
#include "info.h"
#include "question.h"
#include "udp.h"

#define TRANSFER_CAPS (FI_MSG | FI_MULTICAST)
#define PLACE_CAPS    (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define RX_CAPS	      (FI_MSG | FI_RECV | FI_SOURCE | FI_MULTI_RECV)
#define OBJECT_CNT    256 /* as libfabric's udp answers; memory and descriptors bound them */

const struct info_identity weft_udp_identities[] = {
	{ .name = "udp",
	  .control = FI_PROGRESS_AUTO,
	  .data = FI_PROGRESS_AUTO,
	  .protocol = FI_PROTO_UDP,
	  .ctx_cnt = 1 },
	{ 0 },
};

/*
 * Sends have ended when their call returns, and the kernel alone moves what arrives: progress is
 * automatic.
 */
static const struct fi_domain_attr domain_offer = {
	.threading = FI_THREAD_SAFE,
	.progress = FI_PROGRESS_AUTO,
	.resource_mgmt = FI_RM_ENABLED,
	.mr_mode = INFO_MR_BASIC | INFO_MR_SCALABLE,
	.mr_key_size = 8,
	.cq_cnt = OBJECT_CNT,
	.ep_cnt = OBJECT_CNT,
	.tx_ctx_cnt = OBJECT_CNT,
	.rx_ctx_cnt = OBJECT_CNT,
	.max_ep_tx_ctx = 1,
	.max_ep_rx_ctx = 1,
	.cntr_cnt = OBJECT_CNT,
	.mr_iov_limit = UDP_IOV_MAX,
	.mr_cnt = 65536,
	.caps = PLACE_CAPS,
};

static const struct fi_tx_attr tx_offer = {
	.caps = TRANSFER_CAPS | FI_SEND,
	.op_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
		    FI_MULTICAST | FI_MORE,
	.comp_order = FI_ORDER_STRICT,
	.size = UDP_CTX_SIZE,
	.iov_limit = UDP_IOV_MAX,
};

static const struct fi_rx_attr rx_offer = {
	.caps = RX_CAPS,
	.op_flags = FI_COMPLETION | FI_MULTI_RECV | FI_MORE,
	.comp_order = FI_ORDER_STRICT,
	.size = UDP_CTX_SIZE,
	.iov_limit = UDP_IOV_MAX,
};

/* An offer, in memory of the caller. */
struct udp_offer {
	struct fi_info info;
	struct fi_tx_attr tx;
	struct fi_rx_attr rx;
	struct fi_ep_attr ep;
	struct fi_domain_attr domain;
	struct fi_fabric_attr fabric;
	char iface[IF_NAMESIZE];
	char net[INET6_ADDRSTRLEN + 8];
};

static void offer_make(struct udp_offer *offer, const struct ip_iface *iface,
		       union ip_sockaddr *src, union ip_sockaddr *dest)
{
	memset(offer, 0, sizeof(*offer));
	memcpy(offer->iface, iface->name, sizeof(offer->iface));
	ip_iface_net(iface, offer->net, sizeof(offer->net));
	offer->tx = tx_offer;
	offer->tx.inject_size = (size_t)udp_settings.msg_max;
	offer->rx = rx_offer;
	offer->ep.type = FI_EP_DGRAM;
	offer->ep.protocol = FI_PROTO_UDP;
	offer->ep.max_msg_size = (size_t)udp_settings.msg_max;
	offer->ep.tx_ctx_cnt = offer->ep.rx_ctx_cnt = 1;
	offer->domain = domain_offer;
	offer->domain.name = offer->iface;
	offer->fabric.name = offer->net;
	offer->fabric.prov_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
	offer->info.caps = TRANSFER_CAPS | FI_SEND | RX_CAPS | PLACE_CAPS;
	offer->info.addr_format = src->sa.sa_family == AF_INET ? FI_SOCKADDR_IN
							       : FI_SOCKADDR_IN6;
	offer->info.src_addr = src;
	offer->info.src_addrlen = ip_sockaddr_len(src);
	offer->info.dest_addr = dest;
	offer->info.dest_addrlen = dest ? ip_sockaddr_len(dest) : 0;
	offer->info.tx_attr = &offer->tx;
	offer->info.rx_attr = &offer->rx;
	offer->info.ep_attr = &offer->ep;
	offer->info.domain_attr = &offer->domain;
	offer->info.fabric_attr = &offer->fabric;
}

static void answer(struct ip_question *q, const struct ip_iface *iface, union ip_sockaddr *src,
		   union ip_sockaddr *dest)
{
	struct udp_offer offer;
	struct fi_info *info;
	int err;

	offer_make(&offer, iface, src, dest);
	err = info_answer(&udp_provider, &offer.info, weft_udp_identities, q->hints, q->version,
			  &info);
	if (err)
		q->err = err;
	else
		info_append(&q->answers, info);
}

int udp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info)
{
	struct ip_question q = {
		.provider = &udp_provider,
		.socktype = SOCK_DGRAM,
		.setting = { UDP_IFACE_VARIABLE, udp_settings.iface },
		.version = version,
		.hints = hints,
		.answer = answer,
	};

	return ip_question_run(&q, node, service, flags, info);
}
