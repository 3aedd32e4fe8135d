/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * survive LENDER ROUNDS SEED - borrowers that are killed with commands under way harm nobody
 *
 * Each round starts a borrower, which has the device read and write in one half of a segment that outlives it, and kills
 * it at some moment. Once the lender says that its lease has ended the half is filled with canaries, and the next
 * borrower, whose window is the whole segment, uses the other half, in which the canaries of the round before were. What
 * the device would still do for one that is gone shows in three places: canaries change; bytes that the next one reads
 * are wrong; and canaries are on the medium, where all borrowers find them. Beside all rounds another borrower uses the
 * device, and checks each byte too.
 */
#define _GNU_SOURCE
#include "verify.h"
#include "seeded.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HALF	     VERIFY_LEN(VERIFY_DEPTH)
#define SHARED_UNITS 2048u /* from 0 on, of all; behind them are those of the borrower beside */
#define OWN_UNITS    2048u
#define BESIDE_DEPTH 8u
#define WAIT_MS	     20000
#define LEASES_MAX   8u

/* struct use - a device that is used */
struct use {
	struct weft_lender *lender;
	struct weft_device *dev;
	struct weft_segment *seg;
	struct weft_window *window;
	struct weft_nvme *qp;
};

/* struct beside - what a process tells that one beside it: to stop; and hears: how many commands have ended */
struct beside {
	atomic_bool stop;
	_Atomic uint64_t ended;
};

static const char *lender_path;
static uint64_t seed;

static void must(const char *what, int err)
{
	if (!err)
		return;
	fprintf(stderr, "process %d: %s: %s\n", (int)getpid(), what, strerror(-err));
	_exit(1);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* A lender on a machine with much to do may answer late. */
#define PATIENTLY(call)                                           \
	({                                                        \
		uint64_t until = now_us() + WAIT_MS * 1000u;      \
		int result;                                       \
		do                                                \
			result = (call);                          \
		while (result == -ETIMEDOUT && now_us() < until); \
		result;                                           \
	})

static uint32_t any(uint32_t below)
{
	return (uint32_t)seeded_below(&seed, below);
}

/* @addr: of a segment to be used; NULL: one of @len bytes of its own */
static void use_begin(struct use *u, const struct weft_address *addr, size_t len, uint32_t flags)
{
	struct weft_borrow_attr borrow = { .size = sizeof(borrow), .flags = WEFT_BORROW_SHARED };
	struct weft_nvme_attr attr = { .size = sizeof(attr),
				       .depth = VERIFY_DEPTH,
				       .flags = flags };

	must("weft_lender_open", PATIENTLY(weft_lender_open(lender_path, NULL, &u->lender)));
	must("weft_device_borrow", PATIENTLY(weft_device_borrow(u->lender, &borrow, &u->dev)));
	must("a segment", addr ? PATIENTLY(weft_segment_import(u->lender, addr, &u->seg))
			       : weft_segment_alloc(NULL, len, 0, &u->seg));
	must("weft_window_open",
	     PATIENTLY(weft_window_open(u->dev, u->seg, WEFT_WINDOW_RW, &u->window)));
	must("weft_nvme_open", PATIENTLY(weft_nvme_open(u->dev, &attr, &u->qp)));
}

static void use_end(struct use *u)
{
	must("weft_device_return", weft_device_return(u->dev));
	must("weft_segment_free", weft_segment_free(u->seg));
	must("weft_lender_close", weft_lender_close(u->lender));
}

static void step(struct verifier *v)
{
	struct weft_nvme_completion done[VERIFY_DEPTH];
	ssize_t n;

	must("a command can't begin", verify_submit(v));
	n = weft_nvme_wait(v->qp, done, VERIFY_DEPTH, WAIT_MS);
	if (n <= 0)
		must("a command does not end", n ? (int)n : -ETIMEDOUT);
	must("a command", verify_done(v, done, (size_t)n));
}

/* The process beside: ends with status 0 when it is told to, if all was as it must be. */
static void use_beside(struct beside *told)
{
	struct verifier v;
	struct use u;

	use_begin(&u, NULL, VERIFY_LEN(BESIDE_DEPTH), 0);
	must("memory", verify_init(&v, u.qp, weft_segment_mem(u.seg), BESIDE_DEPTH,
				   SHARED_UNITS, OWN_UNITS, true));
	must("writing", verify_prepare(&v));
	while (!atomic_load(&told->stop)) {
		step(&v);
		must("pages", verify_pages(&v));
		atomic_store(&told->ended, v.ended);
	}
	use_end(&u);
	verify_fini(&v);
	_exit(0);
}

/* The process of a round: says so in @ready when its first commands have ended, and goes on until it is killed. */
static void use_until_killed(const struct weft_address *addr, uint32_t half, uint32_t flags,
			     int ready)
{
	struct verifier v;
	struct use u;

	use_begin(&u, addr, 0, flags);
	must("memory", verify_init(&v, u.qp, (uint8_t *)weft_segment_mem(u.seg) + half * HALF,
				   VERIFY_DEPTH, 0, SHARED_UNITS, false));
	step(&v);
	if (write(ready, "r", 1) != 1)
		_exit(1);
	for (;;) {
		step(&v);
		must("pages", verify_pages(&v));
	}
}

static pid_t start(void)
{
	pid_t pid = fork();

	if (pid < 0)
		must("fork", -errno);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void await_ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	if (poll(&p, 1, WAIT_MS) != 1 || read(fd, &byte, 1) != 1)
		must("a borrower does not begin", -ETIMEDOUT);
}

static bool has_lease(struct weft_lender *lender, uint64_t device, pid_t pid)
{
	struct weft_lease_info infos[LEASES_MAX];
	size_t cnt, i;

	must("weft_lease_list",
	     PATIENTLY((cnt = LEASES_MAX, weft_lease_list(lender, device, infos, &cnt))));
	for (i = 0; i < cnt; i++)
		if (infos[i].pid == pid)
			return true;
	return false;
}

/* Returns how long it took, in microseconds. */
static uint64_t await_end(struct weft_lender *lender, uint64_t device, pid_t pid)
{
	uint64_t begin = now_us();

	while (has_lease(lender, device, pid)) {
		if (now_us() - begin > WAIT_MS * 1000u)
			must("a lease of who was killed", -ETIMEDOUT);
		sched_yield();
	}
	return now_us() - begin;
}

static uint64_t canary(uint32_t round, size_t word)
{
	return ((uint64_t)round << 32 | word) * 0xff51afd7ed558ccdULL;
}

static void fill(uint64_t *words, uint32_t round)
{
	size_t i;

	for (i = 0; i < HALF / 8; i++)
		words[i] = canary(round, i);
}

static void check(const uint64_t *words, uint32_t round)
{
	size_t i;

	for (i = 0; i < HALF / 8; i++)
		if (words[i] != canary(round, i)) {
			fprintf(stderr,
				"round %u: word %zu, which nobody uses any more, is %016" PRIx64
				"\n",
				round, i, words[i]);
			_exit(1);
		}
}

/* Start a borrower, and kill it at some moment. Returns its process. */
static pid_t kill_one(const struct weft_address *addr, uint32_t half)
{
	uint32_t flags = any(2) ? WEFT_NVME_BLOCKING : 0;
	int pipes[2], status;
	pid_t pid;

	must("pipe", pipe(pipes) ? -errno : 0);
	pid = start();
	if (!pid)
		use_until_killed(addr, half, flags, pipes[1]);
	close(pipes[1]);
	await_ready(pipes[0]);
	close(pipes[0]);
	/* Some moment, at which it waits, submits or sleeps. */
	nanosleep(&(struct timespec){ .tv_nsec = any(1000000) }, NULL);
	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) ||
	    WTERMSIG(status) != SIGKILL)
		must("a borrower has ended by itself", -ECHILD);
	return pid;
}

