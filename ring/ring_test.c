/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the ring: both ends on one thread against a simple model, two threads, two
 * processes, and a peer that lies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ring.h"
#include "seeded.h"

#define LINES 64u
#define DATA  16384u
/* Beside others, each yield of the two that pass a stream may cost a turn of another program. */
#define DEADLINE_S 600

static void *memory_create(void)
{
	void *mem = mmap(NULL, ring_len(LINES, DATA), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(mem != MAP_FAILED);
	return mem;
}

static void memory_destroy(void *mem)
{
	munmap(mem, ring_len(LINES, DATA));
}

/* 31 bits */
static uint32_t next_random(uint64_t *state)
{
	return (uint32_t)(seeded_random(state) >> 33);
}

/* The header of test messages. */
struct mark {
	uint32_t len;
	uint32_t number;
	unsigned char zero[24];
};

/* All of them in turn. */
static enum ring_place place_of(uint32_t number, uint32_t len)
{
	if (len <= RING_WARM && number % 3)
		return RING_WARM_PLACE;
	return len > RING_PAGE / 4 && number % 2 ? RING_PAGE_START : RING_ANYWHERE;
}

static bool message_put(struct ring_tx *tx, uint32_t number, uint32_t len)
{
	struct mark mark = { .len = len, .number = number };
	struct ring_line *line;
	void *at;

	if (len <= RING_INLINE) {
		line = ring_claim(tx);
		at = line ? line->payload : NULL;
	} else {
		line = ring_claim_data(tx, len, place_of(number, len), &at);
	}
	if (!line)
		return false;
	memcpy(line->header, &mark, sizeof(mark));
	memset(at, (int)(number & 0xff), len);
	ring_publish(tx, line, number % (RING_KIND_MAX + 1));
	return true;
}

/* Takes the next message, which has to be @number, and returns its length; -1: none; -2: wrong. */
static int message_take(struct ring_rx *rx, uint32_t number)
{
	const unsigned char *bytes;
	struct ring_line *line;
	struct mark mark;
	uint32_t note;

	line = ring_next(rx, &note);
	if (!line)
		return -1;
	memcpy(&mark, line->header, sizeof(mark));
	if (mark.number != number || ring_kind(note) != number % (RING_KIND_MAX + 1))
		return -2;
	bytes = mark.len <= RING_INLINE ? line->payload : ring_data(rx, note, mark.len);
	if (!bytes)
		return -2;
	for (uint32_t i = 0; i < mark.len; i++)
		if (bytes[i] != (number & 0xff))
			return -2;
	if (mark.len <= RING_INLINE)
		ring_release(rx);
	else
		ring_release_data(rx, mark.len);
	return (int)mark.len;
}

static void sizes_are_checked(void **state)
{
	assert_int_equal(ring_len(LINES, DATA), 64 + LINES * 64 + DATA);
	assert_int_equal(ring_len(0, DATA), 0);
	assert_int_equal(ring_len(LINES - 1, DATA), 0);
	assert_int_equal(ring_len(8, DATA), 0);
	assert_int_equal(ring_len(1u << 31, DATA), 0);
	assert_int_equal(ring_len(LINES, 0), 0);
	assert_int_equal(ring_len(LINES, DATA + 64), 0);
	assert_int_equal(ring_len(LINES, 1u << 31), 0);
}

static void lines_that_are_taken_are_reported_when_the_consumer_says_so(void **state)
{
	void *mem = memory_create();
	struct ring_tx tx;
	struct ring_rx rx;
	uint32_t note;

	ring_tx_init(&tx, mem, LINES, DATA);
	ring_rx_init(&rx, mem, LINES, DATA);
	for (uint32_t i = 0; i < LINES; i++)
		ring_publish(&tx, ring_claim(&tx), 0);
	for (uint32_t i = 0; i < LINES; i++) {
		assert_non_null(ring_next(&rx, &note));
		ring_take(&rx);
	}
	assert_null(ring_next(&rx, &note));
	assert_null(ring_claim(&tx));
	ring_report(&rx);
	assert_true(ring_has_room(&tx, LINES, 0));
	memory_destroy(mem);
}

static void full_ring_takes_no_more_until_the_credit_comes(void **state)
{
	void *mem = memory_create();
	struct ring_tx tx;
	struct ring_rx rx;
	uint32_t note;

	ring_tx_init(&tx, mem, LINES, DATA);
	ring_rx_init(&rx, mem, LINES, DATA);
	assert_null(ring_next(&rx, &note));
	for (uint32_t i = 0; i < LINES; i++)
		assert_true(message_put(&tx, i, 8));
	assert_false(message_put(&tx, LINES, 8));
	assert_int_equal(message_take(&rx, 0), 8);
	assert_false(message_put(&tx, LINES, 8)); /* taken and not reported */
	for (uint32_t i = 1; i < LINES; i++)
		assert_int_equal(message_take(&rx, i), 8);
	assert_int_equal(message_take(&rx, LINES), -1);
	ring_report(&rx);
	assert_int_equal(rx.reported, LINES);
	assert_true(ring_has_room(&tx, LINES, DATA - RING_WARM_ALL));
	for (uint32_t i = 0; i < LINES; i++)
		assert_true(message_put(&tx, LINES + i, 8));
	memory_destroy(mem);
}

static void full_data_area_does_not_stop_small_lines(void **state)
{
	void *mem = memory_create();
	struct ring_tx tx;
	struct ring_rx rx;
	uint32_t n = 0, m = 0;

	ring_tx_init(&tx, mem, LINES, DATA);
	ring_rx_init(&rx, mem, LINES, DATA);
	while (message_put(&tx, n, 1000))
		n++;
	assert_int_equal(n, RING_WARM_CNT + (DATA - RING_WARM_ALL) / 1024);
	assert_false(message_put(&tx, n, 25));
	while (message_put(&tx, n, RING_INLINE))
		n++;
	assert_int_equal(n, LINES);
	while (m < n)
		assert_true(message_take(&rx, m++) > 0);
	assert_false(tx.broken);
	memory_destroy(mem);
}

static void largest_payload_fits_an_empty_ring_at_any_position(void **state)
{
	void *mem = memory_create();
	struct ring_tx tx;
	struct ring_rx rx;
	uint32_t number = 0;

	ring_tx_init(&tx, mem, LINES, DATA);
	ring_rx_init(&rx, mem, LINES, DATA);
	for (uint32_t step = 0; step < 3 * DATA / RING_GRANULE; step++) {
		assert_true(message_put(&tx, number, RING_INLINE + 1));
		assert_int_equal(message_take(&rx, number++), RING_INLINE + 1);
		ring_report(&rx);
		assert_true(message_put(&tx, number, ring_data_max(DATA)));
		assert_int_equal(message_take(&rx, number++), (int)ring_data_max(DATA));
		ring_report(&rx);
	}
	assert_false(tx.broken);
	memory_destroy(mem);
}

/* Where the last payload was put. */
static uint32_t offset_of_last(const struct ring_tx *tx)
{
	return (tx->note & RING_AT_MASK) * RING_GRANULE;
}

static void warm_places_are_used_again_and_others_go_round(void **state)
{
	void *mem = memory_create(), *at;
	struct ring_line *line;
	uint32_t n = 0, m = 0;
	struct ring_tx tx;
	struct ring_rx rx;

	ring_tx_init(&tx, mem, LINES, DATA);
	ring_rx_init(&rx, mem, LINES, DATA);
	for (; n < 1000; n++) {
		line = ring_claim_data(&tx, 1 + n % RING_WARM, RING_WARM_PLACE, &at);
		assert_non_null(line);
		assert_true(offset_of_last(&tx) < RING_WARM_ALL);
		ring_publish(&tx, line, 0);
		assert_non_null(ring_next(&rx, &m));
		ring_release_data(&rx, 1 + n % RING_WARM);
		ring_report(&rx);
	}
	/* none is free until what is in them has been read */
	for (n = 0; n < 2 * RING_WARM_CNT; n++) {
		line = ring_claim_data(&tx, RING_WARM, RING_WARM_PLACE, &at);
		assert_non_null(line);
		assert_int_equal(offset_of_last(&tx) < RING_WARM_ALL, n < RING_WARM_CNT);
		ring_publish(&tx, line, 0);
	}
	assert_non_null(ring_claim_data(&tx, RING_WARM, RING_ANYWHERE, &at));
	assert_true(offset_of_last(&tx) >= RING_WARM_ALL);
	memory_destroy(mem);
}

static void payload_begins_a_page_when_asked_to(void **state)
{
	void *mem = memory_create(), *at;
	struct ring_line *line;
	struct ring_tx tx;
	struct ring_rx rx;
	uint32_t note;

	ring_tx_init(&tx, mem, LINES, DATA);
	ring_rx_init(&rx, mem, LINES, DATA);
	for (uint32_t n = 0; n < 1000; n++) {
		uint32_t len = 1 + n % 5000;

		line = ring_claim_data(&tx, len, n % 2 ? RING_PAGE_START : RING_ANYWHERE, &at);
		assert_non_null(line);
		if (n % 2)
			assert_int_equal(offset_of_last(&tx) % RING_PAGE, 0);
		ring_publish(&tx, line, 0);
		assert_non_null(ring_next(&rx, &note));
		ring_release_data(&rx, len);
		ring_report(&rx);
	}
	memory_destroy(mem);
}

/* However many lines the other side made, so many may have data that it has not read. */
static void lines_with_data_are_bounded(void **state)
{
	enum { MANY = 4 * RING_EXTENTS, AREA = MANY * RING_GRANULE };
	void *mem = platform_alloc(ring_len(MANY, AREA));
	struct ring_tx tx;
	struct ring_rx rx;

	ring_tx_init(&tx, mem, MANY, AREA);
	ring_rx_init(&rx, mem, MANY, AREA);
	for (uint32_t n = 0; n < RING_EXTENTS; n++)
		assert_true(message_put(&tx, n, RING_GRANULE));
	assert_false(message_put(&tx, RING_EXTENTS, RING_GRANULE));
	assert_true(message_put(&tx, RING_EXTENTS, RING_INLINE));
	assert_int_equal(message_take(&rx, 0), RING_GRANULE);
	ring_report(&rx);
	assert_true(message_put(&tx, RING_EXTENTS + 1, RING_GRANULE));
	assert_false(message_put(&tx, RING_EXTENTS + 2, RING_GRANULE));
	platform_free(mem);
}

static void free_warm_place_waits_where_lines_with_data_are_bounded(void **state)
{
	enum { MANY = 4 * RING_EXTENTS, AREA = MANY * RING_GRANULE };
	void *mem = platform_alloc(ring_len(MANY, AREA)), *at;
	struct ring_line *line;
	struct ring_tx tx;
	struct ring_rx rx;
	uint32_t note;

	ring_tx_init(&tx, mem, MANY, AREA);
	ring_rx_init(&rx, mem, MANY, AREA);
	for (uint32_t n = 0; n < RING_EXTENTS; n++) {
		line = ring_claim_data(&tx, RING_GRANULE, RING_ANYWHERE, &at);
		assert_non_null(line);
		ring_publish(&tx, line, 0);
	}
	assert_null(ring_claim_data(&tx, RING_GRANULE, RING_WARM_PLACE, &at));
	while (ring_next(&rx, &note))
		ring_release_data(&rx, RING_GRANULE);
	ring_report(&rx);
	line = ring_claim_data(&tx, RING_GRANULE, RING_WARM_PLACE, &at);
	assert_non_null(line);
	ring_publish(&tx, line, 0);
	assert_non_null(ring_next(&rx, &note));
	ring_release_data(&rx, RING_GRANULE);
	ring_report(&rx);
	assert_true(ring_has_room(&tx, MANY, AREA - RING_WARM_ALL));
	platform_free(mem);
}

/* Everything that is on its way while the data area is exchanged arrives, at any position. */
static void larger_area_takes_over_between_two_lines(void **state)
{
	enum { LARGE = 4 * DATA };

	for (uint32_t before = 0; before < 40; before++) {
		void *mem = memory_create(), *area = platform_alloc(LARGE);
		uint32_t sent = 0, taken = 0;
		struct ring_tx tx;
		struct ring_rx rx;

		ring_tx_init(&tx, mem, LINES, DATA);
		ring_rx_init(&rx, mem, LINES, DATA);
		while (sent < before) {
			if (message_put(&tx, sent, 700))
				sent++;
			else
				assert_int_equal(message_take(&rx, taken++), 700);
		}
		ring_tx_move(&tx, area, LARGE);
		while (message_put(&tx, sent, 700))
			sent++;
		assert_true(sent - before > DATA / 768);
		while (taken < before)
			assert_int_equal(message_take(&rx, taken++), 700);
		ring_rx_move(&rx, area, LARGE);
		for (; taken < 500; taken++) {
			assert_int_equal(message_take(&rx, taken), 700);
			while (message_put(&tx, sent, 700))
				sent++;
		}
		assert_false(tx.broken);
		platform_free(area);
		memory_destroy(mem);
	}
}

/*
 * Random lengths and turns, against a queue of lengths: nothing is lost, changed or reordered,
 * positions wrap past 2^32, and an empty ring always takes the next message.
 */
static void random_traffic_follows_the_model(void **state)
{
	enum { OPS = 200000 };
	uint64_t seed = 0x5eed0001, start = UINT32_MAX - OPS / 8;
	uint32_t sent = 0, taken = 0, longest = 0;
	void *mem = memory_create();
	int expected[LINES] = { 0 };
	struct ring_tx tx;
	struct ring_rx rx;

	print_message("seed %#llx\n", (unsigned long long)seed);
	ring_tx_init(&tx, mem, LINES, DATA);
	ring_rx_init(&rx, mem, LINES, DATA);
	/* as after 2^32 lines less a few */
	tx.head = (uint32_t)start;
	tx.limit = tx.head + LINES;
	tx.extent_head = tx.extent_tail = (uint32_t)start + OPS / 16;
	rx.tail = rx.reported = tx.head;
	ring_report(&rx);

	for (uint32_t op = 0; op < OPS; op++) {
		uint32_t dice = next_random(&seed);

		if (dice & 1) {
			uint32_t len = next_random(&seed) % (dice & 2 ? RING_INLINE + 1 : 1500);
			bool room = sent - taken < LINES;

			if (message_put(&tx, sent, len)) {
				assert_true(room);
				expected[sent++ % LINES] = (int)len;
			} else {
				/* a full ring has to have a line, reported or not */
				assert_true(sent != taken || rx.reported != rx.tail);
			}
		} else {
			int len = message_take(&rx, taken);

			if (len == -1) {
				assert_int_equal(sent, taken);
				ring_report(&rx);
			} else {
				assert_int_equal(len, expected[taken++ % LINES]);
			}
		}
		assert_false(tx.broken);
		if (sent - taken > longest)
			longest = sent - taken;
	}
	assert_true(tx.head < (uint32_t)start); /* wrapped */
	assert_true(longest > LINES / 8);
	memory_destroy(mem);
}

static uint32_t stream_len(uint32_t number)
{
	return number % 7 ? number % (RING_INLINE + 1) : number % 1200;
}

/* Sends @cnt messages, waiting for room. */
static void stream_send(struct ring_tx *tx, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++)
		while (!message_put(tx, i, stream_len(i)))
			platform_yield();
}

