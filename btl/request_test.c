/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests and answers arrive as they left, what is none is not taken, and each atomic does what
 * its name says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "atomic_apply.h"
#include "request.h"

#define ROUNDS 200000

static size_t some_request(enum btl_request_kind kind, unsigned char *bytes)
{
	struct btl_request request = { .kind = kind,
				       .fi_op = FI_SUM,
				       .type = FI_INT64,
				       .client = 11,
				       .number = 22,
				       .mem = 33,
				       .addr = 44,
				       .len = 5,
				       .operand = 66,
				       .compare = 77,
				       .from = (const unsigned char *)"address",
				       .from_len = 8,
				       .data = (const unsigned char *)"bytes" };

	return btl_request_write(&request, bytes);
}

static void a_request_arrives_as_it_left(void **state)
{
	for (enum btl_request_kind kind = BTL_REQUEST_PUT; kind < BTL_REQUEST_KINDS; kind++) {
		unsigned char bytes[256];
		size_t len = some_request(kind, bytes);
		struct btl_request read;

		assert_true(btl_request_read(bytes, len, &read));
		assert_int_equal(read.kind, kind);
		assert_int_equal(read.client, 11);
		assert_int_equal(read.number, 22);
		assert_int_equal(read.mem, 33);
		assert_int_equal(read.addr, 44);
		assert_int_equal(read.len, 5);
		assert_int_equal(read.operand, 66);
		assert_int_equal(read.compare, 77);
		assert_string_equal((const char *)read.from, "address");
		if (kind == BTL_REQUEST_PUT)
			assert_memory_equal(read.data, "bytes", 5);
		for (size_t cut = 0; cut < len; cut++)
			assert_false(btl_request_read(bytes, cut, &read));
		assert_false(btl_request_read(bytes, len + 1, &read));
	}
}

static void an_answer_arrives_as_it_left(void **state)
{
	struct btl_answer answer = { .status = -13, .number = 1ULL << 63, .old = 99 }, read;
	unsigned char bytes[64] = { 0 };

	assert_int_equal(btl_answer_write(&answer, bytes), BTL_ANSWER_HEAD);
	assert_true(btl_answer_read(bytes, BTL_ANSWER_HEAD + 3, &read));
	assert_int_equal(read.status, -13);
	assert_int_equal(read.number, 1ULL << 63);
	assert_int_equal(read.old, 99);
	assert_int_equal(read.len, 3);
	for (size_t cut = 0; cut < BTL_ANSWER_HEAD; cut++)
		assert_false(btl_answer_read(bytes, cut, &read));
}

/* The sanitizers watch what is read of it. */
static void garbage_is_read_within_its_bounds(void **state)
{
	srandom(1);
	for (int i = 0; i < ROUNDS; i++) {
		size_t len = (size_t)random() % 200;
		unsigned char *bytes = malloc(256), *exact;
		struct btl_request request;
		struct btl_answer answer;

		some_request((enum btl_request_kind)(random() % BTL_REQUEST_KINDS), bytes);
		for (int n = 0; n < 3; n++)
			bytes[random() % 200] = (unsigned char)random();
		exact = malloc(len + 1);
		memcpy(exact, bytes, len);
		if (btl_request_read(exact, len, &request)) {
			assert_ptr_equal(request.from, exact + BTL_REQUEST_HEAD);
			assert_true(request.kind != BTL_REQUEST_PUT || request.len <= len);
		}
		btl_answer_read(exact, len, &answer);
		free(exact);
		free(bytes);
	}
}

static uint64_t bits(double value)
{
	uint64_t bits_;

	memcpy(&bits_, &value, sizeof(bits_));
	return bits_;
}

