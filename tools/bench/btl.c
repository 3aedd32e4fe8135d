/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided operations of libweft-btl; btl.h has the contract. Called by 'weft bench' on both sides.
 *
 * The memory of a side begins with two words, the one that is added to and the number of runs that are over, and
 * goes on with the slots. A written slot begins and ends with the number of its operation.
 */
#define _GNU_SOURCE
#include "btl.h"
#include "clock.h"
#include "fabric.h"
#include "libfabric.h"

#include <err.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/btl.h>
#include <weft/mem.h>

#define LINE	  64
#define LARGE	  65536 /* bytes from which on slots rotate */
#define SLOTS_MIN 8
#define BATCH_MAX 64 /* puts that are flushed together */
#define THREADS	  2

/* A thread has its own part of the slots, in which a batch has room. */
#define SLOTS_SMALL (THREADS * BATCH_MAX)

/* Offsets of the words. */
#define SUM_AT	0
#define RUNS_AT 8

/* What travels out of band. */
struct peer_text {
	uint64_t addr;
	/* the core it runs on */
	int32_t cpu;
	uint32_t name_len;
	char handle[WEFT_BTL_HANDLE_MAX];
	char name[OOB_BLOB_MAX - 16 - WEFT_BTL_HANDLE_MAX];
};

_Static_assert(sizeof(struct peer_text) == OOB_BLOB_MAX, "it is one blob");

struct btl {
	struct side *side;
	char provider[PLAN_PROVIDER_MAX];
	struct weft_btl *transport;
	/* of each thread of side 0; side 1 has the first alone */
	struct weft_btl_ctx *ctx[THREADS];
	struct weft_btl_peer *peer;
	struct weft_btl_mem *mem;
	/* gives memory of the arena; NULL: malloc does */
	struct fid_fabric *fabric;
	struct weft_mem_ops *arena;
	char *bytes;
	size_t len;
	struct peer_text theirs;
	/* puts of all runs, additions, and runs */
	uint64_t written, added, runs;
};

/* The operations of one thread in one run; two threads' are on lines, and pairs of lines, of their own. */
struct turn {
	_Alignas(2 * LINE) struct btl *btl;
	struct weft_btl_ctx *ctx;
	size_t size;
	uint32_t cnt, batch;
	/* number of its first operation */
	uint64_t first;
	/* its slots */
	size_t slot, slots;
	int rc;
};

static size_t slots_of(size_t size)
{
	long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
	size_t cnt;

	if (size < LARGE)
		return SLOTS_SMALL;
	cnt = 2 * (cache > 0 ? (size_t)cache : 2u << 20) / size + 1;
	return cnt < SLOTS_MIN ? SLOTS_MIN : cnt / THREADS * THREADS;
}

static size_t slot_at(size_t size, size_t slot)
{
	return LINE + slot * ((size + LINE - 1) / LINE * LINE);
}

static size_t room_of(const struct plan *plan)
{
	size_t most = LINE, len, i;

	for (i = 0; i < plan->sizes.cnt; i++) {
		len = slot_at(plan->sizes.len[i], slots_of(plan->sizes.len[i]));
		most = len > most ? len : most;
	}
	return most;
}

/* The arena belongs to the process: a fabric of the same library leads to it. */
static int open_arena(struct btl *btl)
{
	struct fi_info *hints = fabric_info_create(), *info = NULL;
	int rc = hints ? 0 : -FI_ENOMEM;

	if (!rc && btl->provider[0]) {
		hints->fabric_attr->prov_name = strdup(btl->provider);
		rc = hints->fabric_attr->prov_name ? 0 : -FI_ENOMEM;
	}
	if (!rc)
		rc = fabric_getinfo(TOOLS_API_VERSION, NULL, NULL, 0, hints, &info);
	if (!rc)
		rc = fabric_open(info->fabric_attr, &btl->fabric);
	if (!rc)
		rc = fi_open_ops(&btl->fabric->fid, WEFT_MEM_OPS, 0, (void **)&btl->arena, NULL);
	fabric_info_destroy(info);
	fabric_info_destroy(hints);
	return rc ? fabric_complain("registered memory of the provider (--mem needs Weft)", rc)
		  : 0;
}

