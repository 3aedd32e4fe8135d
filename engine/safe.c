/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Op tables of endpoints whose callers do not serialize: each call takes the domain's lock
 * around that of the family's table, whatever wires it has.
 */
#include "fids.h"

static struct engine_ep *hold(struct fid_ep *fid)
{
	struct engine_ep *ep = container_of(fid, struct engine_ep, fid);

	platform_lock(&ep->domain->lock);
	return ep;
}

static ssize_t release(struct engine_ep *ep, ssize_t ret)
{
	platform_unlock(&ep->domain->lock);
	return ret;
}

static ssize_t safe_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src_addr,
			 void *context)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->msg->recv(fid, buf, len, desc, src_addr, context));
}

static ssize_t safe_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			  fi_addr_t src_addr, void *context)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->msg->recvv(fid, iov, desc, cnt, src_addr, context));
}

static ssize_t safe_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->msg->recvmsg(fid, msg, flags));
}

static ssize_t safe_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t dest_addr,
			 void *context)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->msg->send(fid, buf, len, desc, dest_addr, context));
}

static ssize_t safe_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			  fi_addr_t dest_addr, void *context)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->msg->sendv(fid, iov, desc, cnt, dest_addr, context));
}

static ssize_t safe_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->msg->sendmsg(fid, msg, flags));
}

static ssize_t safe_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest_addr)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->msg->inject(fid, buf, len, dest_addr));
}

static ssize_t safe_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			     fi_addr_t dest_addr, void *context)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->msg->senddata(fid, buf, len, desc, data, dest_addr, context));
}

static ssize_t safe_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			       fi_addr_t dest_addr)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->msg->injectdata(fid, buf, len, data, dest_addr));
}

static ssize_t safe_trecv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src_addr,
			  uint64_t tag, uint64_t ignore, void *context)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->tagged->recv(fid, buf, len, desc, src_addr, tag, ignore, context));
}

static ssize_t safe_trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			   fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->tagged->recvv(fid, iov, desc, cnt, src_addr, tag, ignore, context));
}

static ssize_t safe_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->tagged->recvmsg(fid, msg, flags));
}

static ssize_t safe_tsend(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t dest_addr,
			  uint64_t tag, void *context)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->tagged->send(fid, buf, len, desc, dest_addr, tag, context));
}

static ssize_t safe_tsendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			   fi_addr_t dest_addr, uint64_t tag, void *context)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->tagged->sendv(fid, iov, desc, cnt, dest_addr, tag, context));
}

static ssize_t safe_tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->tagged->sendmsg(fid, msg, flags));
}

static ssize_t safe_tinject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest_addr,
			    uint64_t tag)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->tagged->inject(fid, buf, len, dest_addr, tag));
}

static ssize_t safe_tsenddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			      fi_addr_t dest_addr, uint64_t tag, void *context)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->tagged->senddata(fid, buf, len, desc, data, dest_addr, tag, context));
}

static ssize_t safe_tinjectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
				fi_addr_t dest_addr, uint64_t tag)
{
	struct engine_ep *ep = hold(fid);

	return release(ep, ep->family->tagged->injectdata(fid, buf, len, data, dest_addr, tag));
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
