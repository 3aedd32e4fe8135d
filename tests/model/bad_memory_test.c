/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers access registered memory that is not mapped, or not writable, over a real provider, between
 * two processes and between two threads: the operation fails at its initiator, and its target lives
 * and goes on.
 *
 * usage: bad_memory_test PROVIDER
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include "access_area.h"

#define LEN	 (6u << 20) /* of each kind of memory */
#define KEY_NONE 20	    /* nothing is mapped */
#define KEY_HALF 21	    /* of the second half nothing */
#define KEY_LOAD 22	    /* may be read */
#define KEY_PART 23	    /* the second half may be read */
#define HALF	 (LEN / 2)
/* Where nobody else maps anything: below programs, far from heaps, stacks and libraries */
#define NOWHERE 0x551000000000u

static const size_t lens[] = { 8, 100, 4096, 8192, 20000, 65536, 1u << 20, LEN - 8 };

struct bad_memory {
	struct area area;
	struct fid_mr *mrs[4];
	char *half, *load, *part;
};

static char *map(struct pair_side *s, void *addr, size_t len, int prot)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (addr ? MAP_FIXED_NOREPLACE : 0);
	char *at = mmap(addr, len, PROT_READ | PROT_WRITE, flags, -1, 0);

	PAIR_CHECK(s, at != MAP_FAILED && (!addr || at == addr));
	memset(at, 0x33, len);
	PAIR_CHECK(s, !mprotect(at, len, prot));
	return at;
}

static void expose(struct pair_side *s, struct bad_memory *m, void *addr, uint64_t key)
{
	PAIR_CHECK(s, !fi_mr_reg(s->domain, addr, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key,
				 0, &m->mrs[key - KEY_NONE], NULL));
}

/* As threads both sides are in one process: one of them has the memory. */
static void bad_memory_open(struct pair_side *s, struct bad_memory *m)
{
	unsigned char there;

	m->half = map(s, (void *)NOWHERE, HALF, PROT_READ | PROT_WRITE);
	PAIR_CHECK(s, mincore(m->half + HALF, (size_t)getpagesize(), &there) < 0);
	m->load = map(s, NULL, LEN, PROT_READ);
	m->part = map(s, NULL, LEN, PROT_READ | PROT_WRITE);
	PAIR_CHECK(s, !mprotect(m->part + HALF, HALF, PROT_READ));
	expose(s, m, (void *)(NOWHERE + (1ull << 32)), KEY_NONE);
	expose(s, m, m->half, KEY_HALF);
	expose(s, m, m->load, KEY_LOAD);
	expose(s, m, m->part, KEY_PART);
	area_open(s, &m->area);
}

static void bad_memory_close(struct pair_side *s, struct bad_memory *m)
{
	area_close(s, &m->area);
	for (int i = 0; i < 4; i++)
		PAIR_CHECK(s, !fi_close(&m->mrs[i]->fid));
	/* What was refused has changed nothing: no packet is carried out in part. */
	PAIR_CHECK(s, m->half[0] == 0x33 && m->half[HALF - 1] == 0x33);
	PAIR_CHECK(s, m->part[0] == 0x33 && m->part[HALF - 1] == 0x33);
	munmap(m->half, HALF);
	munmap(m->load, LEN);
	munmap(m->part, LEN);
}

/* The side that has the memory, and nothing to do. */
static void target(struct pair_side *s)
{
	struct bad_memory m;

	bad_memory_open(s, &m);
	bad_memory_close(s, &m);
}

/* An operation that works, behind those that do not. */
static void goes_on(struct pair_side *s, struct area *a)
{
	static uint64_t seed;

	fill(a->buf, 64, ++seed);
	POST(s, fi_write(s->rma, a->buf, 64, NULL, s->peer, 0, KEY, &contexts[0]));
	pair_done(s, &contexts[0]);
	read_back(s, a, 0, 64);
}

/* An offset from which @len bytes are not allowed: across the half in regions that have one. */
static uint64_t bad_place(uint64_t key, size_t len)
{
	if (key == KEY_NONE || key == KEY_LOAD || len > HALF)
		return 0;
	return HALF - len / 2;
}