static void rounds(uint32_t cnt)
{
	struct weft_address addr;
	struct verifier v;
	struct use u;
	uint64_t longest = 0, took, device;
	uint64_t *halves[2];
	uint32_t i;

	use_begin(&u, NULL, 2 * HALF, 0);
	must("memory",
	     verify_init(&v, u.qp, weft_segment_mem(u.seg), 1, 0, SHARED_UNITS, false));
	must("writing", verify_prepare(&v));
	must("weft_segment_export", PATIENTLY(weft_segment_export(u.lender, u.seg, 0, &addr)));
	device = weft_device_info(u.dev)->id;
	/* The segment stays, and no device reaches it by this process. */
	must("weft_device_return", weft_device_return(u.dev));
	halves[0] = weft_segment_mem(u.seg);
	halves[1] = halves[0] + HALF / 8;
	for (i = 0; i < cnt; i++) {
		pid_t pid = kill_one(&addr, i % 2);

		took = await_end(u.lender, device, pid);
		longest = took > longest ? took : longest;
		fill(halves[i % 2], i);
		if (i)
			check(halves[(i - 1) % 2], i - 1);
	}
	must("weft_segment_free", weft_segment_free(u.seg));
	must("weft_lender_close", weft_lender_close(u.lender));
	printf("%u borrowers killed, the longest lease ended %" PRIu64 " us later\n", cnt,
	       longest);
}

int main(int argc, char **argv)
{
	struct beside *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t beside;

	if (argc != 4 || told == MAP_FAILED)
		return 2;
	lender_path = argv[1];
	seed = strtoull(argv[3], NULL, 0);
	printf("seed %" PRIu64 "\n", seed);
	beside = start();
	if (!beside)
		use_beside(told);
	rounds((uint32_t)atoi(argv[2]));
	atomic_store(&told->stop, true);
	if (waitpid(beside, &status, 0) != beside || status)
		must("the borrower beside", -ECHILD);
	printf("%" PRIu64 " commands beside them\n", atomic_load(&told->ended));
	return 0;
}
