/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Multicast groups. An endpoint that receives from a group has a socket for it, which gets what is
 * sent to the group's address and port and nothing else. The endpoint's first socket keeps its
 * address, and gets what is sent there. Messages to a group leave by that socket, so that members
 * see the endpoint's name. Called by programs, on any thread. Source: fi_cm(3).
 */
#include "absent.h"
#include "descriptor.h"
#include "endpoint.h"
#include "event.h"
#include "socket.h"

struct udp_group *udp_group_find(const struct udp_ep *ep, fi_addr_t addr)
{
	struct udp_group *group;

	list_for_each_entry(group, &ep->groups, link)
		if (group->fid.fi_addr == addr)
			return group;
	return NULL;
}

static int group_close(struct fid *fid)
{
	struct udp_group *group = container_of(fid, struct udp_group, fid.fid);
	struct udp_ep *ep = group->ep;
	bool here = udp_enter(ep->domain);

	if (group->fd >= 0)
		udp_ep_close_socket(ep, group->fd, &group->addr, here);
	list_remove(&group->link);
	if (here)
		udp_leave(ep->domain);
	platform_free(group);
	return 0;
}

static struct fi_ops group_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = group_close,
	.bind = udp_no_bind,
	.control = udp_no_control,
	.ops_open = udp_no_ops_open,
	.tostr = udp_no_tostr,
	.ops_set = udp_no_ops_set,
};

static bool is_group(const union ip_sockaddr *addr)
{
	if (!ip_sockaddr_port(addr))
		return false;
	return addr->sa.sa_family == AF_INET ? IN_MULTICAST(ntohl(addr->in.sin_addr.s_addr))
					     : IN6_IS_ADDR_MULTICAST(&addr->in6.sin6_addr);
}

/* Returns 0 or -FI_E*, logged. */
static int join_check(const struct udp_ep *ep, const union ip_sockaddr *addr, uint64_t flags)
{
	if (!ep->multicasts)
		return udp_refuse(FI_LOG_EP_CTRL, -FI_ENOSYS, "fi_join",
				  "the endpoint was opened without FI_MULTICAST");
	if (addr->sa.sa_family != ep->domain->family || !is_group(addr))
		return udp_refuse(FI_LOG_EP_CTRL, -FI_EINVAL, "fi_join",
				  "not a multicast address of the domain's family with a port");
	if ((flags & FI_SEND && !ep->sends) || (flags & FI_RECV && !ep->receives))
		return udp_refuse(FI_LOG_EP_CTRL, -FI_EINVAL, "fi_join",
				  "a direction that the endpoint was opened without");
	if (!ep->enabled)
		return udp_refuse(FI_LOG_EP_CTRL, -FI_EOPBADSTATE, "fi_join",
				  "the endpoint is not enabled");
	return ep->eq ? 0
		      : udp_refuse(FI_LOG_EP_CTRL, -FI_ENOEQ, "fi_join",
				   "no event queue is bound to the endpoint");
}

/* Makes the group one of the endpoint's. With the domain locked. Returns 0 or -FI_E*. */
static int group_open(struct udp_ep *ep, struct udp_group *group, bool receives)
{
	unsigned int iface = ip_sockaddr_any(&ep->at) ? 0 : ep->domain->iface;
	int ret = 0;

	if (group->addr.sa.sa_family == AF_INET6 && group->addr.in6.sin6_scope_id)
		iface = group->addr.in6.sin6_scope_id;
	if (receives) {
		group->fd = udp_socket_join(&group->addr, iface);
		if (group->fd < 0)
			return group->fd;
		ret = udp_ep_watch(ep, group->fd);
	}
	if (ret) {
		sys_descriptor_close(group->fd);
		return ret;
	}
	group->fid.fi_addr = UDP_GROUP_BIT | ep->next_group++;
	list_add_tail(&ep->groups, &group->link);
	return 0;
}

static struct udp_group *group_new(struct udp_ep *ep, const union ip_sockaddr *addr,
				   void *context)
{
	struct udp_group *group = platform_alloc(sizeof(*group));

	if (!group)
		return NULL;
	group->fid.fid.fclass = FI_CLASS_MC;
	group->fid.fid.context = context;
	group->fid.fid.ops = &group_fi_ops;
	group->ep = ep;
	group->addr = *addr;
	group->fd = -1;
	group->ask = 1;
	return group;
}

/* The kernel joins within the call: the event follows at once. */
static int join(struct udp_ep *ep, const union ip_sockaddr *addr, uint64_t flags,
		struct fid_mc **mc, void *context)
{
	uint64_t directions = flags & (FI_SEND | FI_RECV);
	struct udp_group *group = group_new(ep, addr, context);
	struct fi_eq_entry entry = { .context = context };
	struct eq_event *event;
	int ret;

	event = group ? eq_event_new(FI_JOIN_COMPLETE, NULL, sizeof(entry)) : NULL;
	if (!event) {
		platform_free(group);
		return -FI_ENOMEM;
	}
	group->sends = ep->sends && (!directions || directions & FI_SEND);
	ret = group_open(ep, group, ep->receives && (!directions || directions & FI_RECV));
	if (ret) {
		eq_event_free(event);
		platform_free(group);
		return udp_refuse(FI_LOG_EP_CTRL, ret, "fi_join",
				  "the kernel does not join that group on that interface");
	}
	entry.fid = &group->fid.fid;
	eq_event_fill(event, &entry, sizeof(entry));
	*mc = &group->fid;
	udp_eq_post(ep->eq, event);
	return 0;
}

int udp_join(struct fid_ep *fid, const void *addr, uint64_t flags, struct fid_mc **mc,
	     void *context)
{
	struct udp_ep *ep = container_of(fid, struct udp_ep, fid);
	union ip_sockaddr group;
	int ret;

	if (flags & ~(FI_SEND | FI_RECV))
		return udp_refuse(FI_LOG_EP_CTRL, -FI_EBADFLAGS, "fi_join",
				  "flags are FI_SEND and FI_RECV");
	/* fi_join has no length: the family says how long the address is. */
	if (!mc || !addr || ip_sockaddr_copy(&group, addr, sizeof(struct sockaddr_in6)))
		return udp_refuse(FI_LOG_EP_CTRL, -FI_EINVAL, "fi_join",
				  "no socket address, or NULL where the group is to go");
	if (!udp_enter(ep->domain))
		return -FI_EOPBADSTATE;
	ret = join_check(ep, &group, flags);
	if (!ret)
		ret = join(ep, &group, flags, mc, context);
	udp_leave(ep->domain);
	return ret;
}
