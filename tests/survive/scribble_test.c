/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process of the same user scribbles over all that it may write of another's shared memory, all
 * the time: the other's inbox, and the connections it has with it. The victim neither crashes
 * nor hangs nor, under a sanitizer, reads what is not its own; and whoever else talks to it
 * is not disturbed. The hostile one is a new process every few thousand rounds.
 *
 *	scribble_test PROVIDER [ROUNDS]	SURVIVE_SEED, SURVIVE_ROUNDS
 */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>
#include "echo.h"
#include "scribble.h"

#define TEST_SECS  3600
#define LEAVE_MAX  3000u /* rounds of one hostile process */
#define FIND_EVERY 512u
#define OPS	   12u
#define ROOM	   (64u << 10) /* bytes of each of those */
#define REGION	   (1u << 20)
#define KEY_FOE	   1
#define TAG_FRIEND 0x700000000u
#define RETRY	   1024 /* turns after an operation with a foe that failed */
#define ALONE	   32	/* times that the victim saw nothing of, before it may have the core */
#define WAIT_NS	   120000000000u
#define SECS	   120 /* whatever is waited for, where foes take the processors */

enum gate { GATE_VICTIM, GATE_FRIEND, GATE_ENOUGH, GATE_OVER, GATE_QUIET };

struct raid {
	struct stage stage;
	char victim[NODE_NAME], friend[NODE_NAME], foe[NODE_NAME];
	_Atomic int victim_pid;
	_Atomic uint32_t came, seen, left;  /* foes: with an address, inserted, ended */
	_Atomic uint64_t turns;		    /* of the victim */
	_Atomic uint64_t rounds, forged;    /* of all foes: rounds, messages */
	_Atomic uint64_t talks, slowest_ns; /* of the friend */
	_Atomic uint64_t done, failed;	    /* the victim's operations with foes */
	uint64_t goal, key, seed;
};

static const char *provider;

static void open_node(struct node *n, struct raid *r, char *name)
{
	struct node_attr attr = { .provider = provider };

	NODE_CHECK(r, !node_open(n, r, &attr));
	node_name(n, name);
}

/* The victim */

struct foe_op {
	bool busy, receive;
	uint64_t after; /* turns, when the last one failed */
	uint8_t *buf;
};

struct victim {
	struct raid *raid;
	struct node node;
	struct echo talk;
	fi_addr_t foe; /* FI_ADDR_UNSPEC: none */
	struct foe_op ops[OPS];
	uint32_t under_way;
	uint64_t seed;
};

static ssize_t post_to_foe(struct victim *v, struct foe_op *op, uint32_t idx)
{
	size_t len = seeded_below(&v->seed, ROOM) >> seeded_below(&v->seed, 16);
	struct fid_ep *ep = v->node.ep;

	switch (idx % 6) {
	case 0:
		return fi_trecv(ep, op->buf, ROOM, NULL, v->foe, 0, UINT64_MAX, op);
	case 1:
		return fi_recv(ep, op->buf, ROOM, NULL, v->foe, op);
	case 2:
		return fi_tsend(ep, op->buf, len, NULL, v->foe, 1, op);
	case 3:
		return fi_read(ep, op->buf, len, NULL, v->foe, 0, KEY_FOE, op);
	case 4:
		return fi_write(v->node.rma, op->buf, len, NULL, v->foe, 0, KEY_FOE, op);
	default:
		return fi_fetch_atomic(ep, op->buf, 1, NULL, op->buf + 8, NULL, v->foe, 0,
				       KEY_FOE, FI_UINT64, FI_SUM, op);
	}
}

/* All kinds of operations with the foe are under way as long as it is there. */
static void keep_busy(struct victim *v)
{
	for (uint32_t i = 0; i < OPS; i++) {
		struct foe_op *op = &v->ops[i];

		if (op->busy || op->after > v->raid->turns || post_to_foe(v, op, i))
			continue;
		op->busy = true;
		op->receive = i % 6 < 2;
		v->under_way++;
	}
}

