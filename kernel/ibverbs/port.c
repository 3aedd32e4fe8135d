/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ports of kofi_ibverbs, and the links that begin at them (link.h). Steps that handlers have noted (events.c) are taken in
 * their order by the thread that holds the endpoint's domain.
 */
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>

#include "verbs.h"

#define RESOLVE_MS 2000
#define BACKLOG	   64
/* Of what a peer does not acknowledge: 7 are without end to rdma_rxe. Of what it has no receive for: its own doing */
#define RETRIES 6
#define FOREVER 7

/* Ports */

static int port_listen(struct kib_port *port)
{
	struct rdma_cm_id *id = rdma_create_id(&init_net, kib_port_event, port, RDMA_PS_TCP,
					       IB_QPT_RC);
	int ret;

	if (IS_ERR(id))
		return PTR_ERR(id);
	ret = rdma_bind_addr(id, (struct sockaddr *)&port->at);
	if (!ret)
		ret = rdma_listen(id, BACKLOG);
	if (ret) {
		rdma_destroy_id(id);
		return ret == -ENODEV ? -FI_EADDRNOTAVAIL : ret;
	}
	port->id = id;
	port->at = id->route.addr.src_addr;
	return 0;
}

int kib_port_open(const struct kib_address *at, bool listens, void (*wake)(void *arg),
		  void *arg, struct kib_port **out, struct kib_address *where)
{
	struct kib_port *port;
	int ret = 0;

	if (at->family != AF_INET && at->family != AF_INET6)
		return -FI_EINVAL;
	port = kzalloc(sizeof(*port), GFP_KERNEL);
	if (!port)
		return -FI_ENOMEM;
	mutex_init(&port->lock);
	INIT_LIST_HEAD(&port->links);
	INIT_LIST_HEAD(&port->pending);
	port->wake = wake;
	port->arg = arg;
	kib_address_put(&port->at, at);
	/* Who removes the device that it is bound to finds it in the list. */
	mutex_lock(&kib_devices_lock);
	if (listens)
		ret = port_listen(port);
	if (!ret)
		list_add_tail(&port->link, &kib_ports);
	mutex_unlock(&kib_devices_lock);
	if (ret) {
		kfree(port);
		return ret;
	}
	kib_address_get(where, &port->at);
	*out = port;
	return 0;
}

void kib_port_strip(struct kib_port *port)
{
	struct rdma_cm_id *id = port->id;

	port->id = NULL;
	if (id)
		rdma_destroy_id(id);
}

static struct kib_link *port_take(struct kib_port *port)
{
	struct kib_link *link;
	unsigned long flags;

	spin_lock_irqsave(&kib_steps_lock, flags);
	link = list_first_entry_or_null(&port->pending, struct kib_link, pending);
	spin_unlock_irqrestore(&kib_steps_lock, flags);
	return link;
}

void kib_port_close(struct kib_port *port)
{
	struct kib_link *link;
	unsigned long flags;

	spin_lock_irqsave(&kib_steps_lock, flags);
	port->closed = true;
	port->armed = false;
	spin_unlock_irqrestore(&kib_steps_lock, flags);
	mutex_lock(&kib_devices_lock);
	list_del(&port->link);
	mutex_unlock(&kib_devices_lock);
	mutex_lock(&port->lock);
	kib_port_strip(port);
	mutex_unlock(&port->lock);
	while ((link = port_take(port)))
		kib_link_free(link);
	mutex_destroy(&port->lock);
	kfree(port);
}

/* Links that begin */

int kib_link_dial(struct kib_port *port, const struct kib_address *to, const void *greeting,
		  uint32_t greeting_len, struct kib_link **out)
{
	struct sockaddr_storage from = port->at, dest;
	struct kib_link *link = kib_link_new(port);
	struct rdma_cm_id *id;
	int ret;

	if (!link)
		return -FI_EAGAIN;
	memcpy(link->mine_greeting, greeting, greeting_len);
	link->mine_greeting_len = greeting_len;
	id = rdma_create_id(&init_net, kib_link_event, link, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		kib_link_free(link);
		return -FI_EAGAIN;
	}
	mutex_lock(&link->lock);
	link->id = id;
	/* The port is of those that listen. */
	((struct sockaddr_in6 *)&from)->sin6_port = 0;
	kib_address_put(&dest, to);
	ret = rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&dest,
				RESOLVE_MS);
	mutex_unlock(&link->lock);
	if (ret) {
		kib_link_free(link);
		return kib_unresolved(ret);
	}
	list_add_tail(&link->mine, &port->links);
	*out = link;
	return 0;
}

/* With link.lock. */
static int link_connect(struct kib_link *link)
{
	struct rdma_conn_param param = {
		.private_data = link->mine_greeting,
		.private_data_len = link->mine_greeting_len,
		.retry_count = RETRIES,
		.rnr_retry_count = FOREVER,
	};
	int ret = kib_link_equip(link);

	return ret ? ret : rdma_connect(link->id, &param);
}

/* The next step of connecting, which no one else is told. With link.lock. */
static int link_go_on(struct kib_link *link, u32 step)
{
	if (!link->id)
		return -FI_ENODEV;
	if (step == STEP_RESOLVED)
		return rdma_resolve_route(link->id, RESOLVE_MS);
	return link_connect(link);
}

