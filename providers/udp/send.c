/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending: a call hands its datagram to the kernel, which has copied it when the call returns, and
 * completes at once. With FI_MORE datagrams are held back, until a call without it, a full batch or
 * progress sends them together. Called with the domain locked.
 */
#include <poll.h>
#include "descriptor.h"
#include "endpoint.h"
#include "report.h"
#include "socket.h"

#define SEND_FLAGS (FI_SEND | FI_MSG)

/* A datagram that is held back. */
struct held {
	union ip_sockaddr to;
	struct iovec iov[UDP_IOV_MAX];
	/* bytes of the message */
	size_t len;
	void *context;
	bool reported;
};

struct udp_staged {
	struct mmsghdr hdrs[UDP_BATCH];
	struct held held[UDP_BATCH];
	uint32_t cnt;
	/* of those that leave as segments */
	struct iovec iov[UDP_BATCH * UDP_IOV_MAX];
	/* UDP_BATCH times the longest injected message */
	char *injected;
};

static void sent(struct udp_ep *ep, void *context, bool reported)
{
	if (reported)
		udp_cq_write(ep->tx_cq, context, SEND_FLAGS, 0, NULL, FI_ADDR_NOTAVAIL);
	udp_cntr_count(ep->tx_cntr);
}

/* The domain lists the endpoint while sends are held back or refused. */
static void list_in_domain(struct udp_ep *ep)
{
	if (!ep->refused && !udp_send_held(ep))
		list_remove(&ep->holding);
	else if (list_empty(&ep->holding))
		list_add_tail(&ep->domain->holding, &ep->holding);
}

static void refused_changes(struct udp_ep *ep, bool refused)
{
	if (likely(ep->refused == refused))
		return;
	ep->refused = refused;
	list_in_domain(ep);
	if (refused)
		udp_ep_arm(ep);
}

bool udp_send_room(struct udp_ep *ep)
{
	struct pollfd p = { .fd = ep->fd, .events = POLLOUT };

	if (!ep->refused || sys_descriptor_poll(&p, 1, 0) != 1)
		return false;
	refused_changes(ep, false);
	return true;
}

/* Drops the first @cnt of those that are held back. */
static void drop_first(struct udp_ep *ep, uint32_t cnt)
{
	struct udp_staged *staged = ep->staged;

	staged->cnt -= cnt;
	list_in_domain(ep);
	memmove(staged->held, staged->held + cnt, staged->cnt * sizeof(staged->held[0]));
	memmove(staged->hdrs, staged->hdrs + cnt, staged->cnt * sizeof(staged->hdrs[0]));
	for (uint32_t i = 0; i < staged->cnt; i++) {
		staged->hdrs[i].msg_hdr.msg_name = &staged->held[i].to;
		staged->hdrs[i].msg_hdr.msg_iov = staged->held[i].iov;
	}
}

/* A datagram that is held back can't be sent. */
static void failed(struct udp_ep *ep, const struct held *held, int err)
{
	udp_cq_error(ep->tx_cq, &(struct fi_cq_err_entry){
					.op_context = held->context,
					.flags = SEND_FLAGS,
					.err = -err,
					.prov_errno = -err,
					.src_addr = FI_ADDR_NOTAVAIL,
				});
	udp_cntr_error(ep->tx_cntr);
}

/*
 * Returns how many from @from on can leave as segments of one packet: to one address, of one
 * length, but for the last, which may be shorter.
 */
static uint32_t segments_from(const struct udp_staged *staged, uint32_t from)
{
	const struct held *first = &staged->held[from], *next;
	size_t sum = first->len;
	uint32_t cnt = 1;

	for (; from + cnt < staged->cnt; cnt++) {
		next = &staged->held[from + cnt];
		sum += next->len;
		if (!next->len || next->len > first->len || sum > UDP_MSG_MOST ||
		    memcmp(&next->to, &first->to, sizeof(first->to)))
			break;
		if (next->len < first->len)
			return cnt + 1;
	}
	return cnt;
}

