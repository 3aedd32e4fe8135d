/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many at once with `ulimit -n 1024`: a thousand endpoints in one process, each of which exchanges
 * messages with the next, with a random one and with another process; and many processes, each of
 * which sends to each other, small messages and a large one now and then. All bytes are checked;
 * time and memory are printed.
 *
 *	scale_test PROVIDER endpoints|processes [COUNT [DESCRIPTORS]]	SURVIVE_ROUNDS, SURVIVE_SEED
 */
#define _GNU_SOURCE
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "node.h"
#include "seeded.h"

#define FILES	   1024 /* descriptors, by default */
#define TEST_SECS  900
#define HERE	   1000 /* endpoints, by default */
#define THERE	   256	/* processes, by default */
#define SMALLS	   3	/* messages from each to each */
#define SMALL	   64u
#define LARGE	   100000u
#define LARGE_STEP 16 /* one of so many pairs has a large one too */
#define MANY_MAX   4096
#define ANY_TAG	   (1ull << 32) /* of messages to a random one: the sender is in the tag */

enum gate { GATE_NAMED, GATE_DONE };

struct crowd {
	struct stage stage;
	uint32_t cnt;
	_Atomic uint64_t resident_kb, shared_kb, descriptors; /* most of any one */
	char names[MANY_MAX][NODE_NAME];
};

static const char *provider;
static rlim_t files = FILES;
static uint64_t seed;

static void most(_Atomic uint64_t *of, uint64_t value)
{
	uint64_t seen = atomic_load(of);

	while (seen < value && !atomic_compare_exchange_weak(of, &seen, value))
		;
}

/* What the process has in memory now, and how many descriptors. */
static void tell_size(struct crowd *c)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long kb;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "VmRSS: %lu", &kb) == 1)
			most(&c->resident_kb, kb);
		if (sscanf(line, "RssShmem: %lu", &kb) == 1)
			most(&c->shared_kb, kb);
	}
	if (file)
		fclose(file);
	most(&c->descriptors, (uint64_t)node_descriptors());
}

static void limit_files(struct crowd *c)
{
	struct rlimit limit = { .rlim_cur = files, .rlim_max = files };

	NODE_CHECK(c, !setrlimit(RLIMIT_NOFILE, &limit));
}

static uint64_t id_of(uint32_t from, uint32_t to, uint32_t i)
{
	return (uint64_t)from << 40 | (uint64_t)to << 16 | i;
}

/*
 * Give the core to hundreds of others: a process that only yields gets it back before them, until
 * its time slice is used up.
 */
static void step_aside(void *stage)
{
	static const struct timespec moment = { .tv_nsec = 50000 };

	node_pause(stage);
	nanosleep(&moment, NULL);
}

/* The end of every operation is reported; contents are checked when all have ended. */
static void end_one(struct node *n, uint64_t *ended)
{
	ssize_t turn = node_turn(n);

	if (turn == -FI_EAVAIL)
		fprintf(stderr, "an operation failed: %s\n", fi_strerror(n->error.err));
	NODE_CHECK(n->stage, turn != -FI_EAVAIL);
	if (turn == 1)
		++*ended;
	else
		step_aside(n->stage);
}

#define POST(n, ended, call)                                          \
	do {                                                          \
		ssize_t ret_;                                         \
		NODE_UNTIL((n)->stage, (ret_ = (call)) != -FI_EAGAIN, \
			   (end_one(n, ended), true));                \
		NODE_CHECK((n)->stage, !ret_);                        \
	} while (0)

/* A thousand endpoints in one process */

static uint32_t rnd(void)
{
	return (uint32_t)seeded_random(&seed);
}

