/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Op tables of endpoints whose callers do not serialize: each call holds the domain's lock while
 * it calls the family's table, whatever wires the endpoint has.
 */
#include "access.h"
#include "guard.h"
#include "safe.h"

static struct engine_domain *hold(struct fid_ep *fid)
{
	struct engine_domain *domain = engine_ctx_of(fid)->domain;

	engine_lock(domain);
	return domain;
}

static ssize_t release(struct engine_domain *domain, ssize_t ret)
{
	engine_unlock(domain);
	return ret;
}

static ssize_t safe_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
			 fi_addr_t src_addr, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain,
		       domain->family->msg->recv(fid, buf, len, desc, src_addr, context));
}

static ssize_t safe_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			  fi_addr_t src_addr, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain,
		       domain->family->msg->recvv(fid, iov, desc, cnt, src_addr, context));
}

static ssize_t safe_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, domain->family->msg->recvmsg(fid, msg, flags));
}

static ssize_t safe_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			 fi_addr_t dest_addr, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain,
		       domain->family->msg->send(fid, buf, len, desc, dest_addr, context));
}

static ssize_t safe_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			  fi_addr_t dest_addr, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain,
		       domain->family->msg->sendv(fid, iov, desc, cnt, dest_addr, context));
}

static ssize_t safe_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, domain->family->msg->sendmsg(fid, msg, flags));
}

static ssize_t safe_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest_addr)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, domain->family->msg->inject(fid, buf, len, dest_addr));
}

static ssize_t safe_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest_addr, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, domain->family->msg->senddata(fid, buf, len, desc, data,
							     dest_addr, context));
}

static ssize_t safe_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			       fi_addr_t dest_addr)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, domain->family->msg->injectdata(fid, buf, len, data, dest_addr));
}

static ssize_t safe_trecv(struct fid_ep *fid, void *buf, size_t len, void *desc,
			  fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, domain->family->tagged->recv(fid, buf, len, desc, src_addr, tag,
							    ignore, context));
}

static ssize_t safe_trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			   fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, domain->family->tagged->recvv(fid, iov, desc, cnt, src_addr, tag,
							     ignore, context));
}

static ssize_t safe_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, domain->family->tagged->recvmsg(fid, msg, flags));
}

static ssize_t safe_tsend(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			  fi_addr_t dest_addr, uint64_t tag, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, domain->family->tagged->send(fid, buf, len, desc, dest_addr, tag,
							    context));
}

static ssize_t safe_tsendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			   fi_addr_t dest_addr, uint64_t tag, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, domain->family->tagged->sendv(fid, iov, desc, cnt, dest_addr,
							     tag, context));
}

static ssize_t safe_tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, domain->family->tagged->sendmsg(fid, msg, flags));
}

static ssize_t safe_tinject(struct fid_ep *fid, const void *buf, size_t len,
			    fi_addr_t dest_addr, uint64_t tag)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, domain->family->tagged->inject(fid, buf, len, dest_addr, tag));
}

static ssize_t safe_tsenddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			      uint64_t data, fi_addr_t dest_addr, uint64_t tag, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, domain->family->tagged->senddata(fid, buf, len, desc, data,
								dest_addr, tag, context));
}

static ssize_t safe_tinjectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
				fi_addr_t dest_addr, uint64_t tag)
{
	struct engine_domain *domain = hold(fid);

	return release(domain,
		       domain->family->tagged->injectdata(fid, buf, len, data, dest_addr, tag));
}

static ssize_t safe_rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc,
			     fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain,
		       engine_rma_ops.read(fid, buf, len, desc, src_addr, addr, key, context));
}

static ssize_t safe_rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			      size_t cnt, fi_addr_t src_addr, uint64_t addr, uint64_t key,
			      void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain,
		       engine_rma_ops.readv(fid, iov, desc, cnt, src_addr, addr, key, context));
}

static ssize_t safe_rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_rma_ops.readmsg(fid, msg, flags));
}

static ssize_t safe_rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			      fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_rma_ops.write(fid, buf, len, desc, dest_addr, addr, key,
						    context));
}

static ssize_t safe_rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc,
			       size_t cnt, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			       void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_rma_ops.writev(fid, iov, desc, cnt, dest_addr, addr, key,
						     context));
}

static ssize_t safe_rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg,
				 uint64_t flags)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_rma_ops.writemsg(fid, msg, flags));
}

static ssize_t safe_rma_inject(struct fid_ep *fid, const void *buf, size_t len,
			       fi_addr_t dest_addr, uint64_t addr, uint64_t key)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_rma_ops.inject(fid, buf, len, dest_addr, addr, key));
}

static ssize_t safe_rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
				  uint64_t data, fi_addr_t dest_addr, uint64_t addr,
				  uint64_t key, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_rma_ops.writedata(fid, buf, len, desc, data, dest_addr,
							addr, key, context));
}

static ssize_t safe_rma_injectdata(struct fid_ep *fid, const void *buf, size_t len,
				   uint64_t data, fi_addr_t dest_addr, uint64_t addr,
				   uint64_t key)
{
	struct engine_domain *domain = hold(fid);

	return release(domain,
		       engine_rma_ops.injectdata(fid, buf, len, data, dest_addr, addr, key));
}