static int alloc_bytes(struct btl *btl, size_t len, bool mem)
{
	int rc = mem ? open_arena(btl) : 0;

	if (rc)
		return rc;
	if (btl->arena)
		rc = btl->arena->alloc(len, LINE, WEFT_MEM_REMOTE_WRITE, (void **)&btl->bytes);
	else
		rc = posix_memalign((void **)&btl->bytes, LINE, len) ? -FI_ENOMEM : 0;
	if (rc)
		return fabric_complain("memory", rc);
	memset(btl->bytes, 0, len);
	btl->len = len;
	return 0;
}

static int open_all(struct btl *btl)
{
	const struct weft_btl_attr attr = { .size = sizeof(attr),
					    .provider = btl->provider[0] ? btl->provider
									 : NULL };
	int i, rc = weft_btl_open(&attr, &btl->transport);

	if (rc)
		return fabric_complain("weft_btl_open", rc);
	for (i = 0; i < (btl->side->rank ? 1 : THREADS) && !rc; i++)
		rc = weft_btl_ctx_open(btl->transport, &btl->ctx[i]);
	if (rc)
		return fabric_complain("weft_btl_ctx_open", rc);
	rc = weft_btl_mem_open(btl->transport, btl->bytes, btl->len,
			       FI_REMOTE_READ | FI_REMOTE_WRITE, &btl->mem);
	return rc ? fabric_complain("weft_btl_mem_open", rc) : 0;
}

static int meet(struct btl *btl)
{
	struct peer_text mine = { .addr = (uintptr_t)btl->bytes, .cpu = sched_getcpu() };
	size_t name_len = sizeof(mine.name), len = sizeof(btl->theirs);
	int rc = weft_btl_name(btl->transport, mine.name, &name_len);

	if (rc)
		return fabric_complain("weft_btl_name", rc);
	mine.name_len = (uint32_t)name_len;
	weft_btl_mem_handle(btl->mem, mine.handle);
	rc = oob_exchange(&btl->side->oob, &mine, sizeof(mine), &btl->theirs, &len);
	if (rc)
		return rc;
	if (len != sizeof(btl->theirs) || btl->theirs.name_len > sizeof(btl->theirs.name))
		return fabric_complain("the other side's name", -FI_EPROTO);
	rc = weft_btl_peer_open(btl->transport, btl->theirs.name, btl->theirs.name_len,
				&btl->peer);
	return rc ? fabric_complain("weft_btl_peer_open", rc) : 0;
}

int btl_create(const struct plan *plan, const struct channel_options *opt, struct side *side,
	       struct btl **btl)
{
	struct btl *new = calloc(1, sizeof(*new));
	int rc;

	if (!new)
		return fabric_complain("bench", -FI_ENOMEM);
	new->side = side;
	memcpy(new->provider, plan->provider, sizeof(new->provider));
	rc = alloc_bytes(new, room_of(plan), opt->mem);
	if (!rc)
		rc = open_all(new);
	if (!rc)
		rc = meet(new);
	if (rc) {
		btl_destroy(new);
		return rc;
	}
	*btl = new;
	return 0;
}

static void free_bytes(struct btl *btl)
{
	if (btl->arena && btl->bytes)
		btl->arena->free(btl->bytes);
	else
		free(btl->bytes);
	if (btl->fabric)
		fabric_close(&btl->fabric->fid, "fi_close of a fabric");
}

void btl_destroy(struct btl *btl)
{
	int i, rc = 0;

	if (!btl)
		return;
	if (btl->peer)
		weft_btl_peer_close(btl->peer);
	if (btl->mem)
		rc = weft_btl_mem_close(btl->mem);
	for (i = THREADS; i--;)
		if (btl->ctx[i] && !rc)
			rc = weft_btl_ctx_close(btl->ctx[i]);
	if (btl->transport && !rc)
		rc = weft_btl_close(btl->transport);
	if (rc)
		fabric_complain("the end of a transport", rc);
	free_bytes(btl);
	free(btl);
}

void btl_describe(const struct btl *btl, struct results_config *config)
{
	*config = (struct results_config){ .api = fi_version() };
	snprintf(config->provider, sizeof(config->provider), "btl over %s",
		 btl->provider[0] ? btl->provider : "any");
	snprintf(config->prov_version, sizeof(config->prov_version), "-");
	snprintf(config->build, sizeof(config->build), "%s", fi_tostr("1", FI_TYPE_VERSION));
	snprintf(config->library, sizeof(config->library), "%s", fabric_library_path());
}

static struct weft_btl_target target_at(const struct btl *btl, size_t at)
{
	return (struct weft_btl_target){ btl->peer, btl->theirs.handle, btl->theirs.addr + at };
}

