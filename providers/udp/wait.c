/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Progress and sleeping for completion queues and counters. Called by these, on any thread. */
#include <sys/epoll.h>
#include <unistd.h>
#include "endpoint.h"
#include "epoll.h"
#include "event.h"
#include "report.h"

#define NS_PER_MS 1000000u
/* A sleep that nothing ends looks again: the kernel reports no end of an interface. */
#define SLEEP_MAX_NS 1000000000u

int udp_wait_type(enum fi_wait_obj type)
{
	switch (type) {
	case FI_WAIT_NONE:
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
	case FI_WAIT_YIELD:
		return 0;
	default:
		return udp_refuse(FI_LOG_CQ, -FI_ENOSYS, "opening a queue or counter",
				  "wait objects are FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD and "
				  "FI_WAIT_YIELD");
	}
}

int udp_wait_open(struct udp_wait *wait, struct udp_domain *domain, enum fi_wait_obj type)
{
	int err;

	list_init(&wait->links);
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
		close(wait->epoll);
	wait->epoll = wait->bell = -1;
}

void udp_wait_link(struct udp_wait *wait, struct udp_ep *ep, struct udp_link *link)
{
	struct udp_link *other;

	list_for_each_entry(other, &wait->links, link)
		if (other->ep == ep)
			return;
	link->ep = ep;
	link->wait = wait;
	list_add_tail(&wait->links, &link->link);
}

void udp_wait_unlink(struct udp_link *link)
{
	if (!link->wait)
		return;
	list_remove(&link->link);
	link->wait = NULL;
}

void udp_wait_progress(struct udp_wait *wait)
{
	struct udp_link *link;

	list_for_each_entry(link, &wait->links, link)
		udp_ep_progress(link->ep);
}

void udp_wait_arm(struct udp_wait *wait)
{
	struct udp_link *link;

	if (wait->rung)
		sys_eventfd_clear(wait->bell);
	wait->rung = false;
	wait->armed = true;
	list_for_each_entry(link, &wait->links, link)
		udp_ep_arm(link->ep);
}

void udp_wait_sleep(const struct udp_wait *wait, uint64_t end)
{
	uint64_t now = platform_now_ns(), ns = end > now ? end - now : 0;

	if (wait->type == FI_WAIT_YIELD)
		platform_yield();
	else if (ns)
		sys_sleep(&wait->epoll, 1, ns < SLEEP_MAX_NS ? ns : SLEEP_MAX_NS);
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
	if (wait->type != FI_WAIT_FD && wait->type != FI_WAIT_UNSPEC)
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

/*
 * Returns 0 if a program may sleep: nothing is there, and what comes makes the descriptor readable.
 * -FI_EAGAIN: something is there; another -FI_E*: it is nothing to sleep on.
 */
static int try_one(struct fid *fid)
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
	if (wait->epoll < 0)
		return -FI_EINVAL;
	if (!udp_enter(wait->domain))
		return -FI_EOPBADSTATE;
	udp_wait_progress(wait);
	there = udp_wait_there(fid);
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
		ret = fids[i] ? try_one(fids[i]) : -FI_EINVAL;
	return ret;
}
