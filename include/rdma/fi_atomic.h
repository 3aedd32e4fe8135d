/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic updates of a peer's registered memory. The calls run on the caller's
 * thread and go straight to the endpoint's table. Source: fi_atomic(3).
 */
#ifndef FI_ATOMIC_H
#define FI_ATOMIC_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#ifdef __cplusplus
extern "C" {
#endif

/* fi_query_atomic: which kind is asked about */
#define FI_FETCH_ATOMIC	  (1ULL << 58)
#define FI_COMPARE_ATOMIC (1ULL << 59)

/*
 * struct fi_atomic_attr - limits of a datatype and operation
 * Source: fi_atomic(3).
 */
struct fi_atomic_attr {
	size_t count; /* elements in one operation */
	size_t size;  /* bytes of an element */
};

/*
 * struct fi_msg_atomic - arguments of fi_atomicmsg, and the operation of its like
 * @msg_iov:        iov_count vectors of operands
 * @desc:           fi_mr_desc of each, or NULL
 * @iov_count:      at most tx_attr->iov_limit
 * @addr:           the peer
 * @rma_iov:        rma_iov_count places in its memory; together as many elements
 * @rma_iov_count:  at most tx_attr->rma_iov_limit
 * @datatype:       of every element
 * @op:             what to do
 * @context:        returned in the completion
 * @data:           remote completion data, with FI_REMOTE_CQ_DATA
 *
 * Source: fi_atomic(3).
 */
struct fi_msg_atomic {
	const struct fi_ioc *msg_iov;
	void **desc;
	size_t iov_count;
	fi_addr_t addr;
	const struct fi_rma_ioc *rma_iov;
	size_t rma_iov_count;
	enum fi_datatype datatype;
	enum fi_op op;
	void *context;
	uint64_t data;
};

/*
 * struct fi_msg_fetch - where deferred work puts fetched values
 * @msg_iov:    iov_count vectors
 * @desc:       fi_mr_desc of each, or NULL
 * @iov_count:  at most tx_attr->iov_limit
 *
 * Source: fi_trigger(3).
 */
struct fi_msg_fetch {
	struct fi_ioc *msg_iov;
	void **desc;
	size_t iov_count;
};

/*
 * struct fi_msg_compare - what deferred work compares with
 * @msg_iov:    iov_count vectors
 * @desc:       fi_mr_desc of each, or NULL
 * @iov_count:  at most tx_attr->iov_limit
 *
 * Source: fi_trigger(3).
 */
struct fi_msg_compare {
	const struct fi_ioc *msg_iov;
	void **desc;
	size_t iov_count;
};

/*
 * struct fi_ops_atomic - calls of an endpoint: write is fi_atomic, readwrite is fi_fetch_atomic,
 *                        compwrite is fi_compare_atomic, each with its v and msg; ...valid
 */
struct fi_ops_atomic {
	size_t size;
	ssize_t (*write)(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
			 fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			 enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*writev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t cnt,
			  fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			  enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*writemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t cnt, fi_addr_t dest_addr,
			  uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op);

	ssize_t (*readwrite)(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
			     void *result, void *result_desc, fi_addr_t dest_addr,
			     uint64_t addr, uint64_t key, enum fi_datatype datatype,
			     enum fi_op op, void *context);
	ssize_t (*readwritev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
			      size_t cnt, struct fi_ioc *resultv, void **result_desc,
			      size_t result_cnt, fi_addr_t dest_addr, uint64_t addr,
			      uint64_t key, enum fi_datatype datatype, enum fi_op op,
			      void *context);
	ssize_t (*readwritemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				struct fi_ioc *resultv, void **result_desc, size_t result_cnt,
				uint64_t flags);

	ssize_t (*compwrite)(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
			     const void *compare, void *compare_desc, void *result,
			     void *result_desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*compwritev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
			      size_t cnt, const struct fi_ioc *comparev, void **compare_desc,
			      size_t compare_cnt, struct fi_ioc *resultv, void **result_desc,
			      size_t result_cnt, fi_addr_t dest_addr, uint64_t addr,
			      uint64_t key, enum fi_datatype datatype, enum fi_op op,
			      void *context);
	ssize_t (*compwritemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				const struct fi_ioc *comparev, void **compare_desc,
				size_t compare_cnt, struct fi_ioc *resultv, void **result_desc,
				size_t result_cnt, uint64_t flags);

	int (*writevalid)(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			  size_t *cnt);
	int (*readwritevalid)(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			      size_t *cnt);
	int (*compwritevalid)(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			      size_t *cnt);
};

/*
 * All transfers post an operation and return 0, or -FI_EAGAIN when no room is
 * left (nothing happened: progress, then retry), -FI_EOPNOTSUPP for a datatype
 * and operation that do not go together, or another negative error. Lengths
 * are elements of @datatype; @addr is as in fi_rma.h. Source: fi_atomic(3).
 */

/* fi_atomic - target = target op buf, element by element */
static inline ssize_t fi_atomic(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				enum fi_datatype datatype, enum fi_op op, void *context)
{
	return ep->atomic->write(ep, buf, cnt, desc, dest_addr, addr, key, datatype, op,
				 context);
}

/* fi_atomicv - fi_atomic from several buffers, one descriptor each */
static inline ssize_t fi_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
				 size_t cnt, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				 enum fi_datatype datatype, enum fi_op op, void *context)
{
	return ep->atomic->writev(ep, iov, desc, cnt, dest_addr, addr, key, datatype, op,
				  context);
}

