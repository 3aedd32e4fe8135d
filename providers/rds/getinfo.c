/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo of the provider: one fi_info for each address of this machine that RDS has a transport for, the best
 * first. Called by the core, on any thread; no state.
 */
#include <rdma/fi_errno.h>
#include "conn.h"
#include "engine.h"
#include "info.h"
#include "mr.h"
#include "question.h"
#include "rds.h"

static struct fi_ep_attr ep_offer = {
	ENGINE_EP_OFFER,
};

static const struct fi_domain_attr domain_offer = {
	ENGINE_DOMAIN_OFFER,
	.caps = ENGINE_DOMAIN_CAPS | FI_LOCAL_COMM | FI_REMOTE_COMM,
};

/* Returns 0 if RDS has a transport for an address, or -FI_ENODATA. */
static int address_serves(const union ip_sockaddr *src, const char *iface)
{
	union ip_sockaddr at = *src;
	int fd;

	ip_sockaddr_set_port(&at, 0);
	fd = rds_socket_open(&at, &at);
	if (fd == -EAFNOSUPPORT)
		return info_refuse(
			&rds_provider,
			"the kernel has no RDS: are its modules rds and rds_tcp there?");
	if (fd < 0)
		return info_refuse(&rds_provider,
				   "RDS has no transport for %s (%s): is rds_tcp there?", iface,
				   strerror(-fd));
	sys_socket_close(fd);
	return 0;
}

static const struct fi_info rds_offer = {
	.tx_attr = &engine_tx_offer,
	.rx_attr = &engine_rx_offer,
	.ep_attr = &ep_offer,
};

/* What is offered at an address; the rest is of the domain and its fabric. */
static struct fi_info offer_at(union ip_sockaddr *src, union ip_sockaddr *dest)
{
	struct fi_info offer = rds_offer;

	offer.caps = rds_caps | ENGINE_DOMAIN_CAPS | FI_LOCAL_COMM | FI_REMOTE_COMM;
	offer.addr_format = src->sa.sa_family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
	offer.src_addr = src;
	offer.src_addrlen = ip_sockaddr_len(src);
	if (dest) {
		offer.dest_addr = dest;
		offer.dest_addrlen = ip_sockaddr_len(dest);
	}
	return offer;
}

static void answer(struct ip_question *q, const struct ip_iface *iface, union ip_sockaddr *src,
		   union ip_sockaddr *dest)
{
	struct fi_domain_attr domain = domain_offer;
	struct fi_fabric_attr fabric = { .prov_version = rds_provider.version };
	char iface_name[IF_NAMESIZE], net[INET6_ADDRSTRLEN + 8];
	struct fi_info offer = offer_at(src, dest);
	struct fi_info *info;
	int err;

	/* A socket of RDS has one address: the answers for each follow. */
	if (ip_sockaddr_any(src))
		return;
	memcpy(iface_name, iface->name, sizeof(iface_name));
	ip_iface_net(iface, net, sizeof(net));
	domain.name = iface_name;
	offer.domain_attr = &domain;
	fabric.name = net;
	offer.fabric_attr = &fabric;
	err = info_answer(&rds_provider, &offer, weft_rds_identities, q->hints, q->version,
			  &info);
	if (!err) {
		err = address_serves(src, iface_name);
		if (err)
			info_free(info);
	}
	if (!err)
		info_append(&q->answers, info);
	else
		q->err = err;
}

int rds_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info)
{
	struct ip_question q = {
		.provider = &rds_provider,
		.socktype = SOCK_DGRAM,
		.setting = { RDS_IFACE_VARIABLE, rds_settings.iface },
		.version = version,
		.hints = hints,
		.answer = answer,
	};

	return ip_question_run(&q, node, service, flags, info);
}
