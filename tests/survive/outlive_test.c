/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One endpoint outlives many peers: one after the other connects, exchanges operations of all
 * kinds with it, and is killed at a random moment; a child that it has forked may live on. All that the
 * survivor had under way with it ends within a bound that is measured, and when it has removed the address,
 * nothing of the peer is left: the memory that the process has allocated and its descriptors are what they were.
 *
 *	outlive_test PROVIDER [ROUNDS]	SURVIVE_SEED, SURVIVE_ROUNDS
 */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>
#include "churn.h"

#define BOUND_NS    10000000000u /* above it the test fails */
#define ROUND_SECS  60
#define KEY	    7
#define WARM_ROUNDS 20		 /* until pools and tables have their size */
#define GROWTH_MAX  (384u << 10) /* pools keep what most operations at once took */
/* Counted from the first completion: over tcp, sends to a peer that never answered wait for it. */
#define KILL_AFTER_NS 4000000u

enum gate { GATE_ROUND, GATE_NAMED, GATE_VICTIM_NAMED, GATE_MET, GATE_KILLED, GATE_OVER };

struct long_life {
	struct stage stage;
	char names[2][NODE_NAME]; /* the survivor's, the victim's */
	uint64_t seeds[2];
	_Atomic uint64_t killed_ns, last_ns, errors, received;
	uint32_t rounds;
	bool may_fork; /* the victim, once */
};

static const char *provider;

/* It lives until the round is over. */
static void have_child(struct long_life *l)
{
	uint32_t round = stage_passed(l, GATE_ROUND);
	pid_t pid = fork();

	NODE_CHECK(l, pid >= 0);
	if (pid) {
		l->may_fork = false;
		return;
	}
	alarm(ROUND_SECS);
	while (stage_passed(l, GATE_OVER) < round)
		usleep(1000);
	_exit(0);
}

static void victim(void *stage, int rank)
{
	struct node_attr attr = { .provider = provider };
	struct long_life *l = stage;
	struct churn c;
	struct node n;

	NODE_CHECK(l, !node_open(&n, l, &attr));
	churn_open(&c, &n, KEY, l->seeds[1]);
	c.loose = true;
	node_name(&n, l->names[1]);
	c.peer = node_knows(&n, l->names[0]);
	stage_pass(l, GATE_VICTIM_NAMED);
	for (;;) {
		churn_step(&c, CHURN_ALL);
		if (c.last_ns && l->may_fork)
			have_child(l);
	}
}

/* All ends: sends, accesses, and the receives that were posted before. */
static void outlive(struct long_life *l, struct churn *c)
{
	uint64_t killed = atomic_load(&l->killed_ns), end = killed + BOUND_NS;

	while (c->under_way > c->receives || churn_owed(c, killed)) {
		if (!churn_take(c))
			node_pause(l);
		if (node_now_ns() < end)
			continue;
		churn_tell(c);
		NODE_CHECK(l, !"operations end");
	}
	if (c->last_ns > killed)
		atomic_store(&l->last_ns, c->last_ns);
	churn_cancel(c);
	while (c->under_way)
		churn_take(c);
}

/* What the peer had sent and no receive was posted for belongs to the program: it takes it. */
static void take_what_came(struct node *n)
{
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .ignore = UINT64_MAX };
	ssize_t ret = 1;

	while (ret == 1) {
		NODE_CHECK(n->stage, !fi_trecvmsg(n->ep, &msg, FI_PEEK | FI_DISCARD));
		NODE_UNTIL(n->stage, (ret = node_turn(n)) != -FI_EAGAIN, false);
		NODE_CHECK(n->stage, ret == 1 || n->error.err == FI_ENOMSG);
	}
}

static void survive(struct long_life *l, struct node *n)
{
	struct churn c;

	churn_open(&c, n, KEY, l->seeds[0]);
	c.dead = &l->killed_ns;
	stage_pass(l, GATE_NAMED);
	NODE_UNTIL(l, stage_passed(l, GATE_VICTIM_NAMED), churn_take(&c));
	c.peer = node_knows(n, l->names[1]);
	while (!atomic_load(&l->killed_ns)) {
		churn_step(&c, CHURN_ALL);
		if (c.last_ns && !stage_passed(l, GATE_MET))
			stage_pass(l, GATE_MET);
	}
	NODE_UNTIL(l, stage_passed(l, GATE_KILLED), churn_take(&c));
	outlive(l, &c);
	take_what_came(n);
	NODE_CHECK(l, !fi_av_remove(n->av, &c.peer, 1, 0));
	NODE_CHECK(l, !fi_close(&n->mr->fid));
	n->mr = NULL;
	atomic_fetch_add(&l->errors, c.errors);
	atomic_fetch_add(&l->received, c.received);
	churn_close(&c);
}

