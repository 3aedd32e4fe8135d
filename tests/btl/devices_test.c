/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A transport of two devices: long transfers use both, and what fails with one goes on by the other. */
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

#define LEN ((size_t)8 << 20)
#define RW  (FI_REMOTE_READ | FI_REMOTE_WRITE)

static unsigned char *memory, *local;
static struct weft_btl *btl;
static struct weft_btl_ctx *ctx;
static struct weft_btl_mem *mem;
static unsigned char handle[WEFT_BTL_HANDLE_MAX];
static struct weft_btl_target to;

static int start(void **state)
{
	struct weft_btl_attr attr = { .size = sizeof(attr), .provider = "shm", .device_cnt = 2 };
	unsigned char name[WEFT_BTL_NAME_MAX];
	size_t len = sizeof(name);

	hooks = (struct hooks){ .devices = 2 };
	memory = calloc(1, LEN);
	local = calloc(1, LEN);
	if (!memory || !local || weft_btl_open(&attr, &btl) || weft_btl_ctx_open(btl, &ctx) ||
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
	if (weft_btl_mem_close(mem) || weft_btl_ctx_close(ctx) || weft_btl_close(btl))
		return -1;
	free(memory);
	free(local);
	return 0;
}

static void fill(unsigned char *bytes, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

/* Puts what is local. Returns the status. */
static int put(size_t len)
{
	struct weft_btl_op op = { .done = weft_btl_flushed };
	int ret = weft_btl_put(ctx, &to, local, len, mem, &op);

	if (ret)
		return ret;
	weft_btl_flush(ctx, NULL);
	return op.status;
}

static int get(size_t len)
{
	struct weft_btl_op op = { .done = weft_btl_flushed };
	int ret = weft_btl_get(ctx, &to, local, len, mem, &op);

	if (ret)
		return ret;
	weft_btl_flush(ctx, NULL);
	return op.status;
}

static void heal(void)
{
	hooks.refuses = hooks.breaks = 0;
	memset(hooks.used, 0, sizeof(hooks.used));
}

static void a_long_transfer_uses_both_devices(void **state)
{
	heal();
	fill(local, LEN, 1);
	assert_int_equal(put(LEN), 0);
	assert_memory_equal(memory, local, LEN);
	assert_in_range(hooks.used[0], 1, 100);
	assert_int_equal(hooks.used[0], hooks.used[1]);
	fill(memory, LEN, 2);
	assert_int_equal(get(LEN), 0);
	assert_memory_equal(memory, local, LEN);
}

static void a_short_one_uses_the_first(void **state)
{
	heal();
	assert_int_equal(put(4096), 0);
	assert_int_equal(hooks.used[0], 1);
	assert_int_equal(hooks.used[1], 0);
}

/* What is refused, or has begun and fails, is carried out by the other one. */
static void a_device_that_fails_is_replaced(void **state)
{
	for (uint32_t device = 0; device < 2; device++) {
		for (unsigned int kind = 0; kind < 2; kind++) {
			for (size_t len = 8; len <= LEN; len *= 1024) {
				heal();
				if (kind)
					hooks.breaks = 1u << device;
				else
					hooks.refuses = 1u << device;
				fill(local, len, (unsigned int)len + device + kind);
				assert_int_equal(put(len), 0);
				assert_memory_equal(memory, local, len);
				fill(memory, len, (unsigned int)len + 9);
				assert_int_equal(get(len), 0);
				assert_memory_equal(memory, local, len);
				assert_int_equal(hooks.used[device], 0);
			}
		}
	}
}

static void where_no_device_works_there_is_an_error(void **state)
{
	heal();
	hooks.breaks = 3;
	assert_int_equal(put(64), -FI_ECONNRESET);
	assert_int_equal(put(LEN), -FI_ECONNRESET);
	hooks.breaks = 0;
	hooks.refuses = 3;
	assert_true(put(64) < 0);
	assert_true(put(LEN) < 0);
	heal();
	fill(local, LEN, 77);
	assert_int_equal(put(LEN), 0);
	assert_memory_equal(memory, local, LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_transfer_uses_both_devices),
		cmocka_unit_test(a_short_one_uses_the_first),
		cmocka_unit_test(a_device_that_fails_is_replaced),
		cmocka_unit_test(where_no_device_works_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
