/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of base64.h, with the vectors of RFC 4648, section 10.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"

static void texts_of_the_rfc_are_made_and_read(void **state)
{
	static const char *const pairs[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
	};
	char text[BASE64_ROOM(6)], bytes[6];
	size_t i;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		size_t len = strlen(pairs[i][0]);

		base64_encode(pairs[i][0], len, text);
		assert_string_equal(text, pairs[i][1]);
		assert_int_equal(base64_decode(text, strlen(text), bytes, sizeof(bytes)), len);
		assert_memory_equal(bytes, pairs[i][0], len);
	}
}

static void every_byte_comes_back_at_every_length(void **state)
{
	uint8_t bytes[256], back[256];
	char text[BASE64_ROOM(256)];
	size_t len;

	for (len = 0; len < 256; len++)
		bytes[len] = (uint8_t)(len * 151 + 7);
	for (len = 0; len <= 256; len++) {
		base64_encode(bytes, len, text);
		assert_int_equal(strlen(text) + 1, BASE64_ROOM(len));
		assert_int_equal(base64_decode(text, strlen(text), back, len), len);
		assert_memory_equal(bytes, back, len);
	}
}

static void what_is_no_text_is_refused(void **state)
{
	static const char *const texts[] = {
		"Z",
		"Zg",
		"Zg=",
		"Zg===",
		"====",
		"=Zg=",
		"Z===",
		"Zg==Zg==",
		"Zm9*",
		"Zm 9v",
		"Zm9v\nZg",
		"Zm9vZg==\n",
		"Zm9-",
		"Zm9_",
		"Zh==",
		"Zm9=",
		"\xff\xff\xff\xff",
	};
	uint8_t bytes[64];
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(base64_decode(texts[i], strlen(texts[i]), bytes, sizeof(bytes)),
				 -EILSEQ);
}

static void bytes_without_room_are_not_written(void **state)
{
	char bytes[4] = "abc";

	assert_int_equal(base64_decode("Zm9v", 4, bytes, 2), -EMSGSIZE);
	assert_string_equal(bytes, "abc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_of_the_rfc_are_made_and_read),
		cmocka_unit_test(every_byte_comes_back_at_every_length),
		cmocka_unit_test(what_is_no_text_is_refused),
		cmocka_unit_test(bytes_without_room_are_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
