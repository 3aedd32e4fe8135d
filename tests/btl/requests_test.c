/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests of a stranger to a transport that peers ask: the transport's own context sends its server whatever bytes,
 * and sound requests for what no handle allows. The memory stays as it was, and everything else goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <rdma/fi_errno.h>
#include "client.h"
#include "clock.h"
#include "hooks.h"

/* of the number of a request that is answered never: hooks.h */
#define STUCK (1ull << 63)

#define LEN    4096u
#define ROUNDS 3000u

static unsigned char memory[3 * LEN];
static unsigned char *const allowed = memory + LEN;
static struct weft_btl *btl;
static struct weft_btl_ctx *ctx;
static struct weft_btl_mem *mem;
static struct weft_btl_target to;
static unsigned char handle_bytes[WEFT_BTL_HANDLE_MAX];
static struct btl_handle handle;
static size_t route;
static int last_status;
static uint64_t last_old;
static size_t answers;

static int start(void **state)
{
	struct weft_btl_attr attr = { .size = sizeof(attr), .provider = "shm" };
	unsigned char name[WEFT_BTL_NAME_MAX];
	size_t len = sizeof(name);

	hooks = (struct hooks){ .devices = 1, .no_rma = true };
	memset(memory, 0x5a, sizeof(memory));
	if (weft_btl_open(&attr, &btl) || weft_btl_ctx_open(btl, &ctx) ||
	    weft_btl_mem_open(btl, allowed, LEN, FI_REMOTE_WRITE, &mem) ||
	    weft_btl_name(btl, name, &len) || weft_btl_peer_open(btl, name, len, &to.peer))
		return -1;
	weft_btl_mem_handle(mem, handle_bytes);
	to.handle = handle_bytes;
	to.addr = (uintptr_t)allowed;
	return btl_handle_read(handle_bytes, &handle) && !btl_route_get(ctx, to.peer, &route)
		       ? 0
		       : -1;
}

static int stop(void **state)
{
	weft_btl_peer_close(to.peer);
	return weft_btl_mem_close(mem) || weft_btl_ctx_close(ctx) || weft_btl_close(btl) ? -1
											 : 0;
}

static void send_bytes(const unsigned char *bytes, size_t len)
{
	static unsigned char copy[BTL_MESSAGE_MAX];
	struct btl_tag tag = { .kind = BTL_TAG_RECEIVE };
	struct fi_cq_data_entry entry;
	ssize_t ret;

	memcpy(copy, bytes, len);
	do
		ret = fi_senddata(ctx->lanes[0].ep, copy, len, NULL, BTL_ID_REQUEST,
				  ctx->routes[route].server[0], &tag);
	while (ret == -FI_EAGAIN && fi_cq_read(ctx->lanes[0].cq, &entry, 0) <= 0);
	assert_int_equal(ret, 0);
	for (bool sent = false; !sent;) {
		struct btl_answer answer;
		struct btl_receive *receive;

		if (fi_cq_read(ctx->lanes[0].cq, &entry, 1) != 1)
			continue;
		sent = entry.op_context == &tag;
		if (sent)
			continue;
		receive = entry.op_context;
		if (entry.data == BTL_ID_ANSWER &&
		    btl_answer_read(receive->bytes, entry.len, &answer)) {
			last_status = answer.status;
			last_old = answer.old;
		}
		btl_receive_again(&ctx->lanes[0], &receive->tag);
		answers++;
	}
}

static struct btl_request sound(enum btl_request_kind kind)
{
	static unsigned char zeros[LEN];

	return (struct btl_request){ .kind = kind,
				     .fi_op = FI_SUM,
				     .type = FI_UINT64,
				     .client = ctx->client->id,
				     .mem = handle.mem,
				     .addr = (uintptr_t)allowed,
				     .len = 8,
				     .from = ctx->client->addr[0],
				     .from_len = (uint32_t)ctx->client->addr_len[0],
				     .data = zeros };
}

/* Sends a request, and waits for its answer. Returns its status. */
static int request_status(const struct btl_request *request)
{
	unsigned char bytes[BTL_MESSAGE_MAX];
	struct fi_cq_data_entry entry;
	struct btl_answer answer;
	size_t before = answers;

	send_bytes(bytes, btl_request_write(request, bytes));
	while (answers == before) {
		struct btl_receive *receive;

		if (fi_cq_read(ctx->lanes[0].cq, &entry, 1) != 1)
			continue;
		receive = entry.op_context;
		if (btl_answer_read(receive->bytes, entry.len, &answer)) {
			last_status = answer.status;
			last_old = answer.old;
		}
		btl_receive_again(&ctx->lanes[0], &receive->tag);
		answers++;
	}
	return last_status;
}

static void memory_is_as_it_was(void)
{
	for (size_t i = 0; i < sizeof(memory); i++)
		assert_int_equal(memory[i], 0x5a);
}

