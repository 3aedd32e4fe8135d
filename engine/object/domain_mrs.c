/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory regions of a domain: their key table, which peers read if a wire of the family can
 * show it. Called with the domain held, or before other threads can use the domain.
 */
#include <rdma/fi_errno.h>
#include "mr_fid.h"
#include "registrar.h"

void engine_mrs_notify(struct engine_domain *domain)
{
	struct mr_table *table = &domain->mr->table;

	if (domain->mr->remote_events)
		return;
	engine_registrar_out(domain);
	domain->mr->remote_events = true;
	for (uint32_t i = mr_next(table, 0); i; i = mr_next(table, i))
		mr_set_notify(table, i);
}

bool engine_mr_bound(const struct engine_domain *domain, const struct engine_ep *ep)
{
	const struct engine_mr *mr;

	list_for_each_entry(mr, &domain->mr->bound, ep_link)
		if (mr->ep == ep)
			return true;
	return false;
}

/* Shows the table over the first wire of the family that can. Returns false if there is none. */
static bool engine_mrs_show(struct engine_mrs *mrs, const struct engine_family *family,
			    struct mr_memory *memory)
{
	for (uint32_t i = 0; i < ENGINE_WIRE_MAX - 1 && family->wires[i]; i++) {
		const struct wire_provider *wp = wire_find(family->wires[i]);

		if (!wp || !wp->ops->share_open ||
		    wp->ops->share_open(&mrs->share, memory, &mrs->cnt))
			continue;
		mrs->shows = wp->ops;
		return true;
	}
	return false;
}

/* Opens the devices of the family's wires that pin. */
static void engine_mrs_devices_open(struct engine_mrs *mrs, const struct engine_family *family)
{
	for (uint32_t i = 0; i < ENGINE_WIRE_MAX - 1 && family->wires[i]; i++) {
		const struct wire_provider *wp = wire_find(family->wires[i]);
		const struct mr_ops *ops = wp ? wp->ops->mr : NULL;

		if (!ops || ops->open(&mrs->devices[mrs->device_cnt].device))
			continue;
		mrs->devices[mrs->device_cnt++].ops = ops;
	}
}

int engine_mrs_open(struct engine_domain *domain, int mr_mode)
{
	struct engine_mrs *mrs = platform_alloc(sizeof(*mrs));
	struct mr_memory memory;
	bool shown;

	if (!mrs)
		return -FI_ENOMEM;
	if (mr_mode & FI_MR_BASIC)
		mr_mode |= FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	mrs->mode = mr_mode;
	shown = engine_mrs_show(mrs, domain->family, &memory);
	mr_init(&mrs->table, mr_mode & FI_MR_PROV_KEY ? MR_KEYS_ISSUED : MR_KEYS_GIVEN,
		shown ? &memory : NULL);
	engine_mrs_devices_open(mrs, domain->family);
	pool_init(&mrs->pool,
		  sizeof(struct engine_mr) +
			  mrs->device_cnt * MR_IOV_MAX * sizeof(struct mr_pin),
		  0);
	list_init(&mrs->bound);
	domain->mr = mrs;
	return 0;
}

void engine_mrs_close(struct engine_domain *domain)
{
	struct engine_mrs *mrs = domain->mr;

	mr_fini(&mrs->table);
	pool_fini(&mrs->pool);
	while (mrs->device_cnt--)
		mrs->devices[mrs->device_cnt].ops->close(mrs->devices[mrs->device_cnt].device);
	if (mrs->share)
		mrs->shows->share_close(mrs->share);
	platform_free(mrs);
}
