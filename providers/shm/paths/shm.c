/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The shm provider: what it offers to fi_getinfo. Called by the core on any thread; constant but
 * for the registration.
 */
#include <rdma/fi_errno.h>
#include "address.h"
#include "conn.h"
#include "engine.h"
#include "ep_names.h"
#include "info.h"
#include "mem_ops.h"
#include "mr.h"
#include "provider.h"
#include "report.h"
#include "service.h"
#include "shm.h"

#define PSHM_PROTOCOL_VERSION 1u

static int pshm_resolve(const char *node, const char *service, uint64_t flags,
			struct weft_addr *out)
{
	if (pshm_service_node(node))
		return -FI_ENODATA;
	return pshm_service_addr(service, out) ? -FI_ENODATA : 0;
}

static const struct engine_family pshm_family = {
	.provider = &pshm_provider,
	.wires = { "shm" },
	.addr_format = FI_ADDR_STR,
	.addr_len = PSHM_ADDR_LEN,
	.addr_read = pshm_addr_read,
	.bind_read = pshm_bind_read,
	.resolve = pshm_resolve,
	.addr_write = pshm_addr_write,
	.addr_str = pshm_addr_str,
	.msg = &pshm_msg_ops,
	.tagged = &pshm_tagged_ops,
	.ops_open = mem_ops_open,
	.closing = report_routes,
};

const struct info_identity weft_shm_identities[] = {
	{ .name = "shm",
	  .control = FI_PROGRESS_AUTO,
	  .data = FI_PROGRESS_MANUAL,
	  .protocol = FI_PROTO_SHM,
	  .protocol_version = PSHM_PROTOCOL_VERSION,
	  .ctx_cnt = 1 },
	{ .name = "sm2",
	  .control = FI_PROGRESS_AUTO,
	  .data = FI_PROGRESS_MANUAL,
	  .protocol = FI_PROTO_SM2,
	  .protocol_version = 1,
	  .ctx_cnt = 1 },
	{ 0 },
};

static struct fi_ep_attr pshm_ep_attr = {
	ENGINE_EP_OFFER,
};

static struct fi_domain_attr pshm_domain_attr = {
	.name = (char *)"shm",
	ENGINE_DOMAIN_OFFER,
	.caps = ENGINE_DOMAIN_CAPS | FI_LOCAL_COMM,
};

static struct fi_fabric_attr pshm_fabric_attr = {
	.name = (char *)"shm",
};

static const struct fi_info pshm_offer = {
	.caps = ENGINE_CAPS | ENGINE_DOMAIN_CAPS | FI_LOCAL_COMM,
	.addr_format = FI_ADDR_STR,
	.tx_attr = &engine_tx_offer,
	.rx_attr = &engine_rx_offer,
	.ep_attr = &pshm_ep_attr,
	.domain_attr = &pshm_domain_attr,
	.fabric_attr = &pshm_fabric_attr,
};

/* Replaces an address of an answer. Returns 0 or -FI_ENOMEM */
static int set_addr(void **slot, size_t *slot_len, const struct weft_addr *addr)
{
	char text[PSHM_ADDR_LEN];
	size_t len = pshm_addr_write(addr, text);
	char *copy = malloc(len);

	if (!copy)
		return -FI_ENOMEM;
	memcpy(copy, text, len);
	free(*slot);
	*slot = copy;
	*slot_len = len;
	return 0;
}

/* An address that the program brings, @len bytes at @hint: 0, or a refusal. */
static int hinted(const void *hint, size_t len,
		  int (*read)(const void *addr, size_t len, struct weft_addr *out, char *why,
			      size_t why_len),
		  struct weft_addr *out)
{
	char why[INFO_REASON_MAX];

	len = engine_name_len(&pshm_family, hint, len);
	if (!len)
		return info_refuse(&pshm_provider, "the address is not a string (FI_ADDR_STR)");
	if (read(hint, len, out, why, sizeof(why)))
		return info_refuse(&pshm_provider, "the address is invalid: %s", why);
	return 0;
}

