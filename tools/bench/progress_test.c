/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The line of progress: its text, on a terminal, and its absence elsewhere. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "clock.h"
#include "progress.h"

#define SECOND 1000000000ull
/* A line that follows another one by less than that is left out. */
#define SHOW_EVERY_NS 100000000ull
#define TRIES	      20

static void the_text_says_what_how_much_and_how_long(void **state)
{
	char line[80];

	assert_string_equal(progress_format(line, sizeof(line), "warm", 0, 0, 4), "warm, 0%");
	assert_string_equal(progress_format(line, sizeof(line), "lat 8", 10 * SECOND, 1, 4),
			    "lat 8, 25%, 30 s left");
	assert_string_equal(progress_format(line, sizeof(line), "bw", 50 * SECOND, 1, 3),
			    "bw, 33%, 1 min 40 s left");
	assert_string_equal(progress_format(line, sizeof(line), "bw", 50 * SECOND, 9, 3),
			    "bw, 100%, 0 s left");
	assert_string_equal(progress_format(line, 8, "latency", 50 * SECOND, 3, 3), "latency");
}

/* What has arrived at the other end of a pipe or terminal. */
static size_t arrived(int fd, char *text, size_t len)
{
	ssize_t got;

	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	got = read(fd, text, len - 1);
	text[got > 0 ? got : 0] = '\0';
	return got > 0 ? (size_t)got : 0;
}

static void a_terminal_gets_one_line_that_is_taken_away(void **state)
{
	struct winsize size = { .ws_row = 24, .ws_col = 20 };
	struct progress progress;
	int near, far, tries = TRIES;
	uint64_t began;
	char text[256];

	assert_int_equal(openpty(&near, &far, NULL, NULL, &size), 0);
	do {
		arrived(near, text, sizeof(text));
		progress_start(&progress, far, 100);
		began = clock_ns();
		progress_show(&progress, 0, "latency of 8 bytes, round 1");
		/* Right behind the first: left out. */
		progress_show(&progress, 1, "latency of 64 bytes, round 1");
	} while (clock_ns() - began >= SHOW_EVERY_NS && --tries);
	assert_true(tries);
	arrived(near, text, sizeof(text));
	assert_string_equal(text, "\r\033[Klatency of 8 bytes,\r");
	progress_end(&progress);
	arrived(near, text, sizeof(text));
	assert_string_equal(text, "\r\033[K");
	close(near);
	close(far);
}

static void a_pipe_gets_nothing(void **state)
{
	struct progress progress;
	int ends[2];
	char text[16];

	assert_int_equal(pipe(ends), 0);
	progress_start(&progress, ends[1], 2);
	progress_show(&progress, 1, "latency");
	progress_end(&progress);
	assert_int_equal(arrived(ends[0], text, sizeof(text)), 0);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_text_says_what_how_much_and_how_long),
		cmocka_unit_test(a_terminal_gets_one_line_that_is_taken_away),
		cmocka_unit_test(a_pipe_gets_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