/* Each sends to the next one, to any one, and to the process beside, which answers. */
static void many_talk(struct crowd *c, struct node *nodes, fi_addr_t beside, fi_addr_t *addrs)
{
	uint32_t cnt = c->cnt;
	uint8_t *in = calloc(cnt, 3 * SMALL), *out = calloc(cnt, 3 * SMALL);
	uint32_t *any = calloc(cnt, sizeof(*any));
	uint64_t ended = 0;

	NODE_CHECK(c, in && out && any);
	for (uint32_t i = 0; i < cnt; i++) {
		uint8_t *to = out + (size_t)i * 3 * SMALL, *from = in + (size_t)i * 3 * SMALL;
		struct node *n = &nodes[i];
		uint32_t next = (i + 1) % cnt;

		any[i] = rnd() % cnt;

		node_pattern(to, SMALL, id_of(i, next, 0));
		node_pattern(to + SMALL, SMALL, id_of(i, cnt, 0));
		node_pattern(to + 2 * SMALL, SMALL, id_of(i, any[i], 2));
		POST(n, &ended, fi_trecv(n->ep, from, SMALL, NULL, FI_ADDR_UNSPEC, 1, 0, n));
		POST(n, &ended, fi_trecv(n->ep, from + SMALL, SMALL, NULL, beside, 2, 0, n));
		POST(n, &ended, fi_tsend(n->ep, to, SMALL, NULL, addrs[next], 1, n));
		POST(n, &ended, fi_tsend(n->ep, to + SMALL, SMALL, NULL, beside, i << 8, n));
		POST(n, &ended,
		     fi_trecv(nodes[any[i]].ep, from + 2 * SMALL, SMALL, NULL, FI_ADDR_UNSPEC,
			      ANY_TAG | i, 0, n));
		POST(n, &ended,
		     fi_tsend(n->ep, to + 2 * SMALL, SMALL, NULL, addrs[any[i]], ANY_TAG | i,
			      n));
	}
	NODE_UNTIL(c, ended == 6ull * cnt, (end_one(&nodes[0], &ended), false));
	for (uint32_t i = 0; i < cnt; i++) {
		uint8_t *from = in + (size_t)i * 3 * SMALL;

		NODE_CHECK(c, node_is_pattern(from, SMALL, id_of((i + cnt - 1) % cnt, i, 0)));
		NODE_CHECK(c, node_is_pattern(from + SMALL, SMALL, id_of(cnt, i, 1)));
		NODE_CHECK(c, node_is_pattern(from + 2 * SMALL, SMALL, id_of(i, any[i], 2)));
	}
	free(any);
	free(in);
	free(out);
}

static void many_here(void *stage, int rank)
{
	struct node_attr attr = { .provider = provider, .cq_size = 8192 };
	struct crowd *c = stage;
	struct node *nodes = calloc(c->cnt, sizeof(*nodes));
	fi_addr_t *addrs = calloc(c->cnt, sizeof(*addrs)), beside;
	uint64_t began = node_now_ns(), opened, talked;

	NODE_CHECK(c, nodes && addrs);
	limit_files(c);
	NODE_CHECK(c, !node_open(&nodes[0], c, &attr));
	for (uint32_t i = 1; i < c->cnt; i++)
		NODE_CHECK(c, !node_open_in(&nodes[i], &nodes[0]));
	opened = node_now_ns();
	for (uint32_t i = 0; i < c->cnt; i++) {
		node_name(&nodes[i], c->names[i]);
		addrs[i] = node_knows(&nodes[0], c->names[i]);
	}
	stage_pass(c, GATE_NAMED);
	NODE_UNTIL(c, stage_passed(c, GATE_NAMED) == 2, false);
	beside = node_knows(&nodes[0], c->names[c->cnt]);
	many_talk(c, nodes, beside, addrs);
	talked = node_now_ns();
	tell_size(c);
	stage_pass(c, GATE_DONE);
	NODE_UNTIL(c, stage_passed(c, GATE_DONE) == 2, (node_turn(&nodes[0]), false));
	for (uint32_t i = c->cnt; i--;)
		node_close(&nodes[i]);
	printf("%u endpoints: opened in %.2f s, connected and used in %.2f s\n", c->cnt,
	       (double)(opened - began) / 1e9, (double)(talked - opened) / 1e9);
	free(nodes);
	free(addrs);
}