static void survivor(void *stage, int rank)
{
	struct node_attr attr = { .provider = provider };
	struct long_life *l = stage;
	int descriptors = 0;
	size_t heap = 0;
	struct node n;

	NODE_CHECK(l, !node_open(&n, l, &attr));
	node_name(&n, l->names[0]);
	for (uint32_t round = 1; round <= l->rounds; round++) {
		NODE_UNTIL(l, stage_passed(l, GATE_ROUND) == round, (node_turn(&n), false));
		alarm(ROUND_SECS);
		survive(l, &n);
		if (round == WARM_ROUNDS) {
			descriptors = node_descriptors();
			heap = node_heap();
		}
		stage_pass(l, GATE_OVER);
	}
	if (l->rounds > WARM_ROUNDS) {
		printf("after %d peers %d descriptors and %zu bytes allocated, after %u %d and %zu\n",
		       WARM_ROUNDS, descriptors, heap, l->rounds, node_descriptors(),
		       node_heap());
		NODE_UNTIL(l, node_descriptors() <= descriptors, (node_turn(&n), false));
		NODE_UNTIL(l, NODE_SANITIZED || node_heap() < heap + GROWTH_MAX,
			   (node_turn(&n), false));
	}
	node_close(&n);
}

/* Returns the ns from the kill to the end of the last operation; 0: none was under way. */
static uint64_t life_round(struct long_life *l, uint32_t round, uint64_t *seed)
{
	uint64_t at;
	pid_t pid;

	l->seeds[0] = seeded_random(seed);
	l->seeds[1] = seeded_random(seed);
	atomic_store(&l->killed_ns, 0);
	atomic_store(&l->last_ns, 0);
	l->may_fork = round % 2;
	for (int gate = GATE_NAMED; gate <= GATE_KILLED; gate++)
		atomic_store(&l->stage.gates[gate], 0);
	stage_pass(l, GATE_ROUND);
	NODE_UNTIL(l, stage_passed(l, GATE_NAMED), false);
	pid = stage_start(l, 1, ROUND_SECS, victim);
	NODE_UNTIL(l, stage_passed(l, GATE_MET), false);
	at = node_now_ns() + seeded_below(seed, KILL_AFTER_NS);
	NODE_UNTIL(l, node_now_ns() > at, false);
	atomic_store(&l->killed_ns, node_now_ns());
	kill(pid, SIGKILL);
	stage_pass(l, GATE_KILLED);
	NODE_CHECK(l, stage_ended(l, pid, SIGKILL));
	NODE_UNTIL(l, stage_passed(l, GATE_OVER) == round, false);
	at = atomic_load(&l->last_ns);
	return at ? at - atomic_load(&l->killed_ns) : 0;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void lives(struct long_life *l, uint64_t seed)
{
	uint64_t *ns = calloc(l->rounds, sizeof(*ns)), took;
	uint32_t cnt = 0;

	NODE_CHECK(l, ns);
	for (uint32_t round = 1; round <= l->rounds; round++) {
		took = life_round(l, round, &seed);
		if (took)
			ns[cnt++] = took;
	}
	qsort(ns, cnt, sizeof(*ns), by_size);
	if (cnt)
		printf("from the signal to the last completion, ms: median %.2f, p90 %.2f, max %.2f\n",
		       (double)ns[cnt / 2] / 1e6, (double)ns[cnt * 9 / 10] / 1e6,
		       (double)ns[cnt - 1] / 1e6);
	printf("%u peers killed, with %u of them operations were under way: %llu errors; %llu messages received\n",
	       l->rounds, cnt, (unsigned long long)l->errors, (unsigned long long)l->received);
	free(ns);
}

int main(int argc, char **argv)
{
	struct long_life *l;
	pid_t pid;

	if (argc < 2)
		return 2;
	provider = argv[1];
	churn_room();
	l = stage_open(sizeof(*l));
	l->rounds = (uint32_t)node_setting("SURVIVE_ROUNDS",
					   argc > 2 ? strtoull(argv[2], NULL, 0) : 100);
	pid = stage_start(l, 0, ROUND_SECS, survivor);
	lives(l, node_seed());
	return !stage_ended(l, pid, 0);
}
