/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses of DMA */
#include "addresses.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void addresses_init(struct addresses *a, const struct vfio_range *ranges, uint32_t range_cnt)
{
	*a = (struct addresses){ .ranges = ranges, .range_cnt = range_cnt };
}

void addresses_fini(struct addresses *a)
{
	free(a->taken);
}

/* How many of those taken end before @addr */
static uint32_t rank(const struct addresses *a, uint64_t addr)
{
	uint32_t low = 0, high = a->cnt;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (a->taken[mid].last < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int insert(struct addresses *a, uint64_t first, uint64_t last)
{
	uint32_t at = rank(a, first);

	if (a->cnt == a->room) {
		uint32_t room = a->room ? 2 * a->room : 16;
		struct vfio_range *more = reallocarray(a->taken, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		a->taken = more;
		a->room = room;
	}
	memmove(a->taken + at + 1, a->taken + at, (a->cnt - at) * sizeof(*a->taken));
	a->taken[at] = (struct vfio_range){ first, last };
	a->cnt++;
	return 0;
}

/* The first free place from @from on, of @len bytes in one range. Returns whether there is one */
static bool search(const struct addresses *a, uint64_t from, uint64_t len, uint64_t *addr)
{
	for (uint32_t i = 0; i < a->range_cnt; i++) {
		uint64_t first = a->ranges[i].first > from ? a->ranges[i].first : from;
		uint64_t last = a->ranges[i].last;

		first = (first + 4095) & ~4095ull;
		for (uint32_t n = rank(a, first); first <= last && last - first >= len - 1;
		     n++) {
			if (n == a->cnt || a->taken[n].first > first + (len - 1)) {
				*addr = first;
				return true;
			}
			first = a->taken[n].last + 1;
		}
	}
	return false;
}

int addresses_take(struct addresses *a, uint64_t len, uint64_t *addr)
{
	uint64_t found;
	int ret;

	if (!search(a, a->next > ADDRESSES_FIRST ? a->next : ADDRESSES_FIRST, len, &found) &&
	    !search(a, ADDRESSES_FIRST, len, &found))
		return -ENOSPC;
	ret = insert(a, found, found + (len - 1));
	if (ret)
		return ret;
	a->next = found + len;
	*addr = found;
	return 0;
}

int addresses_claim(struct addresses *a, uint64_t addr, uint64_t len)
{
	uint64_t last = addr + (len - 1);
	uint32_t n = rank(a, addr);
	bool within = false;

	for (uint32_t i = 0; i < a->range_cnt; i++)
		within |= addr >= a->ranges[i].first && last >= addr &&
			  last <= a->ranges[i].last;
	if (!within || addr < ADDRESSES_FIRST)
		return -EINVAL;
	if (n < a->cnt && a->taken[n].first <= last)
		return -EEXIST;
	return insert(a, addr, last);
}

void addresses_give(struct addresses *a, uint64_t addr)
{
	uint32_t n = rank(a, addr);

	assert(n < a->cnt && a->taken[n].first == addr);
	a->cnt--;
	memmove(a->taken + n, a->taken + n + 1, (a->cnt - n) * sizeof(*a->taken));
}