static void write_badly(struct pair_side *s, struct area *a, uint64_t key, size_t len)
{
	uint64_t at = bad_place(key, len);

	POST(s, fi_write(s->rma, a->buf, len, NULL, s->peer, at, key, &contexts[2]));
	pair_failed(s, &contexts[2], FI_EACCES);
	PAIR_CHECK(s, s->error.flags == (FI_RMA | FI_WRITE));
	goes_on(s, a);
}

static void read_badly(struct pair_side *s, struct area *a, uint64_t key, size_t len)
{
	uint64_t at = bad_place(key, len);

	POST(s, fi_read(s->ep, a->copy, len, NULL, s->peer, at, key, &contexts[3]));
	pair_failed(s, &contexts[3], FI_EACCES);
	PAIR_CHECK(s, s->error.flags == (FI_RMA | FI_READ));
	goes_on(s, a);
}

static void reads_and_writes(struct pair_side *s)
{
	struct area a;

	area_open(s, &a);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t len = lens[i] < REGION ? lens[i] : REGION;

		/* a long one may be carried out in part where the kernel copies it */
		for (uint64_t key = KEY_NONE; key <= KEY_PART; key++)
			if (len <= 8192 || key == KEY_NONE || key == KEY_LOAD)
				write_badly(s, &a, key, len);
		read_badly(s, &a, KEY_NONE, len);
		read_badly(s, &a, KEY_HALF, len);
		memset(a.copy, 0, len);
		POST(s, fi_read(s->ep, a.copy, len, NULL, s->peer, 0, KEY_LOAD, &contexts[4]));
		pair_done(s, &contexts[4]);
		PAIR_CHECK(s, a.copy[0] == 0x33 && a.copy[len - 1] == 0x33);
	}
	area_close(s, &a);
}

static void memory_that_does_not_allow_it_is_an_error(void **state)
{
	both(reads_and_writes, target, 0);
}

static void updates(struct pair_side *s)
{
	static const uint64_t keys[] = { KEY_NONE, KEY_HALF, KEY_LOAD, KEY_PART };
	uint64_t one = 1, two = 2, was = 0;
	struct area a;

	area_open(s, &a);
	for (size_t i = 0; i < 4; i++) {
		uint64_t at = HALF;

		POST(s, fi_atomic(s->rma, &one, 1, NULL, s->peer, at, keys[i], FI_UINT64,
				  FI_SUM, &contexts[2]));
		pair_failed(s, &contexts[2], FI_EACCES);
		POST(s, fi_fetch_atomic(s->ep, &one, 1, NULL, &was, NULL, s->peer, at, keys[i],
					FI_UINT64, FI_SUM, &contexts[3]));
		pair_failed(s, &contexts[3], FI_EACCES);
		POST(s, fi_compare_atomic(s->ep, &one, 1, NULL, &two, NULL, &was, NULL, s->peer,
					  at, keys[i], FI_UINT64, FI_CSWAP, &contexts[4]));
		pair_failed(s, &contexts[4], FI_EACCES);
		PAIR_CHECK(s, !was);
		goes_on(s, &a);
	}
	POST(s, fi_fetch_atomic(s->ep, &one, 1, NULL, &was, NULL, s->peer, 0, KEY_LOAD,
				FI_UINT64, FI_ATOMIC_READ, &contexts[3]));
	pair_done(s, &contexts[3]);
	PAIR_CHECK(s, was == 0x3333333333333333u);
	area_close(s, &a);
}

static void atomics_fail_alike(void **state)
{
	both(updates, target, 0);
}

