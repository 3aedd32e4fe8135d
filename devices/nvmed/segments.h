/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes between the segments of a piece, in its windows, and a buffer of the controller's. Used by the backends that copy.
 * The loop's thread alone.
 */
#ifndef WEFT_NVMED_SEGMENTS_H
#define WEFT_NVMED_SEGMENTS_H

#include "backend.h"

/* segments_gather - from the segments; of a multicast they are the same in each file */
void segments_gather(const struct piece *p, uint8_t *to);

/* segments_scatter - to the segments, in each file of a multicast */
void segments_scatter(const struct piece *p, const uint8_t *from);

/* segments_compare - returns an NVMe status: whether they have these bytes */
uint16_t segments_compare(const struct piece *p, const uint8_t *with);

#endif
