/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of endpoints, connections between MSG endpoints, and joining
 * multicast groups. The calls run on the caller's thread; what comes of them
 * arrives as events on the endpoint's EQ.
 * Source: fi_cm(3).
 */
#ifndef FI_CM_H
#define FI_CM_H

#include <rdma/fi_endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * struct fid_mc - membership of a multicast group or a collective
 * @fid:      object header; fi_close leaves the group
 * @fi_addr:  address that transfers to the group use
 *
 * Source: fi_cm(3).
 */
struct fid_mc {
	struct fid fid;
	fi_addr_t fi_addr;
};

/* struct fi_ops_cm - calls of endpoints and passive endpoints: fi_setname and what follows */
struct fi_ops_cm {
	size_t size;
	int (*setname)(fid_t fid, void *addr, size_t addrlen);
	int (*getname)(fid_t fid, void *addr, size_t *addrlen);
	int (*getpeer)(struct fid_ep *ep, void *addr, size_t *addrlen);
	int (*connect)(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen);
	int (*listen)(struct fid_pep *pep);
	int (*accept)(struct fid_ep *ep, const void *param, size_t paramlen);
	int (*reject)(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen);
	int (*shutdown)(struct fid_ep *ep, uint64_t flags);
	int (*join)(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		    void *context);
};

/*
 * fi_setname - choose the address of an endpoint before it is enabled
 * @fid: endpoint or passive endpoint
 *
 * Returns 0, or -FI_ENOSYS, -FI_EINVAL, -FI_EADDRINUSE. Source: fi_cm(3).
 */
static inline int fi_setname(fid_t fid, void *addr, size_t addrlen)
{
	return ((struct fid_ep *)fid)->cm->setname(fid, addr, addrlen);
}

/*
 * fi_getname - the address by which peers reach an endpoint
 * @fid:     enabled endpoint, or passive endpoint
 * @addrlen: in: room at addr; out: bytes of the address
 *
 * Returns 0, or -FI_ETOOSMALL, -FI_EOPBADSTATE. Source: fi_cm(3).
 */
static inline int fi_getname(fid_t fid, void *addr, size_t *addrlen)
{
	return ((struct fid_ep *)fid)->cm->getname(fid, addr, addrlen);
}

/* fi_getpeer - the address an endpoint is connected to; as fi_getname, or -FI_ENOTCONN */
static inline int fi_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return ep->cm->getpeer(ep, addr, addrlen);
}

/* fi_listen - start to take requests: FI_CONNREQ events; 0 or an error. Source: fi_cm(3) */
static inline int fi_listen(struct fid_pep *pep)
{
	return pep->cm->listen(pep);
}

/*
 * fi_connect - ask for a connection
 * @param: paramlen bytes for the other side, at most FI_OPT_CM_DATA_SIZE
 *
 * Returns 0: FI_CONNECTED or an error event follows. Or -FI_EINVAL,
 * -FI_EOPBADSTATE, -FI_ENOSYS. Source: fi_cm(3).
 */
static inline int fi_connect(struct fid_ep *ep, const void *addr, const void *param,
			     size_t paramlen)
{
	return ep->cm->connect(ep, addr, param, paramlen);
}

/* fi_accept - take a request with an endpoint made from its info; as fi_connect */
static inline int fi_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return ep->cm->accept(ep, param, paramlen);
}

/* fi_reject - refuse a request; @handle is its info's. 0 or an error. Source: fi_cm(3) */
static inline int fi_reject(struct fid_pep *pep, fid_t handle, const void *param,
			    size_t paramlen)
{
	return pep->cm->reject(pep, handle, param, paramlen);
}

/* fi_shutdown - end a connection: FI_SHUTDOWN on both sides; @flags must be 0 */
static inline int fi_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return ep->cm->shutdown(ep, flags);
}

/*
 * fi_join - join a multicast group or a collective
 * @addr: group address; with FI_COLLECTIVE a struct fi_collective_addr
 * @mc:   set to the membership; fi_close leaves. FI_JOIN_COMPLETE reports it
 *
 * Returns 0, or -FI_ENOSYS without it. Source: fi_cm(3), fi_collective(3).
 */
static inline int fi_join(struct fid_ep *ep, const void *addr, uint64_t flags,
			  struct fid_mc **mc, void *context)
{
	if (!FI_CHECK_OP(ep->cm, struct fi_ops_cm, join))
		return -FI_ENOSYS;
	return ep->cm->join(ep, addr, flags, mc, context);
}

/* fi_mc_addr - the address that transfers to the group use. Source: fi_cm(3) */
static inline fi_addr_t fi_mc_addr(struct fid_mc *mc)
{
	return mc->fi_addr;
}

#ifdef __cplusplus
}
#endif

#endif /* FI_CM_H */
