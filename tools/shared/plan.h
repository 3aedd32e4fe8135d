/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the two sides of a measurement do (plan) and where they run (place). Over the network both sides use
 * the client's plan: a server is started with 'weft bench --listen' and no further options. One thread.
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

/* How a wait for a completion is. */
enum plan_wait {
	/* fi_cq_read until there is one */
	PLAN_WAIT_POLL,
	/* fi_trywait, and poll(2) of the queue's descriptor (FI_WAIT_FD) */
	PLAN_WAIT_FD,
	/* fi_cq_sread */
	PLAN_WAIT_SREAD,
	PLAN_WAITS,
};

/* The type of both endpoints. */
enum plan_endpoint {
	/* FI_EP_RDM */
	PLAN_RDM,
	/* FI_EP_MSG, connected by fi_connect */
	PLAN_MSG,
	/* FI_EP_DGRAM, which may lose messages: 'weft pingpong' alone */
	PLAN_DGRAM,
	PLAN_ENDPOINTS,
};

struct plan {
	enum plan_endpoint endpoint;
	enum plan_wait wait;
	/* use fi_tsend instead of fi_send */
	bool tagged;
	/* fill and check every byte */
	bool verify;
	/* latency by one buffer in each direction, see traffic.h */
	bool warm;
	/* FIGURE_BITs; 0 for 'weft pingpong' */
	unsigned tests;
	unsigned rounds;
	/* messages per sample; 0: depends on the size */
	unsigned iterations;
	/* name of the provider; "": the first that answers */
	char provider[PLAN_PROVIDER_MAX];
	struct sizes sizes;
	/* for each test, the sizes at which it runs: bit i is sizes.len[i] */
	uint64_t at[FIGURE_TESTS];
};

_Static_assert(SIZES_MAX <= 64, "the sizes of a test are the bits of a word");

/* Where the two sides run. */
struct place {
	/* two processes of this host, instead of server and client */
	bool local;
	bool has_cpus;
	int cpus[2];
	/* local processes run under SCHED_FIFO */
	bool realtime;
	/* host of the server; NULL on the server */
	const char *host;
	unsigned port;
};

/*
 * plan_tests_parse - parse the tests to run and their sizes
 * @text: names as in figure_tests_parse, separated by commas; each may have sizes of its own,
 *        "write@8+1M"
 * @plan: its sizes are those of tests that name none; the ones that are named join them
 * Returns 0, or -EINVAL with @plan untouched.
 */
int plan_tests_parse(const char *text, struct plan *plan);

/*
 * plan_tests_at - FIGURE_BITs of the tests that run at a size
 * @idx:  index of the size in plan->sizes
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
 * plan_parse - parse the output of plan_format, possibly of another host
 * @text:  not trusted; every field is checked
 *
 * Returns 0, or -EINVAL with @plan untouched.
 */
int plan_parse(const char *text, struct plan *plan);

/*
 * plan_agree - send the client's plan to the server
 * @side:  if the sides are local, they share a plan already, and this returns at once
 * @plan:  on the server, receives the client's; a provider that the server was given is kept
 *
 * Prints the reason of a failure. Returns 0 or a negative errno.
 */
int plan_agree(struct side *side, struct plan *plan);

/*
 * place_run - run a function as the side or sides of this host
 * @body:  as for pair_run; side 0, the client, prints
 *
 * Returns an exit status.
 */
int place_run(const struct place *place, int (*body)(struct side *side, void *arg), void *arg);

#endif