/* The source and destination addresses that node, service and hints give. */
struct places {
	struct weft_addr src, dest;
	bool has_dest;
};

/* What node and service add to the places. Returns 0 or -FI_E*. */
static int find_named(const char *node, const char *service, bool is_source, bool is_text,
		      struct places *p)
{
	struct weft_addr named;

	if (node && !service && pshm_addr_given(node, is_text)) {
		p->has_dest |= !is_source;
		return is_source ? hinted(node, SIZE_MAX, pshm_bind_read, &p->src)
				 : hinted(node, SIZE_MAX, pshm_addr_read, &p->dest);
	}
	if (pshm_service_node(node))
		return info_refuse(&pshm_provider,
				   "reaches this host only, and '%s' is another one or none",
				   node);
	if (pshm_service_addr(service, &named))
		return info_refuse(
			&pshm_provider,
			"the service '%s' is neither a name nor a port from 1 to 65535",
			service);
	if (is_source) {
		p->src = named;
	} else if (service) {
		p->dest = named;
		p->has_dest = true;
	}
	return 0;
}

static int find_places(const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct places *p)
{
	int ret = 0;

	pshm_service_addr(NULL, &p->src);
	p->has_dest = false;
	if (hints && hints->src_addr)
		ret = hinted(hints->src_addr, hints->src_addrlen, pshm_bind_read, &p->src);
	if (!ret && hints && hints->dest_addr) {
		ret = hinted(hints->dest_addr, hints->dest_addrlen, pshm_addr_read, &p->dest);
		p->has_dest = true;
	}
	if (service && !strcmp(service, "0")) /* port 0: any */
		service = NULL;
	if (ret || (!node && !service))
		return ret;
	return find_named(node, service, flags & FI_SOURCE,
			  hints && hints->addr_format == FI_ADDR_STR, p);
}

static int pshm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			const struct fi_info *hints, struct fi_info **out)
{
	struct fi_info *info;
	struct places p;
	int ret;

	ret = find_places(node, service, flags, hints, &p);
	if (!ret)
		ret = info_answer(&pshm_provider, &pshm_offer,
				  info_identity_of(weft_shm_identities, hints), hints, version,
				  &info);
	if (ret)
		return ret;
	ret = set_addr(&info->src_addr, &info->src_addrlen, &p.src);
	if (!ret && p.has_dest)
		ret = set_addr(&info->dest_addr, &info->dest_addrlen, &p.dest);
	if (ret) {
		info_free(info);
		return ret;
	}
	*out = info;
	return 0;
}

static int pshm_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return engine_fabric_open(&pshm_family, attr, fabric, context);
}

static void pshm_cleanup(void)
{
}

static const struct wire_provider pshm_wire_provider = {
	.size = sizeof(struct wire_provider),
	.version = WIRE_LAYOUT,
	.layout = WIRE_LAYOUT,
	.ops = &pshm_wire_ops,
};

struct fi_provider *weft_shm_ini(void)
{
	if (wire_register(&pshm_wire_provider))
		return NULL;
	pshm_provider.getinfo = pshm_getinfo;
	pshm_provider.fabric = pshm_fabric;
	pshm_provider.cleanup = pshm_cleanup;
	engine_define_params(&pshm_provider);
	report_define(&pshm_provider);
	fi_param_define(
		&pshm_provider, "area_budget", FI_PARAM_SIZE_T,
		"Bytes of shared memory that an endpoint has at most for connections of much payload, each of which "
		"then takes 1 MiB instead of 16 KiB for what it sends (default: 32 MiB)");
	fi_param_define(
		&pshm_provider, "socket_dir", FI_PARAM_STRING,
		"Folder in which endpoints make a socket for containers of this host that share it, and neither "
		"processes nor network (default: none)");
	return &pshm_provider;
}
