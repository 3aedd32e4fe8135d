/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Features: what Set Features sets and Get Features gets, current and by default. None is saved. The loop's thread.
 * Source: NVMe 1.4, section 5.21.
 */
#ifndef WEFT_NVMED_FEATURE_H
#define WEFT_NVMED_FEATURE_H

#include <stdint.h>

#include "nvme/spec.h"

struct nvmed;
struct command;

#define FEATURE_IDS 16u

/*
 * struct features
 * @value:   by the feature's id
 * @cooler:  the threshold below which it is too cold; the other one is a value
 */
struct features {
	uint32_t value[FEATURE_IDS];
	uint32_t cooler;
};

static_assert(NVME_FEATURE_ASYNC_EVENTS < FEATURE_IDS, "each has its place");

/* features_reset - all have their defaults */
void features_reset(struct nvmed *c);

/* feature_set, feature_get - carry out the command. Return an NVMe status; @result: dword 0, on success */
int feature_set(struct nvmed *c, const struct command *cmd, uint32_t *result);
int feature_get(struct nvmed *c, const struct command *cmd, uint32_t *result);

#define feature_value(c, id) ((c)->features.value[id])

#endif
