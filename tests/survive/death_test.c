/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two processes of one host exchange operations of all kinds at random, and one of them is killed
 * at a random moment: while it opens, connects, transfers or closes. All operations of the other
 * one end, with an error and its source where they did not succeed, within a bound that is
 * measured; and nothing is left of the killed one: no file, no segment, no descriptor of the
 * survivor.
 *
 * With a program it is not killed, but executes that at a random moment: for the other one that is
 * the same, and nothing that belongs to the program is written to.
 *
 *	death_test PROVIDER [ROUNDS [PROGRAM]]	SURVIVE_SEED, SURVIVE_ROUNDS
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include "churn.h"
#include "place.h"
#include "program.h"

#define BOUND_NS    10000000000u /* above it the test fails; what is required is a hundredth */
#define REQUIRED_NS 100000000u
#define ROUND_SECS  40
#define KEY	    7

/* What a survivor may do otherwise than to go on. */
enum survivor {
	SURVIVOR_BEGINS,  /* it connects */
	SURVIVOR_ANSWERS, /* it sends nothing before it was sent something */
	SURVIVOR_SLEEPS,  /* in fi_cq_sread() */
	SURVIVOR_AUTO,	  /* its domain has a thread */
	SURVIVOR_CLOSES,  /* at a random moment, with all that is under way */
	SURVIVOR_KINDS,
};

enum when {
	WHEN_OPENING, /* counted from the start of the process */
	WHEN_WORKING, /* from when both have names */
	WHEN_COMPUTING, /* the same; the victim stops to make progress soon, but may be read and written */
	WHEN_CLOSING, /* the victim opens and closes its endpoint again and again */
	WHEN_KINDS,
};

enum gate { GATE_ROUND, GATE_NAMED, GATE_VICTIM_NAMED, GATE_KILLED, GATE_OVER };

struct duel {
	struct stage stage;
	char names[2][NODE_NAME]; /* the survivor's, the victim's */
	enum survivor survivor;
	enum when when;
	uint64_t seeds[2];
	_Atomic uint64_t killed_ns,
		last_ns; /* last_ns: 0, or the end of the last operation since */
	_Atomic uint32_t under_way, errors;
	uint32_t rounds;
};

static const char *provider, *program;

static uint64_t spread(uint64_t *seed, uint64_t least, uint64_t most)
{
	uint64_t span = least;

	while (span < most && seeded_below(seed, 8))
		span *= 2;
	return least + seeded_below(seed, span < most ? span : most);
}

/* The victim */

static void compute(uint64_t ns)
{
	for (uint64_t end = node_now_ns() + ns; node_now_ns() < end;)
		;
}

static void victim(void *stage, int rank)
{
	struct node_attr attr = { .provider = provider };
	struct duel *d = stage;
	struct churn c;
	struct node n;

	if (program)
		program_ready();
	for (;;) {
		NODE_CHECK(stage, !node_open(&n, stage, &attr));
		churn_open(&c, &n, KEY, d->seeds[1]);
		node_name(&n, d->names[1]);
		stage_pass(stage, GATE_VICTIM_NAMED);
		c.peer = node_knows(&n, d->names[0]);
		c.loose = true;
		while (d->when != WHEN_CLOSING || seeded_below(&c.seed, 200)) {
			churn_step(&c, CHURN_ALL);
			if (d->when == WHEN_COMPUTING && c.received &&
			    !seeded_below(&c.seed, 64))
				compute(seeded_below(&c.seed, 4) ? 100000
								 : ROUND_SECS * 1000000000ull);
		}
		churn_close(&c);
		node_close(&n);
	}
}

/* The survivor */

static bool is_dead(const struct duel *d)
{
	return atomic_load(&d->killed_ns) != 0;
}

/* Works until the other is dead, or until this one has enough. */
static void work(struct duel *d, struct churn *c)
{
	uint64_t steps = d->survivor == SURVIVOR_CLOSES ? spread(&c->seed, 10, 4000)
							: UINT64_MAX;
	bool heard = d->survivor != SURVIVOR_ANSWERS;

	for (uint64_t i = 0; i < steps && !is_dead(d); i++) {
		churn_step(c, heard ? CHURN_ALL : CHURN_RECEIVE);
		heard |= c->received > 0;
		if (d->survivor == SURVIVOR_SLEEPS && !seeded_below(&c->seed, 4))
			churn_sleep(c, 20);
	}
	if (d->survivor == SURVIVOR_CLOSES)
		return;
	/* What is posted to the dead ends as well. */
	c->loose = true;
	for (uint64_t i = 0; i < 8; i++)
		churn_step(c, CHURN_SEND);
	if (!heard)
		churn_send(c);
}

