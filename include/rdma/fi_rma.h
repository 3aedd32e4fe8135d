/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided reads and writes of a peer's registered memory. The calls run on
 * the caller's thread and go straight to the endpoint's table.
 * Source: fi_rma(3).
 */
#ifndef FI_RMA_H
#define FI_RMA_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * struct fi_rma_iov - a range of a peer's registered memory
 * @addr:  virtual address with FI_MR_VIRT_ADDR, else offset into the region
 * @len:   bytes
 * @key:   of the region
 *
 * Source: fi_rma(3).
 */
struct fi_rma_iov {
	uint64_t addr;
	size_t len;
	uint64_t key;
};

/*
 * struct fi_rma_ioc - elements in a peer's registered memory
 * @addr:   as in struct fi_rma_iov
 * @count:  elements of the operation's datatype
 * @key:    of the region
 *
 * Source: fi_atomic(3).
 */
struct fi_rma_ioc {
	uint64_t addr;
	size_t count;
	uint64_t key;
};

/*
 * struct fi_msg_rma - arguments of fi_readmsg and fi_writemsg
 * @msg_iov:        iov_count local buffers
 * @desc:           fi_mr_desc of each, where the domain has FI_MR_LOCAL
 * @iov_count:      at most tx_attr->iov_limit
 * @addr:           the peer
 * @rma_iov:        rma_iov_count ranges there; together as many bytes
 * @rma_iov_count:  at most tx_attr->rma_iov_limit
 * @context:        returned in the completion
 * @data:           remote completion data, with FI_REMOTE_CQ_DATA
 *
 * Source: fi_rma(3).
 */
struct fi_msg_rma {
	const struct iovec *msg_iov;
	void **desc;
	size_t iov_count;
	fi_addr_t addr;
	const struct fi_rma_iov *rma_iov;
	size_t rma_iov_count;
	void *context;
	uint64_t data;
};

/* struct fi_ops_rma - reads and writes of an endpoint: fi_read and so on */
struct fi_ops_rma {
	size_t size;
	ssize_t (*read)(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context);
	ssize_t (*readv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
			 fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context);
	ssize_t (*readmsg)(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags);
	ssize_t (*write)(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			 fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context);
	ssize_t (*writev)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
			  fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context);
	ssize_t (*writemsg)(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr,
			  uint64_t addr, uint64_t key);
	ssize_t (*writedata)(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			     void *context);
	ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest_addr, uint64_t addr, uint64_t key);
};

/*
 * All of these post an operation and return 0, or -FI_EAGAIN when no room is
 * left (nothing happened: progress, then retry), or another negative error.
 * @addr is the target's virtual address with FI_MR_VIRT_ADDR, else an offset
 * into the region of @key. Source: fi_rma(3).
 */

/* fi_read - copy len bytes of the peer's region into buf */
static inline ssize_t fi_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
			      fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->read(ep, buf, len, desc, src_addr, addr, key, context);
}

/* fi_readv - fi_read into several buffers, one descriptor each */
static inline ssize_t fi_readv(struct fid_ep *ep, const struct iovec *iov, void **desc,
			       size_t cnt, fi_addr_t src_addr, uint64_t addr, uint64_t key,
			       void *context)
{
	return ep->rma->readv(ep, iov, desc, cnt, src_addr, addr, key, context);
}

/* fi_readmsg - fi_read with all arguments in @msg, several remote ranges, flags */
static inline ssize_t fi_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return ep->rma->readmsg(ep, msg, flags);
}

/* fi_write - copy len bytes of buf into the peer's region */
static inline ssize_t fi_write(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			       fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->write(ep, buf, len, desc, dest_addr, addr, key, context);
}

/* fi_writev - fi_write from several buffers, one descriptor each */
static inline ssize_t fi_writev(struct fid_ep *ep, const struct iovec *iov, void **desc,
				size_t cnt, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				void *context)
{
	return ep->rma->writev(ep, iov, desc, cnt, dest_addr, addr, key, context);
}

/* fi_writemsg - fi_write with all arguments in @msg, several remote ranges, flags */
static inline ssize_t fi_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
				  uint64_t flags)
{
	return ep->rma->writemsg(ep, msg, flags);
}

/* fi_inject_write - write up to inject_size bytes; buf is free on return, no completion */
static inline ssize_t fi_inject_write(struct fid_ep *ep, const void *buf, size_t len,
				      fi_addr_t dest_addr, uint64_t addr, uint64_t key)
{
	return ep->rma->inject(ep, buf, len, dest_addr, addr, key);
}

/* fi_writedata - fi_write, and @data appears in a completion of the target */
static inline ssize_t fi_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
				   uint64_t data, fi_addr_t dest_addr, uint64_t addr,
				   uint64_t key, void *context)
{
	return ep->rma->writedata(ep, buf, len, desc, data, dest_addr, addr, key, context);
}

/* fi_inject_writedata - fi_inject_write with @data, as in fi_writedata */
static inline ssize_t fi_inject_writedata(struct fid_ep *ep, const void *buf, size_t len,
					  uint64_t data, fi_addr_t dest_addr, uint64_t addr,
					  uint64_t key)
{
	return ep->rma->injectdata(ep, buf, len, data, dest_addr, addr, key);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_RMA_H */
