/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The link provider: what it offers in fi_getinfo, and its endpoints: those of the engine over the
 * shm and tcp wires. Called by the core, on any thread.
 */
#include <rdma/fi_errno.h>
#include "addr_text.h"
#include "ep_names.h"
#include "info.h"
#include "mem_ops.h"
#include "mr.h"
#include "report.h"
#include "routed.h"
#include "link.h"

const struct info_identity weft_link_identities[] = {
	{ .name = "link",
	  .control = FI_PROGRESS_AUTO,
	  .data = FI_PROGRESS_MANUAL,
	  .protocol = FI_PROTO_UNSPEC,
	  .protocol_version = 1,
	  .ctx_cnt = 1 },
	{ .name = "lnx",
	  .control = FI_PROGRESS_AUTO,
	  .data = FI_PROGRESS_MANUAL,
	  .protocol = FI_PROTO_LNX,
	  .protocol_version = 1,
	  .ctx_cnt = 1 },
	{ 0 },
};

static struct fi_ep_attr link_ep_attr = {
	ENGINE_EP_OFFER,
};

static struct fi_domain_attr link_domain_attr = {
	.name = (char *)"link",
	ENGINE_DOMAIN_OFFER,
	.caps = ENGINE_DOMAIN_CAPS | FI_LOCAL_COMM | FI_REMOTE_COMM,
};

static struct fi_fabric_attr link_fabric_attr = {
	.name = (char *)"link",
};

static const struct fi_info link_offer = {
	.caps = ENGINE_CAPS | ENGINE_DOMAIN_CAPS | FI_LOCAL_COMM | FI_REMOTE_COMM,
	.addr_format = FI_ADDR_STR,
	.tx_attr = &engine_tx_offer,
	.rx_attr = &engine_rx_offer,
	.ep_attr = &link_ep_attr,
	.domain_attr = &link_domain_attr,
	.fabric_attr = &link_fabric_attr,
};

static const struct engine_family link_family = {
	.provider = &link_provider,
	.wires = { "shm", "tcp" },
	.addr_format = FI_ADDR_STR,
	.addr_len = LINK_ADDR_LEN,
	.by_nonce = true,
	.addr_read = link_addr_read,
	.bind_read = link_bind_read,
	.addr_write = link_addr_write,
	.addr_str = link_addr_str,
	.resolve = link_resolve,
	.msg = &engine_routed_msg_ops,
	.tagged = &engine_routed_tagged_ops,
	.ops_open = mem_ops_open,
	.closing = report_routes,
};

/* Replaces an address of an answer. Returns 0 or -FI_ENOMEM. */
static int link_set_addr(void **slot, size_t *slot_len, const struct weft_addr *addr)
{
	char text[LINK_ADDR_LEN];
	size_t len = link_addr_write(addr, text);
	char *copy = malloc(len);

	if (!copy)
		return -FI_ENOMEM;
	memcpy(copy, text, len);
	free(*slot);
	*slot = copy;
	*slot_len = len;
	return 0;
}

/* Reads an address of the hints, @len bytes at @hint, into an answer. */
static int link_hint_addr(const void *hint, size_t len, void **slot, size_t *slot_len,
			  int (*read)(const void *addr, size_t len, struct weft_addr *out,
				      char *why, size_t why_len))
{
	struct weft_addr addr;
	char why[160];

	if (!hint)
		return 0;
	len = engine_name_len(&link_family, hint, len);
	if (!len)
		return info_refuse(&link_provider, "the address is not a string (FI_ADDR_STR)");
	if (read(hint, len, &addr, why, sizeof(why)))
		return info_refuse(&link_provider, "the address is invalid: %s", why);
	return link_set_addr(slot, slot_len, &addr);
}

/*
 * Returns true if @node is an address as a string; with a service it never is. Source:
 * fi_getinfo(3).
 */
static bool link_is_address(const char *node, const char *service, const struct fi_info *hints)
{
	return !service && (!strncmp(node, LINK_PREFIX, sizeof(LINK_PREFIX) - 1) ||
			    (hints && hints->addr_format == FI_ADDR_STR &&
			     addr_text_version(node, strlen(node)) >= 0));
}

/* Copies the addresses of the hints into the answer. Returns 0 or -FI_E*. */
static int link_hint_addrs(struct fi_info *info, const struct fi_info *hints)
{
	int ret = link_hint_addr(hints->src_addr, hints->src_addrlen, &info->src_addr,
				 &info->src_addrlen, link_bind_read);

	return ret ? ret
		   : link_hint_addr(hints->dest_addr, hints->dest_addrlen, &info->dest_addr,
				    &info->dest_addrlen, link_addr_read);
}

/* Resolves node and service into the answer: its own address with FI_SOURCE. Returns 0 or -FI_E*. */
static int link_node_addr(struct fi_info *info, const char *node, const char *service,
			  uint64_t flags, const struct fi_info *hints)
{
	bool source = flags & FI_SOURCE;
	void **slot = source ? &info->src_addr : &info->dest_addr;
	size_t *slot_len = source ? &info->src_addrlen : &info->dest_addrlen;
	struct weft_addr addr;

	if (node && link_is_address(node, service, hints))
		return link_hint_addr(node, SIZE_MAX, slot, slot_len,
				      source ? link_bind_read : link_addr_read);
	if (link_resolve(node, service, flags, &addr))
		return info_refuse(&link_provider, "can't resolve %s%s%s", node ? node : "",
				   service ? " port " : "", service ? service : "");
	return link_set_addr(slot, slot_len, &addr);
}

static int link_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			const struct fi_info *hints, struct fi_info **out)
{
	struct fi_info *info;
	struct weft_addr addr;
	int ret;

	ret = info_answer(&link_provider, &link_offer,
			  info_identity_of(weft_link_identities, hints), hints, version, &info);
	if (ret)
		return ret;
	addr = (struct weft_addr){ .version = ADDR_VERSION, .kind = ADDR_SERVICE };
	ret = link_set_addr(&info->src_addr, &info->src_addrlen,
			    &addr); /* the wires choose the address */
	if (!ret && hints)
		ret = link_hint_addrs(info, hints);
	if (!ret && (node || service))
		ret = link_node_addr(info, node, service, flags, hints);
	if (ret) {
		info_free(info);
		return ret;
	}
	*out = info;
	return 0;
}

static int link_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return engine_fabric_open(&link_family, attr, fabric, context);
}

static void link_cleanup(void)
{
}

struct fi_provider link_provider = {
	.name = "link",
	.version = PROVIDER_VERSION,
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.getinfo = link_getinfo,
	.fabric = link_fabric,
	.cleanup = link_cleanup,
};

struct fi_provider *weft_link_ini(void)
{
	engine_define_params(&link_provider);
	report_define(&link_provider);
	return &link_provider;
}
