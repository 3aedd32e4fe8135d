/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process that stores to another one's memory through a mapping of it (docs/mem.md) is stopped or killed
 * in the middle of a store: fi_close of the region succeeds all the same, within a bound, and what its owner
 * then keeps in that memory, and in memory that is allocated afterwards, stays as it is when the process
 * goes on.
 *
 *	stopped_test PROVIDER [CUTS]	SURVIVE_SEED
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/mem.h>
#include "node.h"

#define TEST_SECS 280
#define KEY	  5u
#define LEN	  (4u << 20)
#define CUT_NS	  900000000u /* that a close waits at least for a process that has stopped */
#define WORK_NS	  100000000u /* on a core: in a close that waits for nobody */
#define LOOK_NS	  100000000u /* how long canaries are looked at */
#define TRIES	  60	     /* to stop it in the middle, for each that is wanted */
#define CANARY	  0x5a
#define STORED	  0xff

enum member { OWNER, WRITER, MEMBERS };
/* The owner's steps; they take turns. */
enum step { REGISTERS, CLOSES, LOOKS, STEPS };
enum gate { GATE_NAMED, GATE_STEP = MEMBERS, GATE_DONE, GATE_OVER, GATE_READY };

struct scene {
	struct stage stage;
	char names[MEMBERS][NODE_NAME];
	_Atomic uint64_t moved;	    /* writes that went well */
	_Atomic uint64_t refused;   /* and that did not */
	_Atomic uint64_t close_ns;  /* the last fi_close took */
	_Atomic uint64_t worked_ns; /* of which on a core */
	_Atomic bool skipped;
};

struct side {
	struct scene *s;
	struct node n;
	fi_addr_t other;
	bool over; /* the write or message under way */
	int err;
};

static const char *provider;

static void meet(struct side *side, struct scene *s, int rank)
{
	struct node_attr attr = { .provider = provider };

	*side = (struct side){ .s = s };
	NODE_CHECK(s, !node_open(&side->n, s, &attr));
	side->other = node_meet(&side->n, s->names, rank, GATE_NAMED);
}

/* One look at the queue. */
static bool turned(struct side *side)
{
	if (!node_ended(&side->n, &side->err))
		return false;
	side->over = true;
	return true;
}

/* The owner */

struct owner {
	struct side side;
	struct weft_mem_ops *mem;
	uint8_t *region, *later;
};

static uint8_t *allocate(const struct owner *o)
{
	void *addr = NULL;

	NODE_CHECK(o->side.s, !o->mem->alloc(LEN, 0, WEFT_MEM_REMOTE_WRITE, &addr));
	return addr;
}

/* The memory of the region is used again, and so is what is allocated once it is closed. */
static void closes(struct owner *o)
{
	struct scene *s = o->side.s;
	uint64_t from = node_now_ns(), worked = node_worked_ns();

	NODE_CHECK(s, !fi_close(&o->side.n.mr->fid));
	o->side.n.mr = NULL;
	atomic_store(&s->close_ns, node_now_ns() - from);
	atomic_store(&s->worked_ns, node_worked_ns() - worked);
	memset(o->region, CANARY, LEN);
	o->later = allocate(o);
	memset(o->later, CANARY, LEN);
}

static bool intact(const uint8_t *at)
{
	for (size_t i = 0; i < LEN; i++)
		if (((const volatile uint8_t *)at)[i] != CANARY)
			return false;
	return true;
}

static void looks(struct owner *o)
{
	struct scene *s = o->side.s;

	for (uint64_t until = node_now_ns() + LOOK_NS; node_now_ns() < until; turned(&o->side))
		NODE_CHECK(s, intact(o->region) && intact(o->later));
	NODE_CHECK(s, !o->mem->free(o->region) && !o->mem->free(o->later));
}

static void owner_steps(struct owner *o, enum step step)
{
	switch (step) {
	case REGISTERS:
		o->region = allocate(o);
		node_expose(&o->side.n, o->region, LEN, KEY);
		break;
	case CLOSES:
		closes(o);
		break;
	default:
		looks(o);
		break;
	}
}

