/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Progress and sleeping for completion queues and counters. Called by these, on any thread. */
#include <pthread.h>
#include <sys/epoll.h>
#include "descriptor.h"
#include "endpoint.h"
#include "epoll.h"
#include "event.h"
#include "report.h"
#include "wait_set.h"

#define NS_PER_MS 1000000u
/*
 * Up to so many endpoints have their sockets read without asking epoll which of them have something.
 * Asking costs as much as reading one socket in vain, and adds to the read where something is there.
 */
#define DIRECT_MAX 2
/* A sleep that nothing ends looks again: the kernel reports no end of an interface. */
#define SLEEP_MAX_NS 1000000000u
/* A sleep while the bell still rings for others, whose look it is not to be in the way of */
#define EARLY_NS 50000u

int udp_wait_type(enum fi_wait_obj type)
{
	switch (type) {
	case FI_WAIT_NONE:
	case FI_WAIT_UNSPEC:
	case FI_WAIT_SET:
	case FI_WAIT_FD:
	case FI_WAIT_YIELD:
		return 0;
	default:
		return udp_refuse(FI_LOG_CQ, -FI_ENOSYS, "opening a queue or counter",
				  "wait objects are FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_SET, "
				  "FI_WAIT_FD and FI_WAIT_YIELD");
	}
}

int udp_wait_open(struct udp_wait *wait, struct udp_domain *domain, enum fi_wait_obj type)
{
	int err;

	list_init(&wait->links);
	list_init(&wait->polled);
	wait->domain = domain;
	wait->type = type;
	wait->epoll = wait->bell = -1;
	if (type == FI_WAIT_NONE)
		return 0;
	wait->bell = sys_eventfd_open();
	if (wait->bell < 0)
		return wait->bell;
	wait->epoll = sys_epoll_open();
	err = wait->epoll < 0 ? wait->epoll : sys_epoll_add(wait->epoll, wait->bell, EPOLLIN);
	if (err)
		udp_wait_close(wait);
	return err;
}

void udp_wait_close(struct udp_wait *wait)
{
	if (wait->bell >= 0)
		sys_eventfd_close(wait->bell);
	if (wait->epoll >= 0)
		sys_descriptor_close(wait->epoll);
	wait->epoll = wait->bell = -1;
}

/* Has an epoll hold the sockets that the wait looks at. Without descriptors it does without. */
static void open_gate(struct udp_wait *wait)
{
	struct udp_link *link;
	int epoll = sys_epoll_open(), ret = epoll < 0 ? epoll : 0;

	list_for_each_entry(link, &wait->links, link)
		if (!ret)
			ret = udp_ep_watch_all(link->ep, link, epoll);
	if (!ret)
		wait->epoll = epoll;
	else if (epoll >= 0)
		sys_descriptor_close(epoll);
}

void udp_wait_link(struct udp_wait *wait, struct udp_ep *ep, struct udp_link *link)
{
	struct udp_link *other;

	list_for_each_entry(other, &wait->links, link)
		if (other->ep == ep)
			return;
	if (wait->epoll < 0 && wait->link_cnt >= DIRECT_MAX)
		open_gate(wait);
	link->ep = ep;
	link->wait = wait;
	list_add_tail(&wait->links, &link->link);
	wait->link_cnt++;
}

void udp_wait_unlink(struct udp_link *link)
{
	if (!link->wait)
		return;
	list_remove(&link->link);
	link->wait->link_cnt--;
	link->wait = NULL;
}

static bool reports_to(const struct udp_ep *ep, const struct udp_wait *wait)
{
	for (int i = 0; i < UDP_LINK_CNT; i++)
		if (ep->links[i].wait == wait)
			return true;
	return false;
}

static bool gated(const struct udp_wait *wait)
{
	return wait->link_cnt > DIRECT_MAX && wait->epoll >= 0;
}

/*
 * Takes what has arrived at the sockets that the epoll finds. One that was found for nothing is
 * armed anew, so that it is found no more: no receive is posted, or what was held back has left.
 */
static void take_ready(struct udp_wait *wait)
{
	void *ready[SYS_EPOLL_TAKE_MAX];
	int cnt = sys_epoll_take(wait->epoll, ready, SYS_EPOLL_TAKE_MAX);

	for (int i = 0; i < cnt; i++) {
		struct udp_ep *ep = ready[i];

		/* NULL is the bell. */
		if (!ep)
			continue;
		if (list_empty(&ep->rx) || ep->tx_interest & EPOLLOUT)
			udp_ep_arm(ep);
		udp_recv_progress(ep);
	}
}

void udp_wait_progress(struct udp_wait *wait)
{
	struct udp_link *link;
	struct udp_ep *ep;

	list_for_each_entry(ep, &wait->domain->holding, holding)
		if (reports_to(ep, wait))
			udp_send_flush(ep);
	if (gated(wait)) {
		take_ready(wait);
		return;
	}
	list_for_each_entry(link, &wait->links, link)
		udp_recv_progress(link->ep);
}

bool udp_wait_room(struct udp_wait *wait)
{
	bool room = false;
	struct udp_ep *ep;

	list_for_each_entry(ep, &wait->domain->holding, holding)
		if (ep->links[UDP_LINK_TX_CQ].wait == wait ||
		    ep->links[UDP_LINK_TX_CNTR].wait == wait)
			room |= udp_send_room(ep);
	return room;
}

