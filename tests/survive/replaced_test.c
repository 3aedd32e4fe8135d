/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Large reads and writes of memory whose owner computes, and executes another program meanwhile:
 * they end with an error that names it, nothing is written to that program, and none of its bytes
 * are taken for what was read. Further accesses to the former owner fail each time.
 *
 *	replaced_test PROVIDER ROUNDS PROGRAM	SURVIVE_SEED, SURVIVE_ROUNDS
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include "node.h"
#include "program.h"

#define ROUND_SECS  40
#define KEY	    9
#define LEN	    (8u << 20) /* of the region */
#define ACCESS_MAX  (3u << 20) /* of an access */
#define GO_ON_NS    40000000u  /* after the signal, until the other program is there */
#define REQUIRED_NS 100000000u

enum member { OWNER, ACCESSOR, MEMBERS };
enum gate { GATE_NAMED, GATE_DEAF = MEMBERS };

struct scene {
	struct stage stage;
	char names[MEMBERS][NODE_NAME];
	uint64_t seed;
	_Atomic uint64_t told_ns;  /* when the owner was signalled; 0: not yet */
	_Atomic uint64_t moved;	   /* accesses that went well */
	_Atomic uint64_t error_ns; /* the first error */
	_Atomic uint64_t errors;
};

struct side {
	struct scene *s;
	struct node n;
	fi_addr_t other;
	uint8_t *buf;
	bool over; /* the access or message under way */
	int err;
};

static const char *provider;

static void meet(struct side *side, struct scene *s, int rank)
{
	struct node_attr attr = { .provider = provider };

	*side = (struct side){ .s = s };
	/* a mapping of its own, that the other program finds */
	side->buf = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NODE_CHECK(s, side->buf != MAP_FAILED && !node_open(&side->n, s, &attr));
	side->other = node_meet(&side->n, s->names, rank, GATE_NAMED);
}

/* One look at the queue. */
static bool turned(struct side *side)
{
	if (!node_ended(&side->n, &side->err))
		return false;
	side->over = true;
	if (side->err)
		NODE_CHECK(side->s, side->n.error.src_addr == side->other);
	return true;
}

static void owner(void *stage, int rank)
{
	struct side side;
	char byte;

	program_ready();
	meet(&side, stage, rank);
	node_pattern(side.buf, LEN, 1);
	node_expose(&side.n, side.buf, LEN, KEY);
	NODE_CHECK(stage, !fi_recv(side.n.ep, &byte, 1, NULL, side.other, &byte));
	NODE_UNTIL(stage, side.over, turned(&side));
	NODE_CHECK(stage, !side.err);
	stage_pass(stage, GATE_DEAF);
	for (;;)
		node_pause(stage);
}

/* One access; what is written are the bytes that stand there, and what is read is looked at. */
static void access_one(struct side *side, uint64_t *seed)
{
	size_t len = 8193 + seeded_below(seed, ACCESS_MAX), at = seeded_below(seed, LEN - len);
	bool write = seeded_below(seed, 2);
	uint8_t *buf = side->buf + at;
	ssize_t ret;

	side->over = false;
	if (!write)
		memset(buf, 0, len);
	ret = write ? fi_write(side->n.rma, buf, len, NULL, side->other, at, KEY, side)
		    : fi_read(side->n.ep, buf, len, NULL, side->other, at, KEY, side);
	NODE_CHECK(side->s, !ret);
	NODE_UNTIL(side->s, side->over, turned(side));
	if (side->err) {
		/*
		 * unreachable: only root may open the files of a process while it executes a
		 * program
		 */
		NODE_CHECK(side->s, side->err == FI_ECONNRESET || side->err == FI_ECONNREFUSED ||
					    side->err == FI_EHOSTUNREACH);
		NODE_CHECK(side->s, atomic_load(&side->s->told_ns));
		if (!atomic_fetch_add(&side->s->errors, 1))
			atomic_store(&side->s->error_ns, node_now_ns());
		node_pattern(side->buf, LEN, 1);
		return;
	}
	atomic_fetch_add(&side->s->moved, 1);
	if (!write)
		NODE_CHECK(side->s, node_is_pattern(side->buf, LEN, 1));
}

static void accessor(void *stage, int rank)
{
	struct scene *s = stage;
	uint64_t seed = s->seed, told;
	struct side side;
	char byte = 0;

	meet(&side, s, rank);
	node_pattern(side.buf, LEN, 1);
	NODE_CHECK(s, !fi_send(side.n.ep, &byte, 1, NULL, side.other, &byte));
	NODE_UNTIL(s, side.over, turned(&side));
	NODE_CHECK(s, !side.err);
	/* what went by packet would wait for it */
	NODE_UNTIL(s, stage_passed(s, GATE_DEAF), false);
	do {
		access_one(&side, &seed);
		told = atomic_load(&s->told_ns);
	} while (!told || !atomic_load(&s->errors) || node_now_ns() < told + GO_ON_NS);
	node_close(&side.n);
	munmap(side.buf, LEN);
}

/* Returns the ns from the signal to the first error. */
static uint64_t replace(struct scene *s, uint64_t *seed)
{
	pid_t pids[MEMBERS];
	uint64_t moved;

	memset((void *)s, 0, sizeof(*s));
	s->seed = seeded_random(seed);
	pids[OWNER] = stage_start(s, OWNER, ROUND_SECS, owner);
	pids[ACCESSOR] = stage_start(s, ACCESSOR, ROUND_SECS, accessor);
	NODE_UNTIL(s, stage_passed(s, GATE_DEAF), false);
	moved = seeded_below(seed, 4);
	NODE_UNTIL(s, atomic_load(&s->moved) >= moved, false);
	usleep((useconds_t)seeded_below(seed, 2000));
	atomic_store(&s->told_ns, node_now_ns());
	program_begin(pids[OWNER]);
	NODE_CHECK(s, stage_ended(s, pids[ACCESSOR], 0));
	program_end(pids[OWNER]);
	NODE_CHECK(s, stage_ended(s, pids[OWNER], 0));
	return atomic_load(&s->error_ns) - atomic_load(&s->told_ns);
}

int main(int argc, char **argv)
{
	uint64_t seed, rounds, took, most = 0, over = 0, moved = 0, errors = 0;
	struct scene *s;

	if (argc < 4)
		return 2;
	provider = argv[1];
	NODE_CHECK(NULL, !program_set(argv[3]));
	rounds = node_setting("SURVIVE_ROUNDS", strtoull(argv[2], NULL, 0));
	seed = node_seed();
	s = stage_open(sizeof(*s));
	for (uint64_t i = 0; i < rounds; i++) {
		took = replace(s, &seed);
		most = took > most ? took : most;
		over += took > REQUIRED_NS;
		moved += atomic_load(&s->moved);
		errors += atomic_load(&s->errors);
	}
	printf("%llu rounds, %llu accesses, %llu errors; from the signal to the first one, ms: "
	       "max %.2f, %llu above 100 ms\n",
	       (unsigned long long)rounds, (unsigned long long)moved,
	       (unsigned long long)errors, (double)most / 1e6, (unsigned long long)over);
	return 0;
}
