/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints, and untagged messages over them. The calls run on the caller's
 * thread and go straight to the endpoint's tables; calls that change an
 * endpoint (bind, setopt, control) must not run beside others on it, because
 * the provider may exchange the tables then.
 * Source: fi_endpoint(3), fi_msg(3).
 */
#ifndef FI_ENDPOINT_H
#define FI_ENDPOINT_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * struct fi_msg - arguments of fi_sendmsg and fi_recvmsg
 * @msg_iov:    iov_count buffers
 * @desc:       fi_mr_desc of each, where the domain has FI_MR_LOCAL
 * @iov_count:  at most iov_limit of tx_attr or rx_attr
 * @addr:       the peer
 * @context:    returned in the completion
 * @data:       remote completion data, with FI_REMOTE_CQ_DATA
 *
 * Source: fi_msg(3).
 */
struct fi_msg {
	const struct iovec *msg_iov;
	void **desc;
	size_t iov_count;
	fi_addr_t addr;
	void *context;
	uint64_t data;
};

/* Levels of fi_getopt and fi_setopt. A provider's own ones are negative. */
enum {
	FI_OPT_ENDPOINT,
};

/* Options of FI_OPT_ENDPOINT; the comment is the type of the value. */
enum {
	FI_OPT_MIN_MULTI_RECV,		/* size_t */
	FI_OPT_CM_DATA_SIZE,		/* size_t */
	FI_OPT_BUFFERED_MIN,		/* size_t */
	FI_OPT_BUFFERED_LIMIT,		/* size_t */
	FI_OPT_SEND_BUF_SIZE,		/* size_t */
	FI_OPT_RECV_BUF_SIZE,		/* size_t */
	FI_OPT_TX_SIZE,			/* size_t */
	FI_OPT_RX_SIZE,			/* size_t */
	FI_OPT_FI_HMEM_P2P,		/* int, FI_HMEM_P2P_* */
	FI_OPT_XPU_TRIGGER,		/* number kept, no longer used */
	FI_OPT_CUDA_API_PERMITTED,	/* bool */
	FI_OPT_SHARED_MEMORY_PERMITTED, /* bool */
	FI_OPT_MAX_MSG_SIZE,		/* size_t */
	FI_OPT_MAX_TAGGED_SIZE,		/* size_t */
	FI_OPT_MAX_RMA_SIZE,		/* size_t */
	FI_OPT_MAX_ATOMIC_SIZE,		/* size_t */
	FI_OPT_INJECT_MSG_SIZE,		/* size_t */
	FI_OPT_INJECT_TAGGED_SIZE,	/* size_t */
	FI_OPT_INJECT_RMA_SIZE,		/* size_t */
	FI_OPT_INJECT_ATOMIC_SIZE,	/* size_t */
	FI_OPT_FIREWALL_ADDR,		/* bool */
};

/* Values of FI_OPT_FI_HMEM_P2P: direct transfers between devices */
enum {
	FI_HMEM_P2P_ENABLED,
	FI_HMEM_P2P_REQUIRED,
	FI_HMEM_P2P_PREFERRED,
	FI_HMEM_P2P_DISABLED,
};

/* struct fi_ops_ep - calls of any kind of endpoint: fi_cancel, fi_getopt and so on */
struct fi_ops_ep {
	size_t size;
	ssize_t (*cancel)(fid_t fid, void *context);
	int (*getopt)(fid_t fid, int level, int optname, void *optval, size_t *optlen);
	int (*setopt)(fid_t fid, int level, int optname, const void *optval, size_t optlen);
	int (*tx_ctx)(struct fid_ep *sep, int index, struct fi_tx_attr *attr,
		      struct fid_ep **tx_ep, void *context);
	int (*rx_ctx)(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
		      struct fid_ep **rx_ep, void *context);
	ssize_t (*rx_size_left)(struct fid_ep *ep);
	ssize_t (*tx_size_left)(struct fid_ep *ep);
	int (*export_xpu)(struct fid_ep *ep, uint64_t flags, struct fid_xpu_ep *xpu_ep);
};

