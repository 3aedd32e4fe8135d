/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* PRP entries and lists */
#include "prp.h"

#include <stdatomic.h>

#include "nvme/spec.h"
#include "slot/slot.h"

#define ENTRY_LEN  8u
#define LAST_ENTRY (NVME_PAGE - ENTRY_LEN)

int prp_begin(struct prp *p, uint64_t prp1, uint64_t prp2, uint64_t len)
{
	if (prp1 & 3)
		return NVME_SC_INVALID_PRP_OFFSET;
	p->addr = prp1;
	p->next = prp2;
	p->left = len;
	p->room = NVME_PAGE - (prp1 & (NVME_PAGE - 1));
	p->state = PRP_FIRST;
	if (len <= p->room)
		return 0;
	if (len - p->room <= NVME_PAGE) {
		p->state = PRP_SECOND;
		return prp2 & (NVME_PAGE - 1) ? NVME_SC_INVALID_PRP_OFFSET : 0;
	}
	p->state = PRP_LIST;
	return prp2 & (ENTRY_LEN - 1) ? NVME_SC_INVALID_PRP_OFFSET : 0;
}

/* An entry of a list, which its owner may change at any time: one load. */
static int entry_load(struct domain *d, uint64_t at, uint64_t *entry)
{
	struct window *w = domain_find(d, at, SLOT_DMA_READ);
	uint64_t value;

	if (!w)
		return NVME_SC_DATA_TRANSFER;
	value = atomic_load_explicit((_Atomic uint64_t *)(w->files[0].base + (at - w->addr)),
				     memory_order_relaxed);
	if (value & (NVME_PAGE - 1))
		return NVME_SC_INVALID_PRP_OFFSET;
	*entry = value;
	return 0;
}

/* Go to the next page of data. A list continues at the begin of a page: each has 511 entries but the first. */
static int prp_step(struct prp *p, struct domain *d)
{
	uint64_t entry;
	int status;

	if (p->state == PRP_SECOND) {
		p->addr = p->next;
		p->room = NVME_PAGE;
		return 0;
	}
	if ((p->next & (NVME_PAGE - 1)) == LAST_ENTRY && p->left > NVME_PAGE) {
		status = entry_load(d, p->next, &entry);
		if (status)
			return status;
		p->next = entry;
	}
	status = entry_load(d, p->next, &entry);
	if (status)
		return status;
	p->next += ENTRY_LEN;
	p->addr = entry;
	p->room = NVME_PAGE;
	return 0;
}

int prp_gather(struct prp *p, struct domain *d, uint32_t access, uint64_t len,
	       struct segment *segs, uint32_t *cnt)
{
	uint32_t n = 0;

	while (len) {
		struct segment *last = n ? &segs[n - 1] : NULL;
		struct window *w;
		uint64_t at;
		uint32_t part;

		if (!p->room) {
			int status = prp_step(p, d);

			if (status)
				return status;
		}
		w = domain_find(d, p->addr, access);
		if (!w)
			return NVME_SC_DATA_TRANSFER;
		part = p->room < len ? p->room : (uint32_t)len;
		at = p->addr - w->addr;
		if (last && last->window == w && last->at + last->len == at)
			last->len += part;
		else
			segs[n++] = (struct segment){ w, at, part };
		p->addr += part;
		p->room -= part;
		p->left -= part;
		len -= part;
	}
	*cnt = n;
	return 0;
}
