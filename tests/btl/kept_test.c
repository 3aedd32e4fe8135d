/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registrations that contexts after the first keep of the program's memory, where the provider wants local memory
 * registered: none outlives the memory's own for long, and none is used for what comes after it.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include <weft/btl.h>
#include "forced.h"

#define LEN    ((size_t)64 << 10)
#define RW     (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ROUNDS 10000

static struct weft_btl *btl;
static struct weft_btl_ctx *first, *later;
static unsigned char *memory, *other;
static struct weft_btl_mem *mem;
static unsigned char handle[WEFT_BTL_HANDLE_MAX];
static struct weft_btl_target to;

static void *map_at(void *at)
{
	return mmap(at, LEN, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
}

static struct weft_btl_mem *open_mem(void *at)
{
	struct weft_btl_mem *opened = NULL;

	assert_int_equal(weft_btl_mem_open(btl, at, LEN, 0, &opened), 0);
	return opened;
}

static int start(void **state)
{
	struct weft_btl_attr attr = { .size = sizeof(attr), .provider = "shm" };
	unsigned char name[WEFT_BTL_NAME_MAX];
	size_t len = sizeof(name);

	memory = map_at(NULL);
	other = map_at(NULL);
	if (memory == MAP_FAILED || other == MAP_FAILED || weft_btl_open(&attr, &btl) ||
	    weft_btl_ctx_open(btl, &first) || weft_btl_ctx_open(btl, &later) ||
	    weft_btl_mem_open(btl, memory, LEN, RW, &mem) || weft_btl_name(btl, name, &len) ||
	    weft_btl_peer_open(btl, name, len, &to.peer))
		return -1;
	weft_btl_mem_handle(mem, handle);
	to.handle = handle;
	to.addr = (uintptr_t)memory;
	return 0;
}

static int stop(void **state)
{
	weft_btl_peer_close(to.peer);
	if (weft_btl_mem_close(mem) || weft_btl_ctx_close(later) || weft_btl_ctx_close(first) ||
	    weft_btl_close(btl))
		return -1;
	return munmap(memory, LEN) || munmap(other, LEN) ? -1 : 0;
}

/* Puts what is at @from, which @local is a registration of. */
static void put(struct weft_btl_ctx *ctx, const void *from, struct weft_btl_mem *local)
{
	struct weft_btl_op op = { .done = weft_btl_flushed };

	assert_int_equal(weft_btl_put(ctx, &to, from, LEN, local, &op), 0);
	weft_btl_flush(ctx, NULL);
	assert_int_equal(op.status, 0);
	assert_memory_equal(memory, from, LEN);
}

static void a_registration_is_kept_while_its_memory_is_open(void **state)
{
	struct weft_btl_mem *own = open_mem(other);

	memset(other, 1, LEN);
	put(later, other, own);
	assert_int_equal(forced_region_cnt(other, LEN), 2);
	for (int i = 0; i < ROUNDS; i++)
		weft_btl_progress(later);
	put(later, other, own);
	assert_int_equal(forced_region_cnt(other, LEN), 2);
	assert_int_equal(weft_btl_mem_close(own), 0);
}

static void one_of_memory_that_was_closed_ends_with_progress(void **state)
{
	struct weft_btl_mem *own = open_mem(other);

	put(later, other, own);
	assert_int_equal(weft_btl_mem_close(own), 0);
	for (int i = 0; i < ROUNDS; i++)
		weft_btl_progress(later);
	assert_int_equal(forced_region_cnt(other, LEN), 0);
}

/* And others are kept. */
static void it_ends_when_other_memory_is_used(void **state)
{
	struct weft_btl_mem *own = open_mem(other);
	size_t cnt;

	put(later, other, own);
	put(later, memory, mem);
	cnt = forced_region_cnt(memory, LEN);
	assert_int_equal(weft_btl_mem_close(own), 0);
	put(later, memory, mem);
	assert_int_equal(forced_region_cnt(other, LEN), 0);
	assert_int_equal(forced_region_cnt(memory, LEN), cnt);
}

static void all_end_with_their_context(void **state)
{
	struct weft_btl_mem *own = open_mem(other);

	put(later, other, own);
	assert_int_equal(weft_btl_mem_close(own), 0);
	assert_int_equal(weft_btl_ctx_close(later), 0);
	assert_int_equal(forced_region_cnt(other, LEN), 0);
	assert_int_equal(weft_btl_ctx_open(btl, &later), 0);
}

/* Memory comes and goes at one address, as an allocator's does. */
static void none_is_used_for_what_is_mapped_there_next(void **state)
{
	for (int i = 0; i < 100; i++) {
		struct weft_btl_mem *own = open_mem(other);

		memset(other, i, LEN);
		put(later, other, own);
		put(first, other, own);
		assert_int_equal(weft_btl_mem_close(own), 0);
		assert_ptr_equal(map_at(other), other);
		forced_unmapped(other, LEN);
	}
	put(later, memory, mem);
	assert_int_equal(forced_region_cnt(other, LEN), 0);
}

/* More than a lane has places for. */
static void any_number_may_be_open(void **state)
{
	struct weft_btl_mem *own[100];

	for (size_t i = 0; i < 100; i++)
		own[i] = open_mem(other);
	for (size_t turn = 0; turn < 3; turn++)
		for (size_t i = 0; i < 100; i++)
			put(later, other, own[i]);
	assert_in_range(forced_region_cnt(other, LEN), 100, 150);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(weft_btl_mem_close(own[i]), 0);
	put(later, memory, mem);
	assert_int_equal(forced_region_cnt(other, LEN), 0);
}

#define WORKERS 3
#define WORKS	200

/*
 * struct worker - a thread with a context
 * @shared:  memory that all use, and that is closed while the workers go on
 * @turn:    all meet before and after they use it
 * @place:   where it gets to; nobody else does, and nothing is got from there
 */
struct worker {
	pthread_t thread;
	struct weft_btl_mem **shared;
	pthread_barrier_t *turn;
	struct weft_btl_ctx *ctx;
	size_t place;
	int ret;
};

/* Gets some bytes to the worker's place in @bytes, which @local is a registration of. */
static void get(struct worker *w, unsigned char *bytes, struct weft_btl_mem *local)
{
	struct weft_btl_op op = { .done = weft_btl_flushed };
	int ret;

	do {
		ret = weft_btl_get(w->ctx, &to, bytes + 64 * w->place, 64, local, &op);
		weft_btl_flush(w->ctx, NULL);
	} while (ret == -FI_EAGAIN);
	ret = ret ? ret : op.status;
	w->ret = w->ret ? w->ret : ret;
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < WORKS; i++) {
		pthread_barrier_wait(w->turn);
		get(w, other, *w->shared);
		pthread_barrier_wait(w->turn);
		for (int n = 0; n < 10; n++)
			get(w, memory, mem);
	}
	return NULL;
}