/* struct fi_ops_msg - untagged messages of an endpoint: fi_recv and so on */
struct fi_ops_msg {
	size_t size;
	ssize_t (*recv)(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src_addr, void *context);
	ssize_t (*recvv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
			 fi_addr_t src_addr, void *context);
	ssize_t (*recvmsg)(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
	ssize_t (*send)(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			fi_addr_t dest_addr, void *context);
	ssize_t (*sendv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
			 fi_addr_t dest_addr, void *context);
	ssize_t (*sendmsg)(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr);
	ssize_t (*senddata)(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest_addr, void *context);
	ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest_addr);
};

struct fi_ops_cm;
struct fi_ops_rma;
struct fi_ops_tagged;
struct fi_ops_atomic;
struct fi_ops_collective;

/*
 * struct fid_ep - endpoint, context of a scalable one, or shared receive context
 * @fid:         object header; its class says which
 * @ops:         calls of all kinds
 * @cm:          names and connections
 * @msg:         untagged messages
 * @rma:         reads and writes
 * @tagged:      tagged messages
 * @atomic:      atomics
 * @collective:  collectives
 *
 * Tables are never NULL; what an endpoint can't do answers -FI_ENOSYS. Source: fi_endpoint(3).
 */
struct fid_ep {
	struct fid fid;
	struct fi_ops_ep *ops;
	struct fi_ops_cm *cm;
	struct fi_ops_msg *msg;
	struct fi_ops_rma *rma;
	struct fi_ops_tagged *tagged;
	struct fi_ops_atomic *atomic;
	struct fi_ops_collective *collective;
};

/*
 * struct fid_pep - passive endpoint: it listens for connections
 * @fid:  object header
 * @ops:  as in struct fid_ep, so that fi_setopt takes it
 * @cm:   so that fi_getname takes it
 *
 * Source: fi_endpoint(3).
 */
struct fid_pep {
	struct fid fid;
	struct fi_ops_ep *ops;
	struct fi_ops_cm *cm;
};

/*
 * struct fid_stx - transmit context that endpoints share
 * @fid:  object header
 * @ops:  as in struct fid_ep
 *
 * Source: fi_endpoint(3).
 */
struct fid_stx {
	struct fid fid;
	struct fi_ops_ep *ops;
};

/*
 * fi_passive_ep - create an endpoint that listens for connections
 * @pep: set to it
 *
 * Returns 0, or -FI_ENOSYS where there are no connections. Source: fi_endpoint(3).
 */
static inline int fi_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
				struct fid_pep **pep, void *context)
{
	return fabric->ops->passive_ep(fabric, info, pep, context);
}

/*
 * fi_endpoint - create an endpoint, disabled and without queues
 * @info: from fi_getinfo, or from an FI_CONNREQ event; borrowed for the call
 * @ep:   set to it
 *
 * Returns 0, or -FI_EINVAL for attributes it cannot give, -FI_ENOMEM.
 * Source: fi_endpoint(3).
 */
static inline int fi_endpoint(struct fid_domain *domain, struct fi_info *info,
			      struct fid_ep **ep, void *context)
{
	return domain->ops->endpoint(domain, info, ep, context);
}

/*
 * fi_endpoint2 - the same with flags
 * @flags: FI_PEER_TRANSFER: context is a struct fi_peer_transfer_context;
 *         FI_XPU: transfers come from ep_attr->xpu_ctx's device
 *
 * Returns as fi_endpoint does, -FI_ENOSYS from old providers if flags are set.
 */
static inline int fi_endpoint2(struct fid_domain *domain, struct fi_info *info,
			       struct fid_ep **ep, uint64_t flags, void *context)
{
	if (flags == 0)
		return domain->ops->endpoint(domain, info, ep, context);
	if (!FI_CHECK_OP(domain->ops, struct fi_ops_domain, endpoint2))
		return -FI_ENOSYS;
	return domain->ops->endpoint2(domain, info, ep, flags, context);
}

/* fi_scalable_ep - an endpoint with several contexts; 0 or an error. Source: fi_endpoint(3) */
static inline int fi_scalable_ep(struct fid_domain *domain, struct fi_info *info,
				 struct fid_ep **sep, void *context)
{
	return domain->ops->scalable_ep(domain, info, sep, context);
}

