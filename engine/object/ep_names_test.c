/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unit tests of addresses as programs hold them, in memory that ends with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <rdma/fi_errno.h>
#include "ep_names.h"
#include <cmocka.h>

#define MANY 6

/* Text of digits is an address: its number. */
static int number_read(const void *addr, size_t len, struct weft_addr *out, char *why,
		       size_t why_len)
{
	const char *text = addr;
	uint32_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -FI_EINVAL;
		n = n * 10 + (uint32_t)(text[i] - '0');
	}
	if (!len)
		return -FI_EINVAL;
	*out = (struct weft_addr){ .pid = n };
	return 0;
}

static size_t number_write(const struct weft_addr *addr, void *out)
{
	return (size_t)snprintf(out, ENGINE_NAME_MAX, "%u", addr->pid) + 1;
}

static const struct engine_family strings = { .addr_format = FI_ADDR_STR,
					      .addr_len = ENGINE_NAME_MAX,
					      .addr_read = number_read,
					      .addr_write = number_write };
static const struct engine_family fixed = { .addr_format = FI_FORMAT_UNSPEC,
					    .addr_len = 3,
					    .addr_read = number_read,
					    .addr_write = number_write };

/*
 * Reads @cnt addresses of @len bytes. Returns how many of them are valid; 0 marks an invalid one.
 */
static int read_all(const struct engine_family *family, const char *bytes, size_t len,
		    size_t cnt, uint32_t *out)
{
	char *copy = malloc(len), why[64];
	struct engine_names names;
	int good = 0;

	memcpy(copy, bytes, len);
	for (size_t i = 0; i < cnt; i++) {
		struct weft_addr addr = { 0 };

		if (i)
			engine_names_next(&names);
		else
			engine_names_begin(&names, family, copy);
		good += !engine_names_read(&names, &addr, why, sizeof(why));
		out[i] = addr.pid;
	}
	free(copy);
	return good;
}

static void assert_numbers(const uint32_t *numbers, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		assert_int_equal(numbers[i], 101 + i);
}

static void packed_strings_are_read(void **state)
{
	uint32_t numbers[MANY];

	assert_int_equal(read_all(&strings, "101", 4, 1, numbers), 1);
	assert_numbers(numbers, 1);
	assert_int_equal(read_all(&strings,
				  "101\0"
				  "102\0"
				  "103",
				  12, 3, numbers),
			 3);
	assert_numbers(numbers, 3);
	/* of lengths that differ */
	assert_int_equal(read_all(&strings,
				  "1\0"
				  "4242\0"
				  "77",
				  10, 3, numbers),
			 3);
	assert_int_equal(numbers[0], 1);
	assert_int_equal(numbers[1], 4242);
	assert_int_equal(numbers[2], 77);
}

static void strings_in_cells_are_read(void **state)
{
	static const size_t cells[] = { 4, 5, 16, 48, 56, 64, 128, ENGINE_TEXT_MAX };
	char bytes[MANY * ENGINE_TEXT_MAX];
	uint32_t numbers[MANY];

	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		memset(bytes, 0, sizeof(bytes));
		for (size_t n = 0; n < MANY; n++)
			sprintf(bytes + n * cells[i], "%zu", 101 + n);
		assert_int_equal(read_all(&strings, bytes, MANY * cells[i], MANY, numbers),
				 MANY);
		assert_numbers(numbers, MANY);
		/* the last one without what fills its cell up */
		assert_int_equal(
			read_all(&strings, bytes, (MANY - 1) * cells[i] + 4, MANY, numbers),
			MANY);
	}
}

/* As in a job of hosts with IPv6 and hosts with IPv4: a full cell does not show its size. */
static void full_cells_may_come_first(void **state)
{
	uint32_t numbers[MANY];

	assert_int_equal(read_all(&strings,
				  "10001\0"
				  "10002\0"
				  "103\0\0\0"
				  "10004\0"
				  "105\0\0\0",
				  30, 5, numbers),
			 5);
	assert_int_equal(numbers[1], 10002);
	assert_int_equal(numbers[2], 103);
	assert_int_equal(numbers[3], 10004);
	assert_int_equal(numbers[4], 105);
}

