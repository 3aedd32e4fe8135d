/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process is stopped (SIGSTOP) in the middle of large messages both ways, and continues after a
 * while. Messages to it and from it arrive, in order and whole; and other peers of the same
 * endpoint go on meanwhile as fast as before.
 *
 *	stop_test PROVIDER [STOPS]	SURVIVE_SEED, SURVIVE_ROUNDS
 */
#include <signal.h>
#include <unistd.h>
#include "echo.h"

#define TEST_SECS 120
#define DEPTH	  4	       /* talks with the one that is stopped */
#define WINDOW_NS 250000000ull /* of each measurement */
#define SLOWEST	  0.25	       /* of the rate before, on a machine with others at work */
#define MORE_MAX  30	       /* stops beyond those that are asked for */
#define TAG(i)	  ((uint64_t)(i) << 32)

enum member { CENTRE, STOPPED, OTHER, MEMBERS };
enum gate { GATE_NAMED, GATE_ENOUGH = MEMBERS, GATE_QUIET, GATE_OVER };

struct scene {
	struct stage stage;
	char names[MEMBERS][NODE_NAME];
	_Atomic uint64_t with_stopped, with_other; /* messages there and back */
	uint64_t seed;
};

static const char *provider;

static void meet(struct node *n, struct scene *s, int rank)
{
	struct node_attr attr = { .provider = provider };

	NODE_CHECK(s, !node_open(n, s, &attr));
	node_name(n, s->names[rank]);
	stage_pass(s, GATE_NAMED + rank);
	for (int i = 0; i < MEMBERS; i++)
		NODE_UNTIL(s, stage_passed(s, GATE_NAMED + i), false);
}

/* Whose turn it was; all belong to one node. */
static bool took(struct echo *talks, int cnt, struct node *n)
{
	ssize_t turn = node_turn(n);

	if (turn == -FI_EAGAIN)
		return false;
	for (int i = 0; i < cnt; i++) {
		if (!echo_took(&talks[i], turn))
			continue;
		NODE_CHECK(n->stage, !talks[i].err);
		return true;
	}
	NODE_CHECK(n->stage, !"somebody's");
	return false;
}

/* Returns true if everything that was begun here has ended. */
static bool quiet(const struct echo *talks, int cnt)
{
	for (int i = 0; i < cnt; i++)
		if (!talks[i].answers && !echo_over(&talks[i]))
			return false;
	return true;
}

static size_t large(uint64_t *seed)
{
	return ECHO_MAX / 4 + seeded_below(seed, 3 * ECHO_MAX / 4);
}

/*
 * Talks with the centre, several large ones at once: the one that is stopped begins half of them,
 * so that it holds messages on their way in both directions.
 */
static void talker(void *stage, int rank)
{
	int cnt = rank == STOPPED ? DEPTH : 1;
	struct echo talks[DEPTH];
	struct scene *s = stage;
	uint64_t seed = s->seed + (uint64_t)rank;
	fi_addr_t centre;
	struct node n;

	meet(&n, s, rank);
	centre = node_knows(&n, s->names[CENTRE]);
	for (int i = 0; i < cnt; i++) {
		echo_open(&talks[i], &n, centre, TAG(i + 1));
		if (i % 2)
			echo_ask(&talks[i], 1);
		else
			echo_expect(&talks[i]);
	}
	while (!stage_passed(s, GATE_ENOUGH)) {
		if (!took(talks, cnt, &n))
			node_pause(s);
		for (int i = 1; i < cnt; i += 2)
			if (echo_over(&talks[i]))
				echo_ask(&talks[i], large(&seed));
	}
	NODE_UNTIL(s, quiet(talks, cnt), took(talks, cnt, &n));
	stage_pass(s, GATE_QUIET);
	NODE_UNTIL(s, stage_passed(s, GATE_OVER), took(talks, cnt, &n));
	node_close(&n);
	for (int i = 0; i < cnt; i++)
		echo_close(&talks[i]);
}

/* Begins what the others expect, and counts. */
static void begin(struct scene *s, struct echo *talks, uint64_t *seed)
{
	static const size_t lens[] = { 8, 4096, 65536, 1 << 20 };

	for (int i = 0; i < DEPTH; i += 2) {
		if (!echo_over(&talks[i]))
			continue;
		atomic_fetch_add(&s->with_stopped, 1);
		echo_ask(&talks[i], large(seed));
	}
	if (echo_over(&talks[DEPTH])) {
		atomic_fetch_add(&s->with_other, 1);
		echo_ask(&talks[DEPTH], lens[seeded_below(seed, 4)]);
	}
}

