/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The wait set object: an epoll descriptor with those of its queues and counters. To wait on it
 * looks at each of them, which arms those that have nothing, and sleeps. Called by programs, on any
 * thread. Source: fi_poll(3).
 */
#include <rdma/fi_eq.h>
#include <sys/epoll.h>
#include "absent.h"
#include "descriptor.h"
#include "epoll.h"
#include "wait.h"
#include "wait_set.h"

struct udp_wait_set {
	struct fid_wait fid;
	struct udp_fabric *fabric;
	enum fi_wait_obj type;
	int epoll;
	/* Protects members; rank before a domain's */
	struct platform_lock lock;
	/* struct udp_member */
	struct list members;
};

static struct udp_wait_set *set_of(struct fid *fid)
{
	return container_of(fid, struct udp_wait_set, fid.fid);
}

/* Returns false in the child of a fork, which leaves locks and epolls alone. */
static bool set_here(const struct udp_wait_set *set)
{
	return platform_forks() == set->fabric->forks;
}

int udp_set_join(struct udp_member *member, struct fid *object, struct fid_wait *fid,
		 const struct udp_fabric *fabric, int descriptor)
{
	struct udp_wait_set *set = fid ? set_of(&fid->fid) : NULL;
	int ret;

	if (!set || fid->fid.fclass != FI_CLASS_WAIT || set->fabric != fabric)
		return udp_refuse(FI_LOG_CQ, -FI_EINVAL, "opening a queue or counter",
				  "FI_WAIT_SET, and wait_set is not one of the same fabric");
	if (!set_here(set))
		return -FI_EOPBADSTATE;
	platform_lock(&set->lock);
	ret = sys_epoll_add(set->epoll, descriptor, EPOLLIN);
	if (!ret) {
		member->set = set;
		member->object = object;
		list_add_tail(&set->members, &member->link);
	}
	platform_unlock(&set->lock);
	return ret;
}

void udp_set_leave(struct udp_member *member, int descriptor)
{
	struct udp_wait_set *set = member->set;
	bool here = set && set_here(set);

	if (!set)
		return;
	if (here)
		platform_lock(&set->lock);
	list_remove(&member->link);
	member->set = NULL;
	if (!here)
		return;
	sys_epoll_remove(set->epoll, descriptor);
	platform_unlock(&set->lock);
}

int udp_set_try(struct fid *fid)
{
	struct udp_wait_set *set = set_of(fid);
	struct udp_member *member;
	int ret = 0;

	if (!set_here(set))
		return -FI_EOPBADSTATE;
	platform_lock(&set->lock);
	list_for_each_entry(member, &set->members, link) {
		ret = udp_wait_try(member->object);
		if (ret)
			break;
	}
	platform_unlock(&set->lock);
	return ret;
}

static int set_wait(struct fid_wait *fid, int timeout)
{
	struct udp_wait_set *set = set_of(&fid->fid);
	uint64_t end = udp_wait_end(timeout);
	int ret, interrupted = 0;

	while (!(ret = udp_set_try(&fid->fid))) {
		if (interrupted)
			return interrupted;
		if (end != UINT64_MAX && platform_now_ns() >= end)
			return -FI_ETIMEDOUT;
		interrupted = udp_wait_sleep(set->type, set->epoll, end);
	}
	return ret == -FI_EAGAIN ? 0 : ret;
}

static int set_control(struct fid *fid, int command, void *arg)
{
	struct udp_wait_set *set = set_of(fid);

	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAITOBJ)
		*(enum fi_wait_obj *)arg = set->type == FI_WAIT_UNSPEC ? FI_WAIT_FD : set->type;
	else if (set->type == FI_WAIT_YIELD)
		return -FI_ENOSYS;
	else
		*(int *)arg = set->epoll;
	return 0;
}

static int set_close(struct fid *fid)
{
	struct udp_wait_set *set = set_of(fid);

	if (!list_empty(&set->members))
		return udp_refuse(FI_LOG_FABRIC, -FI_EBUSY, "fi_close of a wait set",
				  "queues or counters are in it; close those first");
	if (set_here(set))
		platform_lock_fini(&set->lock);
	sys_descriptor_close(set->epoll);
	udp_unref(&set->fabric->refs);
	platform_free(set);
	return 0;
}

static struct fi_ops set_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = set_close,
	.bind = udp_no_bind,
	.control = set_control,
	.ops_open = udp_no_ops_open,
	.tostr = udp_no_tostr,
	.ops_set = udp_no_ops_set,
};

static struct fi_ops_wait set_ops = {
	.size = sizeof(struct fi_ops_wait),
	.wait = set_wait,
};

int udp_wait_set_open(struct fid_fabric *fid, struct fi_wait_attr *attr, struct fid_wait **out)
{
	struct udp_fabric *fabric = container_of(fid, struct udp_fabric, fid);
	struct udp_wait_set *set;
	int epoll;

	if (!attr || !out || attr->flags)
		return udp_refuse(FI_LOG_FABRIC, attr && out ? -FI_EBADFLAGS : -FI_EINVAL,
				  "fi_wait_open",
				  "NULL for the attributes or where the set is to go, or flags");
	if (attr->wait_obj != FI_WAIT_UNSPEC && attr->wait_obj != FI_WAIT_FD &&
	    attr->wait_obj != FI_WAIT_YIELD)
		return udp_refuse(
			FI_LOG_FABRIC, -FI_ENOSYS, "fi_wait_open",
			"wait objects are FI_WAIT_UNSPEC, FI_WAIT_FD and FI_WAIT_YIELD");
	epoll = sys_epoll_open();
	if (epoll < 0)
		return epoll;
	set = platform_alloc(sizeof(*set));
	if (!set) {
		sys_descriptor_close(epoll);
		return -FI_ENOMEM;
	}
	set->fid.fid.fclass = FI_CLASS_WAIT;
	set->fid.fid.ops = &set_fi_ops;
	set->fid.ops = &set_ops;
	set->fabric = fabric;
	set->type = attr->wait_obj;
	set->epoll = epoll;
	list_init(&set->members);
	platform_lock_init(&set->lock);
	udp_ref(&fabric->refs);
	*out = &set->fid;
	return 0;
}
