/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls for messages: they bring their arguments into one form. Called by programs, on any
 * thread. Source: fi_msg(3).
 */
#include "absent.h"
#include "endpoint.h"

#define SEND_CALL_FLAGS                                                            \
	(FI_COMPLETION | FI_INJECT | FI_MORE | FI_MULTICAST | FI_INJECT_COMPLETE | \
	 FI_TRANSMIT_COMPLETE)
#define RECV_CALL_FLAGS (FI_COMPLETION | FI_MORE | FI_MULTI_RECV)

static struct udp_ep *ep_of(struct fid_ep *fid)
{
	return container_of(fid, struct udp_ep, fid);
}

/* Returns the usual cause of an error, or NULL if the program made no mistake. */
static const char *why(ssize_t err)
{
	switch (-err) {
	case FI_EINVAL:
		return "no such address in the vector, or a group that was not joined for sending; a NULL "
		       "buffer that has a length; more vectors than iov_limit";
	case FI_EBADFLAGS:
		return "flags that this call does not accept; see docs/udp.md";
	case FI_EMSGSIZE:
		return "more than max_msg_size, or than inject_size for injected data";
	case FI_ENOSYS:
		return "not among the capabilities that the endpoint was opened with";
	case FI_EOPBADSTATE:
		return "not enabled, or opened by the process that this one is a fork of";
	default:
		return NULL;
	}
}

static ssize_t answer(const char *call, ssize_t ret)
{
	const char *reason = ret < 0 ? why(ret) : NULL;

	return reason ? udp_refuse(FI_LOG_EP_DATA, (int)ret, call, reason) : ret;
}

static ssize_t send_any(struct fid_ep *fid, struct udp_send *send)
{
	struct udp_ep *ep = ep_of(fid);
	ssize_t ret = -FI_EOPBADSTATE;

	if (!ep->tx_selective)
		send->flags |= FI_COMPLETION;
	if (udp_enter(ep->domain)) {
		if (ep->enabled)
			ret = udp_send(ep, send);
		udp_leave(ep->domain);
	}
	return answer("a send", ret);
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			fi_addr_t dest, void *context)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct udp_send send = { .iov = &iov,
				 .iov_cnt = 1,
				 .to = dest,
				 .context = context,
				 .flags = ep_of(fid)->tx_flags };

	return send_any(fid, &send);
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			 fi_addr_t dest, void *context)
{
	struct udp_send send = { .iov = iov,
				 .iov_cnt = cnt,
				 .to = dest,
				 .context = context,
				 .flags = ep_of(fid)->tx_flags };

	return send_any(fid, &send);
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct udp_send send;

	if (!msg)
		return answer("fi_sendmsg", -FI_EINVAL);
	if (flags & ~SEND_CALL_FLAGS)
		return answer("fi_sendmsg", -FI_EBADFLAGS);
	send = (struct udp_send){ .iov = msg->msg_iov,
				  .iov_cnt = msg->iov_count,
				  .to = msg->addr,
				  .context = msg->context,
				  .flags = flags };
	return send_any(fid, &send);
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct udp_send send = { .iov = &iov,
				 .iov_cnt = 1,
				 .to = dest,
				 .flags = ep_of(fid)->tx_flags & FI_MULTICAST,
				 .silent = true };

	return send_any(fid, &send);
}

/* A datagram is the program's bytes and nothing else: it has no room for data of the completion. */
static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest)
{
	return -FI_ENOSYS;
}

int udp_iov_check(const struct iovec *iov, size_t cnt, size_t *len)
{
	*len = 0;
	if (cnt > UDP_IOV_MAX || (cnt && !iov))
		return -FI_EINVAL;
	for (size_t i = 0; i < cnt; i++) {
		if (iov[i].iov_len && !iov[i].iov_base)
			return -FI_EINVAL;
		if (__builtin_add_overflow(*len, iov[i].iov_len, len))
			return -FI_EMSGSIZE;
	}
	return 0;
}

static ssize_t recv_any(struct fid_ep *fid, const struct iovec *iov, size_t cnt, void *context,
			uint64_t flags)
{
	struct udp_ep *ep = ep_of(fid);
	ssize_t ret = -FI_EOPBADSTATE;

	if (!ep->rx_selective)
		flags |= FI_COMPLETION;
	if (udp_enter(ep->domain)) {
		if (ep->enabled)
			ret = udp_recv(ep, iov, cnt, context, flags);
		udp_leave(ep->domain);
	}
	return answer("a receive", ret);
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			void *context)
{
	const struct iovec iov = { buf, len };

	return recv_any(fid, &iov, 1, context, ep_of(fid)->rx_flags);
}

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt,
			 fi_addr_t src, void *context)
{
	return recv_any(fid, iov, cnt, context, ep_of(fid)->rx_flags & ~FI_MULTI_RECV);
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	if (!msg)
		return answer("fi_recvmsg", -FI_EINVAL);
	if (flags & ~RECV_CALL_FLAGS)
		return answer("fi_recvmsg", -FI_EBADFLAGS);
	return recv_any(fid, msg->msg_iov, msg->iov_count, msg->context, flags);
}

struct fi_ops_msg udp_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};