void udp_wait_arm(struct udp_wait *wait)
{
	struct udp_link *link;

	if (wait->rung && !wait->woken) {
		sys_eventfd_clear(wait->bell);
		wait->rung = false;
	}
	wait->armed = true;
	/* take_ready() has done so, where a socket was found for nothing. */
	if (gated(wait))
		return;
	list_for_each_entry(link, &wait->links, link)
		udp_ep_arm(link->ep);
}

int udp_wait_sleep(enum fi_wait_obj type, int descriptor, uint64_t end)
{
	uint64_t now = platform_now_ns(), ns = end > now ? end - now : 0;

	if (type == FI_WAIT_YIELD)
		platform_yield();
	else if (ns)
		return sys_sleep(&descriptor, 1, ns < SLEEP_MAX_NS ? ns : SLEEP_MAX_NS);
	return 0;
}

void udp_wait_look(struct udp_wait *wait, struct udp_sleeper *sleeper)
{
	if (!sleeper->asleep)
		return;
	sleeper->asleep = false;
	wait->sleepers--;
	if (sleeper->rings != wait->rings)
		wait->woken--;
}

void udp_wait_doze(struct udp_wait *wait, struct udp_sleeper *sleeper)
{
	sleeper->asleep = true;
	sleeper->early = wait->woken > 0;
	sleeper->rings = wait->rings;
	wait->sleepers++;
	udp_wait_arm(wait);
}

/* A call that sleeps. */
struct rest {
	struct udp_wait *wait;
	struct udp_sleeper *sleeper;
};

static void rest_cancelled(void *arg)
{
	const struct rest *rest = arg;

	if (!udp_enter(rest->wait->domain))
		return;
	udp_wait_look(rest->wait, rest->sleeper);
	if (rest->sleeper->reads)
		rest->wait->readers--;
	udp_leave(rest->wait->domain);
}

int udp_wait_rest(struct udp_wait *wait, struct udp_sleeper *sleeper, uint64_t end)
{
	struct rest rest = { wait, sleeper };
	int ret;

	pthread_cleanup_push(rest_cancelled, &rest);
	if (sleeper->early && wait->type != FI_WAIT_YIELD)
		ret = sys_sleep(NULL, 0, EARLY_NS);
	else
		ret = udp_wait_sleep(wait->type, wait->epoll, end);
	pthread_cleanup_pop(0);
	return ret;
}

uint64_t udp_wait_end(int timeout)
{
	return timeout < 0 ? UINT64_MAX : platform_now_ns() + (uint64_t)timeout * NS_PER_MS;
}

int udp_wait_control(const struct udp_wait *wait, int command, void *arg)
{
	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = wait->type == FI_WAIT_UNSPEC ? FI_WAIT_FD
									: wait->type;
		return 0;
	}
	if (wait->type == FI_WAIT_NONE || wait->type == FI_WAIT_YIELD)
		return -FI_ENOSYS;
	*(int *)arg = wait->epoll;
	return 0;
}

struct udp_wait *udp_wait_of(struct fid *fid)
{
	return fid->fclass == FI_CLASS_CQ ? &container_of(fid, struct udp_cq, fid.fid)->wait
					  : &container_of(fid, struct udp_cntr, fid.fid)->wait;
}

bool udp_wait_there(struct fid *fid)
{
	return fid->fclass == FI_CLASS_CQ
		       ? cq_reached(&container_of(fid, struct udp_cq, fid.fid)->queue, 1)
		       : udp_cntr_moved(container_of(fid, struct udp_cntr, fid.fid));
}

/* A signal ends the next wait on the set that the queue is in. */
static bool signalled(struct udp_wait *wait)
{
	bool there = wait->type == FI_WAIT_SET && wait->signalled;

	if (there)
		wait->signalled = false;
	return there;
}

int udp_wait_try(struct fid *fid)
{
	struct udp_wait *wait;
	int there;

	if (fid->fclass == FI_CLASS_EQ) {
		there = udp_eq_there(container_of(fid, struct udp_eq, fid.fid));
		return there > 0 ? -FI_EAGAIN : there;
	}
	if (fid->fclass != FI_CLASS_CQ && fid->fclass != FI_CLASS_CNTR)
		return -FI_ENOSYS;
	wait = udp_wait_of(fid);
	if (wait->type == FI_WAIT_NONE)
		return -FI_EINVAL;
	if (!udp_enter(wait->domain))
		return -FI_EOPBADSTATE;
	udp_wait_progress(wait);
	there = udp_wait_there(fid) || udp_wait_room(wait) || signalled(wait);
	if (!there)
		udp_wait_arm(wait);
	udp_leave(wait->domain);
	return there ? -FI_EAGAIN : 0;
}

int udp_trywait(struct fid_fabric *fabric, struct fid **fids, int cnt)
{
	int ret = 0;

	if (cnt && !fids)
		return -FI_EINVAL;
	for (int i = 0; i < cnt && !ret; i++)
		if (!fids[i])
			ret = -FI_EINVAL;
		else if (fids[i]->fclass == FI_CLASS_WAIT)
			ret = udp_set_try(fids[i]);
		else
			ret = udp_wait_try(fids[i]);
	return ret;
}
