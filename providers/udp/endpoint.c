/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The endpoint object: a socket, and the epoll descriptors that look at it. Called by programs, on
 * any thread. Source: fi_endpoint(3).
 */
#include "absent.h"
#include "descriptor.h"
#include "endpoint.h"
#include "epoll.h"
#include "iface.h"
#include "wait.h"
#include "socket.h"
#include <sys/epoll.h>

static struct udp_ep *ep_of(struct fid *fid)
{
	return container_of(fid, struct udp_ep, fid.fid);
}

/* Progress and sleeping */

/* The link is one of sends, or of sends and receives. */
static bool link_sends(const struct udp_ep *ep, const struct udp_link *link)
{
	return link == &ep->links[UDP_LINK_TX_CQ] || link == &ep->links[UDP_LINK_TX_CNTR];
}

int udp_ep_watch_all(struct udp_ep *ep, const struct udp_link *link, int epoll)
{
	uint32_t events = link_sends(ep, link) ? ep->tx_interest : ep->interest;
	int ret = sys_epoll_hold(epoll, ep->fd, events, ep);
	struct udp_group *group;

	list_for_each_entry(group, &ep->groups, link)
		if (!ret && group->fd >= 0)
			ret = sys_epoll_hold(epoll, group->fd, events & EPOLLIN, ep);
	ep->watched = true;
	return ret;
}

void udp_ep_arm(struct udp_ep *ep)
{
	uint32_t events = (list_empty(&ep->rx) ? 0 : EPOLLIN) |
			  (udp_send_held(ep) ? EPOLLOUT : 0);

	uint32_t tx_events = events | (ep->refused ? EPOLLOUT : 0);

	if ((events == ep->interest && tx_events == ep->tx_interest) || !ep->watched)
		return;
	ep->interest = events;
	ep->tx_interest = tx_events;
	for (int i = 0; i < UDP_LINK_CNT; i++)
		if (ep->links[i].wait && ep->links[i].wait->epoll >= 0)
			udp_ep_watch_all(ep, &ep->links[i], ep->links[i].wait->epoll);
}

int udp_ep_watch(struct udp_ep *ep, int fd)
{
	int ret = 0;

	for (int i = 0; i < UDP_LINK_CNT && !ret; i++) {
		if (!ep->links[i].wait || ep->links[i].wait->epoll < 0)
			continue;
		ret = sys_epoll_hold(ep->links[i].wait->epoll, fd, ep->interest & EPOLLIN, ep);
		ep->watched = true;
	}
	if (ret)
		udp_ep_unwatch(ep, fd);
	return ret;
}

void udp_ep_unwatch(struct udp_ep *ep, int fd)
{
	for (int i = 0; i < UDP_LINK_CNT; i++)
		if (ep->links[i].wait && ep->links[i].wait->epoll >= 0)
			sys_epoll_remove(ep->links[i].wait->epoll, fd);
}

/* Enabling */

int udp_ep_default(const struct udp_ep *ep, union ip_sockaddr *out, char *why, size_t why_len)
{
	struct ip_iface_setting setting = { UDP_IFACE_VARIABLE, udp_settings.iface };
	char iface[IF_NAMESIZE];

	if (!setting.iface && ep->domain->iface && if_indextoname(ep->domain->iface, iface)) {
		setting.variable = "the domain's interface";
		setting.iface = iface;
	}
	return ip_iface_default(&setting, ep->domain->family, out, why, why_len);
}

int udp_ep_bind(struct udp_ep *ep)
{
	bool all = ip_sockaddr_any(&ep->at);
	char why[128] = "", name[80];
	int fd, ret = 0;

	if (ep->fd >= 0)
		return 0;
	if (all && !ip_sockaddr_port(&ep->at))
		ret = udp_ep_default(ep, &ep->at, why, sizeof(why));
	fd = ret ? ret
		 : udp_socket_open(&ep->at, ep->multicasts,
				   ip_sockaddr_any(&ep->at) ? 0 : ep->domain->iface);
	if (fd >= 0 && !udp_socket_name(fd, &ep->at)) {
		ep->fd = fd;
		return 0;
	}
	if (fd >= 0)
		sys_descriptor_close(fd);
	ip_sockaddr_str(&ep->at, name, sizeof(name));
	FI_WARN(&udp_provider, FI_LOG_EP_CTRL, "no socket at %s: %s %s\n", name,
		fi_strerror(fd < 0 ? -fd : FI_EOTHER), why);
	return fd < 0 ? fd : -FI_EOTHER;
}

