/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Devices that are removed, of kofi_ibverbs (verbs.h): one takes its links and ports with it at once, whoever holds what.
 * Their owners are told. rdma_cm leaves a device later than this module: what has found the device in between is
 * named by an event, and goes on a thread of its own, since rdma_cm waits for it.
 */
#include <linux/workqueue.h>

#include "verbs.h"

DEFINE_MUTEX(kib_devices_lock);
LIST_HEAD(kib_ports);
LIST_HEAD(kib_links);

/* A link that this removal has not looked at, with a reference, or NULL. */
static struct kib_link *link_next(u32 removal)
{
	struct kib_link *link, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&kib_steps_lock, flags);
	list_for_each_entry(link, &kib_links, link)
		if (link->removal != removal) {
			link->removal = removal;
			refcount_inc(&link->refs);
			found = link;
			break;
		}
	spin_unlock_irqrestore(&kib_steps_lock, flags);
	return found;
}

/* Whether an object goes with @device, or with any that rdma_cm has left, which has @removed set. */
static bool goes(const struct rdma_cm_id *id, bool removed, const struct ib_device *device)
{
	return id && (removed || (device && id->device == device));
}

static void strip_all(const struct ib_device *device)
{
	static u32 removals;
	struct kib_link *link;
	struct kib_port *port;

	mutex_lock(&kib_devices_lock);
	removals++;
	while ((link = link_next(removals))) {
		mutex_lock(&link->lock);
		if (goes(link->id, READ_ONCE(link->removed), device)) {
			kib_link_strip(link);
			kib_link_step(link, STEP_ENDED, -FI_ENODEV);
		}
		mutex_unlock(&link->lock);
		kib_link_put(link);
	}
	list_for_each_entry(port, &kib_ports, link) {
		mutex_lock(&port->lock);
		if (goes(port->id, READ_ONCE(port->removed), device))
			kib_port_strip(port);
		mutex_unlock(&port->lock);
	}
	mutex_unlock(&kib_devices_lock);
}

static void device_removed(struct ib_device *device, void *data)
{
	strip_all(device);
}

static void late_strip(struct work_struct *work)
{
	strip_all(NULL);
}

static DECLARE_WORK(late_work, late_strip);

void kib_removed_late(bool *removed)
{
	WRITE_ONCE(*removed, true);
	schedule_work(&late_work);
}

static int device_added(struct ib_device *device)
{
	return 0;
}

static struct ib_client client = {
	.name = "kofi_ibverbs",
	.add = device_added,
	.remove = device_removed,
};

int kib_begin(void)
{
	return ib_register_client(&client);
}

void kib_end(void)
{
	ib_unregister_client(&client);
	/* There is no id any more whose event begins it again. */
	cancel_work_sync(&late_work);
}