static void what_is_no_address_spoils_no_other(void **state)
{
	uint32_t numbers[MANY];

	assert_int_equal(read_all(&strings,
				  "101\0"
				  "x\0"
				  "103",
				  10, 3, numbers),
			 2);
	assert_int_equal(numbers[2], 103);
	assert_int_equal(read_all(&strings,
				  "101\0\0\0"
				  "\0\0\0\0\0\0"
				  "103\0\0\0",
				  18, 2, numbers),
			 2);
	/* an empty cell, once the others have shown how long they are */
	assert_int_equal(read_all(&strings,
				  "101\0\0\0"
				  "102\0\0\0"
				  "\0\0\0\0\0\0"
				  "104\0\0\0",
				  24, 4, numbers),
			 3);
	assert_int_equal(numbers[2], 0);
	assert_int_equal(numbers[3], 104);
	/* the first one */
	assert_int_equal(read_all(&strings,
				  "\0\0\0\0\0\0"
				  "102\0\0\0"
				  "103\0\0\0",
				  18, 3, numbers),
			 2);
	assert_int_equal(numbers[2], 103);
}

/* Bytes that are not a string have no known end: what follows them is not read. */
static void other_bytes_end_the_list(void **state)
{
	uint32_t numbers[MANY];

	assert_int_equal(read_all(&strings,
				  "101\0"
				  "\x02",
				  5, 4, numbers),
			 1);
	assert_int_equal(read_all(&strings, "10\n", 3, 3, numbers), 0);
	assert_int_equal(read_all(&strings, "\xff", 1, 2, numbers), 0);
}

static void addresses_of_one_size_are_read(void **state)
{
	uint32_t numbers[MANY];

	assert_int_equal(read_all(&fixed, "101102103", 9, 3, numbers), 3);
	assert_numbers(numbers, 3);
	assert_int_equal(read_all(&fixed,
				  "101\0\0\0"
				  "103",
				  9, 3, numbers),
			 2);
	assert_int_equal(numbers[2], 103);
}

static void lengths_are_what_the_program_says(void **state)
{
	char text[ENGINE_TEXT_MAX + 8];

	assert_int_equal(engine_name_len(&strings, "name", SIZE_MAX), 4);
	assert_int_equal(engine_name_len(&strings, "name", 5), 4);
	assert_int_equal(engine_name_len(&strings, "name", 4), 4); /* without its NUL */
	assert_int_equal(engine_name_len(&strings, "name", 3), 3);
	assert_int_equal(engine_name_len(&strings, "name", 0), 0);
	assert_int_equal(engine_name_len(&strings, "na me", SIZE_MAX), 0);
	assert_int_equal(engine_name_len(&strings, "", 1), 0);
	memset(text, 'a', sizeof(text));
	assert_int_equal(engine_name_len(&strings, text, sizeof(text)), 0);
	assert_int_equal(engine_name_len(&strings, text, SIZE_MAX), 0);
	text[ENGINE_TEXT_MAX - 1] = '\0';
	assert_int_equal(engine_name_len(&strings, text, sizeof(text)), ENGINE_TEXT_MAX - 1);
	assert_int_equal(engine_name_len(&fixed, text, 3), 3);
	assert_int_equal(engine_name_len(&fixed, text, 2), 0);
	assert_int_equal(engine_name_len(&fixed, text, 4), 0);
	assert_int_equal(engine_name_len(&fixed, text, SIZE_MAX), 3);
}

static void programs_get_as_much_as_they_have_room_for(void **state)
{
	const struct weft_addr addr = { .pid = 1234 };
	char text[8] = "xxxxxxx";

	assert_int_equal(engine_name_write(&strings, &addr, NULL, 0), 5);
	assert_int_equal(engine_name_write(&strings, &addr, text, 5), 5);
	assert_string_equal(text, "1234");
	assert_int_equal(text[5], 'x');
	assert_int_equal(engine_name_write(&strings, &addr, text, 3), 5);
	assert_string_equal(text, "12");
	assert_int_equal(engine_name_write(&strings, &addr, text, 1), 5);
	assert_string_equal(text, "");
	assert_int_equal(engine_name_write(&fixed, &addr, text, 2), 5);
	assert_memory_equal(text, "12", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_strings_are_read),
		cmocka_unit_test(strings_in_cells_are_read),
		cmocka_unit_test(full_cells_may_come_first),
		cmocka_unit_test(what_is_no_address_spoils_no_other),
		cmocka_unit_test(other_bytes_end_the_list),
		cmocka_unit_test(addresses_of_one_size_are_read),
		cmocka_unit_test(lengths_are_what_the_program_says),
		cmocka_unit_test(programs_get_as_much_as_they_have_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