static void link_all(struct udp_ep *ep)
{
	if (ep->tx_cq)
		udp_wait_link(&ep->tx_cq->wait, ep, &ep->links[UDP_LINK_TX_CQ]);
	if (ep->rx_cq)
		udp_wait_link(&ep->rx_cq->wait, ep, &ep->links[UDP_LINK_RX_CQ]);
	if (ep->tx_cntr)
		udp_wait_link(&ep->tx_cntr->wait, ep, &ep->links[UDP_LINK_TX_CNTR]);
	if (ep->rx_cntr)
		udp_wait_link(&ep->rx_cntr->wait, ep, &ep->links[UDP_LINK_RX_CNTR]);
}

static void unlink_all(struct udp_ep *ep)
{
	for (int i = 0; i < UDP_LINK_CNT; i++)
		udp_wait_unlink(&ep->links[i]);
}

static int enable(struct udp_ep *ep)
{
	int ret;

	if (!ep->av)
		return udp_refuse(FI_LOG_EP_CTRL, -FI_ENOAV, "fi_enable",
				  "no address vector is bound");
	if ((ep->sends && !ep->tx_cq && !ep->tx_cntr) ||
	    (ep->receives && !ep->rx_cq && !ep->rx_cntr))
		return udp_refuse(FI_LOG_EP_CTRL, -FI_ENOCQ, "fi_enable",
				  "no completion queue and no counter is bound for a direction");
	ret = udp_ep_bind(ep);
	if (ret)
		return ret;
	link_all(ep);
	ep->interest = ep->tx_interest = EPOLLIN;
	ret = udp_ep_watch(ep, ep->fd);
	if (ret)
		unlink_all(ep);
	else
		ep->enabled = true;
	return ret;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct udp_ep *ep = ep_of(fid);
	int ret = -FI_EOPBADSTATE;

	if (command != FI_ENABLE)
		return -FI_ENOSYS;
	if (!udp_enter(ep->domain))
		return ret;
	ret = ep->enabled ? 0 : enable(ep);
	udp_leave(ep->domain);
	return ret;
}

/* Closing */

static void unbind_all(struct udp_ep *ep)
{
	if (ep->tx_cq)
		udp_unref(&ep->tx_cq->refs);
	if (ep->rx_cq)
		udp_unref(&ep->rx_cq->refs);
	if (ep->tx_cntr)
		udp_unref(&ep->tx_cntr->refs);
	if (ep->rx_cntr)
		udp_unref(&ep->rx_cntr->refs);
	if (ep->av)
		udp_unref(&ep->av->refs);
	if (ep->eq)
		udp_unref(&ep->eq->refs);
}

void udp_ep_close_socket(struct udp_ep *ep, int fd, const union ip_sockaddr *at, bool here)
{
	uint32_t dropped = here ? udp_socket_dropped(fd) : 0;
	char name[80];

	if (dropped) {
		ip_sockaddr_str(at, name, sizeof(name));
		FI_WARN(&udp_provider, FI_LOG_EP_DATA,
			"%s: %u datagrams came faster than they were received and are lost; "
			"FI_UDP_RECV_BUF, and net.core.rmem_max, say how many are kept\n",
			name, dropped);
	}
	if (here)
		udp_ep_unwatch(ep, fd);
	sys_descriptor_close(fd);
}