/*
 * fi_ep_bind - give a disabled endpoint its AV, EQ, CQ, counter, shared context
 * @flags: for a CQ FI_TRANSMIT, FI_RECV, FI_SELECTIVE_COMPLETION; for a counter
 *         the operations that it counts
 *
 * Returns 0, or -FI_EINVAL, -FI_EBADFLAGS, -FI_EDOMAIN. Source: fi_endpoint(3).
 */
static inline int fi_ep_bind(struct fid_ep *ep, struct fid *fid, uint64_t flags)
{
	return ep->fid.ops->bind(&ep->fid, fid, flags);
}

/* fi_pep_bind - give a passive endpoint its EQ; 0 or an error */
static inline int fi_pep_bind(struct fid_pep *pep, struct fid *fid, uint64_t flags)
{
	return pep->fid.ops->bind(&pep->fid, fid, flags);
}

/* fi_scalable_ep_bind - give a scalable endpoint its AV; 0 or an error */
static inline int fi_scalable_ep_bind(struct fid_ep *sep, struct fid *fid, uint64_t flags)
{
	return sep->fid.ops->bind(&sep->fid, fid, flags);
}

/*
 * fi_enable - make an endpoint ready for transfers
 *
 * Returns 0, or -FI_ENOCQ, -FI_ENOAV, -FI_ENOEQ for what is still unbound,
 * -FI_EOPBADSTATE. Source: fi_endpoint(3).
 */
static inline int fi_enable(struct fid_ep *ep)
{
	return ep->fid.ops->control(&ep->fid, FI_ENABLE, NULL);
}

/*
 * fi_cancel - give up the operation that was posted with a context
 * @fid: the endpoint
 *
 * Returns 0, and the operation completes, with FI_ECANCELED if it had not
 * happened yet; or -FI_EAGAIN (progress, then retry), or another negative
 * error. Source: fi_endpoint(3).
 */
static inline ssize_t fi_cancel(fid_t fid, void *context)
{
	return ((struct fid_ep *)fid)->ops->cancel(fid, context);
}

/*
 * fi_setopt - set an option of an endpoint
 * @optval, @optlen: value of the type that belongs to the option
 *
 * Returns 0, or -FI_ENOPROTOOPT for an option it does not have, -FI_EINVAL.
 * Source: fi_endpoint(3).
 */
static inline int fi_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	return ((struct fid_ep *)fid)->ops->setopt(fid, level, optname, optval, optlen);
}

/*
 * fi_getopt - read an option of an endpoint
 * @optlen: in: room at optval; out: bytes of the value
 *
 * Returns 0, or -FI_ENOPROTOOPT, -FI_ETOOSMALL. Source: fi_endpoint(3).
 */
static inline int fi_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	return ((struct fid_ep *)fid)->ops->getopt(fid, level, optname, optval, optlen);
}

/* fi_ep_alias - fi_alias for endpoints. Source: fi_endpoint(3) */
static inline int fi_ep_alias(struct fid_ep *ep, struct fid_ep **alias_ep, uint64_t flags)
{
	struct fid *fid = NULL;
	int ret = fi_alias(&ep->fid, &fid, flags);

	if (ret == 0)
		*alias_ep = (struct fid_ep *)fid;
	return ret;
}

/* fi_tx_context - one transmit context of a scalable endpoint; 0 or an error */
static inline int fi_tx_context(struct fid_ep *ep, int idx, struct fi_tx_attr *attr,
				struct fid_ep **tx_ep, void *context)
{
	return ep->ops->tx_ctx(ep, idx, attr, tx_ep, context);
}

/* fi_rx_context - one receive context of a scalable endpoint; 0 or an error */
static inline int fi_rx_context(struct fid_ep *ep, int idx, struct fi_rx_attr *attr,
				struct fid_ep **rx_ep, void *context)
{
	return ep->ops->rx_ctx(ep, idx, attr, rx_ep, context);
}

/* fi_stx_context - a transmit context that endpoints share; 0 or an error */
static inline int fi_stx_context(struct fid_domain *domain, struct fi_tx_attr *attr,
				 struct fid_stx **stx, void *context)
{
	return domain->ops->stx_ctx(domain, attr, stx, context);
}

