/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where the ranks of two-rank programs run. Included after _GNU_SOURCE is defined.
 */
#ifndef WEFT_BENCH_MPI_PIN_H
#define WEFT_BENCH_MPI_PIN_H

#include <err.h>
#include <sched.h>

/* Each rank on a core of its own, whatever the launcher thinks of that. */
static void pin(int rank)
{
	int cpu, skip = rank;
	cpu_set_t all, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(all), &all) || CPU_COUNT(&all) < 2)
		return;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && !skip--)
			CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		warn("cannot run on a core of our own");
}

#endif