/* Several targets of one operation: it is refused for one of them. */
static void scattered(struct pair_side *s)
{
	struct fi_rma_iov targets[2] = { { 0, 16, KEY }, { 0, 16, KEY_NONE } };
	struct iovec iov;
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .iov_count = 1,
				  .rma_iov = targets,
				  .rma_iov_count = 2,
				  .context = &contexts[2] };
	struct area a;

	area_open(s, &a);
	iov = (struct iovec){ a.buf, 32 };
	msg.addr = s->peer;
	POST(s, fi_writemsg(s->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	pair_failed(s, &contexts[2], FI_EACCES);
	POST(s, fi_readmsg(s->ep, &msg, FI_COMPLETION));
	pair_failed(s, &contexts[2], FI_EACCES);
	goes_on(s, &a);
	area_close(s, &a);
}

static void one_of_several_targets_is_enough(void **state)
{
	both(scattered, target, 0);
}

/* What is injected has no context: the error has that of the endpoint. */
static void injected(struct pair_side *s)
{
	uint64_t one = 1;
	struct area a;

	area_open(s, &a);
	for (uint64_t key = KEY_NONE; key <= KEY_PART; key++) {
		POST(s, fi_inject_write(s->ep, &one, 8, s->peer, HALF, key));
		pair_failed(s, NULL, FI_EACCES);
		POST(s, fi_inject_atomic(s->ep, &one, 1, s->peer, HALF, key, FI_UINT64, FI_SUM));
		pair_failed(s, NULL, FI_EACCES);
		goes_on(s, &a);
	}
	area_close(s, &a);
}

static void what_was_injected_fails_as_well(void **state)
{
	both(injected, target, 0);
}

/* Large ones, to a target that computes meanwhile: over shared memory the kernel copies. */
static void towards_a_sleeper(struct pair_side *s)
{
	struct area a;

	area_open(s, &a);
	goes_on(s, &a);
	for (uint64_t key = KEY_NONE; key <= KEY_LOAD; key++) {
		pair_say(s, 's');
		pair_hear(s, 's', false);
		POST(s, fi_write(s->rma, a.buf, REGION, NULL, s->peer, LEN - REGION, key,
				 &contexts[2]));
		PAIR_CHECK(s, pair_none(s));
		pair_say(s, 'w');
		pair_failed(s, &contexts[2], FI_EACCES);
		goes_on(s, &a);
	}
	area_close(s, &a);
}

static void sleeper(struct pair_side *s)
{
	struct bad_memory m;

	bad_memory_open(s, &m);
	for (uint64_t key = KEY_NONE; key <= KEY_LOAD; key++) {
		pair_hear(s, 's', true);
		pair_say(s, 's');
		pair_hear(s, 'w', false);
	}
	/* bytes before a hole may have been written */
	memset(m.half, 0x33, HALF);
	bad_memory_close(s, &m);
}

static void target_that_computes_refuses_later(void **state)
{
	both(towards_a_sleeper, sleeper, 0);
}

/* Read-only memory that is made writable, as a program does that was told of the error. */
static void mended(struct pair_side *s)
{
	struct area a;

	area_open(s, &a);
	write_badly(s, &a, KEY_LOAD, 8);
	pair_say(s, 'm');
	pair_hear(s, 'm', true);
	POST(s, fi_write(s->rma, a.buf, 64, NULL, s->peer, 0, KEY_LOAD, &contexts[1]));
	pair_done(s, &contexts[1]);
	area_close(s, &a);
}

static void mender(struct pair_side *s)
{
	struct bad_memory m;

	bad_memory_open(s, &m);
	pair_hear(s, 'm', true);
	PAIR_CHECK(s, !mprotect(m.load, LEN, PROT_READ | PROT_WRITE));
	pair_say(s, 'm');
	bad_memory_close(s, &m);
}

static void memory_that_is_made_writable_is_written(void **state)
{
	both(mended, mender, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_that_does_not_allow_it_is_an_error),
		cmocka_unit_test(atomics_fail_alike),
		cmocka_unit_test(one_of_several_targets_is_enough),
		cmocka_unit_test(what_was_injected_fails_as_well),
		cmocka_unit_test(target_that_computes_refuses_later),
		cmocka_unit_test(memory_that_is_made_writable_is_written),
	};

	provider = argc > 1 ? argv[1] : "link";
	if (!pair_exists(provider)) {
		print_message("skipped: the provider %s is not there\n", provider);
		return 77;
	}
	return cmocka_run_group_tests_name(provider, tests, NULL, NULL);
}
