/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes that poll on one core, and make no pause of their own: none waits for ever for what the
 * other one has no core to send. How soon each lets the other one have it is a figure of bench/run.
 *
 * usage: core_test PROVIDER
 */
#define _GNU_SOURCE
#include <sched.h>
#include <unistd.h>
#include "node.h"

#define TRIPS 500
#define TAG   7

struct place {
	struct stage stage;
	char name[2][NODE_NAME];
};

static const char *provider;

static void stay_on_one_core(void *stage)
{
	cpu_set_t all, one;
	int cpu = 0;

	NODE_CHECK(stage, !sched_getaffinity(0, sizeof(all), &all));
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	NODE_CHECK(stage, !sched_setaffinity(0, sizeof(one), &one));
}

/* Without a pause of our own: that the library makes them is what is tested. */
static void take(struct node *node)
{
	uint64_t end = node_now_ns() + node_secs * 1000000000ull;
	bool came = false;
	ssize_t ret;

	while (!came) {
		ret = fi_cq_read(node->cq, &node->entry, 1);
		came = ret == 1 && node->entry.flags & FI_RECV;
		NODE_CHECK(node->stage, ret == 1 || ret == -FI_EAGAIN);
		NODE_CHECK(node->stage, came || node_now_ns() < end);
	}
}

static void expect(struct node *node, char *in)
{
	NODE_CHECK(node->stage, !fi_trecv(node->ep, in, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL));
}

static void tell(struct node *node, fi_addr_t peer)
{
	static const char out[8];

	while (fi_tinject(node->ep, out, sizeof(out), peer, TAG))
		fi_cq_read(node->cq, NULL, 0);
}

static void bounce(struct node *node, fi_addr_t peer, int rank)
{
	char in[8];

	for (int i = 0; i < TRIPS; i++) {
		expect(node, in);
		if (!rank)
			tell(node, peer);
		take(node);
		if (rank)
			tell(node, peer);
	}
}

static void role(void *stage, int rank)
{
	struct node_attr attr = { .provider = provider, .cq_size = 64 };
	struct place *place = stage;
	struct node node;
	fi_addr_t peer;

	stay_on_one_core(stage);
	NODE_CHECK(stage, !node_open(&node, stage, &attr));
	node_name(&node, place->name[rank]);
	stage_pass(stage, 0);
	NODE_UNTIL(stage, stage_passed(stage, 0) == 2, false);
	peer = node_knows(&node, place->name[!rank]);
	bounce(&node, peer, rank);
	stage_pass(stage, 1);
	NODE_UNTIL(stage, stage_passed(stage, 1) == 2, node_turn(&node) == 1);
	node_close(&node);
}

int main(int argc, char **argv)
{
	struct place *place = stage_open(sizeof(*place));
	pid_t pids[2];

	NODE_CHECK(place, argc == 2);
	provider = argv[1];
	for (int i = 0; i < 2; i++)
		pids[i] = stage_start(place, i, 60, role);
	for (int i = 0; i < 2; i++)
		NODE_CHECK(NULL, stage_ended(place, pids[i], 0));
	return 0;
}
