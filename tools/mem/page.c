/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reading a page of counters; page.h has the contract. */
#include "page.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const unsigned count_cnt[WEFT_MEM_PART_KINDS] = {
	[WEFT_MEM_PART_ARENA] = WEFT_MEM_ARENA_COUNTS,
	[WEFT_MEM_PART_PINS] = WEFT_MEM_PINS_COUNTS,
	[WEFT_MEM_PART_CACHE] = WEFT_MEM_CACHE_COUNTS,
	[WEFT_MEM_PART_SHM] = WEFT_MEM_SHM_COUNTS,
	[WEFT_MEM_PART_TCP] = WEFT_MEM_TCP_COUNTS,
};

/* Reads all of it. Returns 0 or -errno. */
static int page_read(int fd, struct weft_mem_stats *stats, char why[128])
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size != (off_t)sizeof(*stats)) {
		snprintf(why, 128, "its page has %lld bytes, not %zu", (long long)st.st_size,
			 sizeof(*stats));
		return -EPROTO;
	}
	n = pread(fd, stats, sizeof(*stats), 0);
	if (n < 0)
		return -errno;
	if (n == (ssize_t)sizeof(*stats))
		return 0;
	snprintf(why, 128, "its page was cut off while it was read");
	return -EPROTO;
}

static int head_check(const struct weft_mem_stats *stats, char why[128])
{
	if (stats->magic != WEFT_MEM_STATS_MAGIC) {
		snprintf(why, 128, "its page begins with %#x, not %#x", stats->magic,
			 WEFT_MEM_STATS_MAGIC);
		return -EPROTO;
	}
	if (stats->version != WEFT_MEM_STATS_VERSION) {
		snprintf(why, 128, "its page has version %u, and this weft reads %u",
			 stats->version, WEFT_MEM_STATS_VERSION);
		return -EPROTO;
	}
	for (size_t i = 0; i < sizeof(stats->zero) / sizeof(stats->zero[0]); i++)
		if (stats->zero[i]) {
			snprintf(why, 128, "its page's head is not zero where it should be");
			return -EPROTO;
		}
	return 0;
}

static int part_check(const struct weft_mem_part *part, unsigned idx, char why[128])
{
	if (part->kind >= WEFT_MEM_PART_KINDS || part->zero) {
		snprintf(why, 128, "part %u of its page is of no kind", idx);
		return -EPROTO;
	}
	for (unsigned i = 0; i < count_cnt[part->kind]; i++)
		if (part->counts[i] >= PAGE_COUNT_MAX) {
			snprintf(why, 128, "counter %u of part %u of its page is %#llx", i, idx,
				 (unsigned long long)part->counts[i]);
			return -EPROTO;
		}
	return 0;
}

/* Grains have one size for each device: bytes are summed here. Returns 0 or -EPROTO. */
static int pinned_add(const struct weft_mem_part *part, uint64_t *bytes, char why[128])
{
	uint64_t here;

	if (__builtin_mul_overflow(part->counts[WEFT_MEM_PINS_GRAINS],
				   part->counts[WEFT_MEM_PINS_GRAIN_BYTES], &here) ||
	    here >= PAGE_COUNT_MAX) {
		snprintf(why, 128, "its page has more registered than there is memory");
		return -EPROTO;
	}
	*bytes += here;
	return 0;
}

static int range_add(const struct weft_mem_part *part, struct sample *sum, char why[128])
{
	if (sum->arena_cnt == SAMPLE_ARENAS) {
		snprintf(why, 128, "it has more than %d arenas", SAMPLE_ARENAS);
		return -EPROTO;
	}
	sum->arenas[sum->arena_cnt++] = (struct sample_range){
		.base = part->counts[WEFT_MEM_ARENA_BASE],
		.len = part->counts[WEFT_MEM_ARENA_ADDRESSES],
	};
	return 0;
}

static int part_add(const struct weft_mem_part *part, struct sample *sum, char why[128])
{
	if (part->kind == WEFT_MEM_PART_PINS && pinned_add(part, &sum->pinned_bytes, why))
		return -EPROTO;
	if (part->kind == WEFT_MEM_PART_ARENA && range_add(part, sum, why))
		return -EPROTO;
	sum->parts[part->kind]++;
	for (unsigned i = 0; i < count_cnt[part->kind]; i++)
		sum->counts[part->kind][i] += part->counts[i];
	return 0;
}

int page_take(int fd, pid_t pid, struct sample *sample, char why[128])
{
	struct weft_mem_stats stats;
	struct sample sum = *sample;
	int rc = page_read(fd, &stats, why);

	/* it is being made: the magic is written last */
	if (!rc && !stats.magic)
		return 0;
	if (!rc)
		rc = head_check(&stats, why);
	if (rc || stats.pid != (uint32_t)pid)
		return rc;
	for (unsigned i = 0; i < WEFT_MEM_STATS_PARTS; i++) {
		const struct weft_mem_part *part = &stats.parts[i];

		rc = part_check(part, i, why);
		if (!rc && part->kind != WEFT_MEM_PART_NONE)
			rc = part_add(part, &sum, why);
		if (rc)
			return rc;
	}
	sum.hidden += stats.hidden;
	*sample = sum;
	return 0;
}
