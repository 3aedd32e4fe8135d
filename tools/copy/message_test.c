/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages of a copy: what arrives is what was sent, and what nobody sends is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "message.h"

static struct copy_message file_message(void)
{
	struct copy_message m = { .kind = COPY_FILE,
				  .error = -ENOSPC,
				  .mode = 0640,
				  .size = INT64_MAX,
				  .mtime_s = -5,
				  .mtime_ns = 999999999,
				  .addr = UINT64_MAX,
				  .sum = 0x0123456789abcdefu };

	memset(m.handle, 0xa5, sizeof(m.handle));
	memset(m.text, 'n', COPY_TEXT_MAX - 1);
	return m;
}

/* Reads what a message is after a change of one byte. */
static int read_changed(const struct copy_message *m, size_t at, unsigned char byte)
{
	unsigned char bytes[COPY_MESSAGE_LEN];
	struct copy_message got;

	copy_message_write(m, bytes);
	bytes[at] = byte;
	return copy_message_read(bytes, sizeof(bytes), &got);
}

static void a_message_arrives_as_it_was(void **state)
{
	struct copy_message m = file_message(), got = { 0 };
	unsigned char bytes[COPY_MESSAGE_LEN];

	copy_message_write(&m, bytes);
	assert_int_equal(copy_message_read(bytes, sizeof(bytes), &got), 0);
	assert_int_equal(got.kind, m.kind);
	assert_int_equal(got.error, m.error);
	assert_int_equal(got.mode, m.mode);
	assert_int_equal(got.size, m.size);
	assert_int_equal(got.mtime_s, m.mtime_s);
	assert_int_equal(got.mtime_ns, m.mtime_ns);
	assert_int_equal(got.addr, m.addr);
	assert_int_equal(got.sum, m.sum);
	assert_memory_equal(got.handle, m.handle, sizeof(m.handle));
	assert_string_equal(got.text, m.text);
}

static void another_length_is_refused(void **state)
{
	struct copy_message m = file_message(), got = { .error = 7 };
	unsigned char bytes[COPY_MESSAGE_LEN + 1] = { 0 };

	copy_message_write(&m, bytes);
	for (size_t len = 0; len <= sizeof(bytes); len++)
		if (len != COPY_MESSAGE_LEN)
			assert_int_equal(copy_message_read(bytes, len, &got), -EBADMSG);
	assert_int_equal(got.error, 7);
}

static void what_nobody_sends_is_refused(void **state)
{
	struct copy_message m = file_message();

	assert_int_equal(read_changed(&m, 0, 0), -EBADMSG); /* magic */
	assert_int_equal(read_changed(&m, 4, 2), -EPROTONOSUPPORT);
	assert_int_equal(read_changed(&m, 6, COPY_KINDS), -EBADMSG);
	assert_int_equal(read_changed(&m, 7, 1), -EBADMSG);
	assert_int_equal(read_changed(&m, 11, 0x80), -EBADMSG); /* error */
	assert_int_equal(read_changed(&m, 13, 0x08), -EBADMSG); /* set-user-ID */
	assert_int_equal(read_changed(&m, 23, 0x80), -EBADMSG); /* size */
	assert_int_equal(read_changed(&m, 35, 0xff), -EBADMSG); /* nanoseconds */
	assert_int_equal(read_changed(&m, 36, 1), -EBADMSG);	/* reserved */
}

static void a_text_ends_and_has_nothing_behind_its_end(void **state)
{
	struct copy_message m = file_message();

	assert_int_equal(read_changed(&m, COPY_MESSAGE_LEN - 1, 'x'), -EBADMSG);
	memset(m.text, 0, sizeof(m.text));
	strcpy(m.text, "name");
	assert_int_equal(read_changed(&m, COPY_MESSAGE_LEN - COPY_TEXT_MAX + 2, '\0'), -EBADMSG);
	assert_int_equal(read_changed(&m, COPY_MESSAGE_LEN - COPY_TEXT_MAX + 5, 'x'), -EBADMSG);
	assert_int_equal(read_changed(&m, COPY_MESSAGE_LEN - COPY_TEXT_MAX + 4, 's'), 0);
}

/* xorshift64* (Marsaglia 2003, Vigna 2016). */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1du;
}

/* Whatever the bytes are, a message that is accepted is the only one with its meaning. */
static void what_is_accepted_is_written_as_it_came(void **state)
{
	uint64_t random = 0x5eed, accepted = 0;
	unsigned char bytes[COPY_MESSAGE_LEN], again[COPY_MESSAGE_LEN];
	struct copy_message m = file_message(), got;

	print_message("seed %#llx\n", (unsigned long long)random);
	for (size_t round = 0; round < 100000; round++) {
		copy_message_write(&m, bytes);
		for (uint64_t n = next_random(&random) % 4 + 1; n--;)
			bytes[next_random(&random) % COPY_MESSAGE_LEN] =
				(unsigned char)next_random(&random);
		if (copy_message_read(bytes, sizeof(bytes), &got))
			continue;
		accepted++;
		assert_true(got.size <= INT64_MAX && got.mtime_ns < 1000000000u);
		assert_true(got.mode <= 0777 && got.error <= 0);
		copy_message_write(&got, again);
		assert_memory_equal(again, bytes, sizeof(bytes));
	}
	assert_in_range(accepted, 1000, 99000);
}

static void names_stay_in_their_directory(void **state)
{
	static const char *const bad[] = { "",	   ".",	  "..", "/", "/etc/passwd",
					   "../x", "a/b", "a/" };
	static const char *const good[] = { "a", "...", "..a", ".a", "a b", "\xff", "-" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(copy_name_is_plain(bad[i]));
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(copy_name_is_plain(good[i]));
}

static void a_terminal_gets_no_control_characters(void **state)
{
	char out[COPY_TEXT_MAX], long_text[2 * COPY_TEXT_MAX];

	assert_string_equal(copy_text_printable("a\033[2J\n\x7f\xc3\xa9", out),
			    "a?[2J??\xc3\xa9");
	memset(long_text, 'x', sizeof(long_text));
	long_text[sizeof(long_text) - 1] = '\0';
	assert_int_equal(strlen(copy_text_printable(long_text, out)), COPY_TEXT_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_arrives_as_it_was),
		cmocka_unit_test(another_length_is_refused),
		cmocka_unit_test(what_nobody_sends_is_refused),
		cmocka_unit_test(a_text_ends_and_has_nothing_behind_its_end),
		cmocka_unit_test(what_is_accepted_is_written_as_it_came),
		cmocka_unit_test(names_stay_in_their_directory),
		cmocka_unit_test(a_terminal_gets_no_control_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
