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

#define SHM_TX_CAPS (FI_MSG | FI_TAGGED | FI_SEND)
#define SHM_RX_CAPS (FI_MSG | FI_TAGGED | FI_RECV | FI_DIRECTED_RECV | FI_SOURCE)
#define SHM_PROTOCOL_VERSION 1u

_Static_assert((SHM_TX_CAPS | SHM_RX_CAPS) == ENGINE_CAPS, "all that the engine can");

static int shm_addr_read(const void *bytes, struct weft_addr *out, char *why, size_t why_len)
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

static void shm_addr_write(const struct weft_addr *addr, void *out)
{
	memcpy(out, addr, sizeof(*addr));
}

static size_t shm_addr_str(const void *bytes, char *buf, size_t len)
{
	struct weft_addr addr;
	uint64_t nonce;
	int n;

	memcpy(&addr, bytes, sizeof(addr));
	memcpy(&nonce, addr.nonce, sizeof(nonce));
	n = snprintf(buf, len, "shm://%" PRIu32 "/%" PRIu32 "/%016" PRIx64, addr.pid, addr.fd, nonce);
	return n < 0 ? 0 : (size_t)n + 1;
}

static struct fi_provider shm_provider;

static const struct engine_family shm_family = {
	.provider = &shm_provider,
	.wires = { "shm" },
	.addr_format = FI_FORMAT_UNSPEC,
	.addr_len = sizeof(struct weft_addr),
	.addr_read = shm_addr_read,
	.addr_write = shm_addr_write,
	.addr_str = shm_addr_str,
	.msg = &shm_msg_ops,
	.tagged = &shm_tagged_ops,
};

static struct fi_tx_attr shm_tx_attr = {
	.caps = SHM_TX_CAPS,
	.op_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE,
	.msg_order = FI_ORDER_SAS,
	.inject_size = ENGINE_INJECT_MAX,
	.size = ENGINE_TX_SIZE,
	.iov_limit = ENGINE_IOV_MAX,
};

static struct fi_rx_attr shm_rx_attr = {
	.caps = SHM_RX_CAPS,
	.op_flags = FI_COMPLETION,
	.msg_order = FI_ORDER_SAS,
	.size = ENGINE_RX_SIZE,
	.iov_limit = ENGINE_IOV_MAX,
};

static struct fi_ep_attr shm_ep_attr = {
	.type = FI_EP_RDM,
	.protocol = FI_PROTO_SHM,
	.protocol_version = SHM_PROTOCOL_VERSION,
	.max_msg_size = SIZE_MAX >> 1,
	.mem_tag_format = UINT64_MAX,
	.tx_ctx_cnt = 1,
	.rx_ctx_cnt = 1,
};

static struct fi_domain_attr shm_domain_attr = {
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

static struct fi_fabric_attr shm_fabric_attr = {
	.name = (char *)"shm",
	.prov_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
};

static const struct fi_info shm_offer = {
	.caps = ENGINE_CAPS | FI_LOCAL_COMM,
	.addr_format = FI_FORMAT_UNSPEC,
	.tx_attr = &shm_tx_attr,
	.rx_attr = &shm_rx_attr,
	.ep_attr = &shm_ep_attr,
	.domain_attr = &shm_domain_attr,
	.fabric_attr = &shm_fabric_attr,
};

static int shm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info)
{
	uint32_t pid_ns;

	if (node || service)
		return info_refuse(&shm_provider,
				   "is asked for a node or service; shm endpoints have no names, "
				   "their addresses come from fi_getname");
	if (hints && (hints->src_addr || hints->dest_addr))
		return info_refuse(&shm_provider, "is asked for given addresses; shm endpoints get a new "
						  "one each, from fi_getname");
	if (sys_ns_pid(&pid_ns))
		return info_refuse(&shm_provider, "finds no /proc, through which endpoints reach each other");
	return info_answer(&shm_provider, &shm_offer, hints, version, info);
}

static int shm_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return engine_fabric_open(&shm_family, attr, fabric, context);
}

static void shm_cleanup(void)
{
}

static struct fi_provider shm_provider = {
	.version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "shm",
	.getinfo = shm_getinfo,
	.fabric = shm_fabric,
	.cleanup = shm_cleanup,
};

static const struct wire_provider shm_wire_provider = {
	.size = sizeof(struct wire_provider),
	.version = WIRE_LAYOUT,
	.layout = WIRE_LAYOUT,
	.ops = &shm_wire_ops,
};

struct fi_provider *weft_shm_ini(void)
{
	if (wire_register(&shm_wire_provider))
		return NULL;
	engine_define_params(&shm_provider);
	return &shm_provider;
}
