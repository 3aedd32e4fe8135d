/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two sides that access each other's memory; access_area.h has the contract.
 */
#define _GNU_SOURCE
#include "access_area.h"
#include "seeded.h"
#include <errno.h>
#include <weft/mem.h>

const char *provider;
bool in_arena;
struct fi_context2 contexts[8];
const size_t sizes[SIZES] = { 1,     7,	    8,	   24,	  25,	  64,	    100,
			      256,   257,   1000,  4096,  8191,	  8192,	    8193,
			      16384, 16385, 65536, 65537, 300000, 1u << 20, (3u << 20) + 1 };

int access_begin(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: %s PROVIDER [arena]\n", program_invocation_short_name);
		return 2;
	}
	provider = argv[1];
	in_arena = argc > 2 && !strcmp(argv[2], "arena");
	if (pair_exists(provider))
		return 0;
	printf("no provider '%s'\n", provider);
	return 77;
}

uint32_t next_random(uint64_t *seed)
{
	return (uint32_t)(seeded_random(seed) >> 33);
}

void fill(uint8_t *at, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)(next_random(&seed) >> 3);
}

/* Memory of the arena, which peers store to by themselves, if the test was asked for it; else of malloc. */
static void *memory(struct pair_side *s)
{
	struct weft_mem_ops *ops;
	void *addr = NULL;

	if (!in_arena)
		return calloc(1, REGION);
	PAIR_CHECK(s, !fi_open_ops(&s->domain->fid, WEFT_MEM_OPS, 0, (void **)&ops, NULL));
	PAIR_CHECK(s, !ops->alloc(REGION, 0, WEFT_MEM_REMOTE_WRITE, &addr));
	memset(addr, 0, REGION);
	return addr;
}

static void memory_free(struct pair_side *s, void *addr)
{
	struct weft_mem_ops *ops;

	if (!in_arena) {
		free(addr);
		return;
	}
	PAIR_CHECK(s, !fi_open_ops(&s->domain->fid, WEFT_MEM_OPS, 0, (void **)&ops, NULL));
	PAIR_CHECK(s, !ops->free(addr));
}

void area_open(struct pair_side *s, struct area *a)
{
	uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE | FI_SEND |
			  FI_RECV;

	a->region = memory(s);
	a->buf = memory(s);
	a->copy = memory(s);
	PAIR_CHECK(s, a->region && a->buf && a->copy);
	PAIR_CHECK(s, !fi_mr_reg(s->domain, a->region, REGION, access, 0, KEY, 0, &a->mr, NULL));
	PAIR_CHECK(s, !fi_mr_reg(s->domain, a->region, REGION, FI_REMOTE_READ, 0, KEY_READ, 0,
				 &a->read_only, NULL));
	PAIR_CHECK(s, !fi_mr_reg(s->domain, NULL, UINTPTR_MAX, access, 0, KEY_ALL, 0, &a->all,
				 NULL));
	pair_say(s, 'r');
	pair_hear(s, 'r', true);
}

void area_close(struct pair_side *s, struct area *a)
{
	pair_say(s, 'e');
	pair_hear(s, 'e', true);
	PAIR_CHECK(s, !fi_close(&a->mr->fid));
	PAIR_CHECK(s, !fi_close(&a->read_only->fid));
	PAIR_CHECK(s, !fi_close(&a->all->fid));
	memory_free(s, a->region);
	memory_free(s, a->buf);
	memory_free(s, a->copy);
}

void passive(struct pair_side *s)
{
	struct area a;

	area_open(s, &a);
	area_close(s, &a);
}

void read_back(struct pair_side *s, struct area *a, size_t at, size_t len)
{
	memset(a->copy, 0, len);
	POST(s, fi_read(s->ep, a->copy, len, NULL, s->peer, at, KEY, &contexts[1]));
	pair_done(s, &contexts[1]);
	PAIR_CHECK(s, s->entry.flags == (FI_RMA | FI_READ));
	PAIR_CHECK(s, !memcmp(a->copy, a->buf, len));
}

void both(pair_role first, pair_role second, uint64_t order)
{
	static const enum pair_mode modes[] = { PAIR_PROCESSES, PAIR_THREADS };
#ifdef __SANITIZE_THREAD__
	const int cnt =
		1; /* what a peer writes is ordered by the operations, which it does not know */
#else
	/* the child of a fork has no arena once its parent has one, as after a test with threads */
	const int cnt = in_arena ? 1 : 2;
#endif

	for (int i = 0; i < cnt; i++) {
		struct pair_attr attr = {
			.provider = provider,
			.mode = modes[i],
			.caps = FI_RMA | FI_ATOMIC,
			.msg_order = order,
		};

		pair_run(&attr, first, second);
	}
}
