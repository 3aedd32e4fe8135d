/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes that send each other everything at once: tagged messages, writes and reads of the
 * other one's memory, and additions to it. What is lost, comes twice, in another order or with
 * other bytes is noticed. Through the public interface alone.
 */
#ifndef WEFT_NET_TRAFFIC_H
#define WEFT_NET_TRAFFIC_H

#include "node.h"

#define TRAFFIC_MAX    (1u << 20) /* bytes of a message or a write, at most */
#define TRAFFIC_WINDOW 8u	  /* operations of a kind under way */

struct traffic_plan {
	uint32_t messages; /* from each to each; the first have 8 bytes, 4 KiB, 64 KiB and 1 MiB */
	uint32_t writes; /* each is read back */
	uint32_t adds;	 /* fetching ones, one at a time, and as many others */
	/* One of so many messages and writes has up to TRAFFIC_MAX bytes, the others up to 8 KiB */
	uint32_t large;
	uint64_t seed;
	bool sleeps; /* in fi_cq_sread() */
};

struct traffic;

/*
 * traffic_run - exchange with the other process until all of the plan has completed at both
 * @node: opened
 * @peer: the other process's endpoint
 * @meet: called until it returns true, with progress in between: both processes have come here; the
 *	  argument counts up
 *
 * Ends the process if anything is wrong, or nothing completes for node_secs.
 */
void traffic_run(struct node *node, fi_addr_t peer, int rank, const struct traffic_plan *plan,
		 bool (*meet)(void *stage, uint32_t meeting));

/* traffic_progress - operations that this process has completed so far, over all runs */
extern _Atomic uint64_t *traffic_progress;

#endif
