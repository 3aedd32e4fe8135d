/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Options of an endpoint, cancelling, and contexts, which it has none of. Called by programs, on
 * any thread. Source: fi_endpoint(3).
 */
#include "absent.h"
#include "endpoint.h"
#include "socket.h"

static struct udp_ep *ep_of(struct fid *fid)
{
	return container_of(fid, struct udp_ep, fid.fid);
}

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct udp_ep *ep = ep_of(fid);
	int ret;

	if (!udp_enter(ep->domain))
		return -FI_EOPBADSTATE;
	ret = udp_recv_cancel(ep, context);
	udp_leave(ep->domain);
	return ret;
}

static int ep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	struct udp_ep *ep = ep_of(fid);
	size_t got;

	if (level != FI_OPT_ENDPOINT || !value || !len)
		return level != FI_OPT_ENDPOINT ? -FI_ENOPROTOOPT : -FI_EINVAL;
	if (name != FI_OPT_MIN_MULTI_RECV && name != FI_OPT_MAX_MSG_SIZE &&
	    name != FI_OPT_INJECT_MSG_SIZE)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(got))
		return -FI_ETOOSMALL;
	if (!udp_enter(ep->domain))
		return -FI_EOPBADSTATE;
	got = name == FI_OPT_MIN_MULTI_RECV ? ep->multi_min
	      : name == FI_OPT_MAX_MSG_SIZE ? ep->msg_max
					    : ep->inject_max;
	udp_leave(ep->domain);
	memcpy(value, &got, sizeof(got));
	*len = sizeof(got);
	return 0;
}

static int ep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	struct udp_ep *ep = ep_of(fid);
	size_t given;

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (!value || len != sizeof(given))
		return -FI_EINVAL;
	memcpy(&given, value, sizeof(given));
	if (!udp_enter(ep->domain))
		return -FI_EOPBADSTATE;
	ep->multi_min = given;
	udp_leave(ep->domain);
	return 0;
}

static int ep_no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr,
			struct fid_ep **tx_ep, void *context)
{
	return -FI_ENOSYS;
}

static int ep_no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
			struct fid_ep **rx_ep, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t ep_rx_size_left(struct fid_ep *fid)
{
	struct udp_ep *ep = container_of(fid, struct udp_ep, fid);
	ssize_t left;

	if (!udp_enter(ep->domain))
		return -FI_EOPBADSTATE;
	left = ep->enabled ? (ssize_t)(ep->rx_size - ep->rx_pool.used) : -FI_EOPBADSTATE;
	udp_leave(ep->domain);
	return left;
}

static ssize_t ep_tx_size_left(struct fid_ep *fid)
{
	struct udp_ep *ep = container_of(fid, struct udp_ep, fid);
	ssize_t left;

	if (!udp_enter(ep->domain))
		return -FI_EOPBADSTATE;
	left = ep->enabled ? (ssize_t)(UDP_BATCH - udp_send_held(ep)) : -FI_EOPBADSTATE;
	udp_leave(ep->domain);
	return left;
}

static int ep_no_export(struct fid_ep *ep, uint64_t flags, struct fid_xpu_ep *xpu_ep)
{
	return -FI_ENOSYS;
}

struct fi_ops_ep udp_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = ep_no_tx_ctx,
	.rx_ctx = ep_no_rx_ctx,
	.rx_size_left = ep_rx_size_left,
	.tx_size_left = ep_tx_size_left,
	.export_xpu = ep_no_export,
};