static int ep_close(struct fid *fid)
{
	struct udp_ep *ep = ep_of(fid);
	struct udp_domain *domain = ep->domain;
	bool here;

	if (!list_empty(&ep->groups))
		return udp_refuse(FI_LOG_EP_CTRL, -FI_EBUSY, "fi_close of an endpoint",
				  "it is a member of multicast groups; close those first");
	here = udp_enter(domain);
	if (here)
		udp_send_close(ep);
	if (ep->fd >= 0)
		udp_ep_close_socket(ep, ep->fd, &ep->at, here);
	unlink_all(ep);
	udp_send_free(ep);
	if (here)
		udp_leave(domain);
	unbind_all(ep);
	pool_fini(&ep->rx_pool);
	platform_free(ep);
	udp_unref(&domain->refs);
	return 0;
}

static struct fi_ops ep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = udp_ep_bind_object,
	.control = ep_control,
	.ops_open = udp_no_ops_open,
	.tostr = udp_no_tostr,
	.ops_set = udp_no_ops_set,
};

/* Opening */

static size_t at_least(size_t asked, size_t otherwise)
{
	return asked ? asked : otherwise;
}

/* Takes what the fi_info says; checked. */
static void ep_init(struct udp_ep *ep, const struct fi_info *info)
{
	uint64_t directions = info->caps & (FI_SEND | FI_RECV);

	ep->sends = !directions || directions & FI_SEND;
	ep->receives = !directions || directions & FI_RECV;
	ep->multicasts = info->caps & FI_MULTICAST;
	ep->source = info->caps & FI_SOURCE;
	ep->msg_max = at_least(info->ep_attr->max_msg_size, (size_t)udp_settings.msg_max);
	ep->inject_max = ep->msg_max;
	ep->multi_min = ep->msg_max;
	ep->rx_size = at_least(info->rx_attr ? info->rx_attr->size : 0, UDP_CTX_SIZE);
	ep->tx_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	ep->fd = -1;
	ep->ask = 1;
	ep->at.sa.sa_family = ep->domain->family;
	if (info->src_addr)
		ip_sockaddr_copy(&ep->at, info->src_addr, info->src_addrlen);
	pool_init(&ep->rx_pool, (sizeof(struct udp_rx) + 63) / 64 * 64, 0);
	list_init(&ep->rx);
	list_init(&ep->groups);
	list_init(&ep->holding);
}

static int info_check(const struct udp_domain *domain, const struct fi_info *info)
{
	union ip_sockaddr src;

	if (!info || !info->ep_attr || info->ep_attr->type != FI_EP_DGRAM)
		return udp_refuse(FI_LOG_EP_CTRL, -FI_EINVAL, "fi_endpoint",
				  "NULL, or endpoints of another type than FI_EP_DGRAM");
	if (info->ep_attr->max_msg_size > UDP_MSG_MOST)
		return udp_refuse(FI_LOG_EP_CTRL, -FI_EINVAL, "fi_endpoint",
				  "no datagram has that max_msg_size");
	if (info->src_addr && (ip_sockaddr_copy(&src, info->src_addr, info->src_addrlen) ||
			       src.sa.sa_family != domain->family))
		return udp_refuse(FI_LOG_EP_CTRL, -FI_EINVAL, "fi_endpoint",
				  "the source address is not of the domain's family");
	return 0;
}

int udp_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out, void *context)
{
	struct udp_domain *domain = container_of(fid, struct udp_domain, fid);
	struct udp_ep *ep;
	int ret;

	if (!out)
		return -FI_EINVAL;
	ret = info_check(domain, info);
	if (ret)
		return ret;
	ep = platform_alloc(sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->domain = domain;
	ep_init(ep, info);
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &ep_fi_ops;
	ep->fid.ops = &udp_ep_ops;
	ep->fid.cm = &udp_cm_ops;
	ep->fid.msg = &udp_msg_ops;
	ep->fid.rma = &udp_no_rma_ops;
	ep->fid.tagged = &udp_no_tagged_ops;
	ep->fid.atomic = &udp_no_atomic_ops;
	ep->fid.collective = &udp_no_collective_ops;
	udp_ref(&domain->refs);
	*out = &ep->fid;
	return 0;
}
