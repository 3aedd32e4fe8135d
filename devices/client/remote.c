/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening and closing queue pairs of other hosts' devices; remote.h has the contract. */
#define _GNU_SOURCE
#include "remote_pair.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CONNECT_MS 10000 /* until a controller that does not answer is given up */
#define AGAIN_MS   500	 /* until it is asked once more */
#define FORGET_MS  10000

/* A place as a lender may have it */
static bool is_sound(const struct remote_place *place)
{
	return place->version == REMOTE_VERSION && place->name_len &&
	       place->name_len <= REMOTE_NAME_MAX && place->depth &&
	       place->message_max >= sizeof(struct remote_head) + sizeof(struct nvme_sqe) +
					     sizeof(struct nvme_dsm_range) &&
	       place->message_max <= 1u << 20 &&
	       (!place->data_len || place->data_len == 4 || place->data_len == 8) &&
	       place->inline_max >= sizeof(struct nvme_dsm_range) &&
	       place->inline_max <= place->message_max - sizeof(struct remote_head) -
					    sizeof(struct nvme_sqe) &&
	       memchr(place->provider, 0, sizeof(place->provider));
}

/* Of the provider that the controller has, at the address of ours by which the lender is reached. */
static int open_port(struct weft_nvme *qp)
{
	struct remote_pair *r = qp->remote;
	char name[sizeof(qp->dev->lender->path)], host[sizeof(name)];
	const char *service;
	struct port_request request = {
		.provider = r->place.provider,
		.host = host,
		.rma = true,
		.len_max = r->place.message_max,
		.cq_len = 4 * (size_t)qp->depth + RECEIVES_MAX + SENDS,
	};
	int err;

	lender_path(qp->dev->lender, name);
	err = door_split(name, host, sizeof(host), &service);
	if (err)
		return err;
	err = port_open(&request, &r->port);
	if (err == -FI_ENODATA || err == -FI_EINVAL) {
		request.host = NULL;
		err = port_open(&request, &r->port);
	}
	if (!err && r->port.data_len < r->place.data_len)
		return -EOPNOTSUPP;
	if (!err)
		err = port_ep_open(&r->port, &r->ep);
	if (!err)
		err = port_peer(&r->port, r->place.name, r->place.name_len, &r->peer);
	return err == -FI_ENODATA || err == -FI_EMSGSIZE ? -EOPNOTSUPP : err;
}

static int open_memory(struct weft_nvme *qp, bool near)
{
	struct remote_pair *r = qp->remote;
	size_t queues = near ? nvme_page_len(qp->entries * sizeof(struct nvme_sqe)) +
					nvme_page_len(qp->entries * sizeof(struct nvme_cqe)) +
					nvme_page_len(qp->depth * sizeof(struct nvme_dsm_range))
			     : 0;
	struct iovec all = { NULL,
			     nvme_page_len(r->receive_cnt * sizeof(struct remote_complete) +
					   SENDS * r->place.message_max) };
	struct iovec shared;
	int err = 0;

	if (posix_memalign((void **)&r->memory, NVME_PAGE, all.iov_len + queues))
		return -ENOMEM;
	memset(r->memory, 0, all.iov_len + queues);
	r->sends_at = r->receive_cnt * sizeof(struct remote_complete);
	all.iov_base = r->memory;
	if (r->port.mr_mode & FI_MR_LOCAL)
		err = port_mr_open(&r->port, r->ep, &all, FI_SEND | FI_RECV, &r->mr);
	if (err || !near)
		return err;
	if (!r->place.data_len)
		return -EOPNOTSUPP;
	shared = (struct iovec){ r->memory + all.iov_len, queues };
	qp->sq = shared.iov_base;
	qp->cq = (struct nvme_cqe *)((uint8_t *)qp->sq +
				     nvme_page_len(qp->entries * sizeof(struct nvme_sqe)));
	r->ranges = (struct nvme_dsm_range *)((uint8_t *)qp->cq +
					      nvme_page_len(qp->entries *
							    sizeof(struct nvme_cqe)));
	return port_mr_open(&r->port, r->ep, &shared, FI_REMOTE_READ | FI_REMOTE_WRITE,
			    &r->queues);
}

/* Say who we are, until the controller has heard it. */
static int connect_pair(struct weft_nvme *qp)
{
	struct remote_pair *r = qp->remote;
	struct remote_connect m = {
		.head = { REMOTE_VERSION, REMOTE_CONNECT, 0, r->place.key },
	};
	size_t len = sizeof(m.name);
	uint64_t end = client_now_ms() + CONNECT_MS, again = 0, now;
	int err = port_ep_name(r->ep, m.name, &len);

	m.name_len = (uint32_t)len;
	if (r->queues) {
		m.entries = qp->entries;
		m.sq_key = m.cq_key = fi_mr_key(r->queues);
		m.sq_addr = port_mr_addr(&r->port, qp->sq, qp->sq);
		m.cq_addr = port_mr_addr(&r->port, qp->sq, qp->cq);
	}
	while (!err && !r->connected) {
		struct pollfd p = { .fd = r->port.wait_fd, .events = POLLIN };

		now = client_now_ms();
		if (now > end)
			return -ETIMEDOUT;
		if (now >= again && !pair_say(r, &m, sizeof(m)))
			again = now + AGAIN_MS;
		pair_progress(qp);
		err = r->lost;
		if (!err && !r->connected && port_may_sleep(&r->port))
			poll(&p, 1, 1);
	}
	return err;
}

