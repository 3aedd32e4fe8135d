/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Large reads and writes of memory whose owner does not make progress: they are executed without
 * it, in the order that was promised, and no byte is moved any more once fi_close of the region has
 * returned, whether the initiator continues, is stopped, or is killed in the middle.
 *
 *	direct_test PROVIDER [ROUNDS]	SURVIVE_SEED, SURVIVE_ROUNDS
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "echo.h"
#include "place.h"

#define TEST_SECS  280
#define KEY	   5u
#define LEN	   (8u << 20) /* of the region */
#define STORM_NS   1000000000ull
#define BUSY_NS	   900000000u /* that a close waits at least for a stopped process */
#define WORK_NS	   100000000u /* on a core: in a close that waits for nobody */
#define DEAF_NS	   20000000u  /* without progress, while nothing is written */
#define TRIES	   40	      /* to stop it in the middle */
#define INSIDE_MIN 2	      /* times that this is wanted */
#define CANARY	   0x5a

enum member { OWNER, WRITER, MEMBERS };
enum gate { GATE_NAMED, GATE_STEP = MEMBERS, GATE_DONE, GATE_OVER };

struct scene {
	struct stage stage;
	char names[MEMBERS][NODE_NAME];
	uint64_t seed, rounds;
	bool refused;		   /* process_vm_* is, to both */
	bool no_proc;		   /* no /proc to find one another by */
	_Atomic bool skipped;	   /* that could not be had */
	_Atomic uint64_t key;	   /* of the region that there is now */
	_Atomic uint64_t moved;	   /* accesses that went well */
	_Atomic uint64_t rejected; /* and that were refused since the region had ended */
	_Atomic uint64_t close_ns, worked_ns; /* the last fi_close took, of which on a core */
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
	int other = rank == OWNER ? WRITER : OWNER;
	char why[128] = "";

	if ((s->refused && place_forbid(EPERM, false, why, sizeof(why))) ||
	    (s->no_proc &&
	     (place_own_mounts(why, sizeof(why)) || place_lose_proc(why, sizeof(why))))) {
		printf("skipped: %s\n", why);
		atomic_store(&s->skipped, true);
		stage_pass(s, GATE_NAMED + rank);
		exit(0);
	}
	*side = (struct side){ .s = s, .buf = malloc(LEN) };
	NODE_CHECK(s, side->buf);
	NODE_CHECK(s, !node_open(&side->n, s, &attr));
	node_name(&side->n, s->names[rank]);
	stage_pass(s, GATE_NAMED + rank);
	NODE_UNTIL(s, stage_passed(s, GATE_NAMED + other), false);
	if (atomic_load(&s->skipped))
		exit(0);
	side->other = node_knows(&side->n, s->names[other]);
}

/* Waits for the other one, without progress. */
static void await(struct scene *s, int gate, uint32_t times)
{
	NODE_UNTIL(s, stage_passed(s, gate) >= times, false);
}

/* One look at the queue. */
static bool turned(struct side *side)
{
	if (!node_ended(&side->n, &side->err))
		return false;
	side->over = true;
	return true;
}

static void part(struct side *side)
{
	node_close(&side->n);
	free(side->buf);
	if (!side->s->refused && !side->s->no_proc)
		return;
	fflush(NULL);
	_exit(0); /* what looks for leaks would need ptrace and /proc */
}

/* Both are connected, and nothing is under way. */
static void greet(struct side *side, int rank)
{
	char byte = 0;

	side->over = false;
	if (rank == OWNER)
		NODE_CHECK(side->s, !fi_recv(side->n.ep, &byte, 1, NULL, side->other, &byte));
	else
		NODE_CHECK(side->s, !fi_send(side->n.ep, &byte, 1, NULL, side->other, &byte));
	NODE_UNTIL(side->s, side->over, turned(side));
	NODE_CHECK(side->s, !side->err);
}

/* Begins an access. */
static void begin(struct side *side, bool write, uint64_t at, size_t len)
{
	uint64_t key = atomic_load(&side->s->key);

	side->over = false;
	if (write)
		NODE_CHECK(side->s, !fi_write(side->n.rma, side->buf, len, NULL, side->other,
					      at, key, side));
	else
		NODE_CHECK(side->s, !fi_read(side->n.ep, side->buf, len, NULL, side->other, at,
					     key, side));
}

static void end(struct side *side)
{
	NODE_UNTIL(side->s, side->over, turned(side));
}

/* An owner that computes: its memory is written and read all the same. */

static const size_t lens[] = { 8193, 65536, 262145, 1 << 20, (1 << 20) + 1, LEN, 0 };