static bool victim_turn(struct victim *v)
{
	ssize_t turn = node_turn(&v->node);
	struct foe_op *op;

	atomic_fetch_add_explicit(&v->raid->turns, 1, memory_order_relaxed);
	if (turn == -FI_EAGAIN)
		return false;
	if (echo_took(&v->talk, turn)) {
		NODE_CHECK(v->raid, !v->talk.err);
		return true;
	}
	op = turn == 1 ? v->node.entry.op_context : v->node.error.op_context;
	NODE_CHECK(v->raid, op >= v->ops && op < v->ops + OPS && op->busy);
	op->busy = false;
	v->under_way--;
	op->after = turn == 1 ? 0 : v->raid->turns + RETRY;
	atomic_fetch_add(turn == 1 ? &v->raid->done : &v->raid->failed, 1);
	return true;
}

/* It is dead: what is under way with it ends, and it is forgotten. */
static void foe_left(struct victim *v)
{
	for (uint32_t i = 0; i < OPS; i++)
		if (v->ops[i].busy && v->ops[i].receive)
			fi_cancel(&v->node.ep->fid, &v->ops[i]);
	NODE_UNTIL(v->raid, !v->under_way, victim_turn(v));
	NODE_CHECK(v->raid, !fi_av_remove(v->node.av, &v->foe, 1, 0));
	v->foe = FI_ADDR_UNSPEC;
}

static void victim(void *stage, int rank)
{
	struct raid *r = stage;
	struct victim v = { .raid = r, .foe = FI_ADDR_UNSPEC, .seed = r->seed };
	uint8_t *mine = calloc(1, REGION), *room = calloc(OPS, ROOM), *foes = calloc(1, REGION);
	struct fid_mr *mr;
	uint32_t idle = 0;

	NODE_CHECK(r, mine && room && foes);
	for (uint32_t i = 0; i < OPS; i++)
		v.ops[i].buf = room + i * (size_t)ROOM;
	open_node(&v.node, r, r->victim);
	node_expose(&v.node, mine, REGION, r->key);
	NODE_CHECK(r, !fi_mr_reg(v.node.domain, foes, REGION, FI_REMOTE_READ | FI_REMOTE_WRITE,
				 0, KEY_FOE, 0, &mr, NULL));
	atomic_store(&r->victim_pid, getpid());
	stage_pass(r, GATE_VICTIM);
	NODE_UNTIL(r, stage_passed(r, GATE_FRIEND), false);
	echo_open(&v.talk, &v.node, node_knows(&v.node, r->friend), TAG_FRIEND);
	echo_expect(&v.talk);
	while (!stage_passed(r, GATE_OVER)) {
		/* An operation that fails at once fills the queue again: there is progress when it is empty. */
		if (victim_turn(&v))
			continue;
		if (!(++idle % 16))
			node_pause(r);
		if (atomic_load(&r->came) > atomic_load(&r->seen)) {
			v.foe = node_knows(&v.node, r->foe);
			atomic_fetch_add(&r->seen, 1);
		}
		if (v.foe != FI_ADDR_UNSPEC)
			keep_busy(&v);
		if (v.foe != FI_ADDR_UNSPEC && atomic_load(&r->left) == atomic_load(&r->came))
			foe_left(&v);
	}
	NODE_CHECK(r, !fi_close(&mr->fid));
	node_close(&v.node);
	echo_close(&v.talk);
	free(mine);
	free(room);
	free(foes);
}

/* The friend: exchanges messages, and has a region of the victim's that no other process uses */

static bool one_ended(struct node *n, void *context, struct echo *e)
{
	ssize_t turn = node_turn(n);

	if (turn == 1 && n->entry.op_context == context)
		return true;
	NODE_CHECK(n->stage, turn == -FI_EAGAIN || echo_took(e, turn));
	NODE_CHECK(n->stage, !e->err);
	return false;
}