static void mark(char *slot, size_t size, uint64_t number)
{
	size_t len = size < sizeof(number) ? size : sizeof(number);

	memcpy(slot, &number, len);
	memcpy(slot + size - len, &number, len);
}

static int check_mark(const char *slot, size_t size, uint64_t number)
{
	size_t len = size < sizeof(number) ? size : sizeof(number);

	if (!memcmp(slot + size - len, &number, len) &&
	    (size < 2 * len || !memcmp(slot, &number, len)))
		return 0;
	warnx("operation %llu of %zu bytes: others are there", (unsigned long long)number, size);
	return -FI_EIO;
}

static void ended(struct weft_btl_op *op)
{
	if (op->status)
		*(int *)op->arg = op->status;
}

static size_t turn_at(const struct turn *t, uint32_t i)
{
	return slot_at(t->size, t->slot + i % t->slots);
}

static int put(struct turn *t, uint32_t i, struct weft_btl_op *op)
{
	size_t at = turn_at(t, i);
	struct weft_btl_target to = target_at(t->btl, at);
	int rc;

	op->done = ended;
	op->arg = &t->rc;
	mark(t->btl->bytes + at, t->size, t->first + i);
	while ((rc = weft_btl_put(t->ctx, &to, t->btl->bytes + at, t->size, t->btl->mem, op)) ==
	       -FI_EAGAIN)
		weft_btl_progress(t->ctx);
	return rc;
}

static int get(struct turn *t, uint32_t i, struct weft_btl_op *op)
{
	size_t at = turn_at(t, i);
	struct weft_btl_target from = target_at(t->btl, at);
	int rc;

	op->done = ended;
	op->arg = &t->rc;
	while ((rc = weft_btl_get(t->ctx, &from, t->btl->bytes + at, t->size, t->btl->mem,
				  op)) == -FI_EAGAIN)
		weft_btl_progress(t->ctx);
	return rc;
}

/* Puts of one thread; the last batch has what is left. */
static void *run_puts(void *arg)
{
	struct weft_btl_op ops[BATCH_MAX] = { 0 };
	struct turn *t = arg;
	uint32_t i;

	for (i = 0; i < t->cnt && !t->rc;) {
		do
			t->rc = put(t, i, &ops[i % t->batch]);
		while (++i < t->cnt && i % t->batch && !t->rc);
		weft_btl_flush(t->ctx, t->btl->peer);
	}
	return NULL;
}

static void run_gets(struct turn *t)
{
	struct weft_btl_op op = { 0 };
	uint32_t i;

	for (i = 0; i < t->cnt && !t->rc; i++) {
		t->rc = get(t, i, &op);
		weft_btl_flush(t->ctx, t->btl->peer);
	}
	for (i = 0; i < t->cnt && i < t->slots && !t->rc; i++)
		t->rc = check_mark(t->btl->bytes + turn_at(t, i), t->size, i + t->btl->runs);
}

static void run_adds(struct turn *t)
{
	const uint64_t one = 1;
	struct weft_btl_target to = target_at(t->btl, SUM_AT);
	struct weft_btl_op op = { .done = ended, .arg = &t->rc };
	uint64_t found = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < t->cnt && !t->rc; i++) {
		while ((t->rc = weft_btl_fetch_atomic(t->ctx, &to, FI_SUM, FI_UINT64, &one,
						      &found, &op)) == -FI_EAGAIN)
			weft_btl_progress(t->ctx);
		weft_btl_flush(t->ctx, t->btl->peer);
		if (t->rc || found == t->btl->added++)
			continue;
		warnx("an addition found %llu instead of %llu", (unsigned long long)found,
		      (unsigned long long)t->btl->added - 1);
		t->rc = -FI_EIO;
	}
}

/* On the other side's core, which that side leaves to it. */
static int start_thread(struct turn *t, pthread_t *thread)
{
	pthread_attr_t attr;
	cpu_set_t one;
	int rc;

	CPU_ZERO(&one);
	CPU_SET(t->btl->theirs.cpu, &one);
	rc = pthread_attr_init(&attr);
	if (!rc)
		rc = pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	if (!rc)
		rc = pthread_create(thread, &attr, run_puts, t);
	pthread_attr_destroy(&attr);
	return rc ? fabric_complain("a second thread", -rc) : 0;
}