static void deaf_owner(void *stage, int rank)
{
	struct scene *s = stage;
	struct side side;

	meet(&side, s, rank);
	node_expose(&side.n, side.buf, LEN, KEY);
	greet(&side, rank);
	for (uint32_t i = 0; lens[i]; i++) {
		memset(side.buf, 0, LEN);
		stage_pass(s, GATE_STEP);
		await(s, GATE_DONE, 2 * i + 1);
		NODE_CHECK(s, node_is_pattern(side.buf + LEN - lens[i], lens[i], i));
		for (size_t k = 0; k < LEN - lens[i]; k++)
			NODE_CHECK(s, !side.buf[k]);
		node_pattern(side.buf, LEN, i + 100);
		stage_pass(s, GATE_STEP);
		await(s, GATE_DONE, 2 * i + 2);
	}
	part(&side);
}

static void deaf_writer(void *stage, int rank)
{
	struct scene *s = stage;
	struct side side;

	meet(&side, s, rank);
	greet(&side, rank);
	for (uint32_t i = 0; lens[i]; i++) {
		await(s, GATE_STEP, 2 * i + 1);
		node_pattern(side.buf, lens[i], i);
		begin(&side, true, LEN - lens[i], lens[i]);
		end(&side);
		NODE_CHECK(s, !side.err);
		stage_pass(s, GATE_DONE);
		await(s, GATE_STEP, 2 * i + 2);
		memset(side.buf, 0, LEN);
		begin(&side, false, 0, lens[i]);
		end(&side);
		NODE_CHECK(s, !side.err && node_is_pattern(side.buf, lens[i], i + 100));
		stage_pass(s, GATE_DONE);
	}
	part(&side);
}

/* What was promised of order. */

static void order_owner(void *stage, int rank)
{
	struct scene *s = stage;
	struct side side;
	uint64_t word = 0;

	meet(&side, s, rank);
	memset(side.buf, 0, LEN);
	node_expose(&side.n, side.buf, LEN, KEY);
	greet(&side, rank);
	/* A message that was not received yet: operations that were posted behind it wait. */
	stage_pass(s, GATE_STEP);
	await(s, GATE_DONE, 1);
	for (size_t k = 0; k < LEN; k++)
		NODE_CHECK(s, !side.buf[k]);
	side.over = false;
	NODE_CHECK(s, !fi_recv(side.n.ep, &word, sizeof(word), NULL, side.other, &word));
	NODE_UNTIL(s, side.over, turned(&side));
	NODE_CHECK(s, !side.err && word == 1);
	NODE_UNTIL(s, stage_passed(s, GATE_DONE) == 2, turned(&side));
	NODE_CHECK(s, node_is_pattern(side.buf, LEN, 1));
	/* A message behind a write arrives when all of the write is there. */
	stage_pass(s, GATE_STEP);
	await(s, GATE_DONE, 3);
	side.over = false;
	NODE_CHECK(s, !fi_recv(side.n.ep, &word, sizeof(word), NULL, side.other, &word));
	NODE_UNTIL(s, side.over, turned(&side));
	NODE_CHECK(s, !side.err && word == 2);
	NODE_CHECK(s, node_is_pattern(side.buf, LEN, 2));
	NODE_UNTIL(s, stage_passed(s, GATE_OVER), turned(&side));
	part(&side);
}

static void order_writer(void *stage, int rank)
{
	static uint64_t words[] = { 1, 2 };
	struct scene *s = stage;
	struct side side;

	meet(&side, s, rank);
	greet(&side, rank);
	await(s, GATE_STEP, 1);
	node_pattern(side.buf, LEN, 1);
	NODE_CHECK(s, !fi_inject(side.n.ep, &words[0], sizeof(words[0]), side.other));
	begin(&side, true, 0, LEN);
	for (int i = 0; i < 20000; i++)
		NODE_CHECK(s, !turned(&side));
	stage_pass(s, GATE_DONE);
	end(&side);
	NODE_CHECK(s, !side.err);
	stage_pass(s, GATE_DONE);
	await(s, GATE_STEP, 2);
	node_pattern(side.buf, LEN, 2);
	begin(&side, true, 0, LEN);
	NODE_CHECK(s, !fi_inject(side.n.ep, &words[1], sizeof(words[1]), side.other));
	for (int i = 0; i < 20000; i++)
		turned(&side);
	stage_pass(s, GATE_DONE);
	end(&side);
	NODE_CHECK(s, !side.err);
	/* the message leaves behind it */
	NODE_UNTIL(s, stage_passed(s, GATE_OVER), turned(&side));
	part(&side);
}

/* Regions that are closed while others write. */

/*
 * Returns true if nothing was written since it was cleared. Checks for a while, without progress.
 */
static bool untouched(const struct side *side)
{
	for (uint64_t until = node_now_ns() + 200000; node_now_ns() < until;)
		for (size_t k = 0; k < LEN; k += 64)
			if (side->buf[k])
				return false;
	return true;
}