int kib_link_accept(struct kib_link *link, const void *greeting, uint32_t greeting_len)
{
	struct rdma_conn_param param = {
		.private_data = greeting,
		.private_data_len = greeting_len,
		.retry_count = RETRIES,
		.rnr_retry_count = FOREVER,
	};
	int ret = -FI_ENODEV;

	mutex_lock(&link->lock);
	if (link->id)
		ret = kib_link_equip(link);
	if (!ret) {
		rdma_lock_handler(link->id);
		ret = rdma_accept(link->id, &param);
		rdma_unlock_handler(link->id);
	}
	mutex_unlock(&link->lock);
	return kib_error(ret);
}

void kib_link_reject(struct kib_link *link, const void *greeting, uint32_t greeting_len)
{
	mutex_lock(&link->lock);
	if (link->id)
		rdma_reject(link->id, greeting, greeting_len, IB_CM_REJ_CONSUMER_DEFINED);
	mutex_unlock(&link->lock);
}

/* What is next of a link. Returns false if there is nothing. */
static bool step_take(struct kib_port *port, struct kib_link **out, u32 *step)
{
	struct kib_link *link;
	unsigned long flags;

	spin_lock_irqsave(&kib_steps_lock, flags);
	link = list_first_entry_or_null(&port->pending, struct kib_link, pending);
	if (link) {
		*step = link->steps & -link->steps;
		link->steps &= ~*step;
		if (!link->steps || *step == STEP_ENDED)
			list_del_init(&link->pending);
		if (*step == STEP_REQUEST)
			port->requests--;
	}
	spin_unlock_irqrestore(&kib_steps_lock, flags);
	*out = link;
	return link;
}

static void event_fill(struct kib_event *event, struct kib_link *link, enum kib_step step,
		       int err)
{
	event->link = link;
	event->step = step;
	event->err = err;
	event->greeting_len = link->greeting_len;
	memcpy(event->greeting, link->greeting, link->greeting_len);
}

bool kib_port_next(struct kib_port *port, struct kib_event *event)
{
	struct kib_link *link;
	u32 step;
	int ret;

	while (step_take(port, &link, &step)) {
		if (step == STEP_REQUEST) {
			list_add_tail(&link->mine, &port->links);
			event_fill(event, link, KIB_REQUEST, 0);
			return true;
		}
		if (step == STEP_READY || step == STEP_ENDED) {
			event_fill(event, link, step == STEP_READY ? KIB_READY : KIB_ENDED,
				   link->err);
			return true;
		}
		mutex_lock(&link->lock);
		ret = link_go_on(link, step);
		mutex_unlock(&link->lock);
		if (ret)
			kib_link_step(link, STEP_ENDED, kib_unresolved(ret));
	}
	return false;
}

/* Returns false if what comes to the link would not wake, since it is there already. */
static bool link_arm(struct kib_link *link)
{
	bool armed = true;

	mutex_lock(&link->lock);
	if (link->cq)
		armed = ib_req_notify_cq(link->cq,
					 IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) <= 0;
	mutex_unlock(&link->lock);
	return armed;
}

bool kib_port_arm(struct kib_port *port)
{
	struct kib_link *link;
	unsigned long flags;
	bool armed = true;

	spin_lock_irqsave(&kib_steps_lock, flags);
	port->armed = true;
	armed = list_empty(&port->pending);
	spin_unlock_irqrestore(&kib_steps_lock, flags);
	list_for_each_entry(link, &port->links, mine)
		armed = armed && link_arm(link);
	if (!armed)
		kib_port_disarm(port);
	return armed;
}

void kib_port_disarm(struct kib_port *port)
{
	unsigned long flags;

	spin_lock_irqsave(&kib_steps_lock, flags);
	port->armed = false;
	spin_unlock_irqrestore(&kib_steps_lock, flags);
}

void kib_link_part(struct kib_link *link)
{
	unsigned long flags;

	list_del_init(&link->mine);
	spin_lock_irqsave(&kib_steps_lock, flags);
	if (link->port && link->steps & STEP_REQUEST)
		link->port->requests--;
	list_del_init(&link->pending);
	link->port = NULL;
	spin_unlock_irqrestore(&kib_steps_lock, flags);
}

void kib_link_join(struct kib_link *link, struct kib_port *port)
{
	unsigned long flags;

	list_add_tail(&link->mine, &port->links);
	spin_lock_irqsave(&kib_steps_lock, flags);
	link->port = port;
	if (link->steps)
		list_add_tail(&link->pending, &port->pending);
	spin_unlock_irqrestore(&kib_steps_lock, flags);
}

int kib_link_names(struct kib_link *link, struct kib_address *local, struct kib_address *remote)
{
	int ret = -FI_ENOTCONN;

	mutex_lock(&link->lock);
	if (link->id) {
		kib_address_get(local, &link->id->route.addr.src_addr);
		kib_address_get(remote, &link->id->route.addr.dst_addr);
		ret = 0;
	}
	mutex_unlock(&link->lock);
	return ret;
}
