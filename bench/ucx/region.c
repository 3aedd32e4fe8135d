/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * tools/bench/region.h over UCX: mapped memory, puts, gets and an atomic addition. A region's desc is
 * its ucp_mem_h, the peer's key a ucp_rkey_h.
 */
#define _GNU_SOURCE
#include "region.h"
#include "ucx.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

int region_init(struct channel *ch, struct region *region, size_t len, uint64_t access)
{
	ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.length = len,
	};
	ucp_mem_h mem;
	ucs_status_t status;

	memset(region, 0, sizeof(*region));
	if (posix_memalign((void **)&region->mem, 64, len)) {
		warnx("no memory for a region of %zu bytes", len);
		return -FI_ENOMEM;
	}
	memset(region->mem, 0, len);
	region->len = len;
	params.address = region->mem;
	status = ucp_mem_map(ucx.context, &params, &mem);
	if (status) {
		region_fini(region);
		return ucx_complain("ucp_mem_map", status);
	}
	region->desc = mem;
	return 0;
}

void region_fini(struct region *region)
{
	if (region->desc)
		ucp_mem_unmap(ucx.context, region->desc);
	free(region->mem);
	memset(region, 0, sizeof(*region));
}

int region_exchange(struct channel *ch, const struct region *region,
		    struct remote_region *remote)
{
	unsigned char mine[OOB_BLOB_MAX] = { 0 }, theirs[OOB_BLOB_MAX];
	uint64_t addr = region ? (uintptr_t)region->mem : 0;
	size_t len = sizeof(theirs), packed_len = 0;
	void *packed = NULL;
	ucs_status_t status = UCS_OK;
	ucp_rkey_h key;
	int rc;

	memset(remote, 0, sizeof(*remote));
	if (region)
		status = ucp_rkey_pack(ucx.context, region->desc, &packed, &packed_len);
	/* The address of what can't be named is zero. */
	if (!status && region && packed_len <= sizeof(mine) - sizeof(addr)) {
		memcpy(mine, &addr, sizeof(addr));
		memcpy(mine + sizeof(addr), packed, packed_len);
	}
	if (packed)
		ucp_rkey_buffer_release(packed);
	rc = oob_exchange(&ch->side->oob, mine, sizeof(addr) + packed_len, theirs, &len);
	if (rc)
		return rc;
	if (status)
		return ucx_complain("ucp_rkey_pack", status);
	memcpy(&remote->addr, theirs, sizeof(remote->addr));
	if (!region || !remote->addr)
		return -FI_ECONNABORTED;
	status = ucp_ep_rkey_unpack(ucx.peer, theirs + sizeof(addr), &key);
	if (status)
		return ucx_complain("ucp_ep_rkey_unpack", status);
	remote->key = (uintptr_t)key;
	remote->mapped = true;
	return 0;
}

void region_forget(struct channel *ch, struct remote_region *remote)
{
	if (remote->mapped)
		ucp_rkey_destroy((ucp_rkey_h)(uintptr_t)remote->key);
	memset(remote, 0, sizeof(*remote));
}

/* bench/run asks for no remote procedure calls over UCX. */
int region_expose(struct channel *ch, struct region *region, uint64_t access,
		  struct remote_region *name)
{
	return fabric_complain("a key in a message, over UCX", -FI_ENOSYS);
}

void region_hide(struct region *region)
{
}

int region_adds(struct channel *ch)
{
	return 0;
}

int region_transfer(struct channel *ch, enum region_transfer_kind kind,
		    const struct region_access *access, struct channel_op *op)
{
	char *at = access->local->mem + access->at;
	uint64_t addr = access->remote->addr + access->remote_at;
	ucp_rkey_h key = (ucp_rkey_h)(uintptr_t)access->remote->key;
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.send = ucx_done,
		.user_data = op,
	};

	op->is_recv = false;
	switch (kind) {
	case REGION_READ:
		return ucx_posted("ucp_get_nbx",
				  ucp_get_nbx(ucx.peer, at, access->len, addr, key, &param), op);
	case REGION_WRITE:
		return ucx_posted("ucp_put_nbx",
				  ucp_put_nbx(ucx.peer, at, access->len, addr, key, &param), op);
	case REGION_FETCH_ADD:
		param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE |
				      UCP_OP_ATTR_FIELD_REPLY_BUFFER;
		param.datatype = ucp_dt_make_contig(sizeof(uint64_t));
		param.reply_buffer = at + sizeof(uint64_t);
		return ucx_posted("ucp_atomic_op_nbx",
				  ucp_atomic_op_nbx(ucx.peer, UCP_ATOMIC_OP_ADD, at, 1, addr,
						    key, &param),
				  op);
	case REGION_ADD: /* bench/run asks for none of these */
		break;
	}
	return fabric_complain("additions without a result, over UCX", -FI_ENOSYS);
}