/*
 * All operations under way end. A peer that closed in order leaves the receives that name it
 * posted.
 */
static void outlive(struct duel *d, struct churn *c)
{
	uint64_t killed = atomic_load(&d->killed_ns), end = killed + BOUND_NS;

	atomic_store(&d->under_way, c->under_way);
	while (c->under_way > c->receives ||
	       (d->when != WHEN_CLOSING && churn_owed(c, killed))) {
		if (d->survivor == SURVIVOR_SLEEPS)
			churn_sleep(c, 1000);
		else if (!churn_take(c))
			node_pause(d);
		if (node_now_ns() < end)
			continue;
		fprintf(stderr, "survivor %d, when %d\n", d->survivor, d->when);
		churn_tell(c);
		NODE_CHECK(d, !"operations end");
	}
	if (c->last_ns > killed)
		atomic_store(&d->last_ns, c->last_ns);
	atomic_store(&d->errors, c->errors);
	churn_cancel(c);
	while (c->under_way)
		churn_take(c);
}

/* A wildcard receive never fails because a peer died. */
static void wildcard_stays(struct churn *c)
{
	struct node *n = c->node;

	NODE_CHECK(n->stage, !c->wildcard_ended);
	NODE_CHECK(n->stage, !fi_cancel(&n->ep->fid, &c->wildcard_ended));
	NODE_UNTIL(n->stage, c->wildcard_ended, churn_take(c));
}

static void survive(struct duel *d)
{
	struct node_attr attr = { .provider = provider,
				  .sleeps = d->survivor == SURVIVOR_SLEEPS,
				  .automatic = d->survivor == SURVIVOR_AUTO };
	struct churn c;
	struct node n;

	NODE_CHECK(d, !node_open(&n, d, &attr));
	churn_open(&c, &n, KEY, d->seeds[0]);
	c.loose = d->when == WHEN_CLOSING;
	c.dead = &d->killed_ns;
	node_name(&n, d->names[0]);
	stage_pass(d, GATE_NAMED);
	NODE_UNTIL(d, stage_passed(d, GATE_VICTIM_NAMED) || is_dead(d), churn_take(&c));
	if (stage_passed(d, GATE_VICTIM_NAMED)) {
		c.peer = node_knows(&n, d->names[1]);
		churn_wildcard(&c);
		work(d, &c);
	}
	NODE_UNTIL(d, stage_passed(d, GATE_KILLED) || d->survivor == SURVIVOR_CLOSES,
		   churn_take(&c));
	if (c.peer != FI_ADDR_UNSPEC && d->survivor != SURVIVOR_CLOSES) {
		outlive(d, &c);
		wildcard_stays(&c);
	}
	churn_close(&c);
	node_close(&n);
}

static void survivor(void *stage, int rank)
{
	struct duel *d = stage;
	int descriptors = -1;

	for (uint32_t round = 1; round <= d->rounds; round++) {
		NODE_UNTIL(d, stage_passed(d, GATE_ROUND) == round, false);
		alarm(ROUND_SECS);
		survive(d);
		/* Those that the first endpoint of a process opens for all stay. */
		if (round == 1)
			descriptors = node_descriptors();
		if (node_descriptors() != descriptors)
			fprintf(stderr, "%d descriptors, there were %d\n", node_descriptors(),
				descriptors);
		NODE_CHECK(d, node_descriptors() == descriptors);
		stage_pass(d, GATE_OVER);
	}
}

/* The process that kills */

static void sleep_ns(uint64_t ns)
{
	uint64_t end = node_now_ns() + ns;

	while (node_now_ns() < end)
		usleep(ns > 100000 ? 50 : 0);
}