/* What one sleeps on: the provider alone says nothing when the wire is cut, or the controller has vanished. */
static int open_sleep(struct weft_nvme *qp)
{
	struct remote_pair *r = qp->remote;
	struct epoll_event ev = { .events = EPOLLIN };

	if (r->port.wait_fd < 0)
		return -EOPNOTSUPP;
	r->sleep_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->sleep_fd < 0 || epoll_ctl(r->sleep_fd, EPOLL_CTL_ADD, r->port.wait_fd, &ev) ||
	    epoll_ctl(r->sleep_fd, EPOLL_CTL_ADD, qp->vector, &ev))
		return -errno;
	return 0;
}

int remote_open(struct weft_nvme *qp, const struct remote_place *place, uint32_t flags)
{
	struct remote_pair *r;
	uint32_t i;
	int err;

	if (!is_sound(place))
		return -ENOPROTOOPT;
	if (place->depth < qp->depth)
		return -ENOSPC;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	qp->remote = r;
	r->place = *place;
	pthread_mutex_init(&r->lock, NULL);
	r->port.wait_fd = r->sleep_fd = -1;
	r->ended = calloc(qp->depth, sizeof(*r->ended));
	if (!r->ended)
		return -ENOMEM;
	err = open_port(qp);
	if (!err && qp->blocking)
		err = open_sleep(qp);
	if (err)
		return err;
	qp->entries = qp->depth + 1;
	r->receive_cnt = qp->depth + 2 < RECEIVES_MAX ? qp->depth + 2 : RECEIVES_MAX;
	err = open_memory(qp, flags & WEFT_NVME_NEAR_BORROWER);
	for (i = 0; !err && i < r->receive_cnt; i++)
		err = pair_listen(r, i);
	for (i = 0; i < SENDS; i++)
		r->free_sends[r->free_send_cnt++] = i;
	return err ? err : connect_pair(qp);
}

void remote_end(struct weft_nvme *qp)
{
	struct remote_pair *r = qp->remote;

	pthread_mutex_lock(&r->lock);
	if (!r->lost)
		r->lost = -ESTALE;
	if (r->ep)
		fi_close(&r->ep->fid);
	r->ep = NULL;
	pair_forget_all(r);
	pthread_mutex_unlock(&r->lock);
}

void remote_close(struct weft_nvme *qp)
{
	struct remote_pair *r = qp->remote;

	remote_end(qp);
	if (r->mr)
		fi_close(&r->mr->fid);
	if (r->queues)
		fi_close(&r->queues->fid);
	if (r->sleep_fd >= 0)
		close(r->sleep_fd);
	port_close(&r->port);
	pthread_mutex_destroy(&r->lock);
	free(r->regions);
	free(r->memory);
	free(r->ended);
	free(r);
	qp->remote = NULL;
}

int remote_fd(const struct weft_nvme *qp)
{
	return qp->remote->sleep_fd;
}

bool remote_may_sleep(struct weft_nvme *qp)
{
	struct remote_pair *r = qp->remote;
	bool may;

	pthread_mutex_lock(&r->lock);
	/* What the provider had no room for is tried again soon. */
	may = !r->ep || (!r->unsent_cnt && !r->doorbell_due && port_may_sleep(&r->port));
	pthread_mutex_unlock(&r->lock);
	return may;
}

static int forget(struct remote_pair *r, const struct span *span)
{
	uint64_t end = client_now_ms() + FORGET_MS;
	int err;

	/* A provider may still be at it, and go on once it is called. */
	for (;;) {
		pthread_mutex_lock(&r->lock);
		err = pair_forget(r, span->addr);
		pthread_mutex_unlock(&r->lock);
		if (err != -FI_EBUSY)
			return err;
		if (client_now_ms() > end)
			return -ETIMEDOUT;
		poll(NULL, 0, 1);
	}
}

int remote_forget(struct weft_device *dev, const struct span *span)
{
	struct weft_nvme *qp;
	int first = 0;

	pthread_mutex_lock(&dev->lock);
	for (qp = dev->pairs; qp; qp = qp->next) {
		int err = qp->remote ? forget(qp->remote, span) : 0;

		first = first ? first : err;
	}
	pthread_mutex_unlock(&dev->lock);
	return first;
}
