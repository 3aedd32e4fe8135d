/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The name of an endpoint, and calls for connections, which it has none of. Called by programs, on
 * any thread.
 */
#include "absent.h"
#include "endpoint.h"

static struct udp_ep *ep_of(fid_t fid)
{
	return container_of(fid, struct udp_ep, fid.fid);
}

/* Only before the socket is open. */
static int cm_setname(fid_t fid, void *addr, size_t len)
{
	struct udp_ep *ep = ep_of(fid);
	union ip_sockaddr at;
	int ret = 0;

	if (ip_sockaddr_copy(&at, addr, len) || at.sa.sa_family != ep->domain->family)
		return udp_refuse(FI_LOG_EP_CTRL, -FI_EINVAL, "fi_setname",
				  "not an address of the domain's family");
	if (!udp_enter(ep->domain))
		return -FI_EOPBADSTATE;
	if (ep->fd >= 0)
		ret = -FI_EOPBADSTATE;
	else
		ep->at = at;
	udp_leave(ep->domain);
	return ret ? udp_refuse(FI_LOG_EP_CTRL, ret, "fi_setname",
				"the endpoint is enabled, or its name was asked for")
		   : 0;
}

int udp_name_copy(const union ip_sockaddr *name, void *addr, size_t *len)
{
	size_t room = *len, need = ip_sockaddr_len(name);

	*len = need;
	if (room)
		memcpy(addr, name, room < need ? room : need);
	return room < need ? -FI_ETOOSMALL : 0;
}

/* A socket at all addresses of the host has the name of the best one: peers need one to send to. */
static int cm_getname(fid_t fid, void *addr, size_t *len)
{
	struct udp_ep *ep = ep_of(fid);
	union ip_sockaddr name, best;
	char why[128];
	int ret;

	if (!len || (*len && !addr))
		return udp_refuse(FI_LOG_EP_CTRL, -FI_EINVAL, "fi_getname",
				  "NULL for the address or its length");
	if (!udp_enter(ep->domain))
		return -FI_EOPBADSTATE;
	ret = udp_ep_bind(ep);
	name = ep->at;
	udp_leave(ep->domain);
	if (ret)
		return ret;
	if (ip_sockaddr_any(&name) && !udp_ep_default(ep, &best, why, sizeof(why))) {
		ip_sockaddr_set_port(&best, ip_sockaddr_port(&name));
		name = best;
	}
	return udp_name_copy(&name, addr, len);
}

static int cm_no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return -FI_ENOSYS;
}

static int cm_no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

static int cm_no_listen(struct fid_pep *pep)
{
	return -FI_ENOSYS;
}

static int cm_no_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

static int cm_no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

static int cm_no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return -FI_ENOSYS;
}

struct fi_ops_cm udp_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = cm_setname,
	.getname = cm_getname,
	.getpeer = cm_no_getpeer,
	.connect = cm_no_connect,
	.listen = cm_no_listen,
	.accept = cm_no_accept,
	.reject = cm_no_reject,
	.shutdown = cm_no_shutdown,
	.join = udp_join,
};
