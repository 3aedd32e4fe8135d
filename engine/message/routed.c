/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Op tables of endpoints whose peers are reached over different wires: each send looks up the
 * peer's route and calls that wire's instance of the fast path. The program serializes the calls;
 * if it does not, the tables of object/safe.c call these with the domain's lock held.
 */
#include "routed.h"
#include "send.h"

static ssize_t routed_tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    fi_addr_t dest, uint64_t tag, void *context)
{
	return engine_tsend(ep, buf, len, dest, tag, context, NULL);
}

static ssize_t routed_tinject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest,
			      uint64_t tag)
{
	return engine_tinject(ep, buf, len, dest, tag, NULL);
}

static ssize_t routed_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
				uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	return engine_tsenddata(ep, buf, len, data, dest, tag, context, NULL);
}

static ssize_t routed_tinjectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				  fi_addr_t dest, uint64_t tag)
{
	return engine_tinjectdata(ep, buf, len, data, dest, tag, NULL);
}

static ssize_t routed_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   fi_addr_t dest, void *context)
{
	return engine_msend(ep, buf, len, dest, context, NULL);
}

static ssize_t routed_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest)
{
	return engine_minject(ep, buf, len, dest, NULL);
}

static ssize_t routed_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			       uint64_t data, fi_addr_t dest, void *context)
{
	return engine_msenddata(ep, buf, len, data, dest, context, NULL);
}

static ssize_t routed_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				 fi_addr_t dest)
{
	return engine_minjectdata(ep, buf, len, data, dest, NULL);
}

struct fi_ops_msg engine_routed_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = engine_recv,
	.recvv = engine_recvv,
	.recvmsg = engine_recvmsg,
	.send = routed_send,
	.sendv = engine_sendv,
	.sendmsg = engine_sendmsg,
	.inject = routed_inject,
	.senddata = routed_senddata,
	.injectdata = routed_injectdata,
};

struct fi_ops_tagged engine_routed_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = engine_trecv,
	.recvv = engine_trecvv,
	.recvmsg = engine_trecvmsg,
	.send = routed_tsend,
	.sendv = engine_tsendv,
	.sendmsg = engine_tsendmsg,
	.inject = routed_tinject,
	.senddata = routed_tsenddata,
	.injectdata = routed_tinjectdata,
};