/* Takes @cnt messages; false at the first that is not as sent. */
static bool stream_take(struct ring_rx *rx, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		int len;

		while ((len = message_take(rx, i)) == -1) {
			ring_report(rx);
			platform_yield();
		}
		if (len != (int)stream_len(i))
			return false;
	}
	ring_report(rx);
	return true;
}

#define STREAM 300000u

static void *stream_thread(void *arg)
{
	struct ring_tx tx;

	ring_tx_init(&tx, arg, LINES, DATA);
	stream_send(&tx, STREAM);
	return (void *)(uintptr_t)tx.broken;
}

static void two_threads_pass_everything_in_order(void **state)
{
	void *mem = memory_create(), *broken;
	struct ring_rx rx;
	pthread_t thread;

	ring_rx_init(&rx, mem, LINES, DATA);
	assert_int_equal(pthread_create(&thread, NULL, stream_thread, mem), 0);
	assert_true(stream_take(&rx, STREAM));
	pthread_join(thread, &broken);
	assert_null(broken);
	memory_destroy(mem);
}

static void two_processes_pass_everything_in_order(void **state)
{
	void *mem = memory_create();
	struct ring_rx rx;
	int status;
	pid_t pid;

	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct ring_tx tx;

		ring_tx_init(&tx, mem, LINES, DATA);
		alarm(DEADLINE_S);
		stream_send(&tx, STREAM);
		_exit(tx.broken);
	}
	ring_rx_init(&rx, mem, LINES, DATA);
	assert_true(stream_take(&rx, STREAM));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	memory_destroy(mem);
}

