/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What travels between transports: it arrives as it left, and nothing that was changed is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <rdma/fabric.h>
#include "handle.h"

#define ROUNDS 100000

static struct btl_handle some_handle(uint32_t cnt)
{
	struct btl_handle handle = {
		.id = 0x1122334455667788,
		.addr = 0x7f0000001000,
		.len = 12345,
		.access = FI_REMOTE_READ | FI_REMOTE_WRITE,
		.cnt = cnt,
		.offset = 0x8001,
		.mem = 0x1020304050607080,
	};

	for (uint32_t i = 0; i < cnt; i++)
		handle.keys[i] = 0x8877665544332211 + i;
	return handle;
}

static void a_handle_arrives_as_it_left(void **state)
{
	for (uint32_t cnt = 1; cnt <= WEFT_BTL_DEVICES_MAX; cnt++) {
		struct btl_handle handle = some_handle(cnt), read;
		unsigned char bytes[WEFT_BTL_HANDLE_MAX];
		size_t len = btl_handle_write(&handle, bytes);

		assert_int_equal(btl_handle_len(bytes), len);
		assert_true(btl_handle_read(bytes, &read));
		assert_memory_equal(&read, &handle, sizeof(handle));
	}
}

static void a_handle_with_one_bit_changed_is_none(void **state)
{
	struct btl_handle handle = some_handle(3), read;
	unsigned char bytes[WEFT_BTL_HANDLE_MAX];
	size_t len = btl_handle_write(&handle, bytes);

	for (size_t bit = 0; bit < 8 * len; bit++) {
		bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_false(btl_handle_read(bytes, &read));
		bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	assert_true(btl_handle_read(bytes, &read));
}

static void handles_of_other_memory_have_other_hashes(void **state)
{
	struct btl_handle handle = some_handle(2), other = handle;
	unsigned char bytes[WEFT_BTL_HANDLE_MAX], same[WEFT_BTL_HANDLE_MAX];

	btl_handle_write(&handle, bytes);
	btl_handle_write(&other, same);
	assert_int_equal(btl_handle_hash(bytes), btl_handle_hash(same));
	for (uint64_t bit = 1; bit; bit <<= 1) {
		other.mem = handle.mem ^ bit;
		btl_handle_write(&other, same);
		assert_int_not_equal(btl_handle_hash(bytes), btl_handle_hash(same));
	}
	other.mem = handle.mem;
	other.addr = handle.addr + 4096;
	btl_handle_write(&other, same);
	assert_int_not_equal(btl_handle_hash(bytes), btl_handle_hash(same));
}

static size_t some_name(unsigned char *bytes)
{
	struct btl_name name = { .id = 7,
				 .cnt = 2,
				 .devices = { { FI_ADDR_STR, 6, (const unsigned char *)"hello",
						0, NULL },
					      { FI_SOCKADDR_IN, 4, (const unsigned char *)"abc",
						3, (const unsigned char *)"xy" } } };

	btl_name_write(&name, bytes);
	return btl_name_len(&name);
}

static void a_name_arrives_as_it_left(void **state)
{
	unsigned char bytes[WEFT_BTL_NAME_MAX] = { 0 };
	size_t len = some_name(bytes);
	struct btl_name read;

	/* and with bytes behind it */
	for (size_t more = 0; more < 9; more++) {
		assert_true(btl_name_read(bytes, len + more, &read));
		assert_int_equal(read.id, 7);
		assert_int_equal(read.cnt, 2);
		assert_int_equal(read.devices[0].format, FI_ADDR_STR);
		assert_string_equal((const char *)read.devices[0].addr, "hello");
		assert_int_equal(read.devices[1].len, 4);
		assert_int_equal(read.devices[0].server_len, 0);
		assert_int_equal(read.devices[1].server_len, 3);
		assert_string_equal((const char *)read.devices[1].server, "xy");
	}
}

static void a_name_that_was_cut_or_changed_is_none(void **state)
{
	unsigned char bytes[WEFT_BTL_NAME_MAX] = { 0 };
	size_t len = some_name(bytes);
	struct btl_name read;

	for (size_t cut = 0; cut < len; cut++)
		assert_false(btl_name_read(bytes, cut, &read));
	for (size_t bit = 0; bit < 8 * len; bit++) {
		bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_false(btl_name_read(bytes, len, &read));
		bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
}

/* The sanitizers watch what is read of it. */
static void garbage_is_no_name_and_no_handle(void **state)
{
	unsigned char bytes[WEFT_BTL_HANDLE_MAX];
	struct btl_handle handle;
	struct btl_name name;

	srandom(1);
	for (int i = 0; i < ROUNDS; i++) {
		size_t len = some_name(bytes);

		for (int n = 0; n < 4; n++)
			bytes[(size_t)random() % len] = (unsigned char)random();
		btl_name_read(bytes, (size_t)random() % sizeof(bytes), &name);
		btl_handle_read(bytes, &handle);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handle_arrives_as_it_left),
		cmocka_unit_test(a_handle_with_one_bit_changed_is_none),
		cmocka_unit_test(handles_of_other_memory_have_other_hashes),
		cmocka_unit_test(a_name_arrives_as_it_left),
		cmocka_unit_test(a_name_that_was_cut_or_changed_is_none),
		cmocka_unit_test(garbage_is_no_name_and_no_handle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