static int run_two(struct turn turns[THREADS])
{
	pthread_t second;
	int rc;

	turns[0].cnt /= THREADS;
	turns[0].slots /= THREADS;
	turns[1] = turns[0];
	turns[1].ctx = turns[0].btl->ctx[1];
	turns[1].first += turns[0].cnt;
	turns[1].slot += turns[0].slots;
	rc = start_thread(&turns[1], &second);
	if (rc)
		return rc;
	run_puts(&turns[0]);
	pthread_join(second, NULL);
	return turns[1].rc;
}

/* Side 1's word that the run is over. */
static int tell_end(struct turn *t)
{
	struct weft_btl_target to = target_at(t->btl, RUNS_AT);
	struct weft_btl_op op = { .done = ended, .arg = &t->rc };
	int rc;

	memcpy(t->btl->bytes + RUNS_AT, &t->btl->runs, sizeof(t->btl->runs));
	while ((rc = weft_btl_put(t->ctx, &to, t->btl->bytes + RUNS_AT, sizeof(t->btl->runs),
				  t->btl->mem, &op)) == -FI_EAGAIN)
		weft_btl_progress(t->ctx);
	weft_btl_flush(t->ctx, t->btl->peer);
	return rc ? rc : t->rc;
}

static uint32_t batch_of(enum figure_test test, size_t size)
{
	if (test == FIGURE_PUT)
		return 1;
	return size < LARGE ? BATCH_MAX : SLOTS_MIN / THREADS;
}

static int initiate(struct btl *btl, enum figure_test test, size_t size, uint32_t cnt,
		    uint64_t *taken)
{
	struct turn turns[THREADS] = { { .btl = btl,
					 .ctx = btl->ctx[0],
					 .size = size,
					 .cnt = cnt,
					 .batch = batch_of(test, size),
					 .first = btl->written,
					 .slots = slots_of(size) } };
	uint64_t start = clock_ns();
	int rc = 0;

	if (test == FIGURE_GET)
		run_gets(&turns[0]);
	else if (test == FIGURE_FETCH)
		run_adds(&turns[0]);
	else if (test == FIGURE_PUTS2)
		rc = run_two(turns);
	else
		run_puts(&turns[0]);
	*taken = clock_ns() - start;
	if (!rc)
		rc = turns[0].rc;
	return rc ? fabric_complain("an operation", rc) : tell_end(&turns[0]);
}

/* Written by the other side, or by this one's library on another thread. */
static uint64_t runs_over(const struct btl *btl)
{
	return __atomic_load_n((const uint64_t *)(btl->bytes + RUNS_AT), __ATOMIC_ACQUIRE);
}

static int serve(struct btl *btl, bool sleeps)
{
	unsigned spins = 0;

	while (!sleeps && runs_over(btl) != btl->runs) {
		weft_btl_progress(btl->ctx[0]);
		if (!(++spins % 16384) && oob_gone(&btl->side->oob))
			return -FI_ESHUTDOWN;
	}
	return 0;
}

/* Before a run: what is read. */
static void prepare_gets(struct btl *btl, size_t size)
{
	uint32_t i;

	for (i = 0; i < slots_of(size); i++)
		mark(btl->bytes + slot_at(size, i), size, i + btl->runs);
}

/* On side 1: the last put of a run has arrived. */
static int check_puts(const struct btl *btl, enum figure_test test, size_t size, uint32_t cnt)
{
	uint32_t threads = test == FIGURE_PUTS2 ? THREADS : 1;
	size_t slots = slots_of(size) / threads;
	size_t last = (threads - 1) * slots + (cnt / threads - 1) % slots;

	return check_mark(btl->bytes + slot_at(size, last), size, btl->written - 1);
}

int btl_run(struct btl *btl, enum figure_test test, size_t size, uint32_t cnt, uint64_t *taken)
{
	bool puts = test != FIGURE_GET && test != FIGURE_FETCH;
	int rc;

	*taken = 0;
	cnt = (cnt + THREADS - 1) / THREADS * THREADS;
	btl->runs++;
	if (btl->side->rank && test == FIGURE_GET)
		prepare_gets(btl, size);
	rc = oob_barrier(&btl->side->oob, 0);
	if (rc)
		return rc;
	if (btl->side->rank)
		rc = serve(btl, test == FIGURE_PUTS1 || test == FIGURE_PUTS2);
	else
		rc = initiate(btl, test, size, cnt, taken);
	if (puts)
		btl->written += cnt;
	if (oob_barrier(&btl->side->oob, rc) && !rc)
		rc = -FI_ECONNABORTED;
	return rc || !btl->side->rank || !puts ? rc : check_puts(btl, test, size, cnt);
}