/* Sends the first @cnt as segments. Returns @cnt or -FI_E*. */
static int send_segments(struct udp_ep *ep, struct udp_staged *staged, uint32_t cnt)
{
	struct msghdr msg = staged->hdrs[0].msg_hdr;
	size_t iov_cnt = 0;
	int ret;

	for (uint32_t i = 0; i < cnt; i++)
		for (size_t k = 0; k < staged->hdrs[i].msg_hdr.msg_iovlen; k++)
			staged->iov[iov_cnt++] = staged->held[i].iov[k];
	msg.msg_iov = staged->iov;
	msg.msg_iovlen = iov_cnt;
	ret = udp_socket_send_segments(ep->fd, &msg, (uint16_t)staged->held[0].len);
	return ret ? ret : (int)cnt;
}

/* Returns true for the errors of a kernel, or an interface, that sends no segments of that length. */
static bool no_segments(int err)
{
	return err == -FI_EINVAL || err == -FI_EIO || err == -FI_EOPNOTSUPP ||
	       err == -FI_EMSGSIZE;
}

/*
 * Sends some of the first. The kernel sends segments at a quarter of the cost of datagrams. Where it
 * can't send segments, this endpoint does without. An address that nothing can be sent to is refused
 * with the same errors, so that datagrams are tried: if they go, segments are what was refused.
 * Returns how many were sent, or -FI_E* of the first.
 */
static int send_first(struct udp_ep *ep, struct udp_staged *staged)
{
	uint32_t cnt = ep->no_segments ? 1 : segments_from(staged, 0);
	int ret, refused;

	if (cnt > 1) {
		refused = send_segments(ep, staged, cnt);
		if (refused > 0 || refused == -FI_EAGAIN)
			return refused;
		ret = udp_socket_send_several(ep->fd, staged->hdrs, cnt);
		if (ret > 0)
			ep->no_segments = no_segments(refused);
		return ret;
	}
	for (cnt = 1; cnt < staged->cnt; cnt++)
		if (!ep->no_segments && segments_from(staged, cnt) > 1)
			break;
	return udp_socket_send_several(ep->fd, staged->hdrs, cnt);
}

void udp_send_flush(struct udp_ep *ep)
{
	struct udp_staged *staged = ep->staged;
	int ret;

	while (staged && staged->cnt) {
		ret = send_first(ep, staged);
		if (ret == -FI_EAGAIN)
			break;
		if (ret < 0)
			failed(ep, &staged->held[0], ret);
		for (int i = 0; i < ret; i++)
			sent(ep, staged->held[i].context, staged->held[i].reported);
		drop_first(ep, ret < 0 ? 1 : (uint32_t)ret);
	}
	/* Somebody may sleep that armed while nothing was held back. */
	if (unlikely(udp_send_held(ep)))
		udp_ep_arm(ep);
}

uint32_t udp_send_held(const struct udp_ep *ep)
{
	return ep->staged ? ep->staged->cnt : 0;
}

void udp_send_close(struct udp_ep *ep)
{
	ep->refused = false;
	if (!ep->staged) {
		list_remove(&ep->holding);
		return;
	}
	udp_send_flush(ep);
	for (uint32_t i = 0; i < ep->staged->cnt; i++)
		failed(ep, &ep->staged->held[i], -FI_ECANCELED);
	list_remove(&ep->holding);
}

void udp_send_free(struct udp_ep *ep)
{
	if (!ep->staged)
		return;
	platform_free(ep->staged->injected);
	platform_free(ep->staged);
	ep->staged = NULL;
}

/* Returns the memory for what is held back, or NULL. */
static struct udp_staged *staged_of(struct udp_ep *ep, bool injects)
{
	if (!ep->staged)
		ep->staged = platform_alloc(sizeof(*ep->staged));
	if (ep->staged && injects && !ep->staged->injected)
		ep->staged->injected = platform_alloc(UDP_BATCH * ep->inject_max);
	return ep->staged && (!injects || ep->staged->injected) ? ep->staged : NULL;
}