static void each_atomic_does_what_its_name_says(void **state)
{
	static const struct {
		enum fi_op op;
		enum fi_datatype type;
		uint64_t before, operand, compare, after;
	} cases[] = {
		{ FI_SUM, FI_UINT64, 5, 7, 0, 12 },
		{ FI_SUM, FI_INT32, 0xffffffff, 1, 0, 0 },
		{ FI_SUM, FI_UINT32, 0xfffffffe, 1, 0, 0xffffffff },
		{ FI_BAND, FI_UINT64, 12, 10, 0, 8 },
		{ FI_BOR, FI_UINT64, 12, 10, 0, 14 },
		{ FI_BXOR, FI_UINT32, 12, 10, 0, 6 },
		{ FI_MIN, FI_INT64, 3, (uint64_t)-4, 0, (uint64_t)-4 },
		{ FI_MIN, FI_UINT64, 3, (uint64_t)-4, 0, 3 },
		{ FI_MIN, FI_INT32, 3, 0xfffffffc, 0, 0xfffffffc },
		{ FI_MIN, FI_UINT32, 3, 0xfffffffc, 0, 3 },
		{ FI_MAX, FI_INT64, 3, (uint64_t)-4, 0, 3 },
		{ FI_MAX, FI_UINT64, 3, (uint64_t)-4, 0, (uint64_t)-4 },
		{ FI_MAX, FI_INT32, 0xfffffffc, 3, 0, 3 },
		{ FI_ATOMIC_WRITE, FI_UINT64, 3, 9, 0, 9 },
		{ FI_ATOMIC_WRITE, FI_INT32, 3, 9, 0, 9 },
		{ FI_CSWAP, FI_UINT64, 3, 9, 3, 9 },
		{ FI_CSWAP, FI_UINT64, 3, 9, 4, 3 },
		{ FI_CSWAP, FI_UINT32, 3, 9, 3, 9 },
		{ FI_CSWAP, FI_INT32, 3, 9, 4, 3 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		/* the four bytes behind a value of four stay */
		uint64_t at = btl_type_len(cases[i].type) == 4
				      ? cases[i].before | 0xabcdULL << 32
				      : cases[i].before;
		uint64_t kept = at & ~0xffffffffULL, old;

		old = btl_atomic_apply(&at, cases[i].op, cases[i].type, cases[i].operand,
				       cases[i].compare);
		assert_int_equal(old, cases[i].before);
		if (btl_type_len(cases[i].type) == 4)
			assert_int_equal(at, kept | cases[i].after);
		else
			assert_int_equal(at, cases[i].after);
	}
}

static void floats_are_updated_as_floats(void **state)
{
	uint64_t at = bits(1.5);
	float narrow = 1.25f, more = 2.5f, after;
	uint64_t operand = 0;

	assert_int_equal(btl_atomic_apply(&at, FI_SUM, FI_DOUBLE, bits(-4.0), 0), bits(1.5));
	assert_int_equal(at, bits(-2.5));
	btl_atomic_apply(&at, FI_MAX, FI_DOUBLE, bits(-1.0), 0);
	assert_int_equal(at, bits(-1.0));
	btl_atomic_apply(&at, FI_MIN, FI_DOUBLE, bits(-9.0), 0);
	assert_int_equal(at, bits(-9.0));
	at = 0;
	memcpy(&at, &narrow, sizeof(narrow));
	memcpy(&operand, &more, sizeof(more));
	btl_atomic_apply(&at, FI_SUM, FI_FLOAT, operand, 0);
	memcpy(&after, &at, sizeof(after));
	assert_true(after == 3.75f);
	assert_false(btl_atomic_has(FI_BXOR, FI_DOUBLE));
	assert_false(btl_atomic_has(FI_SUM, FI_INT8));
	assert_false(btl_atomic_has(FI_LOR, FI_INT64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_arrives_as_it_left),
		cmocka_unit_test(an_answer_arrives_as_it_left),
		cmocka_unit_test(garbage_is_read_within_its_bounds),
		cmocka_unit_test(each_atomic_does_what_its_name_says),
		cmocka_unit_test(floats_are_updated_as_floats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
