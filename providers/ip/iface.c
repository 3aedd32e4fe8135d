/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interface addresses. Called when an endpoint is opened and by getinfo, on any thread; nothing is
 * kept, since interfaces come and go.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <rdma/fi_errno.h>
#include "iface.h"
#include "net_socket.h"

int ip_iface_route(const union ip_sockaddr *dest, union ip_sockaddr *out)
{
	union ip_sockaddr to = *dest, from = { 0 };
	socklen_t len = sizeof(from);
	int fd = sys_socket_open(to.sa.sa_family, SOCK_DGRAM), err;

	if (fd < 0)
		return fd;
	/* Any port does: connect() of a datagram socket only looks at the routing table. */
	if (!ip_sockaddr_port(&to))
		ip_sockaddr_set_port(&to, 9);
	err = sys_socket_connect(fd, &to.sa, ip_sockaddr_len(&to));
	if (!err)
		err = sys_socket_own(fd, &from.sa, &len);
	sys_socket_close(fd);
	if (err)
		return err == -FI_ENETUNREACH ? -FI_EHOSTUNREACH : err;
	ip_sockaddr_set_port(&from, 0);
	*out = from;
	return 0;
}

/*
 * Uses a reserved address that is in no network: no route to it is more specific than the default
 * route.
 */
static bool default_route(int family, union ip_sockaddr *out)
{
	union ip_sockaddr far = { .sa.sa_family = (sa_family_t)family };

	if (family == AF_INET)
		inet_pton(AF_INET, "240.0.0.1", &far.in.sin_addr);
	else
		inet_pton(AF_INET6, "3fff::1", &far.in6.sin6_addr);
	return ip_iface_route(&far, out) == 0;
}

static unsigned int prefix_bits(const struct sockaddr *mask, int family)
{
	const unsigned char *byte;
	unsigned int len, i, bits = 0, rest;

	if (!mask)
		return family == AF_INET ? 32 : 128;
	if (family == AF_INET) {
		byte = (const unsigned char *)&((const struct sockaddr_in *)(const void *)mask)
			       ->sin_addr;
		len = 4;
	} else {
		byte = (const unsigned char *)&((const struct sockaddr_in6 *)(const void *)mask)
			       ->sin6_addr;
		len = 16;
	}
	for (i = 0; i < len; i++)
		for (rest = byte[i]; rest; rest &= rest - 1)
			bits++;
	return bits;
}

static enum ip_iface_rank rank_of(const union ip_sockaddr *addr, const union ip_sockaddr *route4,
				  const union ip_sockaddr *route6)
{
	if (addr->sa.sa_family == AF_INET) {
		if (ip_sockaddr_loopback(addr))
			return IP_RANK_LOOP4;
		return ip_sockaddr_same_ip(addr, route4) ? IP_RANK_ROUTE4 : IP_RANK_INET4;
	}
	if (ip_sockaddr_loopback(addr))
		return IP_RANK_LOOP6;
	if (ip_sockaddr_of_link(addr))
		return IP_RANK_LINK;
	return ip_sockaddr_same_ip(addr, route6) ? IP_RANK_ROUTE6 : IP_RANK_INET6;
}

/* Stable: addresses of one rank stay in the kernel's order. */
static void insert_by_rank(struct ip_iface *list, int cnt, const struct ip_iface *iface)
{
	int at = cnt;

	while (at && list[at - 1].rank > iface->rank) {
		list[at] = list[at - 1];
		at--;
	}
	list[at] = *iface;
}

static bool wanted(const struct ifaddrs *a, const struct ip_iface_setting *setting)
{
	if (!a->ifa_addr || !(a->ifa_flags & IFF_UP))
		return false;
	if (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6)
		return false;
	return !setting->iface || !strcmp(setting->iface, a->ifa_name);
}

