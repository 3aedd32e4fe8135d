/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slots of op tables for calls that an object does not support, or not before fi_enable. Called on
 * any thread.
 */
#include "access.h"
#include "nosys.h"
#include "refuse.h"

/* Answers a query about something that the object does not have, or not before fi_enable. */
static ssize_t absent(struct fid_ep *fid)
{
	return engine_ctx_of(fid)->enabled ? -FI_ENOSYS : -FI_EOPBADSTATE;
}

/* Answers a transfer that the endpoint or context does not support, or not before fi_enable. */
static ssize_t refused(struct fid_ep *fid)
{
	return engine_refuse_call(engine_ctx_of(fid), "a transfer", absent(fid));
}

static ssize_t no_rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
			   fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
{
	return refused(ep);
}

static ssize_t no_rma_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
			    fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
{
	return refused(ep);
}

static ssize_t no_rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return refused(ep);
}

static ssize_t no_rma_write(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	return refused(ep);
}

static ssize_t no_rma_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
			     fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	return refused(ep);
}

static ssize_t no_rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return refused(ep);
}

static ssize_t no_rma_inject(struct fid_ep *ep, const void *buf, size_t len,
			     fi_addr_t dest_addr, uint64_t addr, uint64_t key)
{
	return refused(ep);
}

static ssize_t no_rma_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
				uint64_t data, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				void *context)
{
	return refused(ep);
}

static ssize_t no_rma_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				 fi_addr_t dest_addr, uint64_t addr, uint64_t key)
{
	return refused(ep);
}

struct fi_ops_rma engine_no_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = no_rma_read,
	.readv = no_rma_readv,
	.readmsg = no_rma_readmsg,
	.write = no_rma_write,
	.writev = no_rma_writev,
	.writemsg = no_rma_writemsg,
	.inject = no_rma_inject,
	.writedata = no_rma_writedata,
	.injectdata = no_rma_injectdata,
};

static ssize_t no_atomic_write(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
			       fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			       enum fi_datatype datatype, enum fi_op op, void *context)
{
	return refused(ep);
}

static ssize_t no_atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
				size_t cnt, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				enum fi_datatype datatype, enum fi_op op, void *context)
{
	return refused(ep);
}

static ssize_t no_atomic_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				  uint64_t flags)
{
	return refused(ep);
}

static ssize_t no_atomic_inject(struct fid_ep *ep, const void *buf, size_t cnt,
				fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				enum fi_datatype datatype, enum fi_op op)
{
	return refused(ep);
}

static ssize_t no_atomic_readwrite(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				   void *result, void *result_desc, fi_addr_t dest_addr,
				   uint64_t addr, uint64_t key, enum fi_datatype datatype,
				   enum fi_op op, void *context)
{
	return refused(ep);
}

static ssize_t no_atomic_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
				    size_t cnt, struct fi_ioc *resultv, void **result_desc,
				    size_t result_cnt, fi_addr_t dest_addr, uint64_t addr,
				    uint64_t key, enum fi_datatype datatype, enum fi_op op,
				    void *context)
{
	return refused(ep);
}

static ssize_t no_atomic_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				      struct fi_ioc *resultv, void **result_desc,
				      size_t result_cnt, uint64_t flags)
{
	return refused(ep);
}

static ssize_t no_atomic_compwrite(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				   const void *compare, void *compare_desc, void *result,
				   void *result_desc, fi_addr_t dest_addr, uint64_t addr,
				   uint64_t key, enum fi_datatype datatype, enum fi_op op,
				   void *context)
{
	return refused(ep);
}

static ssize_t no_atomic_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
				    size_t cnt, const struct fi_ioc *comparev,
				    void **compare_desc, size_t compare_cnt,
				    struct fi_ioc *resultv, void **result_desc,
				    size_t result_cnt, fi_addr_t dest_addr, uint64_t addr,
				    uint64_t key, enum fi_datatype datatype, enum fi_op op,
				    void *context)
{
	return refused(ep);
}

static ssize_t no_atomic_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				      const struct fi_ioc *comparev, void **compare_desc,
				      size_t compare_cnt, struct fi_ioc *resultv,
				      void **result_desc, size_t result_cnt, uint64_t flags)
{
	return refused(ep);
}