static void reach(struct node *n, struct echo *e, struct raid *r, uint64_t *seed)
{
	size_t len = seeded_below(seed, REGION - 8) >> seeded_below(seed, 20);
	bool ended = false;

	node_pattern(e->out, len, e->cnt);
	NODE_CHECK(r, !fi_write(n->rma, e->out, len, NULL, e->peer, 8, r->key, e));
	NODE_UNTIL(r, ended, (ended = one_ended(n, e, e)));
	NODE_CHECK(r, !fi_read(n->ep, e->in, len, NULL, e->peer, 8, r->key, e));
	ended = false;
	NODE_UNTIL(r, ended, (ended = one_ended(n, e, e)));
	NODE_CHECK(r, node_is_pattern(e->in, len, e->cnt));
}

static void friend(void *stage, int rank)
{
	struct raid *r = stage;
	uint64_t seed = r->seed + 1, since, took;
	struct node n;
	struct echo e;

	open_node(&n, r, r->friend);
	NODE_UNTIL(r, stage_passed(r, GATE_VICTIM), false);
	stage_pass(r, GATE_FRIEND);
	echo_open(&e, &n, node_knows(&n, r->victim), TAG_FRIEND);
	while (!stage_passed(r, GATE_ENOUGH)) {
		since = node_now_ns();
		echo_ask(&e, seeded_below(&seed, 256 << 10) >> seeded_below(&seed, 19));
		NODE_UNTIL(r, echo_over(&e), echo_took(&e, node_turn(&n)));
		NODE_CHECK(r, !e.err);
		if (!seeded_below(&seed, 8))
			reach(&n, &e, r, &seed);
		took = node_now_ns() - since;
		if (took > atomic_load(&r->slowest_ns))
			atomic_store(&r->slowest_ns, took);
		atomic_fetch_add(&r->talks, 1);
	}
	stage_pass(r, GATE_OVER);
	node_close(&n);
	echo_close(&e);
}

/* The foe */

/* Its own calls: the library also runs on the spoilt memory. Their results do not matter. */
static void foe_turn(struct node *n, fi_addr_t to, uint8_t *buf, uint64_t *seed)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	size_t len = seeded_below(seed, ROOM) >> seeded_below(seed, 16);

	if (fi_cq_read(n->cq, &e, 1) == -FI_EAVAIL)
		fi_cq_readerr(n->cq, &err, 0);
	switch (seeded_below(seed, 12)) {
	case 0:
		fi_tsend(n->ep, buf, len, NULL, to, seeded_random(seed), NULL);
		break;
	case 1:
		fi_send(n->ep, buf, len, NULL, to, NULL);
		break;
	case 2:
		fi_trecv(n->ep, buf, ROOM, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, NULL);
		break;
	case 3:
		fi_write(n->rma, buf, len, NULL, to, 0, KEY_FOE, NULL);
		break;
	case 4:
		fi_read(n->ep, buf, len, NULL, to, 0, KEY_FOE, NULL);
		break;
	case 5:
		fi_inject_atomic(n->rma, buf, 1, to, 0, KEY_FOE, FI_UINT64, FI_SUM);
		break;
	default:
		break;
	}
}

/* Returns true if the victim has made progress since. It has to, sooner or later. */
static bool seen_by_victim(struct raid *r, uint64_t *turns, uint64_t *since_ns)
{
	uint64_t now = atomic_load(&r->turns);

	if (now != *turns) {
		*turns = now;
		*since_ns = 0;
		return true;
	}
	if (!*since_ns)
		*since_ns = node_now_ns();
	NODE_CHECK(r, node_now_ns() - *since_ns < WAIT_NS);
	return false;
}

/*
 * Scribbles without a pause, in the middle of whatever the victim does: what it looks at between
 * two of its turns makes one round.
 */