static struct ip_iface iface_of(const struct ifaddrs *a, const union ip_sockaddr *route4,
				const union ip_sockaddr *route6)
{
	struct ip_iface iface = { .prefix = prefix_bits(a->ifa_netmask,
							a->ifa_addr->sa_family) };

	snprintf(iface.name, sizeof(iface.name), "%s", a->ifa_name);
	if (a->ifa_addr->sa_family == AF_INET)
		memcpy(&iface.addr.in, a->ifa_addr, sizeof(iface.addr.in));
	else
		memcpy(&iface.addr.in6, a->ifa_addr, sizeof(iface.addr.in6));
	ip_sockaddr_set_port(&iface.addr, 0);
	iface.rank = rank_of(&iface.addr, route4, route6);
	return iface;
}

/*
 * Writes the addresses of @all that may be used to @list, by rank; it has room. Returns their
 * number.
 */
static int ranked(const struct ifaddrs *all, const struct ip_iface_setting *setting,
		  struct ip_iface *list)
{
	union ip_sockaddr route4 = { 0 }, route6 = { 0 };
	struct ip_iface iface;
	int cnt = 0;

	default_route(AF_INET, &route4);
	default_route(AF_INET6, &route6);
	for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
		if (!wanted(a, setting))
			continue;
		iface = iface_of(a, &route4, &route6);
		insert_by_rank(list, cnt++, &iface);
	}
	return cnt;
}

static int none_is_up(const struct ip_iface_setting *setting, char *why, size_t why_len)
{
	if (setting->iface)
		snprintf(why, why_len,
			 "%s is %s, and no interface of that name is up with an address",
			 setting->variable, setting->iface);
	else
		snprintf(why, why_len, "no interface is up with an IP address");
	return -FI_ENODATA;
}

int ip_ifaces(const struct ip_iface_setting *setting, struct ip_iface **list, char *why,
	      size_t why_len)
{
	struct ifaddrs *all, *a;
	struct ip_iface *found;
	int cnt;

	cnt = sys_interfaces(&all);
	if (cnt) {
		snprintf(why, why_len, "the interfaces can't be listed: %s", strerror(-cnt));
		return -FI_ENODATA;
	}
	for (a = all; a; a = a->ifa_next)
		cnt += wanted(a, setting);
	found = calloc((size_t)cnt + 1, sizeof(*found));
	if (!found) {
		freeifaddrs(all);
		snprintf(why, why_len, "out of memory");
		return -FI_ENOMEM;
	}
	cnt = ranked(all, setting, found);
	freeifaddrs(all);
	if (!cnt) {
		free(found);
		return none_is_up(setting, why, why_len);
	}
	*list = found;
	return cnt;
}

int ip_iface_default(const struct ip_iface_setting *setting, int family, union ip_sockaddr *out,
		     char *why, size_t why_len)
{
	struct ip_iface *list;
	int cnt, i;

	cnt = ip_ifaces(setting, &list, why, why_len);
	if (cnt < 0)
		return cnt;
	for (i = 0; i < cnt; i++) {
		if (family == AF_UNSPEC || list[i].addr.sa.sa_family == family)
			break;
	}
	if (i < cnt)
		*out = list[i].addr;
	else
		snprintf(why, why_len, "no interface is up with an address of IPv%d",
			 family == AF_INET ? 4 : 6);
	free(list);
	return i < cnt ? 0 : -FI_ENODATA;
}

void ip_iface_net(const struct ip_iface *iface, char *buf, size_t len)
{
	union ip_sockaddr net = iface->addr;
	char ip[INET6_ADDRSTRLEN] = "?";
	unsigned char *byte;
	unsigned int bit, bits;

	if (net.sa.sa_family == AF_INET) {
		byte = (unsigned char *)&net.in.sin_addr;
		bits = 32;
	} else {
		byte = (unsigned char *)&net.in6.sin6_addr;
		bits = 128;
	}
	for (bit = iface->prefix; bit < bits; bit++)
		byte[bit / 8] &= (unsigned char)~(0x80u >> bit % 8);
	inet_ntop(net.sa.sa_family, byte, ip, sizeof(ip));
	snprintf(buf, len, "%s/%u", ip, iface->prefix);
}