/* The queries for valid operations do not depend on the endpoint or its state. */
struct fi_ops_atomic engine_no_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = no_atomic_write,
	.writev = no_atomic_writev,
	.writemsg = no_atomic_writemsg,
	.inject = no_atomic_inject,
	.readwrite = no_atomic_readwrite,
	.readwritev = no_atomic_readwritev,
	.readwritemsg = no_atomic_readwritemsg,
	.compwrite = no_atomic_compwrite,
	.compwritev = no_atomic_compwritev,
	.compwritemsg = no_atomic_compwritemsg,
	.writevalid = engine_atomic_writevalid,
	.readwritevalid = engine_atomic_readwritevalid,
	.compwritevalid = engine_atomic_compwritevalid,
};

static ssize_t no_collective_barrier(struct fid_ep *ep, fi_addr_t coll_addr, void *context)
{
	return refused(ep);
}

static ssize_t no_collective_broadcast(struct fid_ep *ep, void *buf, size_t cnt, void *desc,
				       fi_addr_t coll_addr, fi_addr_t root_addr,
				       enum fi_datatype datatype, uint64_t flags, void *context)
{
	return refused(ep);
}

static ssize_t no_collective_alltoall(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				      void *result, void *result_desc, fi_addr_t coll_addr,
				      enum fi_datatype datatype, uint64_t flags, void *context)
{
	return refused(ep);
}

static ssize_t no_collective_allreduce(struct fid_ep *ep, const void *buf, size_t cnt,
				       void *desc, void *result, void *result_desc,
				       fi_addr_t coll_addr, enum fi_datatype datatype,
				       enum fi_op op, uint64_t flags, void *context)
{
	return refused(ep);
}

static ssize_t no_collective_allgather(struct fid_ep *ep, const void *buf, size_t cnt,
				       void *desc, void *result, void *result_desc,
				       fi_addr_t coll_addr, enum fi_datatype datatype,
				       uint64_t flags, void *context)
{
	return refused(ep);
}

static ssize_t no_collective_reduce_scatter(struct fid_ep *ep, const void *buf, size_t cnt,
					    void *desc, void *result, void *result_desc,
					    fi_addr_t coll_addr, enum fi_datatype datatype,
					    enum fi_op op, uint64_t flags, void *context)
{
	return refused(ep);
}

static ssize_t no_collective_reduce(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				    void *result, void *result_desc, fi_addr_t coll_addr,
				    fi_addr_t root_addr, enum fi_datatype datatype,
				    enum fi_op op, uint64_t flags, void *context)
{
	return refused(ep);
}

static ssize_t no_collective_scatter(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				     void *result, void *result_desc, fi_addr_t coll_addr,
				     fi_addr_t root_addr, enum fi_datatype datatype,
				     uint64_t flags, void *context)
{
	return refused(ep);
}

static ssize_t no_collective_gather(struct fid_ep *ep, const void *buf, size_t cnt, void *desc,
				    void *result, void *result_desc, fi_addr_t coll_addr,
				    fi_addr_t root_addr, enum fi_datatype datatype,
				    uint64_t flags, void *context)
{
	return refused(ep);
}

static ssize_t no_collective_msg(struct fid_ep *ep, const struct fi_msg_collective *msg,
				 struct fi_ioc *resultv, void **result_desc, size_t result_cnt,
				 uint64_t flags)
{
	return refused(ep);
}

static ssize_t no_collective_barrier2(struct fid_ep *ep, fi_addr_t coll_addr, uint64_t flags,
				      void *context)
{
	return refused(ep);
}

struct fi_ops_collective engine_no_collective_ops = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = no_collective_barrier,
	.broadcast = no_collective_broadcast,
	.alltoall = no_collective_alltoall,
	.allreduce = no_collective_allreduce,
	.allgather = no_collective_allgather,
	.reduce_scatter = no_collective_reduce_scatter,
	.reduce = no_collective_reduce,
	.scatter = no_collective_scatter,
	.gather = no_collective_gather,
	.msg = no_collective_msg,
	.barrier2 = no_collective_barrier2,
};