/* Also if the writer is not run for so long that the close gives up: the region stays registered then. */
static void close_region(struct side *side)
{
	uint64_t from;
	int ret;

	do {
		from = node_now_ns();
		ret = fi_close(&side->n.mr->fid);
	} while (ret == -FI_EBUSY && node_now_ns() - from >= BUSY_NS);
	NODE_CHECK(side->s, !ret);
	side->n.mr = NULL;
}

static void storm_owner(void *stage, int rank)
{
	struct scene *s = stage;
	uint64_t seed = s->seed, over = node_now_ns() + STORM_NS, rounds = 0;
	struct side side;

	meet(&side, s, rank);
	memset(side.buf, 0, LEN);
	greet(&side, rank);
	for (; node_now_ns() < over || rounds < s->rounds; rounds++) {
		uint64_t until = node_now_ns() + seeded_below(&seed, 3000000), before;

		node_expose(&side.n, side.buf, LEN, KEY + rounds % 7);
		before = atomic_load(&s->moved);
		atomic_store(&s->key, KEY + rounds % 7);
		while (node_now_ns() < until || atomic_load(&s->moved) == before)
			/* or it computes, but not for ever: requests by packet wait for it */
			if (rounds % 3 == 0 || node_now_ns() > until)
				turned(&side);
			else
				node_pause(s);
		close_region(&side);
		memset(side.buf, 0, LEN);
		NODE_CHECK(s, untouched(&side));
	}
	printf("%llu regions, %llu accesses\n", (unsigned long long)rounds,
	       (unsigned long long)atomic_load(&s->moved));
	stage_pass(s, GATE_OVER);
	NODE_UNTIL(s, stage_passed(s, GATE_DONE), turned(&side));
	part(&side);
}

static void storm_writer(void *stage, int rank)
{
	struct scene *s = stage;
	uint64_t seed = s->seed + 1;
	struct side side;

	meet(&side, s, rank);
	greet(&side, rank);
	memset(side.buf, 0xff, LEN);
	while (!atomic_load(&s->key))
		node_pause(s);
	while (!stage_passed(s, GATE_OVER)) {
		size_t len = 8193 + seeded_below(&seed, 3u << 20);

		begin(&side, true, seeded_below(&seed, LEN - len), len);
		end(&side);
		NODE_CHECK(s, !side.err || side.err == FI_EKEYREJECTED);
		if (!side.err)
			atomic_fetch_add(&s->moved, 1);
	}
	stage_pass(s, GATE_DONE);
	part(&side);
}

/*
 * A process that accesses a region while it is closed is stopped, or killed. The owner keeps something else in
 * that memory then, which stays.
 */

static void stuck_step(struct side *side)
{
	struct scene *s = side->s;
	uint64_t from = node_now_ns(), worked = node_worked_ns();

	if (!side->n.mr) {
		for (size_t i = 0; atomic_load(&s->close_ns) && i < LEN; i++)
			NODE_CHECK(s, ((volatile uint8_t *)side->buf)[i] == CANARY);
		node_expose(&side->n, side->buf, LEN, KEY);
		atomic_store(&s->key, KEY);
		return;
	}
	NODE_CHECK(s, !fi_close(&side->n.mr->fid));
	side->n.mr = NULL;
	atomic_store(&s->close_ns, node_now_ns() - from);
	atomic_store(&s->worked_ns, node_worked_ns() - worked);
	memset(side->buf, CANARY, LEN);
}

static void stuck_owner(void *stage, int rank)
{
	struct scene *s = stage;
	uint64_t moved = 0, since = 0;
	uint32_t step = 0;
	struct side side;

	meet(&side, s, rank);
	greet(&side, rank);
	while (!stage_passed(s, GATE_OVER)) {
		if (stage_passed(s, GATE_STEP) == step) {
			if (atomic_load(&s->moved) != moved) {
				moved = atomic_load(&s->moved);
				since = node_now_ns();
			}
			/* it computes; but a request by packet, for once, waits for it */
			if (node_now_ns() - since < DEAF_NS || !turned(&side))
				node_pause(s);
			continue;
		}
		step++;
		stuck_step(&side);
		stage_pass(s, GATE_DONE);
	}
	part(&side);
}

static void stuck_writer(void *stage, int rank)
{
	struct scene *s = stage;
	struct side side;

	meet(&side, s, rank);
	greet(&side, rank);
	await(s, GATE_DONE, 1);
	while (!stage_passed(s, GATE_OVER)) {
		begin(&side, true, 0, LEN);
		NODE_UNTIL(s, side.over || stage_passed(s, GATE_OVER), turned(&side));
		if (!side.over)
			break;
		NODE_CHECK(s, !side.err || side.err == FI_EKEYREJECTED);
		atomic_fetch_add(side.err ? &s->rejected : &s->moved, 1);
	}
	node_close(&side.n);
	free(side.buf);
}

