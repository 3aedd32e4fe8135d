/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many peers of one endpoint: each sends it a message, and gets an answer that only it can expect.
 * How long that takes, what memory and how many descriptors the endpoint's process has for each,
 * and what looking at its empty queue costs with all of them and with one are printed.
 *
 *	peers_test PROVIDER [COUNT [DESCRIPTORS]]	SURVIVE_ROUNDS
 *
 * DESCRIPTORS: `ulimit -n` of the endpoint's process, by default whatever is allowed. With fewer than peers it closes
 * connections that are idle, and has them made again for the answers.
 */
#define _GNU_SOURCE
#include <sys/resource.h>
#include "node.h"

#define TEST_SECS 280
#define PEERS	  1000u
#define LOOKS	  20000u
#define ANSWER	  (1ull << 32) /* bit of an answer's tag */

enum gate { GATE_NAMED, GATE_FIRST, GATE_MEASURED, GATE_ANSWERED, GATE_CLOSED };

struct gathering {
	struct stage stage;
	char name[NODE_NAME];
	char names[4096][NODE_NAME];
	uint32_t cnt;
	rlim_t descriptors;
};

static const char *provider;

static void limit_descriptors(struct gathering *g, rlim_t most)
{
	struct rlimit limit;

	NODE_CHECK(g, !getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = most && most < limit.rlim_max ? most : limit.rlim_max;
	NODE_CHECK(g, !setrlimit(RLIMIT_NOFILE, &limit));
}

static uint64_t value_of(uint32_t peer)
{
	return peer * 0x9e3779b97f4a7c15u;
}

/* One completion, which must be a good one. */
static bool one(struct node *n)
{
	ssize_t turn = node_turn(n);

	if (turn == -FI_EAVAIL)
		fprintf(stderr, "an operation failed: %s\n", fi_strerror(n->error.err));
	NODE_CHECK(n->stage, turn != -FI_EAVAIL);
	return turn == 1;
}

/* Takes the messages of @cnt peers, and answers each. */
static void answer(struct gathering *g, struct node *n, uint32_t cnt)
{
	uint64_t in, out;
	ssize_t ret;

	while (cnt--) {
		NODE_CHECK(g, !fi_trecv(n->ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, 0,
					ANSWER - 1, &in));
		NODE_UNTIL(g, one(n), false);
		NODE_CHECK(g, in == value_of((uint32_t)n->entry.tag));
		NODE_CHECK(g, n->source == n->entry.tag);
		out = ~in;
		NODE_UNTIL(g,
			   (ret = fi_tinject(n->ep, &out, sizeof(out), n->source,
					     ANSWER | n->entry.tag)) != -FI_EAGAIN,
			   (fi_cq_read(n->cq, NULL, 0), false));
		NODE_CHECK(g, !ret);
	}
}

static double look_ns(struct node *n)
{
	uint64_t began = node_now_ns();

	for (uint32_t i = 0; i < LOOKS; i++)
		NODE_CHECK(n->stage, node_turn(n) == -FI_EAGAIN);
	return (double)(node_now_ns() - began) / LOOKS;
}

static void host_role(void *stage, int rank)
{
	struct node_attr attr = { .provider = provider, .cq_size = 8192 };
	struct gathering *g = stage;
	double look_one, look_all;
	uint64_t began, ended;
	int descriptors;
	struct node n;
	size_t heap;

	limit_descriptors(g, g->descriptors);
	NODE_CHECK(g, !node_open(&n, g, &attr));
	node_name(&n, g->name);
	stage_pass(g, GATE_NAMED);
	NODE_UNTIL(g, stage_passed(g, GATE_NAMED) == 2, false);
	for (uint32_t i = 0; i < g->cnt; i++)
		NODE_CHECK(g, node_knows(&n, g->names[i]) == i);
	answer(g, &n, 1);
	look_one = look_ns(&n);
	descriptors = node_descriptors();
	heap = node_heap();
	stage_pass(g, GATE_FIRST);
	began = node_now_ns();
	answer(g, &n, g->cnt - 1);
	NODE_UNTIL(g, stage_passed(g, GATE_ANSWERED), (one(&n), false));
	ended = node_now_ns();
	look_all = look_ns(&n);
	printf("%u peers in %.2f s; of each the process has %.2f descriptors and %.0f bytes allocated; an empty "
	       "queue takes %.0f ns with one, %.0f ns with all\n",
	       g->cnt, (double)(ended - began) / 1e9,
	       (double)(node_descriptors() - descriptors) / (g->cnt - 1),
	       (double)(node_heap() - heap) / (g->cnt - 1), look_one, look_all);
	node_close(&n);
	stage_pass(g, GATE_CLOSED);
}

/* Asks the host, and takes its answer. */
static void ask(struct node *n, fi_addr_t host, uint32_t from, uint32_t to, struct node *nodes)
{
	uint64_t *in = calloc(to, sizeof(*in)), out;
	ssize_t ret;

	NODE_CHECK(n->stage, in);
	for (uint32_t i = from; i < to; i++) {
		out = value_of(i);
		NODE_CHECK(n->stage, !fi_trecv(nodes[i].ep, &in[i], sizeof(*in), NULL, host,
					       ANSWER | i, 0, &in[i]));
		NODE_UNTIL(n->stage,
			   (ret = fi_tinject(nodes[i].ep, &out, sizeof(out), host, i)) !=
				   -FI_EAGAIN,
			   (fi_cq_read(n->cq, NULL, 0), false));
		NODE_CHECK(n->stage, !ret);
	}
	for (uint32_t i = from; i < to; i++)
		NODE_UNTIL(n->stage, one(n), false);
	for (uint32_t i = from; i < to; i++)
		NODE_CHECK(n->stage, in[i] == ~value_of(i));
	free(in);
}

static void crowd_role(void *stage, int rank)
{
	struct node_attr attr = { .provider = provider, .cq_size = 8192 };
	struct gathering *g = stage;
	struct node *nodes = calloc(g->cnt, sizeof(*nodes));
	fi_addr_t host;

	limit_descriptors(g, 0);
	NODE_CHECK(g, nodes && !node_open(&nodes[0], g, &attr));
	for (uint32_t i = 1; i < g->cnt; i++)
		NODE_CHECK(g, !node_open_in(&nodes[i], &nodes[0]));
	for (uint32_t i = 0; i < g->cnt; i++)
		node_name(&nodes[i], g->names[i]);
	stage_pass(g, GATE_NAMED);
	NODE_UNTIL(g, stage_passed(g, GATE_NAMED) == 2, false);
	host = node_knows(&nodes[0], g->name);
	ask(&nodes[0], host, 0, 1, nodes);
	NODE_UNTIL(g, stage_passed(g, GATE_FIRST), (one(&nodes[0]), false));
	ask(&nodes[0], host, 1, g->cnt, nodes);
	stage_pass(g, GATE_ANSWERED);
	NODE_UNTIL(g, stage_passed(g, GATE_CLOSED), (node_turn(&nodes[0]), false));
	for (uint32_t i = g->cnt; i--;)
		node_close(&nodes[i]);
	free(nodes);
}

int main(int argc, char **argv)
{
	static void (*const roles[])(void *, int) = { host_role, crowd_role };
	struct gathering *g = stage_open(sizeof(*g));
	struct rlimit limit;
	pid_t pids[2];
	bool ok = true;

	if (argc < 2)
		return 2;
	provider = argv[1];
	g->cnt = (uint32_t)node_setting("SURVIVE_ROUNDS",
					argc > 2 ? strtoull(argv[2], NULL, 0) : PEERS);
	g->descriptors = argc > 3 ? (rlim_t)strtoull(argv[3], NULL, 0) : 0;
	/* SURVIVE_ROUNDS may be meant for other programs: of the suite. */
	if (g->cnt < 2)
		g->cnt = 2;
	if (g->cnt > sizeof(g->names) / sizeof(g->names[0]))
		g->cnt = sizeof(g->names) / sizeof(g->names[0]);
	/* The crowd has two for each peer. */
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_max < 2 * g->cnt + 100) {
		printf("skip: no process may have %u descriptors\n", 2 * g->cnt + 100);
		return 77;
	}
	node_secs = 120;
	for (int i = 0; i < 2; i++)
		pids[i] = stage_start(g, i, TEST_SECS, roles[i]);
	for (int i = 0; i < 2; i++)
		ok &= stage_ended(g, pids[i], 0);
	return !ok;
}