static void credit_that_cannot_be_marks_the_ring_broken(void **state)
{
	static const uint32_t lies[] = { 11, LINES, LINES + 1, 1u << 31, UINT32_MAX };

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		void *mem = memory_create();
		struct ring_tx tx;

		ring_tx_init(&tx, mem, LINES, DATA);
		for (uint32_t n = 0; n < 10; n++)
			assert_true(message_put(&tx, n, n ? 1 : 200)); /* 256 bytes of data */
		atomic_store(&tx.credit->taken, lies[i]);
		ring_refresh(&tx);
		assert_true(tx.broken);
		assert_int_equal(tx.limit, LINES);
		assert_int_equal(ring_data_free(&tx), DATA - RING_WARM_ALL - 256);
		memory_destroy(mem);
	}
}

static void data_outside_the_area_is_refused(void **state)
{
	void *mem = memory_create();
	struct ring_rx rx;

	ring_rx_init(&rx, mem, LINES, DATA);
	assert_non_null(ring_data(&rx, 0, DATA));
	assert_null(ring_data(&rx, 0, DATA + 1));
	assert_null(ring_data(&rx, 0, UINT32_MAX));
	assert_null(ring_data(&rx, 1, DATA));
	assert_non_null(ring_data(&rx, DATA / RING_GRANULE - 1, RING_GRANULE));
	assert_null(ring_data(&rx, DATA / RING_GRANULE, 1));
	assert_null(ring_data(&rx, RING_AT_MASK, 1));
	assert_null(ring_data(&rx, RING_AT_MASK, UINT32_MAX));
	memory_destroy(mem);
}

