/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes that poll on one core: each has to let the other one have it as soon as it waits.
 * Compared with a ping-pong through pipe(2) on the same core, whose readers sleep.
 *
 * usage: core_test PROVIDER FACTOR
 */
#define _GNU_SOURCE
#include <sched.h>
#include <unistd.h>
#include "node.h"

#define BATCHES 30 /* the quickest of each kind counts: others want the core too */
#define TRIPS	100
#define TAG	7

struct place {
	struct stage stage;
	char name[2][NODE_NAME];
	int pipe[2][2]; /* to each rank */
};

static const char *provider;
static double factor;

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

static double fabric_batch(struct node *node, fi_addr_t peer, int rank)
{
	uint64_t start = node_now_ns();
	char in[8];

	for (int i = 0; i < TRIPS; i++) {
		expect(node, in);
		if (!rank)
			tell(node, peer);
		take(node);
		if (rank)
			tell(node, peer);
	}
	return (double)(node_now_ns() - start) / (2 * TRIPS);
}

static double pipe_batch(struct place *place, int rank)
{
	uint64_t start = node_now_ns();
	char byte = 0;

	for (int i = 0; i < TRIPS; i++) {
		if (!rank)
			NODE_CHECK(place, write(place->pipe[1][1], &byte, 1) == 1);
		NODE_CHECK(place, read(place->pipe[rank][0], &byte, 1) == 1);
		if (rank)
			NODE_CHECK(place, write(place->pipe[0][1], &byte, 1) == 1);
	}
	return (double)(node_now_ns() - start) / (2 * TRIPS);
}

static void role(void *stage, int rank)
{
	struct node_attr attr = { .provider = provider, .cq_size = 64 };
	double fabric = 1e9, pipes = 1e9, ns;
	struct place *place = stage;
	struct node node;
	fi_addr_t peer;

	stay_on_one_core(stage);
	NODE_CHECK(stage, !node_open(&node, stage, &attr));
	node_name(&node, place->name[rank]);
	stage_pass(stage, 0);
	NODE_UNTIL(stage, stage_passed(stage, 0) == 2, false);
	peer = node_knows(&node, place->name[!rank]);
	for (int i = 0; i < BATCHES; i++) {
		ns = fabric_batch(&node, peer, rank);
		fabric = ns < fabric ? ns : fabric;
		ns = pipe_batch(place, rank);
		pipes = ns < pipes ? ns : pipes;
	}
	if (!rank)
		printf("%s: %.2f us one way, pipe(2) %.2f us\n", provider, fabric / 1e3,
		       pipes / 1e3);
	NODE_CHECK(stage, rank || NODE_SANITIZED || fabric <= factor * pipes);
	stage_pass(stage, 1);
	NODE_UNTIL(stage, stage_passed(stage, 1) == 2, node_turn(&node) == 1);
	node_close(&node);
}

int main(int argc, char **argv)
{
	struct place *place = stage_open(sizeof(*place));
	pid_t pids[2];

	NODE_CHECK(place, argc == 3);
	provider = argv[1];
	factor = atof(argv[2]);
	for (int i = 0; i < 2; i++)
		NODE_CHECK(place, !pipe(place->pipe[i]));
	for (int i = 0; i < 2; i++)
		pids[i] = stage_start(place, i, 60, role);
	for (int i = 0; i < 2; i++)
		NODE_CHECK(NULL, stage_ended(place, pids[i], 0));
	return 0;
}
