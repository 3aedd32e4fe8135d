/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations that a device begins and never ends, as where a peer has died unnoticed: given up, and ended late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include <weft/btl.h>
#include "hooks.h"

#define LEN ((size_t)4 << 20)
#define RW  (FI_REMOTE_READ | FI_REMOTE_WRITE)

static unsigned char *memory, *local;
static struct weft_btl *btl;
static struct weft_btl_ctx *ctx;
static struct weft_btl_mem *mem;
static unsigned char name[WEFT_BTL_NAME_MAX], handle[WEFT_BTL_HANDLE_MAX];
static size_t name_len;
static struct weft_btl_target to;

static int start(void **state)
{
	struct weft_btl_attr attr = { .size = sizeof(attr), .provider = "shm", .device_cnt = 2 };

	hooks = (struct hooks){ .devices = 2 };
	memory = calloc(1, LEN);
	local = malloc(LEN);
	name_len = sizeof(name);
	if (!memory || !local || weft_btl_open(&attr, &btl) || weft_btl_ctx_open(btl, &ctx) ||
	    weft_btl_mem_open(btl, memory, LEN, RW, &mem) ||
	    weft_btl_name(btl, name, &name_len) ||
	    weft_btl_peer_open(btl, name, name_len, &to.peer))
		return -1;
	memset(local, 7, LEN);
	weft_btl_mem_handle(mem, handle);
	to.handle = handle;
	to.addr = (uintptr_t)memory;
	return 0;
}

/* Closes all, which no operation of a device's that is held keeps from it. */
static int stop(void **state)
{
	weft_btl_peer_close(to.peer);
	if (weft_btl_mem_close(mem) || weft_btl_ctx_close(ctx) || weft_btl_close(btl))
		return -1;
	free(memory);
	free(local);
	return 0;
}

/* struct counted - an operation that counts its ends */
struct counted {
	struct weft_btl_op op;
	size_t ends;
};

static void count_end(struct weft_btl_op *op)
{
	++((struct counted *)op)->ends;
}

static void begin_put(struct counted *it, size_t len)
{
	*it = (struct counted){ .op.done = count_end };
	assert_int_equal(weft_btl_put(ctx, &to, local, len, NULL, &it->op), 0);
}

/* A put that works, and a flush that waits for it. */
static void put_all(void)
{
	struct counted it;

	memory[LEN - 1] = 0;
	begin_put(&it, LEN);
	weft_btl_flush(ctx, to.peer);
	assert_int_equal(it.ends, 1);
	assert_int_equal(it.op.status, 0);
	assert_memory_equal(memory, local, LEN);
}

static void nothing_waits_for_what_was_cancelled(void **state)
{
	static struct counted whole, striped;
	static struct weft_btl_op polled;
	struct weft_btl_op *ended;

	hooks.holds = 3;
	begin_put(&whole, 64);
	begin_put(&striped, LEN);
	assert_int_equal(weft_btl_get(ctx, &to, local, 64, NULL, &polled), 0);
	assert_int_equal(weft_btl_cancel(ctx, &whole.op), 0);
	assert_int_equal(weft_btl_cancel(ctx, &whole.op), 0);
	assert_int_equal(weft_btl_cancel(ctx, &striped.op), 0);
	assert_int_equal(weft_btl_cancel(ctx, &polled), 0);
	weft_btl_flush(ctx, to.peer);
	weft_btl_flush(ctx, NULL);
	assert_int_equal(weft_btl_poll(ctx, &ended, 1), 0);
	assert_int_equal(whole.ends, 0);
	assert_int_equal(striped.ends, 0);
}

/* By then with an error, whatever has become of it; and no other device takes it over. */
static void what_was_cancelled_ends_once_a_device_gives_it_back(void **state)
{
	struct counted whole, striped;

	hooks.holds = 2;
	begin_put(&striped, LEN);
	hooks.holds = 3;
	begin_put(&whole, 64);
	assert_int_equal(weft_btl_cancel(ctx, &striped.op), 0);
	assert_int_equal(weft_btl_cancel(ctx, &whole.op), 0);
	weft_btl_flush(ctx, NULL);
	assert_int_equal(striped.ends, 0);
	memset(hooks.used, 0, sizeof(hooks.used));
	hooks.holds = 0;
	for (size_t i = 0; i < 1000; i++)
		weft_btl_progress(ctx);
	assert_int_equal(striped.ends, 1);
	assert_int_equal(whole.ends, 1);
	assert_int_equal(striped.op.status, -FI_ECANCELED);
	assert_int_equal(whole.op.status, -FI_ECANCELED);
	assert_int_equal(hooks.used[0] + hooks.used[1], 0);
	put_all();
}

static void one_that_has_ended_can_not_be_cancelled(void **state)
{
	const size_t lens[] = { 0, 64, LEN };

	for (size_t i = 0; i < 3; i++) {
		struct weft_btl_op op = { .done = NULL }, *ended = NULL;

		assert_int_equal(weft_btl_put(ctx, &to, local, lens[i], NULL, &op), 0);
		weft_btl_flush(ctx, NULL);
		assert_int_equal(weft_btl_cancel(ctx, &op), -FI_EALREADY);
		assert_int_equal(weft_btl_poll(ctx, &ended, 1), 1);
		assert_ptr_equal(ended, &op);
		assert_int_equal(op.status, 0);
	}
}

/* Its peer is closed, and another one gets that one's place. */
static void a_peer_may_be_closed_meanwhile(void **state)
{
	struct counted lost, it;

	hooks.holds = 3;
	begin_put(&lost, LEN);
	assert_int_equal(weft_btl_cancel(ctx, &lost.op), 0);
	weft_btl_peer_close(to.peer);
	assert_int_equal(weft_btl_peer_open(btl, name, name_len, &to.peer), 0);
	begin_put(&it, 0);
	weft_btl_flush(ctx, to.peer);
	assert_int_equal(it.ends, 1);
	hooks.holds = 0;
	for (size_t i = 0; i < 1000; i++)
		weft_btl_progress(ctx);
	assert_int_equal(lost.ends, 1);
	put_all();
}

/* The first context is not opened again while operations of it may end, and others are. */
static void a_context_closes_with_what_was_cancelled(void **state)
{
	static struct counted lost;

	hooks.holds = 3;
	begin_put(&lost, 64);
	assert_int_equal(weft_btl_cancel(ctx, &lost.op), 0);
	assert_int_equal(weft_btl_ctx_close(ctx), 0);
	assert_int_equal(weft_btl_ctx_open(btl, &ctx), 0);
	hooks.holds = 0;
	put_all();
	assert_int_equal(lost.ends, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_waits_for_what_was_cancelled),
		TEST(what_was_cancelled_ends_once_a_device_gives_it_back),
		TEST(one_that_has_ended_can_not_be_cancelled),
		TEST(a_peer_may_be_closed_meanwhile),
		TEST(a_context_closes_with_what_was_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
