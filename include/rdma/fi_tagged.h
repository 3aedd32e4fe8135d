/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages that carry a 64-bit tag and go to the first posted receive that
 * matches it. The calls run on the caller's thread and go straight to the
 * endpoint's table. Source: fi_tagged(3).
 */
#ifndef FI_TAGGED_H
#define FI_TAGGED_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tags of FI_TAG_MPI: 32 bits of MPI tag below 8 bits of payload number */
#define FI_MPI_IGNORE_TAG     ((uint64_t)UINT32_MAX)
#define FI_MPI_IGNORE_PAYLOAD ((uint64_t)UINT8_MAX << 32)

/* fi_tag_mpi - such a tag. Source: fi_tagged(3), fi_getinfo(3) */
static inline uint64_t fi_tag_mpi(int tag, uint8_t payload_id)
{
	return ((uint64_t)payload_id << 32) | (uint32_t)tag;
}

/*
 * struct fi_msg_tagged - arguments of fi_tsendmsg and fi_trecvmsg
 * @msg_iov:    iov_count buffers
 * @desc:       fi_mr_desc of each, where the domain has FI_MR_LOCAL
 * @iov_count:  at most iov_limit of tx_attr or rx_attr
 * @addr:       the peer
 * @tag:        of the message
 * @ignore:     bits of it that a receive does not compare
 * @context:    returned in the completion
 * @data:       remote completion data, with FI_REMOTE_CQ_DATA
 *
 * Source: fi_tagged(3).
 */
struct fi_msg_tagged {
	const struct iovec *msg_iov;
	void **desc;
	size_t iov_count;
	fi_addr_t addr;
	uint64_t tag;
	uint64_t ignore;
	void *context;
	uint64_t data;
};

/* struct fi_ops_tagged - tagged messages of an endpoint: fi_trecv and so on */
struct fi_ops_tagged {
	size_t size;
	ssize_t (*recv)(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context);
	ssize_t (*recvv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
			 fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context);
	ssize_t (*recvmsg)(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);
	ssize_t (*send)(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			fi_addr_t dest_addr, uint64_t tag, void *context);
	ssize_t (*sendv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
			 fi_addr_t dest_addr, uint64_t tag, void *context);
	ssize_t (*sendmsg)(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr,
			  uint64_t tag);
	ssize_t (*senddata)(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest_addr, uint64_t tag, void *context);
	ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest_addr, uint64_t tag);
};

/*
 * All of these post an operation and return 0, or -FI_EAGAIN when no room is
 * left (nothing happened: progress, then retry), or another negative error.
 * Buffers belong to the provider until the completion; only inject returns
 * them at once. Source: fi_tagged(3).
 */

/*
 * fi_trecv - post a buffer for one message
 * @desc:     fi_mr_desc of the buffer, where the domain has FI_MR_LOCAL
 * @src_addr: with FI_DIRECTED_RECV the only sender it takes; else ignored
 * @tag:      what the sender's tag must equal ...
 * @ignore:   ... but for the bits that are set here
 */
static inline ssize_t fi_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			       fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context)
{
	return ep->tagged->recv(ep, buf, len, desc, src_addr, tag, ignore, context);
}

/* fi_trecvv - fi_trecv into several buffers, one descriptor each */
static inline ssize_t fi_trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc,
				size_t cnt, fi_addr_t src_addr, uint64_t tag, uint64_t ignore,
				void *context)
{
	return ep->tagged->recvv(ep, iov, desc, cnt, src_addr, tag, ignore, context);
}

/*
 * fi_trecvmsg - fi_trecv with all arguments in @msg
 * @flags: FI_PEEK asks whether a message is there (completion, or an error
 *         entry with FI_ENOMSG) and keeps it; with FI_CLAIM it is reserved for
 *         the context. Later FI_CLAIM receives it, with FI_DISCARD drops it
 */
static inline ssize_t fi_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
				  uint64_t flags)
{
	return ep->tagged->recvmsg(ep, msg, flags);
}

/* fi_tsend - send a message to @dest_addr (ignored on a connected endpoint) */
static inline ssize_t fi_tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			       fi_addr_t dest_addr, uint64_t tag, void *context)
{
	return ep->tagged->send(ep, buf, len, desc, dest_addr, tag, context);
}

/* fi_tsendv - fi_tsend from several buffers, one descriptor each */
static inline ssize_t fi_tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc,
				size_t cnt, fi_addr_t dest_addr, uint64_t tag, void *context)
{
	return ep->tagged->sendv(ep, iov, desc, cnt, dest_addr, tag, context);
}

/* fi_tsendmsg - fi_tsend with all arguments in @msg; FI_REMOTE_CQ_DATA, FI_MORE, ... */
static inline ssize_t fi_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
				  uint64_t flags)
{
	return ep->tagged->sendmsg(ep, msg, flags);
}

/* fi_tinject - send up to inject_size bytes; buf is free on return, no completion */
static inline ssize_t fi_tinject(struct fid_ep *ep, const void *buf, size_t len,
				 fi_addr_t dest_addr, uint64_t tag)
{
	return ep->tagged->inject(ep, buf, len, dest_addr, tag);
}

/* fi_tsenddata - fi_tsend, and @data appears in the receiver's completion */
static inline ssize_t fi_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
				   uint64_t data, fi_addr_t dest_addr, uint64_t tag,
				   void *context)
{
	return ep->tagged->senddata(ep, buf, len, desc, data, dest_addr, tag, context);
}

/* fi_tinjectdata - fi_tinject with @data, as in fi_tsenddata */
static inline ssize_t fi_tinjectdata(struct fid_ep *ep, const void *buf, size_t len,
				     uint64_t data, fi_addr_t dest_addr, uint64_t tag)
{
	return ep->tagged->injectdata(ep, buf, len, data, dest_addr, tag);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_TAGGED_H */