static ssize_t safe_atomic_write(struct fid_ep *fid, const void *buf, size_t cnt, void *desc,
				 fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				 enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_atomic_ops.write(fid, buf, cnt, desc, dest_addr, addr,
						       key, datatype, op, context));
}

static ssize_t safe_atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				  size_t cnt, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				  enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_atomic_ops.writev(fid, iov, desc, cnt, dest_addr, addr,
							key, datatype, op, context));
}

static ssize_t safe_atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				    uint64_t flags)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_atomic_ops.writemsg(fid, msg, flags));
}

static ssize_t safe_atomic_inject(struct fid_ep *fid, const void *buf, size_t cnt,
				  fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				  enum fi_datatype datatype, enum fi_op op)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_atomic_ops.inject(fid, buf, cnt, dest_addr, addr, key,
							datatype, op));
}

static ssize_t safe_atomic_readwrite(struct fid_ep *fid, const void *buf, size_t cnt,
				     void *desc, void *result, void *result_desc,
				     fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				     enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_atomic_ops.readwrite(fid, buf, cnt, desc, result,
							   result_desc, dest_addr, addr, key,
							   datatype, op, context));
}

static ssize_t safe_atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				      size_t cnt, struct fi_ioc *resultv, void **result_desc,
				      size_t result_cnt, fi_addr_t dest_addr, uint64_t addr,
				      uint64_t key, enum fi_datatype datatype, enum fi_op op,
				      void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_atomic_ops.readwritev(fid, iov, desc, cnt, resultv,
							    result_desc, result_cnt, dest_addr,
							    addr, key, datatype, op, context));
}

static ssize_t safe_atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
					struct fi_ioc *resultv, void **result_desc,
					size_t result_cnt, uint64_t flags)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_atomic_ops.readwritemsg(fid, msg, resultv, result_desc,
							      result_cnt, flags));
}

static ssize_t safe_atomic_compwrite(struct fid_ep *fid, const void *buf, size_t cnt,
				     void *desc, const void *compare, void *compare_desc,
				     void *result, void *result_desc, fi_addr_t dest_addr,
				     uint64_t addr, uint64_t key, enum fi_datatype datatype,
				     enum fi_op op, void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain,
		       engine_atomic_ops.compwrite(fid, buf, cnt, desc, compare, compare_desc,
						   result, result_desc, dest_addr, addr, key,
						   datatype, op, context));
}

static ssize_t safe_atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				      size_t cnt, const struct fi_ioc *comparev,
				      void **compare_desc, size_t compare_cnt,
				      struct fi_ioc *resultv, void **result_desc,
				      size_t result_cnt, fi_addr_t dest_addr, uint64_t addr,
				      uint64_t key, enum fi_datatype datatype, enum fi_op op,
				      void *context)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_atomic_ops.compwritev(fid, iov, desc, cnt, comparev,
							    compare_desc, compare_cnt, resultv,
							    result_desc, result_cnt, dest_addr,
							    addr, key, datatype, op, context));
}

static ssize_t safe_atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
					const struct fi_ioc *comparev, void **compare_desc,
					size_t compare_cnt, struct fi_ioc *resultv,
					void **result_desc, size_t result_cnt, uint64_t flags)
{
	struct engine_domain *domain = hold(fid);

	return release(domain, engine_atomic_ops.compwritemsg(fid, msg, comparev, compare_desc,
							      compare_cnt, resultv, result_desc,
							      result_cnt, flags));
}

struct fi_ops_msg engine_safe_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = safe_recv,
	.recvv = safe_recvv,
	.recvmsg = safe_recvmsg,
	.send = safe_send,
	.sendv = safe_sendv,
	.sendmsg = safe_sendmsg,
	.inject = safe_inject,
	.senddata = safe_senddata,
	.injectdata = safe_injectdata,
};

struct fi_ops_tagged engine_safe_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = safe_trecv,
	.recvv = safe_trecvv,
	.recvmsg = safe_trecvmsg,
	.send = safe_tsend,
	.sendv = safe_tsendv,
	.sendmsg = safe_tsendmsg,
	.inject = safe_tinject,
	.senddata = safe_tsenddata,
	.injectdata = safe_tinjectdata,
};

struct fi_ops_rma engine_safe_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = safe_rma_read,
	.readv = safe_rma_readv,
	.readmsg = safe_rma_readmsg,
	.write = safe_rma_write,
	.writev = safe_rma_writev,
	.writemsg = safe_rma_writemsg,
	.inject = safe_rma_inject,
	.writedata = safe_rma_writedata,
	.injectdata = safe_rma_injectdata,
};

struct fi_ops_atomic engine_safe_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = safe_atomic_write,
	.writev = safe_atomic_writev,
	.writemsg = safe_atomic_writemsg,
	.inject = safe_atomic_inject,
	.readwrite = safe_atomic_readwrite,
	.readwritev = safe_atomic_readwritev,
	.readwritemsg = safe_atomic_readwritemsg,
	.compwrite = safe_atomic_compwrite,
	.compwritev = safe_atomic_compwritev,
	.compwritemsg = safe_atomic_compwritemsg,
	.writevalid = engine_atomic_writevalid,
	.readwritevalid = engine_atomic_readwritevalid,
	.compwritevalid = engine_atomic_compwritevalid,
};
