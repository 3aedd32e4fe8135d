/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sums of what the endpoints of the process have counted; moved.h has the contract. They are under the
 * lock of the process's lists, which no thread holds where a fork ends.
 */
#include "arena.h"
#include "lists.h"
#include "moved.h"
#include "share.h"
#include "shown.h"

static uint64_t sums[WEFT_MEM_SHM_COUNTS];
/* where tools see them, or NULL; and whether it was tried to open that */
static struct weft_mem_part *part;
static bool part_tried;
/* forks before the process that those above are of */
static uint32_t forks;

/* Returns true the first time in a process. In the child of a fork all begins anew. */
static bool begin(void)
{
	bool first;

	pshm_lists_lock();
	if (forks != platform_forks()) {
		forks = platform_forks();
		part = NULL;
		part_tried = false;
		memset(sums, 0, sizeof(sums));
	}
	first = !part_tried;
	part_tried = true;
	pshm_lists_unlock();
	return first;
}

static void sums_add(const uint64_t add[WEFT_MEM_SHM_COUNTS])
{
	/* without the lock: libweft-mem.so is in front of mmap(2), and takes locks of its own */
	struct weft_mem_part *opened = begin() ? mem_part_open(WEFT_MEM_PART_SHM) : NULL;

	pshm_lists_lock();
	if (opened)
		part = opened;
	for (uint32_t i = 0; i < WEFT_MEM_SHM_COUNTS; i++)
		sums[i] += add[i];
	mem_part_show(part, sums, WEFT_MEM_SHM_COUNTS);
	pshm_lists_unlock();
}

void pshm_moved_tell(struct pshm_wire *w)
{
	const struct pshm_moved moved = w->moved;
	struct pshm_share_counts before, now;

	if (w->forked || (!arena_started() && !moved.lent && !moved.read))
		return;
	now = pshm_share_counts(w->share, &before);
	if (now.regions == before.regions && now.keys == before.keys && !moved.lent &&
	    !moved.read)
		return;
	w->moved = (struct pshm_moved){ .lent = 0 };
	sums_add((uint64_t[WEFT_MEM_SHM_COUNTS]){
		[WEFT_MEM_SHM_REGIONS] = (uint64_t)now.regions - before.regions,
		[WEFT_MEM_SHM_KEYS] = (uint64_t)now.keys - before.keys,
		[WEFT_MEM_SHM_LENT] = moved.lent,
		[WEFT_MEM_SHM_LENT_BYTES] = moved.lent_bytes,
		[WEFT_MEM_SHM_READ] = moved.read,
		[WEFT_MEM_SHM_READ_BYTES] = moved.read_bytes,
	});
}

void pshm_moved_share_end(const struct pshm_share_counts *told)
{
	if (told->regions || told->keys)
		sums_add((uint64_t[WEFT_MEM_SHM_COUNTS]){
			[WEFT_MEM_SHM_REGIONS] = -(uint64_t)told->regions,
			[WEFT_MEM_SHM_KEYS] = -(uint64_t)told->keys });
}
