/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What one process, or several together, have of registered memory at one moment: what the process shows
 * (weft/mem_stats.h), and what the kernel knows of its arena's pages.
 */
#ifndef WEFT_TOOLS_SAMPLE_H
#define WEFT_TOOLS_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <weft/mem_stats.h>

#define SAMPLE_COMMAND_MAX 64

/* Ranges of arenas that are read of one process at most. */
#define SAMPLE_ARENAS 16

struct sample_range {
	uint64_t base;
	uint64_t len;
};

/* Bytes of the chunks that have pages. */
struct backing {
	uint64_t resident;
	/* of those: in huge pages */
	uint64_t huge;
	uint64_t swapped;
};

struct sample {
	/* since the first one, seconds */
	double at_s;
	/* 0: of several processes */
	pid_t pid;
	char command[SAMPLE_COMMAND_MAX];
	/* processes that show something */
	uint32_t processes;
	/* parts of each kind, and the sums of what they count */
	uint32_t parts[WEFT_MEM_PART_KINDS];
	uint64_t counts[WEFT_MEM_PART_KINDS][WEFT_MEM_STATS_COUNTS];
	/* bytes of the arena that devices have registered */
	uint64_t pinned_bytes;
	/* parts that their processes had no room for */
	uint32_t hidden;
	/* of one process: where its arenas are */
	struct sample_range arenas[SAMPLE_ARENAS];
	uint32_t arena_cnt;
	struct backing backing;
};

/*
 * sample_read - look at a process
 * @sample: out: at_s is 0
 * @why:    out, on an error: the reason in words, 128 bytes
 *
 * Returns 0; -ENOENT: the process shows nothing; -ESRCH: there is no such process (any more); -EACCES: it is
 * another user's; -EPROTO: what it shows makes no sense; or another -errno.
 */
int sample_read(pid_t pid, struct sample *sample, char why[128]);

/*
 * sample_add - add what a process has to a sum of several, which begins as all zeros
 */
void sample_add(struct sample *sum, const struct sample *of);

/* sample_count - a counter of the arena, of pins or of caches */
static inline uint64_t sample_count(const struct sample *sample, enum weft_mem_part_kind kind,
				    unsigned idx)
{
	return sample->counts[kind][idx];
}

/* sample_once - registrations for one operation, for whatever reason */
uint64_t sample_once(const struct sample *sample);

#endif
