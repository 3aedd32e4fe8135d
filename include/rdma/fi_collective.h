/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations of a whole group of endpoints, and the sets of addresses that
 * make up a group. The calls run on the caller's thread and go straight to
 * the object's table. Source: fi_collective(3), fi_av_set(3).
 */
#ifndef FI_COLLECTIVE_H
#define FI_COLLECTIVE_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_cm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* struct fi_ops_av_set - calls of a set: fi_av_set_union and so on */
struct fi_ops_av_set {
	size_t size;
	int (*set_union)(struct fid_av_set *dst, const struct fid_av_set *src);
	int (*intersect)(struct fid_av_set *dst, const struct fid_av_set *src);
	int (*diff)(struct fid_av_set *dst, const struct fid_av_set *src);
	int (*insert)(struct fid_av_set *set, fi_addr_t addr);
	int (*remove)(struct fid_av_set *set, fi_addr_t addr);
	int (*addr)(struct fid_av_set *set, fi_addr_t *coll_addr);
};

/*
 * struct fid_av_set - a group of addresses of one AV
 * @fid:  object header
 * @ops:  its calls
 *
 * Source: fi_av_set(3).
 */
struct fid_av_set {
	struct fid fid;
	struct fi_ops_av_set *ops;
};

/*
 * struct fi_collective_attr - argument of fi_query_collective
 * @op:             in: of a reduction
 * @datatype:       in: of the elements
 * @datatype_attr:  out: limits of the two
 * @max_members:    out: of a group
 * @mode:           out: what the collective asks of the application
 *
 * Source: fi_collective(3).
 */
struct fi_collective_attr {
	enum fi_op op;
	enum fi_datatype datatype;
	struct fi_atomic_attr datatype_attr;
	size_t max_members;
	uint64_t mode;
};

/*
 * struct fi_collective_addr - address that fi_join takes with FI_COLLECTIVE
 * @set:        members of the new group
 * @coll_addr:  group that they come from, FI_ADDR_NOTAVAIL for the whole AV
 *
 * Source: fi_collective(3).
 */
struct fi_collective_addr {
	const struct fid_av_set *set;
	fi_addr_t coll_addr;
};

/*
 * struct fi_msg_collective - arguments of the collectives' msg slot
 * @msg_iov:    iov_count vectors of operands
 * @desc:       fi_mr_desc of each, or NULL
 * @iov_count:  at most tx_attr->iov_limit
 * @coll_addr:  the group
 * @root_addr:  the member that has or gets all, FI_ADDR_UNSPEC where there is none
 * @coll:       which collective
 * @datatype:   of every element
 * @op:         of a reduction
 * @context:    returned in the completion
 *
 * Source: fi_collective(3).
 */
struct fi_msg_collective {
	const struct fi_ioc *msg_iov;
	void **desc;
	size_t iov_count;
	fi_addr_t coll_addr;
	fi_addr_t root_addr;
	enum fi_collective_op coll;
	enum fi_datatype datatype;
	enum fi_op op;
	void *context;
};

/* struct fi_ops_collective - calls of an endpoint: fi_barrier and so on; msg does any of them */
struct fi_ops_collective {
	size_t size;
	ssize_t (*barrier)(struct fid_ep *ep, fi_addr_t coll_addr, void *context);
	ssize_t (*broadcast)(struct fid_ep *ep, void *buf, size_t cnt, void *desc,
			     fi_addr_t coll_addr, fi_addr_t root_addr,
			     enum fi_datatype datatype, uint64_t flags, void *context);
	ssize_t (*alltoall)(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
			    void *result, void *result_desc, fi_addr_t coll_addr,
			    enum fi_datatype datatype, uint64_t flags, void *context);
	ssize_t (*allreduce)(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
			     void *result, void *result_desc, fi_addr_t coll_addr,
			     enum fi_datatype datatype, enum fi_op op, uint64_t flags,
			     void *context);
	ssize_t (*allgather)(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
			     void *result, void *result_desc, fi_addr_t coll_addr,
			     enum fi_datatype datatype, uint64_t flags, void *context);
	ssize_t (*reduce_scatter)(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				  void *result, void *result_desc, fi_addr_t coll_addr,
				  enum fi_datatype datatype, enum fi_op op, uint64_t flags,
				  void *context);
	ssize_t (*reduce)(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
			  void *result, void *result_desc, fi_addr_t coll_addr,
			  fi_addr_t root_addr, enum fi_datatype datatype, enum fi_op op,
			  uint64_t flags, void *context);
	ssize_t (*scatter)(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
			   void *result, void *result_desc, fi_addr_t coll_addr,
			   fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,
			   void *context);
	ssize_t (*gather)(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
			  void *result, void *result_desc, fi_addr_t coll_addr,
			  fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,
			  void *context);
	ssize_t (*msg)(struct fid_ep *ep, const struct fi_msg_collective *msg,
		       struct fi_ioc *resultv, void **result_desc, size_t result_cnt,
		       uint64_t flags);
	ssize_t (*barrier2)(struct fid_ep *ep, fi_addr_t coll_addr, uint64_t flags,
			    void *context);
};

