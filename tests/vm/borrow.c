/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * borrow - a borrower that verifies, in machines
 *
 * usage: borrow write LENDER FIRST BLOCKS SEED     borrow, write blocks, read them back in pieces of other sizes
 *        borrow check FILE FIRST BLOCKS SEED       read them from a file or block device: the same bytes?
 *        borrow copy LENDER FIRST BLOCKS SEED      write them, and copy them behind by the device's own memory
 *        borrow hold LENDER FIRST BLOCKS SEED FILE write and read until there is an error; FILE is made once it runs
 *
 * $LEASE_MS is how long its lease runs without being renewed.
 *
 * A word of a block says whose it is, which block and which word, so that no block passes for another one.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weft/nvme.h>

#define BLOCK	   512u
#define WORDS	   (BLOCK / 8)
#define DEPTH	   8u
#define CHUNK	   (256u << 10) /* of a command at most */
#define PIECE	   (64u << 10)	/* of the device's memory */
#define ANSWER_MS  60000
#define LEASE_MS   60000 /* an emulated machine may be slow to renew it */
#define EXIT_ENDED 3
#define NSID	   1u

/* struct job - what is written and read: @blocks from @first on */
struct job {
	uint64_t first;
	uint64_t blocks;
	uint64_t seed;
};

/* struct use - what is borrowed; each command that may be under way has CHUNK bytes at @memory */
struct use {
	struct weft_lender *lender;
	struct weft_device *dev;
	struct weft_segment *seg;
	struct weft_window *window;
	struct weft_nvme *qp;
	uint8_t *memory;
};

