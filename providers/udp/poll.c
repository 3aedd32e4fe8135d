/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The poll set object: completion queues and counters of a domain, looked at together. One that is
 * closed is removed from its sets. Called by programs, on any thread. Source: fi_poll(3).
 */
#include "absent.h"
#include "report.h"

/* A queue or counter of a poll set. */
struct polled {
	/* of the set */
	struct list link;
	/* of the wait's polled */
	struct list place;
	struct fid *fid;
};

struct udp_poll {
	struct fid_poll fid;
	struct udp_domain *domain;
	/* struct polled */
	struct list list;
};

/* Returns true if it has something: a queue, or a counter that changed since it was reported. */
static bool is_there(struct fid *fid)
{
	const struct udp_cntr *cntr;

	if (fid->fclass == FI_CLASS_CQ)
		return udp_wait_there(fid);
	cntr = container_of(fid, struct udp_cntr, fid.fid);
	return cntr->value != cntr->polled_value || cntr->errors != cntr->polled_errors;
}

static int poll_call(struct fid_poll *fid, void **context, int cnt)
{
	struct udp_poll *poll = container_of(fid, struct udp_poll, fid);
	struct polled *polled;
	int found = 0;

	if (cnt < 0 || (cnt && !context))
		return -FI_EINVAL;
	if (!udp_enter(poll->domain))
		return -FI_EOPBADSTATE;
	list_for_each_entry(polled, &poll->list, link) {
		udp_wait_progress(udp_wait_of(polled->fid));
		if (found == cnt || !is_there(polled->fid))
			continue;
		context[found++] = polled->fid->context;
		if (polled->fid->fclass == FI_CLASS_CNTR)
			udp_cntr_polled(container_of(polled->fid, struct udp_cntr, fid.fid));
	}
	udp_leave(poll->domain);
	return found;
}

static struct polled *polled_of(struct udp_poll *poll, const struct fid *fid)
{
	struct polled *polled;

	list_for_each_entry(polled, &poll->list, link)
		if (polled->fid == fid)
			return polled;
	return NULL;
}

/* One that is in the set already stays there once, as in libfabric. */
static int poll_add(struct fid_poll *fid, struct fid *event, uint64_t flags)
{
	struct udp_poll *poll = container_of(fid, struct udp_poll, fid);
	struct polled *polled;

	if (!event || flags || (event->fclass != FI_CLASS_CQ && event->fclass != FI_CLASS_CNTR))
		return udp_refuse(
			FI_LOG_DOMAIN, -FI_EINVAL, "fi_poll_add",
			"a poll set takes completion queues and counters, and no flags");
	if (udp_wait_of(event)->domain != poll->domain)
		return udp_refuse(FI_LOG_DOMAIN, -FI_EINVAL, "fi_poll_add",
				  "an object of another domain");
	polled = platform_alloc(sizeof(*polled));
	if (!polled)
		return -FI_ENOMEM;
	polled->fid = event;
	if (!udp_enter(poll->domain)) {
		platform_free(polled);
		return -FI_EOPBADSTATE;
	}
	if (polled_of(poll, event)) {
		platform_free(polled);
	} else {
		list_add_tail(&poll->list, &polled->link);
		list_add_tail(&udp_wait_of(event)->polled, &polled->place);
	}
	udp_leave(poll->domain);
	return 0;
}

static void drop(struct polled *polled)
{
	list_remove(&polled->link);
	list_remove(&polled->place);
	platform_free(polled);
}

void udp_poll_forget(struct udp_wait *wait)
{
	bool here = udp_enter(wait->domain);

	while (!list_empty(&wait->polled))
		drop(container_of(wait->polled.next, struct polled, place));
	if (here)
		udp_leave(wait->domain);
}

/* One that is not in the set was removed when it was closed, maybe: success, as in libfabric. */
static int poll_del(struct fid_poll *fid, struct fid *event, uint64_t flags)
{
	struct udp_poll *poll = container_of(fid, struct udp_poll, fid);
	struct polled *polled;

	if (!event)
		return -FI_EINVAL;
	if (!udp_enter(poll->domain))
		return -FI_EOPBADSTATE;
	polled = polled_of(poll, event);
	if (polled)
		drop(polled);
	udp_leave(poll->domain);
	return 0;
}

static int poll_close(struct fid *fid)
{
	struct udp_poll *poll = container_of(fid, struct udp_poll, fid.fid);
	bool here = udp_enter(poll->domain);

	while (!list_empty(&poll->list))
		drop(container_of(poll->list.next, struct polled, link));
	if (here)
		udp_leave(poll->domain);
	udp_unref(&poll->domain->refs);
	platform_free(poll);
	return 0;
}

static struct fi_ops poll_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = poll_close,
	.bind = udp_no_bind,
	.control = udp_no_control,
	.ops_open = udp_no_ops_open,
	.tostr = udp_no_tostr,
	.ops_set = udp_no_ops_set,
};

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_call,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

int udp_poll_open(struct fid_domain *fid, struct fi_poll_attr *attr, struct fid_poll **out)
{
	struct udp_domain *domain = container_of(fid, struct udp_domain, fid);
	struct udp_poll *poll;

	if (!out || (attr && attr->flags))
		return udp_refuse(FI_LOG_DOMAIN, out ? -FI_EBADFLAGS : -FI_EINVAL,
				  "fi_poll_open", "NULL where the set is to go, or flags");
	poll = platform_alloc(sizeof(*poll));
	if (!poll)
		return -FI_ENOMEM;
	poll->fid.fid.fclass = FI_CLASS_POLL;
	poll->fid.fid.ops = &poll_fi_ops;
	poll->fid.ops = &poll_ops;
	poll->domain = domain;
	list_init(&poll->list);
	udp_ref(&domain->refs);
	*out = &poll->fid;
	return 0;
}