/* Takes one message of each of them, and answers it. */
static void one_beside(void *stage, int rank)
{
	struct node_attr attr = { .provider = provider, .cq_size = 8192 };
	struct crowd *c = stage;
	uint8_t in[SMALL], *out = calloc(c->cnt, SMALL);
	uint64_t ended = 0;
	struct node n;

	NODE_CHECK(c, out);
	limit_files(c);
	NODE_CHECK(c, !node_open(&n, c, &attr));
	node_name(&n, c->names[c->cnt]);
	stage_pass(c, GATE_NAMED);
	NODE_UNTIL(c, stage_passed(c, GATE_NAMED) == 2, false);
	for (uint32_t i = 0; i < c->cnt; i++)
		NODE_CHECK(c, node_knows(&n, c->names[i]) == i);
	for (uint32_t i = 0; i < c->cnt; i++) {
		bool got = false;

		NODE_CHECK(c,
			   !fi_trecv(n.ep, in, SMALL, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, in));
		while (!got) {
			uint64_t before = ended;

			NODE_UNTIL(c, ended > before, (end_one(&n, &ended), false));
			got = n.entry.op_context == in;
		}
		NODE_CHECK(c, n.source == n.entry.tag >> 8);
		NODE_CHECK(c, node_is_pattern(in, SMALL, id_of((uint32_t)n.source, c->cnt, 0)));
		node_pattern(out + n.source * SMALL, SMALL,
			     id_of(c->cnt, (uint32_t)n.source, 1));
		POST(&n, &ended,
		     fi_tsend(n.ep, out + n.source * SMALL, SMALL, NULL, n.source, 2, &n));
	}
	stage_pass(c, GATE_DONE);
	NODE_UNTIL(c, stage_passed(c, GATE_DONE) == 2, (node_turn(&n), false));
	node_close(&n);
	free(out);
}

/* Processes all to all */

static bool has_large(uint32_t from, uint32_t to)
{
	return (from * 7 + to) % LARGE_STEP == 0;
}

/* Bytes of a message that arrived, in the buffer of its own receive. */
static void all_arrived(struct node *n, uint32_t rank, uint32_t cnt, const uint8_t *in,
			const uint8_t *large)
{
	for (uint32_t from = 0; from < cnt; from++) {
		for (uint32_t i = 0; i < SMALLS && from != rank; i++)
			NODE_CHECK(n->stage,
				   node_is_pattern(in + ((size_t)from * SMALLS + i) * SMALL,
						   SMALL, id_of(from, rank, i)));
		if (from != rank && has_large(from, rank)) {
			NODE_CHECK(n->stage,
				   node_is_pattern(large, LARGE, id_of(from, rank, SMALLS)));
			large += LARGE;
		}
	}
}

static uint64_t post_receives(struct node *n, uint32_t rank, uint32_t cnt, uint8_t *in,
			      uint8_t *large, uint64_t *ended)
{
	uint64_t pending = 0;

	for (uint32_t from = 0; from < cnt; from++) {
		if (from == rank)
			continue;
		for (uint32_t i = 0; i < SMALLS; i++, pending++)
			POST(n, ended,
			     fi_trecv(n->ep, in + ((size_t)from * SMALLS + i) * SMALL, SMALL,
				      NULL, from, i, 0, n));
		if (!has_large(from, rank))
			continue;
		POST(n, ended, fi_trecv(n->ep, large, LARGE, NULL, from, SMALLS, 0, n));
		large += LARGE;
		pending++;
	}
	return pending;
}