/* struct slot - a command that may be under way */
struct slot {
	uint64_t lba;
	uint32_t blocks;
	uint8_t *memory;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t word_of(uint64_t seed, uint64_t lba, unsigned i)
{
	return seed << 48 | lba << 8 | i;
}

static void fill(uint8_t *at, uint64_t lba, uint32_t blocks, uint64_t seed)
{
	uint64_t *words = (uint64_t *)at;

	for (uint32_t b = 0; b < blocks; b++)
		for (unsigned i = 0; i < WORDS; i++)
			*words++ = word_of(seed, lba + b, i);
}

static void verify(const uint8_t *at, uint64_t lba, uint32_t blocks, uint64_t seed)
{
	const uint64_t *words = (const uint64_t *)at;

	for (uint32_t b = 0; b < blocks; b++)
		for (unsigned i = 0; i < WORDS; i++, words++)
			if (*words != word_of(seed, lba + b, i))
				errx(1, "block %llu, word %u: %016llx is not %016llx",
				     (unsigned long long)(lba + b), i,
				     (unsigned long long)*words,
				     (unsigned long long)word_of(seed, lba + b, i));
}

static void must(int ret, const char *what)
{
	if (ret)
		errx(1, "%s: %s", what, strerror(-ret));
}

static void use_begin(struct use *u, const char *lender)
{
	const char *ms = getenv("LEASE_MS");
	struct weft_borrow_attr attr = { .size = sizeof(attr),
					 .flags = WEFT_BORROW_SHARED,
					 .ms = ms ? (uint32_t)atoi(ms) : LEASE_MS };
	struct weft_nvme_attr pair = { .size = sizeof(pair),
				       .depth = DEPTH,
				       .flags = WEFT_NVME_BLOCKING };
	struct weft_nvme_namespace ns;
	int err;

	must(weft_lender_open(lender, NULL, &u->lender), "the lender");
	must(weft_device_borrow(u->lender, &attr, &u->dev), "borrowing");
	must(weft_segment_alloc(NULL, DEPTH * CHUNK, 0, &u->seg), "a segment");
	must(weft_window_open(u->dev, u->seg, WEFT_WINDOW_RW, &u->window), "a window");
	err = weft_nvme_open(u->dev, &pair, &u->qp);
	/* Over a bridge nobody can be woken. */
	if (err == -EOPNOTSUPP) {
		pair.flags = 0;
		err = weft_nvme_open(u->dev, &pair, &u->qp);
	}
	must(err, "a queue pair");
	must(weft_nvme_namespace(u->dev, NSID, &ns), "the namespace");
	if (ns.block_size != BLOCK)
		errx(1, "blocks of %u bytes", ns.block_size);
	u->memory = weft_segment_mem(u->seg);
}

/* struct pass - commands over all of a job, DEPTH at a time; @next: of its blocks, the first that no command has had */
struct pass {
	struct use *use;
	const struct job *job;
	enum weft_nvme_opcode opcode;
	uint64_t next;
	struct slot slots[DEPTH];
	struct slot *free[DEPTH];
	unsigned free_cnt;
};

/* Begin the next command, of @blocks at most. Returns 0 or a negative errno */
static int pass_begin(struct pass *p, uint32_t blocks)
{
	struct slot *s = p->free[--p->free_cnt];
	uint64_t left = p->job->blocks - p->next;
	struct weft_nvme_command command = {
		.opcode = (uint8_t)p->opcode, .nsid = NSID, .buf = s->memory, .arg = s
	};
	ssize_t n;

	s->lba = p->job->first + p->next;
	s->blocks = blocks < left ? blocks : (uint32_t)left;
	p->next += s->blocks;
	if (p->opcode == WEFT_NVME_WRITE)
		fill(s->memory, s->lba, s->blocks, p->job->seed);
	else
		memset(s->memory, 0xee, (size_t)s->blocks * BLOCK);
	command.lba = s->lba;
	command.blocks = s->blocks;
	n = weft_nvme_submit(p->use->qp, &command, 1);
	return n == 1 ? 0 : (int)n;
}

/* Wait for commands to end, and verify them. Returns how many blocks they had, or a negative errno */
static long pass_end(struct pass *p)
{
	struct weft_nvme_completion done[DEPTH];
	ssize_t n = weft_nvme_wait(p->use->qp, done, DEPTH, ANSWER_MS);
	long blocks = 0;

	if (n <= 0)
		return n ? n : -ETIMEDOUT;
	for (ssize_t i = 0; i < n; i++) {
		struct slot *s = done[i].arg;

		if (done[i].status)
			return done[i].status;
		if (p->opcode == WEFT_NVME_READ)
			verify(s->memory, s->lba, s->blocks, p->job->seed);
		blocks += s->blocks;
		p->free[p->free_cnt++] = s;
	}
	return blocks;
}

/* A pass, with sizes that go round. Returns how many commands it had, or a negative errno */
static long pass(struct use *u, const struct job *job, enum weft_nvme_opcode opcode,
		 const uint32_t *sizes, unsigned size_cnt)
{
	struct pass p = { .use = u, .job = job, .opcode = opcode };
	uint64_t done_blocks = 0;
	long cnt = 0, n;

	for (unsigned i = 0; i < DEPTH; i++) {
		p.slots[i].memory = u->memory + i * CHUNK;
		p.free[p.free_cnt++] = &p.slots[i];
	}
	while (done_blocks < job->blocks) {
		while (p.free_cnt && p.next < job->blocks) {
			n = pass_begin(&p, sizes[cnt++ % size_cnt]);
			if (n)
				return n;
		}
		n = pass_end(&p);
		if (n < 0)
			return n;
		done_blocks += (uint64_t)n;
	}
	return cnt;
}

static long write_and_read(struct use *u, const struct job *job)
{
	static const uint32_t writes[] = { 8, 1, 24, 256, 3, 512 };
	static const uint32_t reads[] = { 5, 8, 512, 1, 64, 9 };
	long n = pass(u, job, WEFT_NVME_WRITE, writes, 6), m;

	if (n < 0)
		return n;
	m = weft_nvme_flush(u->qp, NSID);
	if (!m)
		m = pass(u, job, WEFT_NVME_READ, reads, 6);
	return m < 0 ? m : n + m;
}

static int write_blocks(const char *lender, const struct job *job)
{
	struct use u;
	double since;
	long cnt;

	use_begin(&u, lender);
	since = now_s();
	cnt = write_and_read(&u, job);
	if (cnt < 0)
		errx(1, "%s", strerror((int)-cnt));
	since = now_s() - since;
	printf("%ld commands, %.0f us each, %llu blocks written, read and verified\n", cnt,
	       since / (double)cnt * 1e6, (unsigned long long)job->blocks);
	must(weft_device_return(u.dev), "returning");
	return 0;
}

/* What a processor of this process would have to reach is not placed there. */
static void hidden_memory(struct use *u)
{
	struct weft_nvme_attr near = { .size = sizeof(near),
				       .depth = 2,
				       .flags = WEFT_NVME_NEAR_DEVICE };
	struct weft_segment *seg;
	struct weft_nvme *qp;

	if (weft_nvme_open(u->dev, &near, &qp) != -EOPNOTSUPP)
		errx(1, "a queue in memory that this process does not reach");
	must(weft_segment_alloc(u->dev, BLOCK, WEFT_HINT_DEVICE_READS | WEFT_HINT_CPU_WRITES,
				&seg),
	     "a segment that is written here");
	memset(weft_segment_mem(seg), 0, BLOCK);
	must(weft_segment_free(seg), "freeing");
}

/* The device reads into a segment of its own memory, and writes from there: no byte of that is in memory of the host. */
static int copy_blocks(const char *lender, const struct job *job)
{
	uint32_t step = CHUNK / BLOCK;
	struct weft_segment *own;
	struct weft_window *window;
	struct use u;
	long cnt;

	use_begin(&u, lender);
	cnt = write_and_read(&u, job);
	if (cnt < 0)
		errx(1, "%s", strerror((int)-cnt));
	must(weft_segment_alloc(u.dev, CHUNK, 0, &own), "memory of the device");
	must(weft_window_open(u.dev, own, WEFT_WINDOW_RW, &window), "a window to it");
	for (uint64_t at = 0; at < job->blocks; at += step) {
		uint64_t from = job->first + at, to = from + job->blocks;
		uint32_t blocks = job->blocks - at < step ? (uint32_t)(job->blocks - at) : step;

		/* Each file of it is a piece of its own, which a command is in. */
		for (uint32_t k = 0; k < blocks; k += PIECE / BLOCK) {
			uint32_t n = blocks - k < PIECE / BLOCK ? blocks - k : PIECE / BLOCK;
			uint8_t *mem = (uint8_t *)weft_segment_mem(own) + (size_t)k * BLOCK;

			must(weft_nvme_read(u.qp, NSID, from + k, n, mem), "a read there");
			must(weft_nvme_write(u.qp, NSID, to + k, n, mem), "a write from there");
		}
		must(weft_nvme_read(u.qp, NSID, to, blocks, u.memory), "a read of the copy");
		verify(u.memory, from, blocks, job->seed);
	}
	hidden_memory(&u);
	printf("%llu blocks copied: %s\n", (unsigned long long)job->blocks,
	       weft_segment_why(own));
	must(weft_window_close(window), "closing");
	must(weft_segment_free(own), "freeing");
	must(weft_device_return(u.dev), "returning");
	return 0;
}

static int hold_on(const char *lender, const struct job *job, const char *file)
{
	struct use u;
	bool told = false;
	double last;
	long cnt;

	use_begin(&u, lender);
	do {
		cnt = write_and_read(&u, job);
		if (cnt >= 0 && !told)
			close(open(file, O_CREAT | O_WRONLY, 0600));
		told = true;
		last = now_s();
	} while (cnt >= 0);
	printf("ended with %s, %.1f s after the last round\n", strerror((int)-cnt),
	       now_s() - last);
	return EXIT_ENDED;
}

static int check(const char *path, const struct job *job)
{
	static uint8_t room[CHUNK] __attribute__((aligned(4096)));
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		err(1, "%s", path);
	for (uint64_t at = 0; at < job->blocks; at += CHUNK / BLOCK) {
		uint64_t cnt = job->blocks - at < CHUNK / BLOCK ? job->blocks - at
								: CHUNK / BLOCK;

		if (pread(fd, room, cnt * BLOCK, (off_t)((job->first + at) * BLOCK)) !=
		    (ssize_t)(cnt * BLOCK))
			err(1, "%s", path);
		verify(room, job->first + at, (uint32_t)cnt, job->seed);
	}
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	struct job job;

	if (argc < 6)
		errx(2,
		     "usage: borrow write|check|copy|hold LENDER|FILE FIRST BLOCKS SEED [FILE]");
	job = (struct job){ strtoull(argv[3], NULL, 0), strtoull(argv[4], NULL, 0),
			    strtoull(argv[5], NULL, 0) };
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(argv[1], "check"))
		return check(argv[2], &job);
	if (!strcmp(argv[1], "copy"))
		return copy_blocks(argv[2], &job);
	if (!strcmp(argv[1], "hold") && argc == 7)
		return hold_on(argv[2], &job, argv[6]);
	return write_blocks(argv[2], &job);
}
