/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Features */
#include "feature.h"

#include <stdbool.h>

#include "nvmed.h"

#define WARM_KELVIN 343u /* the threshold by default */

/* Temperature Threshold, cdw11 */
#define TMPTH(dw)  ((dw)&0xffff)
#define TMPSEL(dw) ((dw) >> 16 & 0xf)
#define THSEL(dw)  ((dw) >> 20 & 3)

enum feature_kind {
	ABSENT,
	FIXED, /* has one value */
	PLAIN, /* any value of @mask */
	CHECKED,
};

static const struct feature {
	enum feature_kind kind;
	uint32_t mask;
} features[FEATURE_IDS] = {
	[NVME_FEATURE_ARBITRATION] = { PLAIN, 0xffffff07 },
	[NVME_FEATURE_POWER] = { CHECKED, 0xff },
	[NVME_FEATURE_TEMPERATURE] = { CHECKED, 0x003fffff },
	[NVME_FEATURE_ERROR_RECOVERY] = { PLAIN, 0x0000ffff },
	[NVME_FEATURE_WRITE_CACHE] = { PLAIN, 0x1 },
	[NVME_FEATURE_QUEUES] = { CHECKED, 0xffffffff },
	[NVME_FEATURE_COALESCING] = { PLAIN, 0xffff },
	[NVME_FEATURE_VECTOR] = { CHECKED, 0x1ffff },
	[NVME_FEATURE_ATOMICITY] = { PLAIN, 0x1 },
	[NVME_FEATURE_ASYNC_EVENTS] = { PLAIN, 0x7ff },
};

static uint32_t queues_allocated(const struct nvmed *c)
{
	uint32_t most = c->config.queue_cnt - 1;

	return most | most << 16;
}

static uint32_t feature_default(const struct nvmed *c, uint32_t id, uint32_t dw11)
{
	switch (id) {
	case NVME_FEATURE_ARBITRATION:
		return 7; /* no burst limit */
	case NVME_FEATURE_TEMPERATURE:
		return THSEL(dw11) ? 0 : WARM_KELVIN;
	case NVME_FEATURE_WRITE_CACHE:
		return 1;
	case NVME_FEATURE_QUEUES:
		return queues_allocated(c);
	case NVME_FEATURE_VECTOR:
		return dw11 & 0xffff;
	}
	return 0;
}

void features_reset(struct nvmed *c)
{
	for (uint32_t id = 0; id < FEATURE_IDS; id++)
		c->features.value[id] = feature_default(c, id, 0);
	c->features.cooler = 0;
	for (uint32_t i = 0; i < c->vectors.cnt; i++)
		c->vectors.each[i].alone = false;
}

/*
 * The feature of a command, if it is there and its selectors name something. Those of the controller are for no
 * namespace, or all; Error Recovery is one of a namespace. Returns an NVMe status.
 */
static int feature_find(const struct nvmed *c, const struct command *cmd)
{
	uint32_t id = cmd->sqe.cdw10 & 0xff, dw11 = cmd->sqe.cdw11, nsid = cmd->sqe.nsid;

	if (id >= FEATURE_IDS || features[id].kind == ABSENT)
		return NVME_SC_INVALID_FIELD;
	if (id == NVME_FEATURE_WRITE_CACHE && !c->backend->write_cache)
		return NVME_SC_INVALID_FIELD;
	if (id == NVME_FEATURE_TEMPERATURE && (TMPSEL(dw11) || THSEL(dw11) > 1))
		return NVME_SC_INVALID_FIELD;
	if (id == NVME_FEATURE_VECTOR && (dw11 & 0xffff) >= c->vectors.cnt)
		return NVME_SC_INVALID_FIELD;
	if (id == NVME_FEATURE_ERROR_RECOVERY && nsid != NVMED_NSID && nsid != UINT32_MAX)
		return NVME_SC_INVALID_NAMESPACE;
	return 0;
}

static bool has_io_queues(const struct nvmed *c)
{
	for (uint32_t i = 1; i <= c->config.queue_cnt; i++)
		if (c->sqs[i] || c->cqs[i])
			return true;
	return false;
}

static int set_checked(struct nvmed *c, uint32_t id, uint32_t dw11, uint32_t *result)
{
	switch (id) {
	case NVME_FEATURE_POWER:
		return dw11 & 0x1f ? NVME_SC_INVALID_FIELD : 0; /* the one power state */
	case NVME_FEATURE_TEMPERATURE:
		if (THSEL(dw11))
			c->features.cooler = TMPTH(dw11);
		else
			c->features.value[id] = TMPTH(dw11);
		return 0;
	case NVME_FEATURE_QUEUES:
		if ((dw11 & 0xffff) == 0xffff || dw11 >> 16 == 0xffff)
			return NVME_SC_INVALID_FIELD;
		if (has_io_queues(c))
			return NVME_SC_SEQUENCE;
		*result = queues_allocated(c);
		return 0;
	case NVME_FEATURE_VECTOR:
		c->vectors.each[dw11 & 0xffff].alone = dw11 & NVME_VECTOR_CD;
		return 0;
	}
	return NVME_SC_INVALID_FIELD;
}

int feature_set(struct nvmed *c, const struct command *cmd, uint32_t *result)
{
	uint32_t id = cmd->sqe.cdw10 & 0xff, dw11 = cmd->sqe.cdw11;
	int status = feature_find(c, cmd);

	if (status)
		return status;
	if (cmd->sqe.cdw10 & NVME_FEATURE_SAVE)
		return NVME_SC_FEATURE_NOT_SAVEABLE;
	switch (features[id].kind) {
	case CHECKED:
		return set_checked(c, id, dw11 & features[id].mask, result);
	case PLAIN:
		c->features.value[id] = dw11 & features[id].mask;
		return 0;
	default:
		return NVME_SC_FEATURE_NOT_CHANGEABLE;
	}
}

static uint32_t feature_current(const struct nvmed *c, uint32_t id, uint32_t dw11)
{
	if (id == NVME_FEATURE_TEMPERATURE && THSEL(dw11))
		return c->features.cooler;
	if (id == NVME_FEATURE_VECTOR) {
		uint32_t index = dw11 & 0xffff;

		return index | (c->vectors.each[index].alone ? NVME_VECTOR_CD : 0);
	}
	return c->features.value[id];
}

int feature_get(struct nvmed *c, const struct command *cmd, uint32_t *result)
{
	uint32_t id = cmd->sqe.cdw10 & 0xff, dw11 = cmd->sqe.cdw11;
	int status = feature_find(c, cmd);

	if (status)
		return status;
	switch (NVME_FEATURE_SELECT(cmd->sqe.cdw10)) {
	case NVME_SELECT_CURRENT:
		*result = feature_current(c, id, dw11);
		return 0;
	case NVME_SELECT_DEFAULT:
	case NVME_SELECT_SAVED: /* what is not saveable has its default there */
		*result = feature_default(c, id, dw11);
		return 0;
	case NVME_SELECT_SUPPORTED:
		*result = features[id].kind == FIXED ? 0 : NVME_FEATURE_CHANGEABLE;
		return 0;
	}
	return NVME_SC_INVALID_FIELD;
}
