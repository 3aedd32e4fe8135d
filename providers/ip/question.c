/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which addresses a question names, and from where it is answered: node, service, FI_SOURCE, and
 * the addresses of the hints. Called by the getinfo of tcp and of udp, on any thread.
 */
#include <rdma/fi_errno.h>
#include "info.h"
#include "question.h"

/* Returns the interface that has this address; for any address of 127.0.0.0/8, the loopback. */
static const struct ip_iface *iface_of(const struct ip_question *q,
				       const union ip_sockaddr *addr)
{
	const struct ip_iface *iface;
	int i;

	for (i = 0; i < q->iface_cnt; i++) {
		iface = &q->ifaces[i];
		if (ip_sockaddr_same_ip(&iface->addr, addr))
			return iface;
	}
	for (i = 0; i < q->iface_cnt && ip_sockaddr_loopback(addr); i++) {
		iface = &q->ifaces[i];
		if (iface->rank ==
		    (addr->sa.sa_family == AF_INET ? IP_RANK_LOOP4 : IP_RANK_LOOP6))
			return iface;
	}
	return NULL;
}

static bool family_asked(const struct ip_question *q, sa_family_t family)
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

/* Returns true if the program or its user names an interface. */
static bool iface_named(const struct ip_question *q)
{
	const struct fi_info *hints = q->hints;

	return q->setting.iface || (hints && hints->domain_attr && hints->domain_attr->name) ||
	       (hints && hints->fabric_attr && hints->fabric_attr->name);
}

/*
 * A port without a host means to listen at all addresses: peers connect to any name of this host.
 * The domain is that of the interface whose address fi_getname returns.
 */
static void answer_wildcard(struct ip_question *q, union ip_sockaddr *src)
{
	int i;

	if (!ip_sockaddr_port(src) || iface_named(q) || !family_asked(q, src->sa.sa_family))
		return;
	for (i = 0; i < q->iface_cnt; i++) {
		if (q->ifaces[i].addr.sa.sa_family != src->sa.sa_family)
			continue;
		q->answer(q, &q->ifaces[i], src, NULL);
		return;
	}
}

/* Answers for every interface. @src: NULL, or a wildcard address with the port asked for. */
static void answer_ifaces(struct ip_question *q, union ip_sockaddr *src)
{
	union ip_sockaddr from;
	int i;

	if (src)
		answer_wildcard(q, src);

	for (i = 0; i < q->iface_cnt; i++) {
		from = q->ifaces[i].addr;
		if (!family_asked(q, from.sa.sa_family) ||
		    (src && src->sa.sa_family != from.sa.sa_family))
			continue;
		if (src)
			ip_sockaddr_set_port(&from, ip_sockaddr_port(src));
		q->answer(q, &q->ifaces[i], &from, NULL);
	}
}

/*
 * Answers for one destination, from the source that the routing table gives or that was asked for.
 */
static void answer_dest(struct ip_question *q, union ip_sockaddr *dest)
{
	const struct ip_iface *iface;
	union ip_sockaddr from;
	char name[80];
	uint16_t port = 0;
	int i;

	for (i = 0; i < q->src_cnt && q->src[i].sa.sa_family != dest->sa.sa_family; i++)
		;
	if (i < q->src_cnt) {
		from = q->src[i];
		port = ip_sockaddr_port(&from);
	} else if (q->src_cnt) {
		return;
	}
	ip_sockaddr_str(dest, name, sizeof(name));
	if (i == q->src_cnt || ip_sockaddr_any(&from)) {
		if (ip_iface_route(dest, &from)) {
			q->err = info_refuse(q->provider, "has no route to %s", name);
			return;
		}
		ip_sockaddr_set_port(&from, port);
	}
	iface = iface_of(q, &from);
	if (iface)
		q->answer(q, iface, &from, dest);
	else
		q->err = info_refuse(q->provider,
				     "reaches %s from no interface that it may use", name);
}

static void answer_src(struct ip_question *q, union ip_sockaddr *src)
{
	const struct ip_iface *iface;
	char name[80];

	if (ip_sockaddr_any(src)) {
		answer_ifaces(q, src);
		return;
	}
	iface = iface_of(q, src);
	if (iface) {
		q->answer(q, iface, src, NULL);
		return;
	}
	ip_sockaddr_str(src, name, sizeof(name));
	q->err = info_refuse(q->provider, "no interface of this host has the address %s", name);
}

/* Reads an address of the hints. Returns 1, 0 when there is none, or -FI_ENODATA. */
static int hint_addr(const struct ip_question *q, const void *addr, size_t len,
		     const char *which, union ip_sockaddr *out)
{
	if (!addr)
		return 0;
	if (ip_sockaddr_copy(out, addr, len))
		return info_refuse(q->provider,
				   "the %s address of %zu bytes is not an IP socket address",
				   which, len);
	return 1;
}

/* Keeps the first address of a family that was asked for. Returns the number of addresses kept. */
static int keep_first(const struct ip_question *q, const union ip_sockaddr *found, int cnt,
		      sa_family_t family, union ip_sockaddr *out)
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
static int resolve(struct ip_question *q, const char *node, const char *service, uint64_t flags,
		   union ip_sockaddr *out)
{
	const struct ip_lookup lookup = { node, service, flags, AF_UNSPEC, q->socktype };
	union ip_sockaddr found[IP_RESOLVED_MAX];
	int cnt, kept;
	char why[128];

	cnt = ip_resolve(&lookup, found, IP_RESOLVED_MAX, why, sizeof(why));
	if (cnt < 0)
		return info_refuse(q->provider, "%s", why);
	kept = keep_first(q, found, cnt, AF_INET, out);
	kept += keep_first(q, found, cnt, AF_INET6, out + kept);
	if (kept)
		return kept;
	return info_refuse(q->provider, "finds no address of the requested format for %s",
			   node ? node : service);
}

/* Reads the parameters of fi_getinfo. Returns 0 or -FI_ENODATA. */
static int read_question(struct ip_question *q, const char *node, const char *service,
			 uint64_t flags)
{
	bool named = node || service, source = flags & FI_SOURCE;
	int cnt;

	if (named && source) {
		cnt = resolve(q, node, service, flags, q->src);
		if (cnt < 0)
			return cnt;
		q->src_cnt = cnt;
	} else if (q->hints) {
		cnt = hint_addr(q, q->hints->src_addr, q->hints->src_addrlen, "source", q->src);
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
		cnt = hint_addr(q, q->hints->dest_addr, q->hints->dest_addrlen, "destination",
				q->dest);
		if (cnt < 0)
			return cnt;
		q->dest_cnt = cnt;
	}
	return 0;
}

int ip_question_read(struct ip_question *q, const char *node, const char *service,
		     uint64_t flags)
{
	char why[128];
	int err;

	err = read_question(q, node, service, flags);
	if (err)
		return err;
	q->iface_cnt = ip_ifaces(&q->setting, &q->ifaces, why, sizeof(why));
	if (q->iface_cnt >= 0)
		return 0;
	return q->iface_cnt == -FI_ENOMEM ? -FI_ENOMEM : info_refuse(q->provider, "%s", why);
}

void ip_question_answer(struct ip_question *q)
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

int ip_question_end(struct ip_question *q, struct fi_info **info)
{
	free(q->ifaces);
	if (!q->answers)
		return q->err;
	*info = q->answers;
	return 0;
}

int ip_question_run(struct ip_question *q, const char *node, const char *service,
		    uint64_t flags, struct fi_info **info)
{
	int err = ip_question_read(q, node, service, flags);

	if (err)
		return err;
	ip_question_answer(q);
	return ip_question_end(q, info);
}