/* Returns the ns from the kill to the end of the last operation; 0: none was under way. */
static uint64_t duel_round(struct duel *d, uint32_t round, uint64_t *seed)
{
	pid_t pid;

	d->survivor = (enum survivor)seeded_below(seed, SURVIVOR_KINDS);
	d->when = seeded_below(seed, 2) ? WHEN_WORKING
					: (enum when)seeded_below(seed, WHEN_KINDS);
	d->seeds[0] = seeded_random(seed);
	d->seeds[1] = seeded_random(seed);
	atomic_store(&d->killed_ns, 0);
	atomic_store(&d->last_ns, 0);
	atomic_store(&d->under_way, 0);
	atomic_store(&d->errors, 0);
	for (int gate = GATE_NAMED; gate <= GATE_KILLED; gate++)
		atomic_store(&d->stage.gates[gate], 0);
	stage_pass(d, GATE_ROUND);
	NODE_UNTIL(d, stage_passed(d, GATE_NAMED), false);
	pid = stage_start(d, 1, ROUND_SECS, victim);
	if (d->when != WHEN_OPENING)
		NODE_UNTIL(d, stage_passed(d, GATE_VICTIM_NAMED), false);
	sleep_ns(spread(seed, 2000, 20000000));
	atomic_store(&d->killed_ns, node_now_ns());
	if (program)
		program_begin(pid);
	else
		kill(pid, SIGKILL);
	stage_pass(d, GATE_KILLED);
	if (!program)
		NODE_CHECK(d, stage_ended(d, pid, SIGKILL));
	NODE_UNTIL(d, stage_passed(d, GATE_OVER) == round, false);
	if (program) {
		program_end(pid);
		NODE_CHECK(d, stage_ended(d, pid, SIGUSR1));
	}
	return atomic_load(&d->last_ns) ? atomic_load(&d->last_ns) - d->killed_ns : 0;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void report(const char *what, uint64_t *ns, size_t cnt)
{
	size_t over = 0;

	if (!cnt)
		return;
	qsort(ns, cnt, sizeof(*ns), by_size);
	for (size_t i = 0; i < cnt; i++)
		over += ns[i] > REQUIRED_NS;
	printf("%s: from the signal to the last completion, ms: median %.2f, p90 %.2f, max %.2f; "
	       "%zu rounds, %zu above 100 ms\n",
	       what, (double)ns[cnt / 2] / 1e6, (double)ns[cnt * 9 / 10] / 1e6,
	       (double)ns[cnt - 1] / 1e6, cnt, over);
}

static void duels(struct duel *d, uint64_t seed)
{
	static const char *const names[WHEN_KINDS + 1] = {
		"killed while it opens", "killed at work", "killed while it computes",
		"killed while it closes", "at work, the survivor asleep"
	};
	uint64_t *ns[WHEN_KINDS + 1], took, under_way = 0, errors = 0;
	size_t cnt[WHEN_KINDS + 1] = { 0 };

	for (int i = 0; i <= WHEN_KINDS; i++)
		NODE_CHECK(d, (ns[i] = calloc(d->rounds, sizeof(*ns[i]))));
	for (uint32_t round = 1; round <= d->rounds; round++) {
		uint64_t of_round = seed;
		int kind;

		took = duel_round(d, round, &seed);
		if (took > REQUIRED_NS)
			printf("round %u (seed %llu): %.1f ms, survivor %d, when %d\n", round,
			       (unsigned long long)of_round, (double)took / 1e6, d->survivor,
			       d->when);
		kind = d->when == WHEN_WORKING && d->survivor == SURVIVOR_SLEEPS ? WHEN_KINDS
										 : (int)d->when;
		if (took)
			ns[kind][cnt[kind]++] = took;
		under_way += atomic_load(&d->under_way);
		errors += atomic_load(&d->errors);
	}
	for (int i = 0; i <= WHEN_KINDS; i++) {
		report(names[i], ns[i], cnt[i]);
		free(ns[i]);
	}
	printf("%u rounds; %llu operations under way at a death, %llu errors\n", d->rounds,
	       (unsigned long long)under_way, (unsigned long long)errors);
}

int main(int argc, char **argv)
{
	struct duel *d;
	char why[128];
	bool alone;
	pid_t pid;

	if (argc < 2)
		return 2;
	provider = argv[1];
	program = argc > 3 ? argv[3] : NULL;
	NODE_CHECK(NULL, !program || !program_set(program));
	alone = !place_enter(why, sizeof(why));
	if (!alone)
		printf("not looked for: files that are left, %s\n", why);
	churn_room();
	d = stage_open(sizeof(*d));
	d->rounds = (uint32_t)node_setting("SURVIVE_ROUNDS",
					   argc > 2 ? strtoull(argv[2], NULL, 0) : 100);
	pid = stage_start(d, 0, ROUND_SECS, survivor);
	duels(d, node_seed());
	NODE_CHECK(d, stage_ended(d, pid, 0));
	if (alone && !place_empty(why, sizeof(why))) {
		fprintf(stderr, "left behind: %s\n", why);
		return 1;
	}
	return 0;
}
