/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Idle domains; idle.h has the contract. Called by 'weft scale'. */
#define _GNU_SOURCE
#include "idle.h"
#include "clock.h"
#include "ep_set.h"
#include "fabric.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* What the process has used so far. */
struct usage {
	uint64_t at_ns;
	double cpu_s;
	/* a thread had nothing to do any more */
	long switches;
};

static double seconds(const struct timeval *tv)
{
	return (double)tv->tv_sec + (double)tv->tv_usec / 1e6;
}

static struct usage usage_now(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (struct usage){ .at_ns = clock_ns(),
			       .cpu_s = seconds(&r.ru_utime) + seconds(&r.ru_stime),
			       .switches = r.ru_nvcsw };
}

/* Half of @look_s passes before, so that all sleep as they will. */
static void look(unsigned cnt, unsigned look_s, struct idle *idle)
{
	const struct timespec settle = { .tv_sec = look_s / 2,
					 .tv_nsec = look_s % 2 * 500000000 },
			      while_looking = { .tv_sec = look_s };
	struct usage before, after;
	double s;

	nanosleep(&settle, NULL);
	before = usage_now();
	nanosleep(&while_looking, NULL);
	after = usage_now();
	s = (double)(after.at_ns - before.at_ns) / 1e9;
	/* one of the switches is this process's own */
	idle->wakes = (double)(after.switches - before.switches - 1) / s / cnt;
	idle->cpu = (after.cpu_s - before.cpu_s) / s / cnt;
}

int idle_measure(const struct plan *plan, const struct channel_options *opt, unsigned cnt,
		 unsigned look_s, struct idle *idle)
{
	struct channel_options automatic = *opt;
	struct ep_set *sets = calloc(cnt, sizeof(*sets));
	struct fi_info *info;
	unsigned opened = 0;
	int rc = 0;

	automatic.progress = FI_PROGRESS_AUTO;
	info = sets ? ep_set_query(plan, &automatic) : NULL;
	if (!info)
		rc = sets ? -FI_ENODATA : -FI_ENOMEM;
	while (!rc && opened < cnt) {
		rc = ep_set_open(&sets[opened], info, 1, true);
		opened += !rc;
	}
	if (!rc)
		look(cnt, look_s, idle);
	while (opened)
		ep_set_close(&sets[--opened]);
	fabric_info_destroy(info);
	free(sets);
	return rc;
}