static size_t gather(char *to, const struct iovec *iov, size_t cnt)
{
	size_t len = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (iov[i].iov_len)
			memcpy(to + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	return len;
}

/* Memory for an injected message that none held back has; it is theirs until they are sent. */
static char *injected_slot(const struct udp_ep *ep, const struct udp_staged *staged)
{
	bool taken[UDP_BATCH] = { false };
	uint32_t slot = 0;

	for (uint32_t i = 0; i < staged->cnt; i++) {
		const char *base = staged->held[i].iov[0].iov_base;

		if (base >= staged->injected &&
		    base < staged->injected + UDP_BATCH * ep->inject_max)
			taken[(size_t)(base - staged->injected) / ep->inject_max] = true;
	}
	while (taken[slot])
		slot++;
	return staged->injected + slot * ep->inject_max;
}

/* Holds a datagram back; there is room. */
static int hold_back(struct udp_ep *ep, const struct udp_send *send,
		     const union ip_sockaddr *to, size_t len, bool reported)
{
	bool injects = send->flags & FI_INJECT || send->silent;
	struct udp_staged *staged = staged_of(ep, injects);
	struct held *held;
	size_t cnt = send->iov_cnt;

	if (!staged)
		return -FI_EAGAIN;
	held = &staged->held[staged->cnt];
	if (injects) {
		char *copy = injected_slot(ep, staged);

		held->iov[0] = (struct iovec){ copy, gather(copy, send->iov, cnt) };
		cnt = 1;
	}
	for (size_t i = 0; i < cnt && !injects; i++)
		held->iov[i] = send->iov[i];
	held->to = *to;
	held->len = len;
	held->context = send->context;
	held->reported = reported;
	staged->hdrs[staged->cnt].msg_hdr = (struct msghdr){
		.msg_name = &held->to,
		.msg_namelen = ip_sockaddr_len(to),
		.msg_iov = held->iov,
		.msg_iovlen = cnt,
	};
	staged->cnt++;
	list_in_domain(ep);
	return 0;
}

/* Where a datagram goes. Returns 0 or -FI_EINVAL. */
static int find_address(const struct udp_ep *ep, const struct udp_send *send,
			union ip_sockaddr *to)
{
	const struct weft_addr *addr;
	struct udp_group *group;

	if (send->to & UDP_GROUP_BIT && send->to != FI_ADDR_UNSPEC) {
		group = udp_group_find(ep, send->to);
		if (!group || !group->sends)
			return -FI_EINVAL;
		*to = group->addr;
		return 0;
	}
	addr = send->flags & FI_MULTICAST ? NULL : av_get(&ep->av->table, send->to);
	return addr && ip_sockaddr_set(to, addr) ? 0 : -FI_EINVAL;
}

/* Returns 0 or -FI_E*. @len: out: bytes of the message */
static int check(const struct udp_ep *ep, const struct udp_send *send, size_t *len)
{
	int ret = udp_iov_check(send->iov, send->iov_cnt, len);

	if (!ep->sends)
		return -FI_ENOSYS;
	if (ret)
		return ret;
	if (*len > ep->msg_max)
		return -FI_EMSGSIZE;
	return (send->flags & FI_INJECT || send->silent) && *len > ep->inject_max ? -FI_EMSGSIZE
										  : 0;
}

ssize_t udp_send(struct udp_ep *ep, const struct udp_send *send)
{
	bool reported = ep->tx_cq && !send->silent && send->flags & FI_COMPLETION;
	union ip_sockaddr to = { 0 };
	size_t len;
	int ret = check(ep, send, &len);

	if (!ret)
		ret = find_address(ep, send, &to);
	if (ret)
		return ret;
	if (udp_send_held(ep) == UDP_BATCH)
		udp_send_flush(ep);
	if (udp_send_held(ep) == UDP_BATCH) {
		refused_changes(ep, true);
		return -FI_EAGAIN;
	}
	/* Those that are held back are before it. */
	if (send->flags & FI_MORE || udp_send_held(ep)) {
		ret = hold_back(ep, send, &to, len, reported);
		if (!ret && !(send->flags & FI_MORE))
			udp_send_flush(ep);
		return ret;
	}
	ret = udp_socket_send(ep->fd, &(struct msghdr){
					      .msg_name = &to,
					      .msg_namelen = ip_sockaddr_len(&to),
					      .msg_iov = (struct iovec *)(uintptr_t)send->iov,
					      .msg_iovlen = send->iov_cnt,
				      });
	refused_changes(ep, ret == -FI_EAGAIN);
	if (!ret)
		sent(ep, send->context, reported);
	return ret;
}
