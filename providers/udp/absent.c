/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls that datagram endpoints do not support. Called by programs on any thread. */
#include "absent.h"

#define ABSENT(name, ...)                \
	static ssize_t name(__VA_ARGS__) \
	{                                \
		return -FI_ENOSYS;       \
	}

#define TO    fi_addr_t peer, uint64_t addr, uint64_t key
#define WHAT  enum fi_datatype datatype, enum fi_op op
#define GROUP fi_addr_t coll_addr
#define FROM  const void *buf, size_t cnt, void *desc

ABSENT(rma_read, struct fid_ep *ep, void *buf, size_t len, void *desc, TO, void *context)
ABSENT(rma_readv, struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt, TO,
       void *context)
ABSENT(rma_msg, struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
ABSENT(rma_write, struct fid_ep *ep, FROM, TO, void *context)
ABSENT(rma_inject, struct fid_ep *ep, const void *buf, size_t len, TO)
ABSENT(rma_writedata, struct fid_ep *ep, FROM, uint64_t data, TO, void *context)
ABSENT(rma_injectdata, struct fid_ep *ep, const void *buf, size_t len, uint64_t data, TO)

struct fi_ops_rma udp_no_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_msg,
	.write = rma_write,
	.writev = rma_readv,
	.writemsg = rma_msg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};

ABSENT(atomic_write, struct fid_ep *ep, FROM, TO, WHAT, void *context)
ABSENT(atomic_writev, struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t cnt, TO,
       WHAT, void *context)
ABSENT(atomic_writemsg, struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
ABSENT(atomic_inject, struct fid_ep *ep, const void *buf, size_t cnt, TO, WHAT)
ABSENT(atomic_readwrite, struct fid_ep *ep, FROM, void *result, void *result_desc, TO, WHAT,
       void *context)
ABSENT(atomic_readwritev, struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t cnt,
       struct fi_ioc *resultv, void **result_desc, size_t result_cnt, TO, WHAT, void *context)
ABSENT(atomic_readwritemsg, struct fid_ep *ep, const struct fi_msg_atomic *msg,
       struct fi_ioc *resultv, void **result_desc, size_t result_cnt, uint64_t flags)
ABSENT(atomic_compwrite, struct fid_ep *ep, FROM, const void *compare, void *compare_desc,
       void *result, void *result_desc, TO, WHAT, void *context)
ABSENT(atomic_compwritev, struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t cnt,
       const struct fi_ioc *comparev, void **compare_desc, size_t compare_cnt,
       struct fi_ioc *resultv, void **result_desc, size_t result_cnt, TO, WHAT, void *context)
ABSENT(atomic_compwritemsg, struct fid_ep *ep, const struct fi_msg_atomic *msg,
       const struct fi_ioc *comparev, void **compare_desc, size_t compare_cnt,
       struct fi_ioc *resultv, void **result_desc, size_t result_cnt, uint64_t flags)

static int atomic_valid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *cnt)
{
	return -FI_ENOSYS;
}

struct fi_ops_atomic udp_no_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = atomic_valid,
	.readwritevalid = atomic_valid,
	.compwritevalid = atomic_valid,
};

ABSENT(coll_barrier, struct fid_ep *ep, GROUP, void *context)
ABSENT(coll_barrier2, struct fid_ep *ep, GROUP, uint64_t flags, void *context)
ABSENT(coll_broadcast, struct fid_ep *ep, void *buf, size_t cnt, void *desc, GROUP,
       fi_addr_t root, enum fi_datatype datatype, uint64_t flags, void *context)
ABSENT(coll_all, struct fid_ep *ep, FROM, void *result, void *result_desc, GROUP,
       enum fi_datatype datatype, uint64_t flags, void *context)
ABSENT(coll_allreduce, struct fid_ep *ep, FROM, void *result, void *result_desc, GROUP, WHAT,
       uint64_t flags, void *context)
ABSENT(coll_reduce, struct fid_ep *ep, FROM, void *result, void *result_desc, GROUP,
       fi_addr_t root, WHAT, uint64_t flags, void *context)
ABSENT(coll_rooted, struct fid_ep *ep, FROM, void *result, void *result_desc, GROUP,
       fi_addr_t root, enum fi_datatype datatype, uint64_t flags, void *context)
ABSENT(coll_msg, struct fid_ep *ep, const struct fi_msg_collective *msg, struct fi_ioc *resultv,
       void **result_desc, size_t result_cnt, uint64_t flags)

struct fi_ops_collective udp_no_collective_ops = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = coll_barrier,
	.broadcast = coll_broadcast,
	.alltoall = coll_all,
	.allreduce = coll_allreduce,
	.allgather = coll_all,
	.reduce_scatter = coll_allreduce,
	.reduce = coll_reduce,
	.scatter = coll_rooted,
	.gather = coll_rooted,
	.msg = coll_msg,
	.barrier2 = coll_barrier2,
};

ABSENT(tagged_recv, struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
       uint64_t tag, uint64_t ignore, void *context)
ABSENT(tagged_recvv, struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
       fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
ABSENT(tagged_msg, struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
ABSENT(tagged_send, struct fid_ep *ep, FROM, fi_addr_t dest, uint64_t tag, void *context)
ABSENT(tagged_sendv, struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
       fi_addr_t dest, uint64_t tag, void *context)
ABSENT(tagged_inject, struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest,
       uint64_t tag)
ABSENT(tagged_senddata, struct fid_ep *ep, FROM, uint64_t data, fi_addr_t dest, uint64_t tag,
       void *context)
ABSENT(tagged_injectdata, struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
       fi_addr_t dest, uint64_t tag)

struct fi_ops_tagged udp_no_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_msg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_msg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};

int udp_no_bind(struct fid *fid, struct fid *target, uint64_t flags)
{
	return -FI_ENOSYS;
}

int udp_no_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

int udp_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	return -FI_ENOSYS;
}

int udp_no_tostr(const struct fid *fid, char *buf, size_t len)
{
	return -FI_ENOSYS;
}

int udp_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	return -FI_ENOSYS;
}

const char *udp_strerror(int prov_errno, char *buf, size_t len)
{
	const char *text = fi_strerror(prov_errno);
	size_t n = 0;

	if (!buf || !len)
		return text;
	for (; n + 1 < len && text[n]; n++)
		buf[n] = text[n];
	buf[n] = '\0';
	return buf;
}
