/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bytes between the segments of a piece and a buffer; segments.h has the contract. */
#include "segments.h"

#include <string.h>

#include "nvme/spec.h"

void segments_gather(const struct piece *p, uint8_t *to)
{
	for (uint32_t i = 0; i < p->seg_cnt; i++) {
		const struct segment *s = &p->segs[i];

		memcpy(to, s->window->files[0].base + s->at, s->len);
		to += s->len;
	}
}

void segments_scatter(const struct piece *p, const uint8_t *from)
{
	for (uint32_t i = 0; i < p->seg_cnt; i++) {
		const struct segment *s = &p->segs[i];

		for (uint32_t n = 0; n < s->window->file_cnt; n++)
			memcpy(s->window->files[n].base + s->at, from, s->len);
		from += s->len;
	}
}

uint16_t segments_compare(const struct piece *p, const uint8_t *with)
{
	for (uint32_t i = 0; i < p->seg_cnt; i++) {
		const struct segment *s = &p->segs[i];

		if (memcmp(with, s->window->files[0].base + s->at, s->len))
			return NVME_SC_COMPARE_FAILURE;
		with += s->len;
	}
	return NVME_SC_SUCCESS;
}
