/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What rdma_cm says of the links and requests of kofi_ibverbs (verbs.h): its handlers, on threads of its own, note steps.
 * The thread that holds the endpoint's domain takes them (port.c).
 */
#include <linux/moduleparam.h>
#include <linux/sizes.h>
#include <rdma/ib_cm.h>

#include "accepted.h"
#include "verbs.h"

/* Memory of the machine for each link that may be received, which takes an eighth of that */
#define MEMORY_EACH SZ_4M

static unsigned int accepted_max;
module_param(accepted_max, uint, 0644);
MODULE_PARM_DESC(accepted_max, "Connections that others may have here "
			       "(default: one for each 4 MiB of the machine's memory)");

DEFINE_SPINLOCK(kib_steps_lock);
atomic_t kib_accepted;

static void port_wake(struct kib_port *port)
{
	if (port && port->armed)
		port->wake(port->arg);
}

void kib_link_step(struct kib_link *link, u32 step, int err)
{
	unsigned long flags;

	spin_lock_irqsave(&kib_steps_lock, flags);
	if (!(link->steps & STEP_ENDED) && step == STEP_ENDED)
		link->err = err;
	link->steps |= step;
	if (link->port && list_empty(&link->pending))
		list_add_tail(&link->pending, &link->port->pending);
	port_wake(link->port);
	spin_unlock_irqrestore(&kib_steps_lock, flags);
}

void kib_link_wake(struct kib_link *link)
{
	unsigned long flags;

	spin_lock_irqsave(&kib_steps_lock, flags);
	port_wake(link->port);
	spin_unlock_irqrestore(&kib_steps_lock, flags);
}

/* What the consumer's code of a rejection, and an error of rdma_cm, come to. */
static int rejected(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	u8 len = 0;
	const u8 *data = rdma_consumer_reject_data(id, event, &len);

	/* One that the other side has meant says why it can't be: its greeting. */
	if (data && len && data[0])
		return -FI_ENOPROTOOPT;
	return -FI_ECONNREFUSED;
}

int kib_error(int err)
{
	switch (err) {
	case -ENETUNREACH:
	case -ENODEV:
		return -FI_EHOSTUNREACH;
	default:
		return err;
	}
}

int kib_unresolved(int status)
{
	int err = kib_error(status);

	/* iWARP connects its socket at once. */
	return err == -FI_EHOSTUNREACH || err == -FI_ECONNREFUSED ? err : -FI_ETIMEDOUT;
}

static void greeting_keep(struct kib_link *link, const struct rdma_conn_param *param)
{
	link->greeting_len = min_t(u32, param->private_data_len, sizeof(link->greeting));
	if (link->greeting_len)
		memcpy(link->greeting, param->private_data, link->greeting_len);
}

/* The handler of a link: by rdma_cm's threads, one at a time for each link. */
int kib_link_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kib_link *link = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		kib_link_step(link, STEP_RESOLVED, 0);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		kib_link_step(link, STEP_ROUTED, 0);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		greeting_keep(link, &event->param.conn);
		kib_link_step(link, STEP_READY, 0);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		kib_link_step(link, STEP_ENDED, kib_unresolved(event->status));
		break;
	case RDMA_CM_EVENT_REJECTED:
		kib_link_step(link, STEP_ENDED, rejected(id, event));
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		kib_link_step(link, STEP_ENDED, -FI_ETIMEDOUT);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		kib_link_step(link, STEP_ENDED, -FI_ECONNRESET);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		kib_link_step(link, STEP_ENDED, -FI_ENODEV);
		kib_removed_late(&link->removed);
		break;
	default:
		break;
	}
	return 0;
}

/* Returns true if one more request may wait for the port's owner. */
static bool request_counts(struct kib_port *port)
{
	unsigned long flags;
	bool counts;

	spin_lock_irqsave(&kib_steps_lock, flags);
	counts = !port->closed && port->requests < KIB_REQUESTS_MAX;
	port->requests += counts;
	spin_unlock_irqrestore(&kib_steps_lock, flags);
	return counts;
}

static void request_over(struct kib_port *port)
{
	unsigned long flags;

	spin_lock_irqsave(&kib_steps_lock, flags);
	port->requests--;
	spin_unlock_irqrestore(&kib_steps_lock, flags);
}

/* The handler of a port. One that it returns an error for is ended by rdma_cm. */
int kib_port_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kib_port *port = id->context;
	struct kib_link *link;

	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		kib_removed_late(&port->removed);
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	if (kofi_accepted_full(&kib_accepted, READ_ONCE(accepted_max), MEMORY_EACH) ||
	    !request_counts(port))
		return -ENOBUFS;
	link = kib_link_new(port);
	if (!link) {
		request_over(port);
		return -ENOMEM;
	}
	link->accepted = true;
	atomic_inc(&kib_accepted);
	link->id = id;
	id->context = link;
	id->event_handler = kib_link_event;
	greeting_keep(link, &event->param.conn);
	kib_link_step(link, STEP_REQUEST, 0);
	return 0;
}
