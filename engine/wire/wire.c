/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The registered wires, and the check of a hello. Wires are registered while providers are loaded,
 * with the core's lock held.
 */
#include <rdma/fi_errno.h>
#include "wire.h"

#define WIRES_MAX 16u

static const struct wire_provider *wires[WIRES_MAX];
static uint32_t wire_cnt;

int wire_register(const struct wire_provider *wp)
{
	if (wp->size < sizeof(*wp) || wp->layout != WIRE_LAYOUT ||
	    wp->ops->size < sizeof(*wp->ops))
		return -FI_EINVAL;
	for (uint32_t i = 0; i < wire_cnt; i++)
		if (wires[i] == wp)
			return 0;
	if (wire_cnt == WIRES_MAX)
		return -FI_ENOMEM;
	wires[wire_cnt++] = wp;
	return 0;
}

const struct wire_provider *wire_find(const char *name)
{
	for (uint32_t i = 0; i < wire_cnt; i++)
		if (!strcmp(wires[i]->ops->name, name))
			return wires[i];
	return NULL;
}

int hello_data_check(const struct hello_data *data)
{
	return data->len > HELLO_DATA_MAX || data->reserved ? -FI_EINVAL : 0;
}

int hello_check(const struct hello *h)
{
	if (h->magic != HELLO_MAGIC)
		return -FI_EINVAL;
	if (h->version != HELLO_VERSION)
		return -FI_ENOPROTOOPT;
	if (h->rail >= HELLO_RAILS || h->kind > HELLO_MSG || !h->epoch)
		return -FI_EINVAL;
	if (h->addr.kind != ADDR_NONCE || !addr_valid(&h->addr))
		return -FI_EINVAL;
	return hello_data_check(&h->data);
}
