/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the two sides of a measurement do together, and where they are. Over the
 * network the client's plan rules: a server is started with 'weft bench
 * --listen' alone. One thread.
 */
#ifndef WEFT_TOOLS_PLAN_H
#define WEFT_TOOLS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "figures.h"
#include "pair.h"
#include "sizes.h"

#define PLAN_TEXT_MAX	  2048
#define PLAN_PROVIDER_MAX 64

struct plan {
	/* fi_tsend rather than fi_send */
	bool tagged;
	/* fill and check every byte */
	bool verify;
	/* FIGURE_BITs; 0 for a mere ping-pong */
	unsigned tests;
	unsigned rounds;
	/* per sample; 0: by size */
	unsigned iterations;
	/* "": the first that answers */
	char provider[PLAN_PROVIDER_MAX];
	struct sizes sizes;
	/* of each test: at which of the sizes, a bit each */
	uint64_t at[FIGURE_TESTS];
};

_Static_assert(SIZES_MAX <= 64, "the sizes of a test are the bits of a word");

/* Where the two sides run. */
struct place {
	/* two processes here, rather than server and client */
	bool local;
	bool has_cpus;
	int cpus[2];
	/* the local two run under SCHED_FIFO */
	bool realtime;
	/* the client's server, NULL on the server */
	const char *host;
	unsigned port;
};

/*
 * plan_tests_parse - read what to measure, and at which sizes
 * @text:  names as figure_tests_parse knows them, with commas between; each may have sizes of
 *         its own, "write@8+1M"
 * @plan:  its sizes are those of tests that name none; the ones that are named join them
 *
 * Returns 0, or -EINVAL with @plan untouched.
 */
int plan_tests_parse(const char *text, struct plan *plan);

/*
 * plan_tests_at - FIGURE_BITs of the tests that are made at a size
 * @idx:  of the size in plan->sizes
 */
unsigned plan_tests_at(const struct plan *plan, size_t idx);

/*
 * plan_format - write a plan as one line of text
 * @text:  PLAN_TEXT_MAX bytes
 *
 * Returns its length.
 */
size_t plan_format(const struct plan *plan, char *text);

/*
 * plan_parse - read what plan_format wrote, on another host perhaps
 * @text:  not trusted; every field is checked
 *
 * Returns 0, or -EINVAL with @plan untouched.
 */
int plan_parse(const char *text, struct plan *plan);

/*
 * plan_agree - let the client's plan rule
 * @side:  local sides share a plan already, and return at once
 * @plan:  the server's receives the client's; a provider that the server was
 *         given stays
 *
 * Prints the reason of a failure. Returns 0 or a negative errno.
 */
int plan_agree(struct side *side, struct plan *plan);

/*
 * place_run - run a function as the side or the sides that are here
 * @body:  as for pair_run; it is side 0 that prints, which is the client
 *
 * Returns an exit status.
 */
int place_run(const struct place *place, int (*body)(struct side *side, void *arg), void *arg);

#endif
