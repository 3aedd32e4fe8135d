/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses of kofi_ibverbs (link.h): which of this machine's belong to RDMA devices, and how numbers of hosts are read.
 * Process context; no state.
 */
#include <linux/if_addr.h>
#include <linux/inet.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/net_namespace.h>

#include "verbs.h"

/* Addresses of this machine that are looked at */
#define LOCAL_MAX 128

void kib_address_put(struct sockaddr_storage *out, const struct kib_address *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	out->ss_family = address->family;
	if (address->family == AF_INET) {
		in->sin_port = htons(address->port);
		memcpy(&in->sin_addr, address->ip, sizeof(in->sin_addr));
	} else {
		in6->sin6_port = htons(address->port);
		in6->sin6_scope_id = address->scope;
		memcpy(&in6->sin6_addr, address->ip, sizeof(in6->sin6_addr));
	}
}

void kib_address_get(struct kib_address *out, const struct sockaddr_storage *address)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;

	memset(out, 0, sizeof(*out));
	out->family = address->ss_family;
	if (address->ss_family == AF_INET) {
		out->port = ntohs(in->sin_port);
		memcpy(out->ip, &in->sin_addr, sizeof(in->sin_addr));
	} else {
		out->port = ntohs(in6->sin6_port);
		out->scope = in6->sin6_scope_id;
		memcpy(out->ip, &in6->sin6_addr, sizeof(in6->sin6_addr));
	}
}

struct locals {
	struct kib_address *address;
	int cnt;
};

static void locals_add(struct locals *locals, u16 family, const void *ip, size_t len)
{
	struct kib_address *to = &locals->address[locals->cnt];

	if (locals->cnt == LOCAL_MAX)
		return;
	memset(to, 0, sizeof(*to));
	to->family = family;
	memcpy(to->ip, ip, len);
	locals->cnt++;
}

static void locals_of(struct locals *locals, struct net_device *dev)
{
	struct in_device *in = __in_dev_get_rtnl(dev);
	struct inet6_dev *in6 = __in6_dev_get(dev);
	struct inet6_ifaddr *ifa6;
	struct in_ifaddr *ifa;

	if (in)
		in_dev_for_each_ifa_rtnl(ifa, in)
			locals_add(locals, AF_INET, &ifa->ifa_local, sizeof(ifa->ifa_local));
	if (!in6)
		return;
	read_lock_bh(&in6->lock);
	list_for_each_entry(ifa6, &in6->addr_list, if_list)
		if (!(ipv6_addr_type(&ifa6->addr) & IPV6_ADDR_LINKLOCAL) &&
		    !(ifa6->flags & IFA_F_TENTATIVE))
			locals_add(locals, AF_INET6, &ifa6->addr, sizeof(ifa6->addr));
	read_unlock_bh(&in6->lock);
}

static int no_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

/* Whether an address belongs to a device: rdma_cm finds it. Returns 1 or 0. */
static int place_find(const struct kib_address *address, struct kib_place *place)
{
	struct rdma_cm_id *id = rdma_create_id(&init_net, no_event, NULL, RDMA_PS_TCP,
					       IB_QPT_RC);
	struct sockaddr_storage at;
	int found = 0;

	if (IS_ERR(id))
		return 0;
	kib_address_put(&at, address);
	if (!rdma_bind_addr(id, (struct sockaddr *)&at) && id->device &&
	    id->device->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS) {
		strscpy(place->device, dev_name(&id->device->dev), sizeof(place->device));
		place->address = *address;
		found = 1;
	}
	rdma_destroy_id(id);
	return found;
}

int kib_places(struct kib_place *out, int max)
{
	struct locals locals = { .address = kcalloc(LOCAL_MAX, sizeof(*locals.address),
						    GFP_KERNEL) };
	struct net_device *dev;
	int cnt = 0, i;

	if (!locals.address)
		return -FI_ENOMEM;
	rtnl_lock();
	for_each_netdev(&init_net, dev)
		if (dev->flags & IFF_UP && !(dev->flags & IFF_LOOPBACK))
			locals_of(&locals, dev);
	rtnl_unlock();
	for (i = 0; i < locals.cnt && cnt < max; i++)
		cnt += place_find(&locals.address[i], &out[cnt]);
	kfree(locals.address);
	return cnt;
}

int kib_address_read(const char *node, const char *service, struct kib_address *out)
{
	memset(out, 0, sizeof(*out));
	if (service && kstrtou16(service, 10, &out->port))
		return -FI_ENODATA;
	if (!node)
		return 0;
	if (in4_pton(node, -1, out->ip, -1, NULL))
		out->family = AF_INET;
	else if (in6_pton(node, -1, out->ip, -1, NULL))
		out->family = AF_INET6;
	else
		return -FI_ENODATA;
	return 0;
}