static void it_may_be_closed_by_another_thread(void **state)
{
	struct worker workers[WORKERS] = { 0 };
	struct weft_btl_mem *shared;
	pthread_barrier_t turn;

	pthread_barrier_init(&turn, NULL, WORKERS + 1);
	for (int i = 0; i < WORKERS; i++) {
		workers[i].shared = &shared;
		workers[i].turn = &turn;
		workers[i].place = 1 + (size_t)i;
		assert_int_equal(weft_btl_ctx_open(btl, &workers[i].ctx), 0);
		assert_int_equal(
			pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]), 0);
	}
	for (int i = 0; i < WORKS; i++) {
		shared = open_mem(other);
		pthread_barrier_wait(&turn);
		pthread_barrier_wait(&turn);
		assert_int_equal(weft_btl_mem_close(shared), 0);
	}
	for (int i = 0; i < WORKERS; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].ret, 0);
		/* the last one may have been closed after the last get */
		get(&workers[i], memory, mem);
	}
	assert_int_equal(forced_region_cnt(other, LEN), 0);
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(weft_btl_ctx_close(workers[i].ctx), 0);
	pthread_barrier_destroy(&turn);
}

/* The argument, if there is one: which tests are run. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_registration_is_kept_while_its_memory_is_open),
		cmocka_unit_test(one_of_memory_that_was_closed_ends_with_progress),
		cmocka_unit_test(it_ends_when_other_memory_is_used),
		cmocka_unit_test(all_end_with_their_context),
		cmocka_unit_test(none_is_used_for_what_is_mapped_there_next),
		cmocka_unit_test(any_number_may_be_open),
		cmocka_unit_test(it_may_be_closed_by_another_thread),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, start, stop);
}
