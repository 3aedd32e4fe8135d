/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The shm provider: what it offers to fi_getinfo, and its address format: the 64 bytes of
 * struct weft_addr, of which this wire reads the part that names a process. Called by the
 * core on any thread; constant but for the registration.
 */
#include <inttypes.h>
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "conn.h"
#include "engine.h"
#include "info.h"
#include "ns.h"
#include "shm.h"

#define PSHM_TX_CAPS	      (ENGINE_CAPS & ~(FI_RECV | FI_DIRECTED_RECV | FI_SOURCE))
#define PSHM_RX_CAPS	      (ENGINE_CAPS & ~FI_SEND)
#define PSHM_PROTOCOL_VERSION 1u

static int pshm_addr_read(const void *bytes, struct weft_addr *out, char *why, size_t why_len)
{
	struct weft_addr addr;

	memcpy(&addr, bytes, sizeof(addr));
	if (!addr_valid(&addr)) {
		snprintf(why, why_len, "not an address that fi_getname of an endpoint gives");
		return -FI_EINVAL;
	}
	if (addr.kind != ADDR_NONCE || !addr.pid) {
		snprintf(why, why_len, "an address without a process: shm can't lead there");
		return -FI_EINVAL;
	}
	*out = addr;
	return 0;
}

static void pshm_addr_write(const struct weft_addr *addr, void *out)
{
	memcpy(out, addr, sizeof(*addr));
}

static size_t pshm_addr_str(const void *bytes, char *buf, size_t len)
{
	struct weft_addr addr;
	uint64_t nonce;
	int n;

	memcpy(&addr, bytes, sizeof(addr));
	memcpy(&nonce, addr.nonce, sizeof(nonce));
	n = snprintf(buf, len, "shm://%" PRIu32 "/%" PRIu32 "/%016" PRIx64, addr.pid, addr.fd,
		     nonce);
	return n < 0 ? 0 : (size_t)n + 1;
}

static struct fi_provider pshm_provider;

static const struct engine_family pshm_family = {
	.provider = &pshm_provider,
	.wires = { "shm" },
	.addr_format = FI_FORMAT_UNSPEC,
	.addr_len = sizeof(struct weft_addr),
	.addr_read = pshm_addr_read,
	.addr_write = pshm_addr_write,
	.addr_str = pshm_addr_str,
	.msg = &pshm_msg_ops,
	.tagged = &pshm_tagged_ops,
};

static struct fi_tx_attr pshm_tx_attr = {
	.caps = PSHM_TX_CAPS,
	.op_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE,
	.msg_order = FI_ORDER_SAS,
	.inject_size = ENGINE_INJECT_MAX,
	.size = ENGINE_TX_SIZE,
	.iov_limit = ENGINE_IOV_MAX,
};

static struct fi_rx_attr pshm_rx_attr = {
	.caps = PSHM_RX_CAPS,
	.op_flags = FI_COMPLETION,
	.msg_order = FI_ORDER_SAS,
	.size = ENGINE_RX_SIZE,
	.iov_limit = ENGINE_IOV_MAX,
};

static struct fi_ep_attr pshm_ep_attr = {
	.type = FI_EP_RDM,
	.protocol = FI_PROTO_SHM,
	.protocol_version = PSHM_PROTOCOL_VERSION,
	.max_msg_size = SIZE_MAX >> 1,
	.mem_tag_format = UINT64_MAX,
	.tx_ctx_cnt = 1,
	.rx_ctx_cnt = 1,
};

static struct fi_domain_attr pshm_domain_attr = {
	.name = (char *)"shm",
	.threading = FI_THREAD_SAFE,
	.control_progress = FI_PROGRESS_MANUAL,
	.data_progress = FI_PROGRESS_MANUAL,
	.resource_mgmt = FI_RM_ENABLED,
	.av_type = FI_AV_UNSPEC,
	.cq_data_size = sizeof(uint64_t),
	.tx_ctx_cnt = 1,
	.rx_ctx_cnt = 1,
	.max_ep_tx_ctx = 1,
	.max_ep_rx_ctx = 1,
	.caps = FI_LOCAL_COMM,
};

static struct fi_fabric_attr pshm_fabric_attr = {
	.name = (char *)"shm",
	.prov_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
};

static const struct fi_info pshm_offer = {
	.caps = ENGINE_CAPS | FI_LOCAL_COMM,
	.addr_format = FI_FORMAT_UNSPEC,
	.tx_attr = &pshm_tx_attr,
	.rx_attr = &pshm_rx_attr,
	.ep_attr = &pshm_ep_attr,
	.domain_attr = &pshm_domain_attr,
	.fabric_attr = &pshm_fabric_attr,
};

/*
 * Node and service are accepted and lead nowhere: an shm endpoint has no name, its peers learn its
 * address from fi_getname. Programs that exchange those (fi_pingpong) name a host all the same.
 */
static int pshm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			const struct fi_info *hints, struct fi_info **info)
{
	char why[INFO_REASON_MAX];
	struct weft_addr dest;
	uint32_t pid_ns;
	int ret;

	if (hints && hints->src_addr)
		return info_refuse(&pshm_provider,
				   "is asked for a given source; shm endpoints get a new address "
				   "each, from fi_getname");
	if (hints && hints->dest_addr) {
		if (hints->dest_addrlen != sizeof(dest))
			return info_refuse(&pshm_provider,
					   "is given a destination of %zu bytes, its own have %zu",
					   hints->dest_addrlen, sizeof(dest));
		if (pshm_addr_read(hints->dest_addr, &dest, why, sizeof(why)))
			return info_refuse(&pshm_provider, "is given a destination that is none: %s", why);
	}
	if (sys_ns_pid(&pid_ns))
		return info_refuse(&pshm_provider,
				   "finds no /proc, through which endpoints reach each other");
	ret = info_answer(&pshm_provider, &pshm_offer, hints, version, info);
	if (ret || !hints || !hints->dest_addr)
		return ret;
	free((*info)->dest_addr);
	(*info)->dest_addr = malloc(sizeof(dest));
	if (!(*info)->dest_addr) {
		info_free(*info);
		return -FI_ENOMEM;
	}
	memcpy((*info)->dest_addr, &dest, sizeof(dest));
	(*info)->dest_addrlen = sizeof(dest);
	return 0;
}

static int pshm_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return engine_fabric_open(&pshm_family, attr, fabric, context);
}

static void pshm_cleanup(void)
{
}

static struct fi_provider pshm_provider = {
	.version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "shm",
	.getinfo = pshm_getinfo,
	.fabric = pshm_fabric,
	.cleanup = pshm_cleanup,
};

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
	engine_define_params(&pshm_provider);
	return &pshm_provider;
}