static void what_no_handle_allows_is_refused(void **state)
{
	struct btl_request r = sound(BTL_REQUEST_GET);

	assert_int_equal(request_status(&r), -FI_EACCES);
	r = sound(BTL_REQUEST_PUT);
	r.addr -= 1;
	assert_int_equal(request_status(&r), -FI_EFAULT);
	r = sound(BTL_REQUEST_PUT);
	r.addr += LEN - 7;
	assert_int_equal(request_status(&r), -FI_EFAULT);
	r = sound(BTL_REQUEST_PUT);
	r.addr = UINT64_MAX - 3;
	assert_int_equal(request_status(&r), -FI_EFAULT);
	r = sound(BTL_REQUEST_PUT);
	r.mem++;
	assert_int_equal(request_status(&r), -FI_EKEYREJECTED);
	r = sound(BTL_REQUEST_GET);
	r.len = BTL_MESSAGE_MAX;
	assert_int_equal(request_status(&r), -FI_EINVAL);
	r = sound(BTL_REQUEST_ATOMIC);
	r.addr += 4;
	assert_int_equal(request_status(&r), -FI_EINVAL);
	r = sound(BTL_REQUEST_ATOMIC);
	r.fi_op = 200;
	assert_int_equal(request_status(&r), -FI_EINVAL);
	r = sound(BTL_REQUEST_ATOMIC);
	r.type = FI_DOUBLE;
	r.fi_op = FI_BXOR;
	assert_int_equal(request_status(&r), -FI_EINVAL);
	r = sound(BTL_REQUEST_ATOMIC);
	r.len = 4;
	assert_int_equal(request_status(&r), -FI_EINVAL);
	r = sound(BTL_REQUEST_ATOMIC);
	r.fi_op = FI_CSWAP;
	assert_int_equal(request_status(&r), -FI_EACCES);
	memory_is_as_it_was();
}

static void what_may_not_be_read_is_not_told(void **state)
{
	struct btl_request r = sound(BTL_REQUEST_ATOMIC);

	assert_int_equal(request_status(&r), 0);
	assert_int_equal(last_old, 0);
	memory_is_as_it_was();
}

static void a_name_with_an_address_of_another_length_is_refused(void **state)
{
	unsigned char own[WEFT_BTL_NAME_MAX], bytes[WEFT_BTL_NAME_MAX];
	size_t len = sizeof(own);
	struct weft_btl_peer *none = NULL;
	struct btl_name name;

	assert_int_equal(weft_btl_name(btl, own, &len), 0);
	assert_true(btl_name_read(own, len, &name));
	name.devices[0].len--;
	btl_name_write(&name, bytes);
	assert_int_equal(weft_btl_peer_open(btl, bytes, btl_name_len(&name), &none),
			 -FI_EADDRNOTAVAIL);
	assert_null(none);
}

/* Bits of sound requests are changed; those that are carried out store what is there. */
static void forged_bytes_change_nothing(void **state)
{
	unsigned char bytes[BTL_MESSAGE_MAX], filled[LEN];
	struct btl_request r;
	size_t len;

	srandom(1);
	memset(filled, 0x5a, sizeof(filled));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		r = sound((enum btl_request_kind)(random() % 2)); /* put, get */
		r.data = filled;
		len = btl_request_write(&r, bytes);
		for (int n = 0; n < 3; n++)
			bytes[random() % BTL_REQUEST_HEAD] ^= (unsigned char)(1 << random() % 8);
		/* no atomic is made of one of them */
		if (bytes[4] == BTL_REQUEST_ATOMIC)
			bytes[4] = BTL_REQUEST_PUT;
		send_bytes(bytes, (size_t)random() % 8 ? len : (size_t)random() % len);
	}
	memory_is_as_it_was();
}

static void everything_else_goes_on(void **state)
{
	struct weft_btl_op op = { .done = weft_btl_flushed };
	uint64_t value = 7;

	assert_int_equal(weft_btl_put(ctx, &to, &value, sizeof(value), NULL, &op), 0);
	weft_btl_flush(ctx, NULL);
	assert_int_equal(op.status, 0);
	assert_memory_equal(allowed, &value, sizeof(value));
}

/* A stranger's request, which stores what is there. */
static void ask(uint64_t number)
{
	unsigned char bytes[BTL_MESSAGE_MAX];
	struct btl_request r = sound(BTL_REQUEST_PUT);

	r.number = number;
	r.data = allowed;
	send_bytes(bytes, btl_request_write(&r, bytes));
}

static int put_now(void)
{
	struct weft_btl_op op = { .done = weft_btl_flushed };
	uint64_t value = 7;

	assert_int_equal(weft_btl_put(ctx, &to, &value, sizeof(value), NULL, &op), 0);
	weft_btl_flush(ctx, NULL);
	return op.status;
}