static ssize_t no_msg_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			   fi_addr_t src_addr, void *context)
{
	return refused(ep);
}

static ssize_t no_msg_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
			    fi_addr_t src_addr, void *context)
{
	return refused(ep);
}

static ssize_t no_msg_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return refused(ep);
}

static ssize_t no_msg_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   fi_addr_t dest_addr, void *context)
{
	return refused(ep);
}

static ssize_t no_msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t cnt,
			    fi_addr_t dest_addr, void *context)
{
	return refused(ep);
}

static ssize_t no_msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return refused(ep);
}

static ssize_t no_msg_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr)
{
	return refused(ep);
}

static ssize_t no_msg_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			       uint64_t data, fi_addr_t dest_addr, void *context)
{
	return refused(ep);
}

static ssize_t no_msg_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				 fi_addr_t dest_addr)
{
	return refused(ep);
}

struct fi_ops_msg engine_no_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = no_msg_recv,
	.recvv = no_msg_recvv,
	.recvmsg = no_msg_recvmsg,
	.send = no_msg_send,
	.sendv = no_msg_sendv,
	.sendmsg = no_msg_sendmsg,
	.inject = no_msg_inject,
	.senddata = no_msg_senddata,
	.injectdata = no_msg_injectdata,
};

static ssize_t no_tagged_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			      fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context)
{
	return refused(ep);
}

static ssize_t no_tagged_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc,
			       size_t cnt, fi_addr_t src_addr, uint64_t tag, uint64_t ignore,
			       void *context)
{
	return refused(ep);
}

static ssize_t no_tagged_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
				 uint64_t flags)
{
	return refused(ep);
}

static ssize_t no_tagged_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			      fi_addr_t dest_addr, uint64_t tag, void *context)
{
	return refused(ep);
}

static ssize_t no_tagged_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc,
			       size_t cnt, fi_addr_t dest_addr, uint64_t tag, void *context)
{
	return refused(ep);
}

static ssize_t no_tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg,
				 uint64_t flags)
{
	return refused(ep);
}

static ssize_t no_tagged_inject(struct fid_ep *ep, const void *buf, size_t len,
				fi_addr_t dest_addr, uint64_t tag)
{
	return refused(ep);
}

static ssize_t no_tagged_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
				  uint64_t data, fi_addr_t dest_addr, uint64_t tag,
				  void *context)
{
	return refused(ep);
}

static ssize_t no_tagged_injectdata(struct fid_ep *ep, const void *buf, size_t len,
				    uint64_t data, fi_addr_t dest_addr, uint64_t tag)
{
	return refused(ep);
}

struct fi_ops_tagged engine_no_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = no_tagged_recv,
	.recvv = no_tagged_recvv,
	.recvmsg = no_tagged_recvmsg,
	.send = no_tagged_send,
	.sendv = no_tagged_sendv,
	.sendmsg = no_tagged_sendmsg,
	.inject = no_tagged_inject,
	.senddata = no_tagged_senddata,
	.injectdata = no_tagged_injectdata,
};

static int no_cm_name_set(fid_t fid, void *addr, size_t len)
{
	return -FI_ENOSYS;
}

static int no_cm_name_get(fid_t fid, void *addr, size_t *len)
{
	return -FI_ENOSYS;
}

int engine_no_cm_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return -FI_ENOSYS;
}

int engine_no_cm_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

int engine_no_cm_listen(struct fid_pep *pep)
{
	return -FI_ENOSYS;
}

int engine_no_cm_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

int engine_no_cm_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	return -FI_ENOSYS;
}

int engine_no_cm_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return -FI_ENOSYS;
}

int engine_no_cm_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		      void *context)
{
	return -FI_ENOSYS;
}

struct fi_ops_cm engine_no_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = no_cm_name_set,
	.getname = no_cm_name_get,
	.getpeer = engine_no_cm_getpeer,
	.connect = engine_no_cm_connect,
	.listen = engine_no_cm_listen,
	.accept = engine_no_cm_accept,
	.reject = engine_no_cm_reject,
	.shutdown = engine_no_cm_shutdown,
	.join = engine_no_cm_join,
};