/*
 * fi_av_set - create a set of addresses of an AV
 * @set: set to it
 *
 * Returns 0, or -FI_ENOSYS where there are no collectives. Source: fi_av_set(3).
 */
static inline int fi_av_set(struct fid_av *av, struct fi_av_set_attr *attr,
			    struct fid_av_set **set, void *context)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, av_set))
		return -FI_ENOSYS;
	return av->ops->av_set(av, attr, set, context);
}

/* fi_av_set_union - add the members of src to dst; 0 or an error */
static inline int fi_av_set_union(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return dst->ops->set_union(dst, src);
}

/* fi_av_set_intersect - keep in dst what is also in src; 0 or an error */
static inline int fi_av_set_intersect(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return dst->ops->intersect(dst, src);
}

/* fi_av_set_diff - take the members of src out of dst; 0 or an error */
static inline int fi_av_set_diff(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return dst->ops->diff(dst, src);
}

/* fi_av_set_insert - add one address; 0 or an error */
static inline int fi_av_set_insert(struct fid_av_set *set, fi_addr_t addr)
{
	return set->ops->insert(set, addr);
}

/* fi_av_set_remove - take one address out; 0 or an error */
static inline int fi_av_set_remove(struct fid_av_set *set, fi_addr_t addr)
{
	return set->ops->remove(set, addr);
}

/* fi_av_set_addr - the address of the whole set, for fi_join_collective; 0 or an error */
static inline int fi_av_set_addr(struct fid_av_set *set, fi_addr_t *coll_addr)
{
	return set->ops->addr(set, coll_addr);
}

/*
 * fi_join_collective - take part in a set's collectives
 * @coll_addr: of an existing group that contains the set, or FI_ADDR_NOTAVAIL
 * @mc:        set to the membership; FI_JOIN_COMPLETE reports when it is usable
 *
 * Returns 0, or as fi_join does. Source: fi_collective(3).
 */
static inline int fi_join_collective(struct fid_ep *ep, fi_addr_t coll_addr,
				     const struct fid_av_set *set, uint64_t flags,
				     struct fid_mc **mc, void *context)
{
	struct fi_collective_addr arg = { set, coll_addr };

	return fi_join(ep, &arg, FI_COLLECTIVE | flags, mc, context);
}

/*
 * The operations. Every member calls the same one in the same order. All post
 * and return 0, or -FI_EAGAIN (nothing happened: progress, then retry), or
 * another negative error; the completion comes later. Lengths are elements of
 * @datatype. Source: fi_collective(3).
 */

/* fi_barrier - completes when every member has called it */
static inline ssize_t fi_barrier(struct fid_ep *ep, fi_addr_t coll_addr, void *context)
{
	return ep->collective->barrier(ep, coll_addr, context);
}

/* fi_barrier2 - fi_barrier with flags; -FI_ENOSYS from old providers if any is set */
static inline ssize_t fi_barrier2(struct fid_ep *ep, fi_addr_t coll_addr, uint64_t flags,
				  void *context)
{
	if (flags == 0)
		return ep->collective->barrier(ep, coll_addr, context);
	if (!FI_CHECK_OP(ep->collective, struct fi_ops_collective, barrier2))
		return -FI_ENOSYS;
	return ep->collective->barrier2(ep, coll_addr, flags, context);
}

