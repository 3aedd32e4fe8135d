/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The registered wires, and the check of a hello. Wires are registered while providers are loaded,
 * with the core's lock held; modules are also unloaded.
 */
#include <rdma/fi_errno.h>
#include "wire.h"

#define WIRES_MAX 16u

/*
 * Where a wire is registered. A place has one name for good, so that it is read while a wire of another name comes
 * or goes: who looks for a name touches no wire but its own.
 */
static struct {
	/* empty: not taken yet */
	char name[WIRE_NAME_MAX];
	/* NULL: not registered */
	const struct wire_provider *_Atomic wire;
} places[WIRES_MAX];

/* Returns the place of a wire, one that is free for it, or WIRES_MAX. */
static uint32_t place_for(const struct wire_provider *wp)
{
	uint32_t place = WIRES_MAX;

	for (uint32_t i = 0; i < WIRES_MAX; i++) {
		const struct wire_provider *there = atomic_load_explicit(&places[i].wire,
									 memory_order_relaxed);

		if (there == wp)
			return i;
		if (!there && place == WIRES_MAX &&
		    (!places[i].name[0] || !strcmp(places[i].name, wp->ops->name)))
			place = i;
	}
	return place;
}

int wire_register(const struct wire_provider *wp)
{
	uint32_t place;
	size_t len;

	if (wp->size < sizeof(*wp) || wp->layout != WIRE_LAYOUT ||
	    wp->ops->size < sizeof(*wp->ops))
		return -FI_EINVAL;
	len = strlen(wp->ops->name);
	if (!len || len >= WIRE_NAME_MAX)
		return -FI_EINVAL;
	place = place_for(wp);
	if (place == WIRES_MAX)
		return -FI_ENOMEM;
	if (!places[place].name[0])
		memcpy(places[place].name, wp->ops->name, len);
	/* R:places.wire  the name, and what the wire points to; pairs A:places.wire */
	atomic_store_explicit(&places[place].wire, wp, memory_order_release);
	return 0;
}

void wire_unregister(const struct wire_provider *wp)
{
	for (uint32_t i = 0; i < WIRES_MAX; i++)
		if (atomic_load_explicit(&places[i].wire, memory_order_relaxed) == wp)
			atomic_store_explicit(&places[i].wire, NULL, memory_order_relaxed);
}

const struct wire_provider *wire_find(const char *name)
{
	for (uint32_t i = 0; i < WIRES_MAX; i++) {
		/* A:places.wire  the name, and what the wire points to; pairs R:places.wire */
		const struct wire_provider *wp = atomic_load_explicit(&places[i].wire,
								      memory_order_acquire);

		if (wp && !strcmp(places[i].name, name))
			return wp;
	}
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