/* To one after the other, each beginning with another. Returns how many ends there will be. */
static uint64_t post_sends(struct node *n, uint32_t rank, uint32_t cnt, uint8_t *out,
			   uint8_t *large, uint64_t *ended)
{
	uint64_t pending = 0;

	for (uint32_t k = 1; k < cnt; k++) {
		uint32_t to = (rank + k) % cnt;

		for (uint32_t i = 0; i < SMALLS; i++, pending++, out += SMALL) {
			node_pattern(out, SMALL, id_of(rank, to, i));
			POST(n, ended, fi_tsend(n->ep, out, SMALL, NULL, to, i, n));
		}
		if (!has_large(rank, to))
			continue;
		node_pattern(large, LARGE, id_of(rank, to, SMALLS));
		POST(n, ended, fi_tsend(n->ep, large, LARGE, NULL, to, SMALLS, n));
		large += LARGE;
		pending++;
	}
	return pending;
}

static void all_to_all(void *stage, int rank)
{
	struct node_attr attr = { .provider = provider, .cq_size = 8192 };
	struct crowd *c = stage;
	uint32_t cnt = c->cnt, me = (uint32_t)rank;
	size_t smalls = (size_t)cnt * SMALLS * SMALL, larges = (size_t)cnt * LARGE;
	uint8_t *in = malloc(smalls), *out = malloc(smalls);
	uint8_t *large_in = malloc(larges), *large_out = malloc(larges);
	uint64_t ended = 0, pending;
	struct node n;

	NODE_CHECK(c, in && out && large_in && large_out);
	limit_files(c);
	NODE_CHECK(c, !node_open(&n, c, &attr));
	node_name(&n, c->names[me]);
	stage_pass(c, GATE_NAMED);
	NODE_UNTIL(c, stage_passed(c, GATE_NAMED) == cnt, (step_aside(c), false));
	for (uint32_t i = 0; i < cnt; i++)
		NODE_CHECK(c, node_knows(&n, c->names[i]) == i);
	pending = post_receives(&n, me, cnt, in, large_in, &ended);
	pending += post_sends(&n, me, cnt, out, large_out, &ended);
	NODE_UNTIL(c, ended == pending, (end_one(&n, &ended), false));
	all_arrived(&n, me, cnt, in, large_in);
	tell_size(c);
	stage_pass(c, GATE_DONE);
	NODE_UNTIL(c, stage_passed(c, GATE_DONE) == cnt, (node_turn(&n), step_aside(c), false));
	node_close(&n);
	free(in);
	free(out);
	free(large_in);
	free(large_out);
}

static bool run(struct crowd *c, bool processes)
{
	uint32_t cnt = processes ? c->cnt : 2;
	uint64_t began = node_now_ns();
	pid_t pids[MANY_MAX];
	bool ok = true;

	for (uint32_t i = 0; i < cnt; i++)
		pids[i] = stage_start(c, (int)i, TEST_SECS,
				      processes ? all_to_all
				      : i	? one_beside
						: many_here);
	for (uint32_t i = 0; i < cnt; i++)
		ok &= stage_ended(c, pids[i], 0);
	printf("%u %s in %.1f s; of one process at most %llu kB resident, of them %llu kB "
	       "shared, %llu descriptors\n",
	       c->cnt, processes ? "processes all to all" : "endpoints of one process",
	       (double)(node_now_ns() - began) / 1e9,
	       (unsigned long long)atomic_load(&c->resident_kb),
	       (unsigned long long)atomic_load(&c->shared_kb),
	       (unsigned long long)atomic_load(&c->descriptors));
	return ok;
}

int main(int argc, char **argv)
{
	struct crowd *c;
	bool processes;

	if (argc < 3)
		return 2;
	provider = argv[1];
	processes = !strcmp(argv[2], "processes");
	c = stage_open(sizeof(*c));
	c->cnt = (uint32_t)node_setting("SURVIVE_ROUNDS", argc > 3 ? strtoull(argv[3], NULL, 0)
							  : processes ? THERE
								      : HERE);
	if (c->cnt >= MANY_MAX)
		return 2;
	if (argc > 4)
		files = (rlim_t)strtoull(argv[4], NULL, 0);
	seed = node_seed();
	/* Hundreds of processes on few cores; and what waits for a descriptor says so for each. */
	node_secs = TEST_SECS;
	setenv("FI_LOG_SUBSYS", "core", 0);
	return !run(c, processes);
}