static void centre(void *stage, int rank)
{
	struct echo talks[DEPTH + 1];
	struct scene *s = stage;
	uint64_t seed = s->seed;
	struct node n;

	meet(&n, s, rank);
	for (int i = 0; i <= DEPTH; i++) {
		int with = i < DEPTH ? STOPPED : OTHER;

		echo_open(&talks[i], &n, node_knows(&n, s->names[with]),
			  with == OTHER ? TAG(1) : TAG(i + 1));
		if (i % 2)
			echo_expect(&talks[i]);
		else
			echo_ask(&talks[i], 1);
	}
	while (!stage_passed(s, GATE_ENOUGH)) {
		if (!took(talks, DEPTH + 1, &n))
			node_pause(s);
		begin(s, talks, &seed);
	}
	NODE_UNTIL(s, quiet(talks, DEPTH + 1), took(talks, DEPTH + 1, &n));
	stage_pass(s, GATE_QUIET);
	NODE_UNTIL(s, stage_passed(s, GATE_QUIET) == MEMBERS, took(talks, DEPTH + 1, &n));
	stage_pass(s, GATE_OVER);
	node_close(&n);
	for (int i = 0; i <= DEPTH; i++)
		echo_close(&talks[i]);
}

struct counts {
	double other, stopped; /* messages there and back, each second */
};

/* Rates of some time; of more, on a busy machine, until there has been one message at least. */
static struct counts window(struct scene *s, bool stopped_too)
{
	uint64_t since = node_now_ns(), others = atomic_load(&s->with_other),
		 stopped = atomic_load(&s->with_stopped), other = 0, of_stopped = 0, ns = 0;

	while (ns < WINDOW_NS || !other || (stopped_too && !of_stopped)) {
		NODE_CHECK(s, !atomic_load(&s->stage.failed));
		NODE_CHECK(s, ns < node_secs * 1000000000ull);
		usleep(1000);
		ns = node_now_ns() - since;
		other = atomic_load(&s->with_other) - others;
		of_stopped = atomic_load(&s->with_stopped) - stopped;
	}
	return (struct counts){ .other = (double)other * 1e9 / (double)ns,
				.stopped = (double)of_stopped * 1e9 / (double)ns };
}

/* One is stopped at any moment of its work; returns what the other had of its rate before. */
static double stop_once(struct scene *s, pid_t pid, uint64_t *seed)
{
	struct counts before = window(s, true), during;

	usleep((useconds_t)seeded_below(seed, 20000));
	NODE_CHECK(s, !kill(pid, SIGSTOP));
	during = window(s, false);
	NODE_CHECK(s, !kill(pid, SIGCONT));
	printf("there and back each second: the other %.0f, %.0f while one is stopped; "
	       "that one %.1f, %.1f\n",
	       before.other, during.other, before.stopped, during.stopped);
	return during.other / before.other;
}

static bool run(uint64_t stops, uint64_t seed)
{
	struct scene *s = stage_open(sizeof(*s));
	pid_t pids[MEMBERS];
	double best = 0;
	bool ok = true;

	s->seed = seed;
	pids[CENTRE] = stage_start(s, CENTRE, TEST_SECS, centre);
	pids[STOPPED] = stage_start(s, STOPPED, TEST_SECS, talker);
	pids[OTHER] = stage_start(s, OTHER, TEST_SECS, talker);
	NODE_UNTIL(s, atomic_load(&s->with_stopped) > 3 && atomic_load(&s->with_other) > 3,
		   false);
	/* Windows may be lost to other processes, on a busy machine; not all. */
	for (uint64_t i = 0; i < stops || (best <= SLOWEST && i < stops + MORE_MAX); i++) {
		double part = stop_once(s, pids[STOPPED], &seed);

		best = part > best ? part : best;
	}
	NODE_CHECK(s, best > SLOWEST);
	/* The centre itself is stopped: the others wait, and nothing is lost. */
	NODE_CHECK(s, !kill(pids[CENTRE], SIGSTOP));
	usleep(WINDOW_NS / 1000);
	NODE_CHECK(s, !kill(pids[CENTRE], SIGCONT));
	window(s, true);
	stage_pass(s, GATE_ENOUGH);
	for (int i = 0; i < MEMBERS; i++)
		ok &= stage_ended(s, pids[i], 0);
	return ok;
}

int main(int argc, char **argv)
{
	uint64_t seed;

	if (argc < 2)
		return 2;
	provider = argv[1];
	seed = node_seed();
	return !run(node_setting("SURVIVE_ROUNDS", argc > 2 ? strtoull(argv[2], NULL, 0) : 3),
		    seed);
}