/* From now on all answers of the server end so; 0: they are sent. */
static void refuse_answers(int ret)
{
	__atomic_store_n(&hooks.refused, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&hooks.answers, ret, __ATOMIC_SEQ_CST);
}

static void await(const size_t *cnt, size_t wanted)
{
	while (__atomic_load_n(cnt, __ATOMIC_SEQ_CST) < wanted)
		weft_btl_progress(ctx);
}

static void answer_stuck(bool stuck)
{
	__atomic_store_n(&hooks.kept, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&hooks.stuck, stuck, __ATOMIC_SEQ_CST);
}

/* The place of an answer that could not be sent is one for requests again. */
static void what_comes_after_a_failed_answer_is_carried_out(void **state)
{
	/* all that was asked before has been answered */
	assert_int_equal(put_now(), 0);
	refuse_answers(-FI_ECONNREFUSED);
	ask(1);
	await(&hooks.refused, 1);
	refuse_answers(0);
	for (uint32_t i = 0; i <= BTL_RECEIVES; i++)
		assert_int_equal(put_now(), 0);
}

static void a_client_that_is_not_reached_holds_up_no_others(void **state)
{
	struct weft_btl_op op = { .done = weft_btl_flushed };
	uint64_t value = 7;

	refuse_answers(-FI_EAGAIN);
	assert_int_equal(weft_btl_put(ctx, &to, &value, sizeof(value), NULL, &op), 0);
	await(&hooks.refused, 1);
	answer_stuck(true);
	ask(STUCK);
	await(&hooks.kept, 1);
	refuse_answers(0);
	weft_btl_flush(ctx, NULL);
	assert_int_equal(op.status, 0);
	answer_stuck(false);
}

/* The time of all requests is over, as the next progress finds. */
static void let_time_pass(void)
{
	for (uint32_t i = 0; i < BTL_REQUEST_SLOTS; i++)
		ctx->client->slots[i].since_ns -= 2ull * BTL_ANSWER_NS;
	ctx->client->rounds = UINT32_MAX - 1;
}

/* As where the program has computed for long. */
static void an_answer_that_has_waited_for_the_program_counts(void **state)
{
	struct weft_btl_op op = { .done = weft_btl_flushed };
	uint64_t value = 7;

	refuse_answers(-FI_EAGAIN);
	assert_int_equal(weft_btl_put(ctx, &to, &value, sizeof(value), NULL, &op), 0);
	await(&hooks.refused, 1);
	let_time_pass();
	weft_btl_progress(ctx);
	refuse_answers(0);
	weft_btl_flush(ctx, NULL);
	assert_int_equal(op.status, 0);
}

static void what_the_device_can_not_send_keeps_no_slot(void **state)
{
	struct weft_btl_op ops[BTL_REQUEST_PEER_SLOTS] = { 0 };
	uint64_t value = 7;

	hooks.withholds = true;
	for (uint32_t i = 0; i < BTL_REQUEST_PEER_SLOTS; i++) {
		ops[i].done = weft_btl_flushed;
		assert_int_equal(weft_btl_put(ctx, &to, &value, sizeof(value), NULL, &ops[i]),
				 0);
	}
	hooks.withholds = false;
	for (int looks = 0; looks < 2; looks++) {
		let_time_pass();
		weft_btl_progress(ctx);
	}
	for (uint32_t i = 0; i < BTL_REQUEST_PEER_SLOTS; i++)
		assert_int_equal(ops[i].status, -FI_ETIMEDOUT);
	/* each round of progress takes one error */
	for (uint32_t i = 0; i < BTL_REQUEST_SLOTS; i++)
		weft_btl_progress(ctx);
	assert_int_equal(put_now(), 0);
}

/* Answers take all the places there are until nobody can wait for them any more. */
static void clients_that_are_not_reached_are_given_up(void **state)
{
	uint64_t until = clock_ns() + 4 * BTL_ANSWER_NS;
	int status = -FI_ETIMEDOUT;

	answer_stuck(true);
	for (uint32_t i = 0; i < BTL_RECEIVES; i++)
		ask(STUCK | i);
	while (status == -FI_ETIMEDOUT && clock_ns() < until)
		status = put_now();
	assert_int_equal(status, 0);
	answer_stuck(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_no_handle_allows_is_refused),
		cmocka_unit_test(what_may_not_be_read_is_not_told),
		cmocka_unit_test(a_name_with_an_address_of_another_length_is_refused),
		cmocka_unit_test(forged_bytes_change_nothing),
		cmocka_unit_test(what_comes_after_a_failed_answer_is_carried_out),
		cmocka_unit_test(a_client_that_is_not_reached_holds_up_no_others),
		cmocka_unit_test(an_answer_that_has_waited_for_the_program_counts),
		cmocka_unit_test(what_the_device_can_not_send_keeps_no_slot),
		cmocka_unit_test(clients_that_are_not_reached_are_given_up),
		cmocka_unit_test(everything_else_goes_on),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
