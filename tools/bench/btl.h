/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What 'weft bench --btl' times: one-sided operations of libweft-btl, by side 0 in memory of side 1. Both sides
 * call the same function with the same arguments. From 64 KiB up operations rotate through slots that together
 * exceed the second-level cache.
 */
#ifndef WEFT_TOOLS_BENCH_BTL_H
#define WEFT_TOOLS_BENCH_BTL_H

#include <stddef.h>
#include <stdint.h>

#include "channel.h"

struct btl;

/*
 * btl_create - open a transport with the peer, and memory for the largest size of the plan
 * @side: borrowed until btl_destroy
 *
 * Both sides call it. Prints the reason of a failure. Returns 0 or a negative fi_errno, with nothing left open.
 */
int btl_create(const struct plan *plan, const struct channel_options *opt, struct side *side,
	       struct btl **btl);

/* btl_destroy - close all of it; NULL is allowed */
void btl_destroy(struct btl *btl);

/* btl_describe - provider, versions and library file */
void btl_describe(const struct btl *btl, struct results_config *config);

/*
 * btl_run - do so many operations
 * @test:  one of FIGURES_BTL; the target of FIGURE_PUTS1 and FIGURE_PUTS2 sleeps, that of the others polls
 * @size:  bytes of each; at most the largest of the plan
 * @cnt:   how many; FIGURE_PUTS2: together, of two threads
 * @taken: receives nanoseconds for all of them, on side 0
 *
 * Returns 0 or a negative fi_errno; -FI_EIO for data that are wrong (reported).
 */
int btl_run(struct btl *btl, enum figure_test test, size_t size, uint32_t cnt, uint64_t *taken);

#endif
