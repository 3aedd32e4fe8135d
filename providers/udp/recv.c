/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving: the kernel writes each datagram into the receive that was posted first. Until there is
 * one it keeps the datagram, or drops it when its buffer is full. Called with the domain locked.
 */
#include <sys/epoll.h>
#include "endpoint.h"
#include "report.h"
#include "socket.h"

#define RECV_FLAGS (FI_RECV | FI_MSG)

static struct udp_rx *rx_first(const struct udp_ep *ep)
{
	return container_of(ep->rx.next, struct udp_rx, link);
}

static void rx_release(struct udp_ep *ep, struct udp_rx *rx)
{
	list_remove(&rx->link);
	pool_put(&ep->rx_pool, rx);
}

ssize_t udp_recv(struct udp_ep *ep, const struct iovec *iov, size_t cnt, void *context,
		 uint64_t flags)
{
	struct udp_rx *rx;
	size_t len;
	int ret;

	if (!ep->receives)
		return -FI_ENOSYS;
	ret = udp_iov_check(iov, cnt, &len);
	if (ret || (flags & FI_MULTI_RECV && cnt != 1))
		return ret ? ret : -FI_EINVAL;
	if (ep->rx_pool.used >= ep->rx_size)
		return -FI_EAGAIN;
	rx = pool_get(&ep->rx_pool);
	if (!rx)
		return -FI_EAGAIN;
	for (size_t i = 0; i < cnt; i++)
		rx->iov[i] = iov[i];
	rx->iov_cnt = cnt;
	rx->context = context;
	rx->flags = flags;
	rx->empty_cnt = 0;
	list_add_tail(&ep->rx, &rx->link);
	/* Somebody may sleep that armed while nothing was posted. */
	if (unlikely(ep->watched && !(ep->interest & EPOLLIN)))
		udp_ep_arm(ep);
	return 0;
}

/*
 * The source of a datagram as an index of the vector; FI_ADDR_NOTAVAIL for one that is not in it.
 */
static fi_addr_t source_of(struct udp_ep *ep, const struct msghdr *msg)
{
	const union ip_sockaddr *name = msg->msg_name;
	struct weft_addr addr = { .version = ADDR_VERSION, .kind = ADDR_SERVICE };

	if (!ep->source || msg->msg_namelen < sizeof(name->in) ||
	    msg->msg_namelen < ip_sockaddr_len(name))
		return FI_ADDR_NOTAVAIL;
	ip_sockaddr_get(name, &addr);
	return av_find(&ep->av->table, &addr);
}

/*
 * A multi-receive buffer takes a message of @used bytes. Returns true if it takes no more. Empty
 * messages use none of it, so their number is bounded. Else their sender could have one buffer fill
 * the queue of a program that reads only a counter for now.
 */
static bool buffer_ends(const struct udp_ep *ep, struct udp_rx *rx, size_t used)
{
	struct iovec *left = &rx->iov[0];

	left->iov_base = (char *)left->iov_base + used;
	left->iov_len -= used;
	rx->empty_cnt += !used;
	return left->iov_len < ep->multi_min || !left->iov_len || rx->empty_cnt >= ep->rx_size;
}

/* A datagram is in a receive, as far as there was room. */
static void received(struct udp_ep *ep, struct udp_rx *rx, const struct mmsghdr *hdr)
{
	size_t len = hdr->msg_len, room = 0;
	fi_addr_t src = source_of(ep, &hdr->msg_hdr);
	void *buf = rx->iov_cnt ? rx->iov[0].iov_base : NULL;
	uint64_t flags = RECV_FLAGS;

	for (size_t i = 0; i < rx->iov_cnt && len > room; i++)
		room += rx->iov[i].iov_len;
	if (rx->flags & FI_MULTI_RECV && buffer_ends(ep, rx, len < room ? len : room))
		flags |= FI_MULTI_RECV;
	if (unlikely(len > room)) {
		udp_cq_error(ep->rx_cq, &(struct fi_cq_err_entry){
						.op_context = rx->context,
						.flags = flags,
						.len = room,
						.buf = buf,
						.olen = len - room,
						.err = FI_ETRUNC,
						.prov_errno = FI_ETRUNC,
						.src_addr = src,
					});
		udp_cntr_error(ep->rx_cntr);
	} else {
		if (ep->rx_cq && rx->flags & FI_COMPLETION)
			udp_cq_write(ep->rx_cq, rx->context, flags, len, buf, src);
		else if (ep->rx_cq && flags & FI_MULTI_RECV)
			/* Nobody asked for the message, but the buffer is the program's again. */
			udp_cq_write(ep->rx_cq, rx->context, FI_MULTI_RECV, 0, NULL,
				     FI_ADDR_NOTAVAIL);
		udp_cntr_count(ep->rx_cntr);
	}
	if (!(rx->flags & FI_MULTI_RECV) || flags & FI_MULTI_RECV)
		rx_release(ep, rx);
}