/* One step of the owner: it registers, or closes. */
static void owner_steps(struct scene *s)
{
	uint32_t done = stage_passed(s, GATE_DONE);

	stage_pass(s, GATE_STEP);
	await(s, GATE_DONE, done + 1);
}

static void stop(struct scene *s, pid_t pid)
{
	int status;

	NODE_CHECK(s, !kill(pid, SIGSTOP));
	NODE_CHECK(s, waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
}

static void await_more(struct scene *s, _Atomic uint64_t *cnt)
{
	uint64_t before = atomic_load(cnt);

	NODE_UNTIL(s, atomic_load(cnt) > before, false);
}

static bool stuck(struct scene *s, pid_t owner, pid_t writer)
{
	uint64_t seed = s->seed;
	int inside = 0, tries = 0;

	owner_steps(s); /* registers */
	for (; inside < INSIDE_MIN && tries < TRIES; tries++) {
		await_more(s, &s->moved);
		usleep((useconds_t)seeded_below(&seed, 3000));
		stop(s, writer);
		owner_steps(s);
		inside += atomic_load(&s->close_ns) >= BUSY_NS;
		NODE_CHECK(s, !kill(writer, SIGCONT));
		await_more(s, &s->rejected);
		owner_steps(s);
	}
	printf("stopped inside %d times in %d\n", inside, tries);
	NODE_CHECK(s, inside);
	/*
	 * One that is dead holds nothing up, wherever it was: who waits polls. The owner may be
	 * without a core meanwhile for as long as it would wait.
	 */
	await_more(s, &s->moved);
	NODE_CHECK(s, !kill(writer, SIGKILL));
	NODE_CHECK(s, stage_ended(s, writer, SIGKILL));
	owner_steps(s);
	NODE_CHECK(s, atomic_load(&s->worked_ns) < WORK_NS);
	stage_pass(s, GATE_OVER);
	return stage_ended(s, owner, 0);
}

/* All of them */

static struct scene *scene(uint64_t rounds, uint64_t seed)
{
	struct scene *s = stage_open(sizeof(*s));

	s->seed = seed;
	s->rounds = rounds;
	atomic_store(&s->key, KEY);
	return s;
}

static bool run(const char *what, struct scene *s, void (*owner)(void *, int),
		void (*writer)(void *, int))
{
	pid_t pids[MEMBERS];
	bool ok;

	printf("%s\n", what);
	fflush(stdout);
	pids[OWNER] = stage_start(s, OWNER, TEST_SECS, owner);
	pids[WRITER] = stage_start(s, WRITER, TEST_SECS, writer);
	if (owner == stuck_owner)
		return stuck(s, pids[OWNER], pids[WRITER]);
	if (owner == order_owner) {
		await(s, GATE_DONE, 3);
		stage_pass(s, GATE_OVER);
	}
	ok = stage_ended(s, pids[WRITER], 0);
	return stage_ended(s, pids[OWNER], 0) && ok;
}

/* Returns true if one child of this process may write to another one's memory. */
static bool allowed(void)
{
	int pipes[2], status = 0;
	char byte = 1;
	struct iovec iov = { &byte, 1 };
	pid_t other = fork();

	if (!other) {
		pause();
		_exit(0);
	}
	NODE_CHECK(NULL, other > 0 && !pipe(pipes));
	if (!fork())
		_exit(process_vm_writev(other, &iov, 1, &iov, 1, 0) != 1);
	wait(&status);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	close(pipes[0]);
	close(pipes[1]);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	uint64_t seed, rounds;
	struct scene *s;
	bool ok;

	if (argc < 2)
		return 2;
	provider = argv[1];
	seed = node_seed();
	rounds = node_setting("SURVIVE_ROUNDS", argc > 2 ? strtoull(argv[2], NULL, 0) : 100);
	if (!allowed()) {
		printf("skipped: processes may not write to each other's memory here\n");
		return 77;
	}
	ok = run("an owner that computes", scene(rounds, seed), deaf_owner, deaf_writer);
	s = scene(rounds, seed);
	s->no_proc = true;
	/* for others it takes a user namespace each, between which nothing may be accessed */
	if (!geteuid())
		ok = ok && run("one without /proc", s, deaf_owner, deaf_writer);
	ok = ok && run("order", scene(rounds, seed), order_owner, order_writer);
	ok = ok &&
	     run("regions that come and go", scene(rounds, seed), storm_owner, storm_writer);
	s = scene(rounds, seed);
	s->refused = true;
	ok = ok && run("the same, by packet", s, storm_owner, storm_writer);
	return !(ok && run("a writer that is stopped", scene(rounds, seed), stuck_owner,
			   stuck_writer));
}