/* fi_atomicmsg - fi_atomic with all arguments in @msg, several targets, flags */
static inline ssize_t fi_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				   uint64_t flags)
{
	return ep->atomic->writemsg(ep, msg, flags);
}

/* fi_inject_atomic - fi_atomic up to inject_size; buf is free on return, no completion */
static inline ssize_t fi_inject_atomic(struct fid_ep *ep, const void *buf, size_t cnt,
				       fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				       enum fi_datatype datatype, enum fi_op op)
{
	return ep->atomic->inject(ep, buf, cnt, dest_addr, addr, key, datatype, op);
}

/* fi_fetch_atomic - fi_atomic, and @result receives the target's old value */
static inline ssize_t fi_fetch_atomic(struct fid_ep *ep, const void *buf, size_t cnt,
				      void *desc, void *result, void *result_desc,
				      fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				      enum fi_datatype datatype, enum fi_op op, void *context)
{
	return ep->atomic->readwrite(ep, buf, cnt, desc, result, result_desc, dest_addr, addr,
				     key, datatype, op, context);
}

/* fi_fetch_atomicv - fi_fetch_atomic with vectors of buffers and results */
static inline ssize_t fi_fetch_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
				       size_t cnt, struct fi_ioc *resultv, void **result_desc,
				       size_t result_cnt, fi_addr_t dest_addr, uint64_t addr,
				       uint64_t key, enum fi_datatype datatype, enum fi_op op,
				       void *context)
{
	return ep->atomic->readwritev(ep, iov, desc, cnt, resultv, result_desc, result_cnt,
				      dest_addr, addr, key, datatype, op, context);
}

/* fi_fetch_atomicmsg - fi_fetch_atomic with the operation in @msg, flags */
static inline ssize_t fi_fetch_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
					 struct fi_ioc *resultv, void **result_desc,
					 size_t result_cnt, uint64_t flags)
{
	return ep->atomic->readwritemsg(ep, msg, resultv, result_desc, result_cnt, flags);
}

/* fi_compare_atomic - store buf where @compare and the target allow it; old value to @result */
static inline ssize_t fi_compare_atomic(struct fid_ep *ep, const void *buf, size_t cnt,
					void *desc, const void *compare, void *compare_desc,
					void *result, void *result_desc, fi_addr_t dest_addr,
					uint64_t addr, uint64_t key, enum fi_datatype datatype,
					enum fi_op op, void *context)
{
	return ep->atomic->compwrite(ep, buf, cnt, desc, compare, compare_desc, result,
				     result_desc, dest_addr, addr, key, datatype, op, context);
}

/* fi_compare_atomicv - fi_compare_atomic with vectors */
static inline ssize_t fi_compare_atomicv(struct fid_ep *ep, const struct fi_ioc *iov,
					 void **desc, size_t cnt, const struct fi_ioc *comparev,
					 void **compare_desc, size_t compare_cnt,
					 struct fi_ioc *resultv, void **result_desc,
					 size_t result_cnt, fi_addr_t dest_addr, uint64_t addr,
					 uint64_t key, enum fi_datatype datatype, enum fi_op op,
					 void *context)
{
	return ep->atomic->compwritev(ep, iov, desc, cnt, comparev, compare_desc, compare_cnt,
				      resultv, result_desc, result_cnt, dest_addr, addr, key,
				      datatype, op, context);
}

/* fi_compare_atomicmsg - fi_compare_atomic with the operation in @msg, flags */
static inline ssize_t fi_compare_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
					   const struct fi_ioc *comparev, void **compare_desc,
					   size_t compare_cnt, struct fi_ioc *resultv,
					   void **result_desc, size_t result_cnt, uint64_t flags)
{
	return ep->atomic->compwritemsg(ep, msg, comparev, compare_desc, compare_cnt, resultv,
					result_desc, result_cnt, flags);
}

/*
 * fi_atomicvalid - does the endpoint do this pair in fi_atomic?
 * @cnt: set to the elements one operation may have
 *
 * Returns 0, or -FI_EOPNOTSUPP. Source: fi_atomic(3).
 */
static inline int fi_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
				 size_t *cnt)
{
	return ep->atomic->writevalid(ep, datatype, op, cnt);
}

/* fi_fetch_atomicvalid - the same for fi_fetch_atomic */
static inline int fi_fetch_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype,
				       enum fi_op op, size_t *cnt)
{
	return ep->atomic->readwritevalid(ep, datatype, op, cnt);
}

/* fi_compare_atomicvalid - the same for fi_compare_atomic */
static inline int fi_compare_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype,
					 enum fi_op op, size_t *cnt)
{
	return ep->atomic->compwritevalid(ep, datatype, op, cnt);
}

/*
 * fi_query_atomic - does the domain do this pair, and how much at once?
 * @flags: 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC; FI_TAGGED
 *
 * Returns 0, or -FI_EOPNOTSUPP, -FI_ENOSYS from old providers. Source: fi_atomic(3).
 */
static inline int fi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
				  enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags)
{
	if (!FI_CHECK_OP(domain->ops, struct fi_ops_domain, query_atomic))
		return -FI_ENOSYS;
	return domain->ops->query_atomic(domain, datatype, op, attr, flags);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_ATOMIC_H */