static void stale_and_forged_words_publish_nothing(void **state)
{
	void *mem = memory_create();
	struct ring_rx rx;
	uint64_t seed = 0x5eed0002;
	uint32_t note;

	ring_rx_init(&rx, mem, LINES, DATA);
	for (int i = 0; i < 1000; i++) {
		uint64_t word = (uint64_t)next_random(&seed) << 32 | next_random(&seed);

		atomic_store(&rx.lines[0].word, word);
		if ((uint32_t)word != 1)
			assert_null(ring_next(&rx, &note));
	}
	atomic_store(&rx.lines[0].word, 1 + LINES);
	assert_null(ring_next(&rx, &note));
	memory_destroy(mem);
}

/* Notes and lengths from a producer that writes what it likes never lead out of the area. */
static void any_note_stays_inside(void **state)
{
	void *mem = memory_create();
	uint64_t seed = 0x5eed0003;
	struct ring_rx rx;

	ring_rx_init(&rx, mem, LINES, DATA);
	for (int i = 0; i < 100000; i++) {
		uint32_t dice = next_random(&seed), note = 0;
		uint32_t len = next_random(&seed) >> dice % 31;
		uint64_t forged = (uint64_t)(next_random(&seed) >> dice % 29) << 32;
		const unsigned char *at;

		atomic_store(&rx.lines[rx.tail & rx.mask].word, forged | (rx.tail + 1));
		assert_non_null(ring_next(&rx, &note));
		at = ring_data(&rx, note, len);
		if (at) {
			assert_true(at >= rx.data && at + len <= rx.data + DATA);
			ring_release_data(&rx, len);
		} else {
			ring_release(&rx);
		}
	}
	memory_destroy(mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_checked),
		cmocka_unit_test(lines_that_are_taken_are_reported_when_the_consumer_says_so),
		cmocka_unit_test(full_ring_takes_no_more_until_the_credit_comes),
		cmocka_unit_test(full_data_area_does_not_stop_small_lines),
		cmocka_unit_test(largest_payload_fits_an_empty_ring_at_any_position),
		cmocka_unit_test(warm_places_are_used_again_and_others_go_round),
		cmocka_unit_test(payload_begins_a_page_when_asked_to),
		cmocka_unit_test(lines_with_data_are_bounded),
		cmocka_unit_test(free_warm_place_waits_where_lines_with_data_are_bounded),
		cmocka_unit_test(larger_area_takes_over_between_two_lines),
		cmocka_unit_test(random_traffic_follows_the_model),
		cmocka_unit_test(two_threads_pass_everything_in_order),
		cmocka_unit_test(two_processes_pass_everything_in_order),
		cmocka_unit_test(credit_that_cannot_be_marks_the_ring_broken),
		cmocka_unit_test(data_outside_the_area_is_refused),
		cmocka_unit_test(stale_and_forged_words_publish_nothing),
		cmocka_unit_test(any_note_stays_inside),
	};

	alarm(DEADLINE_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