/*
 * Points the batch at up to @ask receives in order; a multi-receive buffer is the last, since what
 * it has left changes.
 */
static unsigned int prepare(struct udp_ep *ep, struct udp_batch *batch, unsigned int ask)
{
	unsigned int cnt = 0;
	struct udp_rx *rx;

	list_for_each_entry(rx, &ep->rx, link) {
		if (cnt == ask)
			break;
		batch->hdrs[cnt].msg_hdr = (struct msghdr){
			.msg_name = ep->source ? &batch->names[cnt] : NULL,
			.msg_namelen = ep->source ? sizeof(batch->names[cnt]) : 0,
			.msg_iov = rx->iov,
			.msg_iovlen = rx->iov_cnt,
		};
		cnt++;
		if (rx->flags & FI_MULTI_RECV)
			break;
	}
	return cnt;
}

/*
 * Takes datagrams of one socket. A call that asks for more than there are looks once in vain, and a
 * program that waits for one datagram at a time would do so with each. So the number that is asked
 * for follows the number that was found. A multi-receive buffer takes a call for each.
 * @ask: of this socket
 */
static void take(struct udp_ep *ep, int fd, uint32_t *ask)
{
	struct udp_batch *batch = ep->domain->batch;
	unsigned int cnt, got, sum = 0;

	do {
		cnt = prepare(ep, batch, *ask - sum);
		if (!cnt)
			break;
		got = (unsigned int)udp_socket_receive(fd, batch->hdrs, cnt);
		for (unsigned int i = 0; i < got; i++)
			received(ep, rx_first(ep), &batch->hdrs[i]);
		sum += got;
	} while (got == cnt && sum < *ask);
	if (sum == *ask)
		*ask = *ask * 2 < UDP_BATCH ? *ask * 2 : UDP_BATCH;
	else if (cnt && got < cnt)
		*ask = sum > 1 ? sum : 1;
}

/* Takes datagrams of all groups. The first is the last the next time. */
static void take_groups(struct udp_ep *ep)
{
	struct list *first = ep->groups.next;
	struct udp_group *group;

	list_for_each_entry(group, &ep->groups, link)
		if (group->fd >= 0)
			take(ep, group->fd, &group->ask);
	list_remove(first);
	list_add_tail(&ep->groups, first);
}

/* Sockets take turns: who posts one receive at a time gets datagrams of all of them. */
void udp_recv_progress(struct udp_ep *ep)
{
	if (list_empty(&ep->rx))
		return;
	if (list_empty(&ep->groups)) {
		take(ep, ep->fd, &ep->ask);
		return;
	}
	ep->groups_first = !ep->groups_first;
	if (ep->groups_first)
		take_groups(ep);
	take(ep, ep->fd, &ep->ask);
	if (!ep->groups_first)
		take_groups(ep);
}

int udp_recv_cancel(struct udp_ep *ep, const void *context)
{
	struct udp_rx *rx;

	list_for_each_entry(rx, &ep->rx, link) {
		if (rx->context != context)
			continue;
		udp_cq_error(ep->rx_cq,
			     &(struct fi_cq_err_entry){
				     .op_context = rx->context,
				     .flags = RECV_FLAGS | (rx->flags & FI_MULTI_RECV),
				     .err = FI_ECANCELED,
				     .prov_errno = FI_ECANCELED,
				     .src_addr = FI_ADDR_NOTAVAIL,
			     });
		udp_cntr_error(ep->rx_cntr);
		rx_release(ep, rx);
		return 0;
	}
	return -FI_ENOENT;
}
