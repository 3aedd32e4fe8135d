/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Identify */
#define _GNU_SOURCE
#include "identify.h"

#include <string.h>

#include "fnv.h"
#include "nvmed.h"

#define UUID_LEN 16

/* Text of a fixed length, with blanks behind it */
static void text(char *to, size_t room, const char *from)
{
	size_t len = strnlen(from, room);

	memcpy(to, from, len);
	memset(to + len, ' ', room - len);
}

void identify_firmware(const struct nvmed *c, char *to)
{
	const struct backend_device *device = c->backend->device;

	text(to, 8, device ? device->firmware : WEFT_VERSION);
}

static uint64_t hash(const char *of, uint64_t h)
{
	h = fnv_add(h, of, strlen(of));
	return h ^ h >> 29;
}

/* Of the serial number, so that a namespace is found again: a UUID of version 8 (RFC 9562) */
static void uuid(const struct nvmed *c, uint8_t *to)
{
	uint64_t half[2] = { hash(c->config.serial, FNV_START), 0 };

	half[1] = hash(c->config.serial, half[0] * 0x9e3779b97f4a7c15ull);
	memcpy(to, half, UUID_LEN);
	to[6] = (to[6] & 0x0f) | 0x80;
	to[8] = (to[8] & 0x3f) | 0x80;
}

uint16_t identify_oncs(const struct nvmed *c)
{
	const struct backend_device *device = c->backend->device;

	return device ? device->oncs
		      : NVME_ONCS_COMPARE | NVME_ONCS_DSM | NVME_ONCS_WRITE_ZEROES;
}

/* @to: zeros; an NQN by UUID */
static void name_subsystem(const struct nvmed *c, char *to)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t bytes[UUID_LEN];

	uuid(c, bytes);
	to = stpcpy(to, "nqn.2014-08.org.nvmexpress:uuid:");
	for (int i = 0; i < UUID_LEN; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*to++ = '-';
		*to++ = digits[bytes[i] >> 4];
		*to++ = digits[bytes[i] & 15];
	}
}

static void page_controller(const struct nvmed *c, uint8_t *page)
{
	const struct backend_device *device = c->backend->device;
	struct nvme_id_ctrl *id = (struct nvme_id_ctrl *)page;

	text(id->sn, sizeof(id->sn), c->config.serial);
	text(id->mn, sizeof(id->mn), device ? device->model : "Weft NVMe controller");
	id->vid = device ? device->vendor : 0;
	id->ssvid = device ? device->subsystem : 0;
	identify_firmware(c, id->fr);
	/* Commands are cut to what a device takes, but those that it gets by itself. */
	id->mdts = c->backend->pairs ? device->mdts : NVMED_MDTS;
	id->cntlid = 1;
	id->ver = NVME_VERSION_1_4;
	id->cntrltype = 1; /* an I/O controller */
	id->acl = 7;
	id->aerl = EVENT_REQUESTS_MAX - 1;
	id->frmw = 1 << 1 | 1; /* one slot, which is not written */
	id->lpa = 1 << 2;      /* offsets in log pages */
	id->elpe = ERROR_LOG_ENTRIES - 1;
	id->wctemp = device ? device->warm : 343;
	id->cctemp = device ? device->hot : 353;
	id->sqes = NVME_SQE_SHIFT << 4 | NVME_SQE_SHIFT;
	id->cqes = NVME_CQE_SHIFT << 4 | NVME_CQE_SHIFT;
	id->nn = 1;
	id->oncs = identify_oncs(c) | NVME_ONCS_SELECT;
	id->vwc = (uint8_t)((c->backend->write_cache ? NVME_VWC_PRESENT : 0) | 3 << 1);
	name_subsystem(c, id->subnqn);
	id->psd[0].max_power = 100; /* of 10 mW */
}

static void page_namespace(const struct nvmed *c, uint8_t *page)
{
	struct nvme_id_ns *id = (struct nvme_id_ns *)page;

	id->nsze = id->ncap = id->nuse = c->blocks;
	/* Deallocated blocks are zeros; Write Zeroes may deallocate. */
	id->dlfeat = c->backend->device ? c->backend->device->dlfeat : 1 | 1 << 3;
	id->nsattr = c->config.read_only;
	id->lbaf[0].lbads = c->config.block == 512 ? 9 : 12;
}

static void page_descriptors(const struct nvmed *c, uint8_t *page)
{
	struct nvme_ns_descriptor d = { .nidt = 3, .nidl = UUID_LEN };

	memcpy(page, &d, sizeof(d));
	uuid(c, page + sizeof(d));
}

int identify_page(struct nvmed *c, const struct command *cmd, uint8_t *page)
{
	uint32_t nsid = cmd->sqe.nsid, first = NVMED_NSID;

	memset(page, 0, NVME_IDENTIFY_LEN);
	switch (cmd->sqe.cdw10 & 0xff) {
	case NVME_CNS_NAMESPACE:
		if (nsid != NVMED_NSID)
			return NVME_SC_INVALID_NAMESPACE;
		page_namespace(c, page);
		return 0;
	case NVME_CNS_CONTROLLER:
		page_controller(c, page);
		return 0;
	case NVME_CNS_ACTIVE_NAMESPACES:
		if (nsid >= 0xfffffffe)
			return NVME_SC_INVALID_NAMESPACE;
		if (nsid < first)
			memcpy(page, &first, sizeof(first));
		return 0;
	case NVME_CNS_NAMESPACE_DESCRIPTORS:
		if (nsid != NVMED_NSID)
			return NVME_SC_INVALID_NAMESPACE;
		page_descriptors(c, page);
		return 0;
	}
	return NVME_SC_INVALID_FIELD;
}
