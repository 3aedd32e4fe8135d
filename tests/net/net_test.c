/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes on two hosts, made of network namespaces, and a network between them that does to
 * their packets what networks do (forward.h). All that they send each other arrives once, in order
 * and whole (traffic.h), and no operation fails.
 *
 *	net_test PROVIDER CASE [ROUNDS]		NET_SEED, NET_ROUNDS
 *
 * Ends with 77 where there is no TUN device, or no right to it.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "forward.h"
#include "silence.h"
#include "traffic.h"

#define TEST_SECS 280
#define CUT_NS	  5000000000u
#define CUT_AFTER 20000u /* packets; a round has some 300,000 */
#define PACKETS	  8000u	 /* of TCP in a round in which connections are reset one by one */
/*
 * FI_TCP_DEAD_MS where the network stays silent, and where it is cut for CUT_NS, with what a busy
 * machine and TCP's growing timeouts take
 */
#define DEAD_MS	    "10000"
#define CUT_DEAD_MS "30000"

enum gate { GATE_ROUND, GATE_NAMED, GATE_MEETING, GATE_OVER = GATE_MEETING + 3 };

struct network {
	struct forward_stage forwarding;
	struct traffic_plan plan; /* without messages: the network goes away */
	_Atomic uint64_t progress[2];
	struct silence silence;
	uint32_t rounds;
	char names[2][NODE_NAME];
};

struct network_case {
	const char *name;
	void (*run)(struct network *n);
	struct traffic_plan plan;
	uint32_t rounds;
};

static const char *provider;
static uint32_t round_now; /* of one of the two processes */

/* One of the two processes */

static bool meet(void *stage, uint32_t meeting)
{
	static uint32_t met;
	int gate = GATE_MEETING + (int)meeting;

	if (met != round_now * 3 + meeting) {
		met = round_now * 3 + meeting;
		stage_pass(stage, gate);
	}
	return stage_passed(stage, gate) >= 2 * round_now;
}

static void end_round(struct network *n, int rank)
{
	struct node_attr attr = { .provider = provider,
				  .sleeps = n->plan.sleeps,
				  .cq_size = 256 };
	struct traffic_plan plan = n->plan;
	struct node node;

	plan.seed += round_now;
	NODE_CHECK(n, !node_open(&node, n, &attr));
	node_name(&node, n->names[rank]);
	stage_pass(n, GATE_NAMED);
	NODE_UNTIL(n, stage_passed(n, GATE_NAMED) >= 2 * round_now, false);
	if (plan.messages)
		traffic_run(&node, node_knows(&node, n->names[!rank]), rank, &plan, meet);
	else
		silence_run(&n->silence, &node, node_knows(&node, n->names[!rank]), rank);
	node_close(&node);
	stage_pass(n, GATE_OVER);
}

static void end_role(void *stage, int rank)
{
	struct network *n = stage;

	NODE_CHECK(n, !tunnel_enter(&n->forwarding.tunnels[rank]));
	traffic_progress = &n->progress[rank];
	for (round_now = 1; round_now <= n->rounds; round_now++) {
		NODE_UNTIL(n, stage_passed(n, GATE_ROUND) >= round_now, false);
		end_round(n, rank);
	}
}

/* The process that makes the network bad */

static uint64_t progress_of(struct network *n)
{
	return atomic_load(&n->progress[0]) + atomic_load(&n->progress[1]);
}

static bool is_over(struct network *n, uint32_t round)
{
	return stage_passed(n, GATE_OVER) == 2 * round;
}

static void wait_for_round(struct network *n, uint32_t round)
{
	uint64_t seen = 0;

	/* The two find out by themselves when nothing comes any more. */
	while (!is_over(n, round)) {
		seen = progress_of(n);
		NODE_UNTIL(n, is_over(n, round) || progress_of(n) != seen,
			   (usleep(1000), false));
	}
}

static void run_rounds(struct network *n)
{
	for (uint32_t round = 1; round <= n->rounds; round++) {
		stage_pass(n, GATE_ROUND);
		wait_for_round(n, round);
	}
}

/* Nothing happens to it: what the other cases are compared with. */
static void perfect(struct network *n)
{
	run_rounds(n);
}

static void bad(struct network *n)
{
	struct forward *f = &n->forwarding.forward;

	atomic_store(&f->delay_us, 2500);
	atomic_store(&f->lose, 10000);
	atomic_store(&f->late, 20000);
	atomic_store(&f->repeat, 10000);
	run_rounds(n);
	NODE_CHECK(n, f->lost && f->repeated && f->delayed_more);
}

/* For less than the time after which a silent host counts as dead. */
static void is_cut(struct network *n)
{
	struct forward *f = &n->forwarding.forward;
	uint64_t end_ns, at;

	atomic_store(&f->cut_in, CUT_AFTER);
	stage_pass(n, GATE_ROUND);
	NODE_UNTIL(n, atomic_load(&f->cut), (usleep(100), false));
	at = progress_of(n);
	end_ns = node_now_ns() + CUT_NS;
	NODE_UNTIL(n, node_now_ns() > end_ns, (usleep(1000), false));
	printf("%llu operations had completed when it was cut, %llu when it no longer was\n",
	       (unsigned long long)at, (unsigned long long)progress_of(n));
	NODE_CHECK(n, !is_over(n, 1));
	NODE_UNTIL(n, f->cut_off, (usleep(1000), false));
	atomic_store(&f->cut, false);
	wait_for_round(n, 1);
}