static void raid(struct raid *r, struct node *n, struct scribble *s, uint8_t *buf)
{
	uint64_t rounds = seeded_below(&s->seed, LEAVE_MAX) + 1, turns = 0, since_ns = 0;
	fi_addr_t to = node_knows(n, r->victim);

	/* Peace first: there is a connection, and it is known which of its lines are in use. */
	for (int i = 0; i < 200; i++)
		foe_turn(n, to, buf, &s->seed);
	scribble_find(s, atomic_load(&r->victim_pid));
	NODE_CHECK(r, s->cnt >= 2);
	scribble_look(s);
	for (int i = 0; i < 2000; i++)
		foe_turn(n, to, buf, &s->seed);
	scribble_learn(s);
	for (uint64_t i = 1, alone = 0; rounds && atomic_load(&r->rounds) < r->goal; i++) {
		scribble_once(s);
		foe_turn(n, to, buf, &s->seed);
		if (!(i % FIND_EVERY))
			scribble_find(s, atomic_load(&r->victim_pid));
		if (!seen_by_victim(r, &turns, &since_ns)) {
			if (++alone > ALONE)
				node_pause(r);
			continue;
		}
		alone = 0;
		atomic_fetch_add(&r->rounds, 1);
		rounds--;
	}
	atomic_fetch_add(&r->forged, s->forged);
}

static void foe(void *stage, int rank)
{
	struct raid *r = stage;
	struct scribble s = { .seed = r->seed + (uint64_t)rank };
	uint8_t *buf = calloc(1, ROOM), *region = calloc(1, REGION);
	struct node n;

	NODE_CHECK(r, buf && region);
	open_node(&n, r, r->foe);
	node_expose(&n, region, REGION, KEY_FOE);
	atomic_fetch_add(&r->came, 1);
	NODE_UNTIL(r, atomic_load(&r->seen) == atomic_load(&r->came), false);
	raid(r, &n, &s, buf);
	if (seeded_below(&s.seed, 4))
		kill(getpid(), SIGKILL);
	node_close(&n);
	scribble_forget(&s);
	free(buf);
	free(region);
}

static uint64_t resident_kb(pid_t pid)
{
	char path[64], line[256];
	uint64_t kb = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmRSS: %lu", &kb) == 1)
			break;
	if (file)
		fclose(file);
	return kb;
}

static bool run(struct raid *r)
{
	uint64_t before, began = node_now_ns(), kb;
	pid_t pids[2];
	uint32_t foes = 0;
	bool ok = true;

	pids[0] = stage_start(r, 0, TEST_SECS, victim);
	pids[1] = stage_start(r, 1, TEST_SECS, friend);
	NODE_UNTIL(r, atomic_load(&r->talks) > 100, false);
	kb = resident_kb(pids[0]);
	while (ok && atomic_load(&r->rounds) < r->goal) {
		before = atomic_load(&r->talks);
		ok = stage_ended(r, stage_start(r, (int)++foes + 2, TEST_SECS, foe), SIGKILL);
		atomic_store(&r->left, foes);
		NODE_UNTIL(r, !ok || atomic_load(&r->talks) > before, false);
	}
	printf("%llu rounds, %llu messages forged, by %u foes in %.1f s; the victim's operations with them: %llu done, "
	       "%llu failed; its memory %llu kB, %llu kB at the end\n",
	       (unsigned long long)atomic_load(&r->rounds),
	       (unsigned long long)atomic_load(&r->forged), foes,
	       (double)(node_now_ns() - began) / 1e9, (unsigned long long)atomic_load(&r->done),
	       (unsigned long long)atomic_load(&r->failed), (unsigned long long)kb,
	       (unsigned long long)resident_kb(pids[0]));
	printf("the friend's messages there and back: %llu, the slowest %.1f ms\n",
	       (unsigned long long)atomic_load(&r->talks),
	       (double)atomic_load(&r->slowest_ns) / 1e6);
	fflush(stdout);
	stage_pass(r, GATE_ENOUGH);
	for (int i = 0; i < 2; i++)
		ok &= stage_ended(r, pids[i], 0);
	return ok;
}

int main(int argc, char **argv)
{
	struct raid *r;

	if (argc < 2)
		return 2;
	provider = argv[1];
	node_secs = SECS;
	r = stage_open(sizeof(*r));
	r->seed = node_seed();
	r->key = r->seed << 8 | 0xff;
	r->goal = node_setting("SURVIVE_ROUNDS", argc > 2 ? strtoull(argv[2], NULL, 0) : 200000);
	return !run(r);
}
