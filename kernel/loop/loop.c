/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider kofi_loop: endpoints of one machine's kernel. What it offers, and how its addresses look. Process
 * context; no state.
 */
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "engine.h"
#include "info.h"
#include "kofi_loop.h"
#include "mr.h"
#include "routed.h"

static struct fi_provider loop_provider = {
	.version = FI_VERSION(1, 0),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "loop",
};

static int loop_addr_read(const void *addr, size_t len, struct weft_addr *out, char *why,
			  size_t why_len)
{
	if (!addr_valid(addr)) {
		snprintf(why, why_len, "not an address from fi_getname of an endpoint");
		return -FI_EINVAL;
	}
	memcpy(out, addr, sizeof(*out));
	return 0;
}

static size_t loop_addr_write(const struct weft_addr *addr, void *out)
{
	memcpy(out, addr, sizeof(*addr));
	return sizeof(*addr);
}

static size_t loop_addr_str(const void *addr, size_t len, char *buf, size_t buf_len)
{
	uint64_t nonce;

	memcpy(&nonce, (const char *)addr + offsetof(struct weft_addr, nonce), sizeof(nonce));
	return (size_t)snprintf(buf, buf_len, "loop://%016llx", (unsigned long long)nonce) + 1;
}

static int loop_resolve(const char *node, const char *service, uint64_t flags,
			struct weft_addr *out)
{
	return -FI_ENODATA;
}

static const struct engine_family loop_family = {
	.provider = &loop_provider,
	.wires = { "loop" },
	.addr_len = sizeof(struct weft_addr),
	.by_nonce = true,
	.closes_last = true,
	.addr_read = loop_addr_read,
	.addr_write = loop_addr_write,
	.addr_str = loop_addr_str,
	.resolve = loop_resolve,
	.msg = &engine_routed_msg_ops,
	.tagged = &engine_routed_tagged_ops,
};

static const struct fi_info loop_offer = {
	.caps = ENGINE_KERNEL_CAPS | ENGINE_DOMAIN_CAPS | FI_LOCAL_COMM,
	.tx_attr = &engine_tx_offer,
	.rx_attr = &engine_rx_offer,
	.ep_attr = &(struct fi_ep_attr){ ENGINE_EP_OFFER },
	.domain_attr = &(struct fi_domain_attr){ ENGINE_DOMAIN_OFFER, .name = (char *)"loop",
						 .caps = ENGINE_DOMAIN_CAPS | FI_LOCAL_COMM },
	.fabric_attr = &(struct fi_fabric_attr){ .name = (char *)"loop" },
};

int kofi_loop_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info)
{
	if (node || service)
		return info_refuse(&loop_provider, "has no names for endpoints");
	return info_answer(&loop_provider, &loop_offer, NULL, hints, version, info);
}

void kofi_loop_freeinfo(struct fi_info *info)
{
	info_free(info);
}

int kofi_loop_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return engine_fabric_open(&loop_family, attr, fabric, context);
}