/* For ever. */
static void is_silent(struct network *n)
{
	struct silence *s = &n->silence;

	stage_pass(n, GATE_ROUND);
	NODE_UNTIL(n, atomic_load(&s->met) == 2, (usleep(1000), false));
	atomic_store(&n->forwarding.forward.cut, true);
	atomic_store(&s->cut_ns, node_now_ns());
	NODE_UNTIL(n, is_over(n, 1), (usleep(1000), false));
	printf("silent hosts count as dead after " DEAD_MS " ms: operations of the sender had "
	       "failed after %.2f s, of the other one after %.2f s\n",
	       (double)s->took_ns[0] / 1e9, (double)s->took_ns[1] / 1e9);
}

/*
 * One packet of each round resets its connection. In the first two thirds of the rounds that is the
 * packet with the round's number, so that each step of connecting and greeting is met; in the others
 * it is any of those that a round takes.
 */
static void is_reset_at_each(struct network *n)
{
	struct forward *f = &n->forwarding.forward;
	uint64_t skipped = 0, before, seed = f->seed;

	for (uint32_t round = 1; round <= n->rounds; round++) {
		before = f->resets;
		atomic_store(&f->reset_in, round <= n->rounds * 2 / 3
						   ? round
						   : 1 + seeded_below(&seed, PACKETS));
		stage_pass(n, GATE_ROUND);
		wait_for_round(n, round);
		skipped += f->resets == before;
		atomic_store(&f->reset_in, 0);
	}
	printf("%llu rounds were over before\n", (unsigned long long)skipped);
	NODE_CHECK(n, f->resets);
}

/* One in some 300 packets, on a network that is bad as well. */
static void is_reset_at_random(struct network *n)
{
	struct forward *f = &n->forwarding.forward;

	atomic_store(&f->reset, 3000);
	atomic_store(&f->delay_us, 1000);
	atomic_store(&f->lose, 3000);
	run_rounds(n);
	NODE_CHECK(n, f->resets);
}

static const struct network_case cases[] = {
	{ "perfect", perfect, { .messages = 400, .writes = 200, .adds = 400, .large = 20 }, 1 },
	{ "bad", bad, { .messages = 500, .writes = 250, .adds = 250, .large = 20 }, 1 },
	{ "bad-asleep",
	  bad,
	  { .messages = 500, .writes = 250, .adds = 250, .large = 20, .sleeps = true },
	  1 },
	{ "cut", is_cut, { .messages = 2000, .writes = 1000, .adds = 1000, .large = 10 }, 1 },
	{ "reset-at-each",
	  is_reset_at_each,
	  { .messages = 6, .writes = 5, .adds = 4, .large = 4 },
	  150 },
	{ "reset-at-random",
	  is_reset_at_random,
	  { .messages = 300, .writes = 150, .adds = 150, .large = 20 },
	  1 },
	{ "silent", is_silent, { .messages = 0 }, 1 },
};

static bool run(struct network *n, const struct network_case *c)
{
	pid_t pids[2], forwarder;
	uint64_t began = node_now_ns();
	bool ok = true;

	forwarder = forward_start(&n->forwarding, TEST_SECS);
	for (int i = 0; i < 2; i++)
		pids[i] = stage_start(n, i, TEST_SECS, end_role);
	c->run(n);
	for (int i = 0; i < 2; i++)
		ok &= stage_ended(n, pids[i], 0);
	kill(forwarder, SIGKILL);
	ok &= stage_ended(n, forwarder, SIGKILL);
	printf("%s, %u rounds, %llu operations in %.1f s; ", c->name, n->rounds,
	       (unsigned long long)progress_of(n), (double)(node_now_ns() - began) / 1e9);
	forward_report(&n->forwarding.forward);
	return ok;
}

int main(int argc, char **argv)
{
	const struct network_case *c = cases;
	const size_t cnt = sizeof(cases) / sizeof(cases[0]);
	struct network *n = stage_open(sizeof(*n));
	uint64_t seed;
	char why[128];

	while (argc > 2 && c < cases + cnt && strcmp(c->name, argv[2]))
		c++;
	if (argc < 3 || c == cases + cnt)
		return 2;
	provider = argv[1];
	if (tunnel_pair(n->forwarding.tunnels, why, sizeof(why))) {
		printf("skip: %s\n", why);
		return 77;
	}
	seed = node_setting("NET_SEED", node_now_ns());
	printf("NET_SEED=%llu\n", (unsigned long long)seed);
	n->forwarding.forward.seed = seed;
	n->plan = c->plan;
	n->plan.seed = seed;
	n->rounds = (uint32_t)node_setting("NET_ROUNDS",
					   argc > 3 ? strtoull(argv[3], NULL, 0) : c->rounds);
	node_secs = 60;
	if (!c->plan.messages)
		setenv("FI_TCP_DEAD_MS", DEAD_MS, 1);
	if (c->run == is_cut)
		setenv("FI_TCP_DEAD_MS", CUT_DEAD_MS, 1);
	return !run(n, c);
}
