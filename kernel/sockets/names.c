/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses of IP: as text, and those of the host's interfaces. What the provider's sources
 * take of the C library for that, with the contracts of POSIX; hosts and services are numbers.
 * Process context.
 */
#include <linux/if.h>
#include <linux/inet.h>
#include <linux/inetdevice.h>
#include <linux/kernel.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/net_namespace.h>

#include <netdb.h>

#include "net_socket.h"

/* That of arpa/inet.h, which Linux' headers know in part. */
const char *inet_ntop(int family, const void *addr, char *text, u32 len);
int inet_pton(int family, const char *text, void *addr);

const char *inet_ntop(int family, const void *addr, char *text, u32 len)
{
	snprintf(text, len, family == AF_INET ? "%pI4" : "%pI6c", addr);
	return text;
}

int inet_pton(int family, const char *text, void *addr)
{
	const char *end = NULL;

	if (family == AF_INET)
		return in4_pton(text, -1, addr, -1, &end) && !*end;
	return in6_pton(text, -1, addr, -1, &end) && !*end;
}

/* ---- interfaces ---- */

/* An entry, and what it points to. */
struct interface {
	struct ifaddrs entry;
	char name[IFNAMSIZ];
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} addr, mask;
};

struct interfaces {
	struct ifaddrs *first, **last;
	int err;
};

static struct interface *interface_new(struct interfaces *all, const struct net_device *dev,
				       int family, gfp_t gfp)
{
	struct interface *i = all->err ? NULL : kzalloc(sizeof(*i), gfp);

	if (!i) {
		all->err = -ENOMEM;
		return NULL;
	}
	strscpy(i->name, dev->name, sizeof(i->name));
	i->entry.ifa_name = i->name;
	i->entry.ifa_flags = dev_get_flags(dev);
	i->addr.sa.sa_family = i->mask.sa.sa_family = family;
	i->entry.ifa_addr = &i->addr.sa;
	i->entry.ifa_netmask = &i->mask.sa;
	*all->last = &i->entry;
	all->last = &i->entry.ifa_next;
	return i;
}

static void interfaces_of_four(struct interfaces *all, const struct net_device *dev)
{
	const struct in_device *in = __in_dev_get_rtnl(dev);
	const struct in_ifaddr *ifa;
	struct interface *i;

	if (!in)
		return;
	for (ifa = rtnl_dereference(in->ifa_list); ifa; ifa = rtnl_dereference(ifa->ifa_next)) {
		i = interface_new(all, dev, AF_INET, GFP_KERNEL);
		if (!i)
			return;
		i->addr.in.sin_addr.s_addr = ifa->ifa_local;
		i->mask.in.sin_addr.s_addr = ifa->ifa_mask;
	}
}

static void interfaces_of_six(struct interfaces *all, const struct net_device *dev)
{
	struct inet6_dev *in6 = __in6_dev_get(dev);
	const struct inet6_ifaddr *ifa;
	struct in6_addr ones;
	struct interface *i;

	if (!in6)
		return;
	read_lock_bh(&in6->lock);
	list_for_each_entry(ifa, &in6->addr_list, if_list) {
		/* Nobody else is known to have it. */
		if (ifa->flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED))
			continue;
		i = interface_new(all, dev, AF_INET6, GFP_ATOMIC);
		if (!i)
			break;
		i->addr.in6.sin6_addr = ifa->addr;
		if (ipv6_addr_type(&ifa->addr) & IPV6_ADDR_LINKLOCAL)
			i->addr.in6.sin6_scope_id = dev->ifindex;
		memset(&ones, 0xff, sizeof(ones));
		ipv6_addr_prefix(&i->mask.in6.sin6_addr, &ones, ifa->prefix_len);
	}
	read_unlock_bh(&in6->lock);
}

int sys_interfaces(struct ifaddrs **out)
{
	struct interfaces all = { .last = &all.first };
	const struct net_device *dev;

	rtnl_lock();
	for_each_netdev(&init_net, dev)
		interfaces_of_four(&all, dev);
	for_each_netdev(&init_net, dev)
		interfaces_of_six(&all, dev);
	rtnl_unlock();
	if (all.err)
		freeifaddrs(all.first);
	else
		*out = all.first;
	return all.err;
}

void freeifaddrs(struct ifaddrs *all)
{
	while (all) {
		struct interface *i = container_of(all, struct interface, entry);

		all = all->ifa_next;
		kfree(i);
	}
}

/* ---- names, which are numbers ---- */

enum {
	NAME_NONE = 1, /* no memory */
	NAME_HOST,
	NAME_SERVICE,
};

const char *gai_strerror(int error)
{
	switch (error) {
	case NAME_HOST:
		return "the host is no number";
	case NAME_SERVICE:
		return "the port is no number";
	default:
		return "out of memory";
	}
}

/* An answer, and what it points to. */
struct answer {
	struct addrinfo info;
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} addr;
};

/* Writes the host's address of @family. Returns false where it has none. */
static bool host(const char *node, int family, bool passive, void *addr)
{
	if (node)
		return inet_pton(family, node, addr);
	if (passive)
		return true;
	return inet_pton(family, family == AF_INET ? "127.0.0.1" : "::1", addr);
}

/* Appends the answer of one family. Returns 0, or NAME_NONE. */
static int answer(const char *node, int family, bool passive, u16 port, struct addrinfo ***last)
{
	struct answer *a = kzalloc(sizeof(*a), GFP_KERNEL);
	bool four = family == AF_INET;

	if (!a)
		return NAME_NONE;
	if (!host(node, family, passive,
		  four ? (void *)&a->addr.in.sin_addr : &a->addr.in6.sin6_addr)) {
		kfree(a);
		return 0;
	}
	a->addr.sa.sa_family = a->info.ai_family = family;
	if (four)
		a->addr.in.sin_port = htons(port);
	else
		a->addr.in6.sin6_port = htons(port);
	a->info.ai_addr = &a->addr.sa;
	a->info.ai_addrlen = four ? sizeof(a->addr.in) : sizeof(a->addr.in6);
	**last = &a->info;
	*last = &a->info.ai_next;
	return 0;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **found)
{
	bool passive = hints->ai_flags & AI_PASSIVE;
	struct addrinfo *first = NULL, **last = &first;
	int err = 0;
	u16 port = 0;

	if (service && kstrtou16(service, 10, &port))
		return NAME_SERVICE;
	if (hints->ai_family != AF_INET6)
		err = answer(node, AF_INET, passive, port, &last);
	if (!err && hints->ai_family != AF_INET)
		err = answer(node, AF_INET6, passive, port, &last);
	if (!err && !first)
		err = NAME_HOST;
	if (err)
		freeaddrinfo(first);
	else
		*found = first;
	return err;
}

void freeaddrinfo(struct addrinfo *found)
{
	while (found) {
		struct answer *a = container_of(found, struct answer, info);

		found = found->ai_next;
		kfree(a);
	}
}
