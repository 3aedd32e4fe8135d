/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What windows may take of the process */
#include "budget.h"

#include <stdio.h>
#include <sys/resource.h>

/* Half of what a process has on processors with the fewest bits of it: 47 */
#define BYTES_MOST (1ull << 46)

/* Where the system does not say */
#define MAPS_USUAL 65530u

static uint64_t maps_most(void)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned long long most = MAPS_USUAL;

	if (file) {
		if (fscanf(file, "%llu", &most) != 1)
			most = MAPS_USUAL;
		fclose(file);
	}
	return most;
}

void budget_init(struct budget *b, uint32_t holders, uint64_t kept)
{
	uint64_t most = maps_most();
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < most)
		most = limit.rlim_cur;
	*b = (struct budget){ .most = { .files = most > 2 * kept ? most - kept : most / 2,
					.bytes = BYTES_MOST },
			      .holders = holders };
}

/* Whether one may have @own, where all have @used then */
static bool fits(uint64_t own, uint64_t used, uint64_t most, uint32_t holders)
{
	return used <= most && (used <= most / 2 || own <= most / 2 / holders);
}

bool budget_take(struct budget *b, struct budget_use *own, struct budget_use more)
{
	struct budget_use mine = { own->files + more.files, own->bytes + more.bytes };
	struct budget_use used = { b->used.files + more.files, b->used.bytes + more.bytes };

	if (more.bytes > b->most.bytes ||
	    !fits(mine.files, used.files, b->most.files, b->holders) ||
	    !fits(mine.bytes, used.bytes, b->most.bytes, b->holders))
		return false;
	*own = mine;
	b->used = used;
	return true;
}

void budget_give(struct budget *b, struct budget_use *own, struct budget_use less)
{
	own->files -= less.files;
	own->bytes -= less.bytes;
	b->used.files -= less.files;
	b->used.bytes -= less.bytes;
}