/* fi_broadcast - the root's buf to every member's buf */
static inline ssize_t fi_broadcast(struct fid_ep *ep, void *buf, size_t cnt, void *desc,
				   fi_addr_t coll_addr, fi_addr_t root_addr,
				   enum fi_datatype datatype, uint64_t flags, void *context)
{
	return ep->collective->broadcast(ep, buf, cnt, desc, coll_addr, root_addr, datatype,
					 flags, context);
}

/* fi_alltoall - cnt elements from each member to each other */
static inline ssize_t fi_alltoall(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				  void *result, void *result_desc, fi_addr_t coll_addr,
				  enum fi_datatype datatype, uint64_t flags, void *context)
{
	return ep->collective->alltoall(ep, buf, cnt, desc, result, result_desc, coll_addr,
					datatype, flags, context);
}

/* fi_allreduce - op over all members' elements, to every member */
static inline ssize_t fi_allreduce(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				   void *result, void *result_desc, fi_addr_t coll_addr,
				   enum fi_datatype datatype, enum fi_op op, uint64_t flags,
				   void *context)
{
	return ep->collective->allreduce(ep, buf, cnt, desc, result, result_desc, coll_addr,
					 datatype, op, flags, context);
}

/* fi_allgather - every member's elements one after the other, to every member */
static inline ssize_t fi_allgather(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				   void *result, void *result_desc, fi_addr_t coll_addr,
				   enum fi_datatype datatype, uint64_t flags, void *context)
{
	return ep->collective->allgather(ep, buf, cnt, desc, result, result_desc, coll_addr,
					 datatype, flags, context);
}

/*
 * fi_reduce_scatter - fi_allreduce of cnt elements, but each member receives its part only: an even share
 * in the order of members, of which the first get one more where it does not come out even
 */
static inline ssize_t fi_reduce_scatter(struct fid_ep *ep, const void *buf, size_t cnt,
					void *desc, void *result, void *result_desc,
					fi_addr_t coll_addr, enum fi_datatype datatype,
					enum fi_op op, uint64_t flags, void *context)
{
	return ep->collective->reduce_scatter(ep, buf, cnt, desc, result, result_desc,
					      coll_addr, datatype, op, flags, context);
}

/* fi_reduce - fi_allreduce, but to the root only */
static inline ssize_t fi_reduce(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				void *result, void *result_desc, fi_addr_t coll_addr,
				fi_addr_t root_addr, enum fi_datatype datatype, enum fi_op op,
				uint64_t flags, void *context)
{
	return ep->collective->reduce(ep, buf, cnt, desc, result, result_desc, coll_addr,
				      root_addr, datatype, op, flags, context);
}

/* fi_scatter - the root's buf in parts, one to each member */
static inline ssize_t fi_scatter(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				 void *result, void *result_desc, fi_addr_t coll_addr,
				 fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,
				 void *context)
{
	return ep->collective->scatter(ep, buf, cnt, desc, result, result_desc, coll_addr,
				       root_addr, datatype, flags, context);
}

/* fi_gather - every member's elements one after the other, to the root only */
static inline ssize_t fi_gather(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				void *result, void *result_desc, fi_addr_t coll_addr,
				fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,
				void *context)
{
	return ep->collective->gather(ep, buf, cnt, desc, result, result_desc, coll_addr,
				      root_addr, datatype, flags, context);
}

/*
 * fi_query_collective - does the domain do this collective?
 * @attr: in: op and datatype; out: limits
 *
 * Returns 0, or -FI_EOPNOTSUPP, -FI_ENOSYS. Source: fi_collective(3).
 */
static inline int fi_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
				      struct fi_collective_attr *attr, uint64_t flags)
{
	if (!FI_CHECK_OP(domain->ops, struct fi_ops_domain, query_collective))
		return -FI_ENOSYS;
	return domain->ops->query_collective(domain, coll, attr, flags);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_COLLECTIVE_H */