static void owner(void *stage, int rank)
{
	struct scene *s = stage;
	struct owner o;
	uint32_t done = 0;

	meet(&o.side, s, rank);
	if (fi_open_ops(&o.side.n.domain->fid, WEFT_MEM_OPS, 0, (void **)&o.mem, NULL)) {
		printf("skipped: this process has no memory that others may map\n");
		atomic_store(&s->skipped, true);
		stage_pass(s, GATE_READY);
		exit(0);
	}
	stage_pass(s, GATE_READY);
	while (!stage_passed(s, GATE_OVER)) {
		turned(&o.side);
		if (stage_passed(s, GATE_STEP) == done) {
			node_pause(s);
			continue;
		}
		owner_steps(&o, (enum step)(done++ % STEPS));
		stage_pass(s, GATE_DONE);
	}
	node_close(&o.side.n);
}

/* The writer: it writes all of the region, again and again. */
static void writer(void *stage, int rank)
{
	uint8_t *buf = malloc(LEN);
	struct scene *s = stage;
	struct side side;

	NODE_CHECK(s, buf);
	memset(buf, STORED, LEN);
	meet(&side, s, rank);
	while (!stage_passed(s, GATE_OVER)) {
		side.over = false;
		NODE_CHECK(s, !fi_write(side.n.rma, buf, LEN, NULL, side.other, 0, KEY, &side));
		NODE_UNTIL(s, side.over || stage_passed(s, GATE_OVER), turned(&side));
		if (!side.over)
			break;
		NODE_CHECK(s, !side.err || side.err == FI_EKEYREJECTED);
		atomic_fetch_add(side.err ? &s->refused : &s->moved, 1);
	}
	node_close(&side.n);
	free(buf);
}

/* What the parent has them do */

static void await_more(struct scene *s, _Atomic uint64_t *cnt)
{
	uint64_t before = atomic_load(cnt);

	NODE_UNTIL(s, atomic_load(cnt) > before, false);
}

static void has_owner(struct scene *s)
{
	uint32_t done = stage_passed(s, GATE_DONE);

	stage_pass(s, GATE_STEP);
	NODE_UNTIL(s, stage_passed(s, GATE_DONE) > done, false);
}

/* Stops the writer somewhere, closes, and lets it go on. Returns true if it was in a store. */
static bool stopped(struct scene *s, pid_t pid, uint64_t *seed)
{
	int status;

	has_owner(s); /* REGISTERS */
	await_more(s, &s->moved);
	usleep((useconds_t)seeded_below(seed, 3000));
	NODE_CHECK(s, !kill(pid, SIGSTOP));
	NODE_CHECK(s, waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	has_owner(s); /* CLOSES */
	NODE_CHECK(s, !kill(pid, SIGCONT));
	await_more(s, &s->refused);
	has_owner(s); /* LOOKS */
	return atomic_load(&s->close_ns) >= CUT_NS;
}

static void killed(struct scene *s, pid_t pid)
{
	has_owner(s);
	await_more(s, &s->moved);
	NODE_CHECK(s, !kill(pid, SIGKILL));
	NODE_CHECK(s, stage_ended(s, pid, SIGKILL));
	has_owner(s);
	/* who waits polls; the owner may be without a core for as long as it would wait */
	NODE_CHECK(s, atomic_load(&s->worked_ns) < WORK_NS);
	has_owner(s);
}

int main(int argc, char **argv)
{
	uint32_t cuts, cut = 0, tries = 0;
	struct scene *s = stage_open(sizeof(*s));
	pid_t pids[MEMBERS];
	uint64_t seed;

	if (argc < 2)
		return 2;
	provider = argv[1];
	cuts = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 2;
	seed = node_seed();
	pids[OWNER] = stage_start(s, OWNER, TEST_SECS, owner);
	pids[WRITER] = stage_start(s, WRITER, TEST_SECS, writer);
	NODE_UNTIL(s, stage_passed(s, GATE_READY), false);
	if (atomic_load(&s->skipped)) {
		kill(pids[WRITER], SIGKILL);
		return 77;
	}
	while (cut < cuts && tries++ < TRIES * cuts)
		cut += stopped(s, pids[WRITER], &seed);
	printf("stopped in a store %u times in %u\n", cut, tries);
	NODE_CHECK(s, cut == cuts);
	killed(s, pids[WRITER]);
	stage_pass(s, GATE_OVER);
	return !stage_ended(s, pids[OWNER], 0);
}