/* fi_srx_context - a receive queue that endpoints share; 0 or an error */
static inline int fi_srx_context(struct fid_domain *domain, struct fi_rx_attr *attr,
				 struct fid_ep **rx_ep, void *context)
{
	return domain->ops->srx_ctx(domain, attr, rx_ep, context);
}

/* fi_rx_size_left - receives that can still be posted, or an error */
static inline FI_DEPRECATED_FUNC ssize_t fi_rx_size_left(struct fid_ep *ep)
{
	return ep->ops->rx_size_left(ep);
}

/* fi_tx_size_left - transmits that can still be posted, or an error */
static inline FI_DEPRECATED_FUNC ssize_t fi_tx_size_left(struct fid_ep *ep)
{
	return ep->ops->tx_size_left(ep);
}

/*
 * Messages. All of these post an operation and return 0, or -FI_EAGAIN when
 * no room is left (nothing happened: progress, then retry), or another
 * negative error. Buffers belong to the provider until the completion; only
 * inject returns them at once. Source: fi_msg(3).
 */

/*
 * fi_recv - post a buffer for one message
 * @desc:     fi_mr_desc of the buffer, where the domain has FI_MR_LOCAL
 * @src_addr: with FI_DIRECTED_RECV the only sender it takes; else ignored
 */
static inline ssize_t fi_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			      fi_addr_t src_addr, void *context)
{
	return ep->msg->recv(ep, buf, len, desc, src_addr, context);
}

/* fi_recvv - fi_recv into several buffers, one descriptor each */
static inline ssize_t fi_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc,
			       size_t cnt, fi_addr_t src_addr, void *context)
{
	return ep->msg->recvv(ep, iov, desc, cnt, src_addr, context);
}

/* fi_recvmsg - fi_recv with all arguments in @msg; FI_MULTI_RECV, FI_COMPLETION, ... */
static inline ssize_t fi_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return ep->msg->recvmsg(ep, msg, flags);
}

/* fi_send - send a message to @dest_addr (ignored on a connected endpoint) */
static inline ssize_t fi_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			      fi_addr_t dest_addr, void *context)
{
	return ep->msg->send(ep, buf, len, desc, dest_addr, context);
}

/* fi_sendv - fi_send from several buffers, one descriptor each */
static inline ssize_t fi_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc,
			       size_t cnt, fi_addr_t dest_addr, void *context)
{
	return ep->msg->sendv(ep, iov, desc, cnt, dest_addr, context);
}

/* fi_sendmsg - fi_send with all arguments in @msg; FI_REMOTE_CQ_DATA, FI_MORE, ... */
static inline ssize_t fi_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return ep->msg->sendmsg(ep, msg, flags);
}

/* fi_inject - send up to inject_size bytes; buf is free on return, no completion */
static inline ssize_t fi_inject(struct fid_ep *ep, const void *buf, size_t len,
				fi_addr_t dest_addr)
{
	return ep->msg->inject(ep, buf, len, dest_addr);
}

/* fi_senddata - fi_send, and @data appears in the receiver's completion */
static inline ssize_t fi_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
				  uint64_t data, fi_addr_t dest_addr, void *context)
{
	return ep->msg->senddata(ep, buf, len, desc, data, dest_addr, context);
}

/* fi_injectdata - fi_inject with @data, as in fi_senddata */
static inline ssize_t fi_injectdata(struct fid_ep *ep, const void *buf, size_t len,
				    uint64_t data, fi_addr_t dest_addr)
{
	return ep->msg->injectdata(ep, buf, len, data, dest_addr);
}

/*
 * fi_ep_export_xpu - fill in a handle by which a device posts transfers
 *
 * Returns 0, or -FI_ENOSYS from providers without it. Source: fi_xpu(3).
 */
static inline int fi_ep_export_xpu(struct fid_ep *ep, uint64_t flags, struct fid_xpu_ep *xpu_ep)
{
	if (!FI_CHECK_OP(ep->ops, struct fi_ops_ep, export_xpu))
		return -FI_ENOSYS;
	return ep->ops->export_xpu(ep, flags, xpu_ep);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_ENDPOINT_H */
