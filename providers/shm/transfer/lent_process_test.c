/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of payload in the arena between two processes, when one of them is killed or stopped while
 * it is lent or read. What the program stores there afterwards is never reported as a success. And of many
 * endpoints that read one process's arena, which is mapped once for them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "arena.h"
#include "mock_child.h"
#include "seeded.h"
#include "peer_arena.h"

#define LEN    (1u << 20)
#define SENT   PSHM_EAGER_MAX
#define ROUNDS 10u
#define CANARY 0xee
#define MANY   64u

static struct mock us;
static unsigned char *from;
static struct mock_op op;

static int setup(void **state)
{
	return mock_board_open();
}

static int teardown(void **state)
{
	mock_board_close();
	mock_close(&us);
	free(us.room);
	us.room = NULL;
	return 0;
}

static void receive_into_room(struct mock *m)
{
	m->room = calloc(1, LEN);
	m->room_len = LEN;
	m->room_iovs = 1;
	assert_non_null(m->room);
}

static unsigned char *in_arena(size_t len)
{
	struct arena *arena = arena_get();
	void *addr = NULL;

	if (!arena || arena_alloc(arena, len, 1, ARENA_READ, &addr, NULL))
		_exit(98);
	return addr;
}

static void meet(int (*body)(struct mock *m))
{
	memset(board, 0, sizeof(*board));
	mock_child_start(NULL, body);
	mock_open(&us);
}

/* Sends one after the other. Those that are lent are counted. */
static int sender_body(struct mock *m)
{
	unsigned char *buf = in_arena(LEN);

	mock_until(m, NULL, m->conn);
	for (uint64_t tag = MOCK_BIG; !m->downs; tag++) {
		mock_pattern(buf, SENT, tag);
		mock_sendv(m->conn, tag, buf, SENT, 1, &op);
		if (!list_empty(&pshm_conn_of(m->conn)->lent))
			atomic_fetch_add(&board->written, 1);
		while (!op.done && !m->downs)
			mock_poll(m, NULL);
	}
	return 0;
}

/* The child has an arena of its own only while this process has none: this test comes first. */
static void sender_that_is_killed_leaves_the_whole_payload_or_none(void **state)
{
	uint64_t seed = 0x5eed3001;

	print_message("seed %#llx\n", (unsigned long long)seed);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		meet(sender_body);
		receive_into_room(&us);
		mock_connected(&us, NULL, &board->child);
		mock_until(&us, NULL, ({
			mock_sweep(&us, NULL);
			atomic_load(&board->written) > seeded_random(&seed) % 4;
		}));
		for (uint32_t polls = seeded_random(&seed) % 8; polls; polls--)
			us.wire->ops->poll(us.wire);
		assert_int_equal(kill(child, SIGKILL), 0);
		mock_until(&us, NULL, us.downs || us.wire->ops->check(us.conn));
		assert_false(us.garbled);
		mock_child_kill();
		mock_close(&us);
		free(us.room);
		us.room = NULL;
	}
}

/* Sends to each endpoint that connects, until that has read what is lent. */
static int sender_to_many_body(struct mock *m)
{
	unsigned char *buf = in_arena(LEN);

	mock_pattern(buf, SENT, MOCK_BIG);
	for (unsigned int i = 0; i < MANY; i++) {
		uint64_t lent = 0;

		mock_until(m, NULL, m->ups > (int)i);
		while (!lent) {
			mock_sendv(m->conn, MOCK_BIG, buf, SENT, 1, &op);
			lent = !list_empty(&pshm_conn_of(m->conn)->lent);
			mock_until(m, NULL, op.done);
		}
		atomic_fetch_add(&board->written, lent);
	}
	mock_until(m, NULL, atomic_load(&board->go));
	return 0;
}

/* Returns the mappings of arenas that this process has. */
static unsigned int mapping_cnt(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned int cnt = 0;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		cnt += strstr(line, "memfd:weft-arena") != NULL;
	fclose(maps);
	return cnt;
}

/* This process has no arena yet: see above. */
static void many_endpoints_map_a_peer_once(void **state)
{
	struct mock *many = calloc(MANY, sizeof(*many));

	assert_non_null(many);
	memset(board, 0, sizeof(*board));
	mock_child_start(NULL, sender_to_many_body);
	for (unsigned int i = 0; i < MANY; i++) {
		mock_open(&many[i]);
		receive_into_room(&many[i]);
		mock_connected(&many[i], NULL, &board->child);
		mock_until(&many[i], NULL, ({
			mock_sweep(&many[i], NULL);
			atomic_load(&board->written) > i;
		}));
		assert_false(many[i].garbled);
		assert_non_null(pshm_conn_of(many[i].conn)->arena);
		/* the directory, and a chunk */
		assert_int_equal(mapping_cnt(), 2);
	}
	for (unsigned int i = 0; i < MANY; i++) {
		assert_int_equal(mapping_cnt(), 2);
		mock_close(&many[i]);
		free(many[i].room);
	}
	assert_int_equal(mapping_cnt(), 0);
	atomic_store(&board->go, 1);
	mock_child_ended(0);
	free(many);
}

static int receiver_body(struct mock *m)
{
	receive_into_room(m);
	mock_until(m, NULL, m->conn);
	while (!m->downs) {
		for (int i = 0; i < 256; i++)
			m->wire->ops->poll(m->wire);
		platform_yield();
	}
	atomic_store(&board->result, m->garbled ? 1 : 2);
	return 0;
}

/* Payload in a chunk that the child has mapped. */
static void lend_to_child(void)
{
	struct pshm_place place;

	mock_connected(&us, NULL, &board->child);
	from = in_arena(LEN);
	mock_pattern(from, SENT, MOCK_BIG);
	mock_until(&us, NULL, ({
		mock_sweep(&us, NULL);
		pshm_arena_lends(pshm_conn_of(us.conn), from, SENT, &place);
	}));
	assert_int_equal(mock_sendv(us.conn, MOCK_BIG, from, SENT, 1, &op), 0);
}

/* The program has its memory back, and uses it again. */
static void end_and_reuse(void)
{
	if (us.conn)
		us.wire->ops->disconnect(us.conn);
	us.conn = NULL;
	memset(from, CANARY, LEN);
}

static void is_canary(void)
{
	for (size_t i = 0; i < LEN; i++)
		assert_true(from[i] == CANARY);
	assert_int_equal(arena_free(arena_get(), from), 0);
}

static void pause_ns(uint64_t ns)
{
	uint64_t end = platform_now_ns() + ns;

	while (platform_now_ns() < end)
		;
}

static void receiver_that_is_killed_harms_nobody(void **state)
{
	uint64_t seed = 0x5eed3002;

	print_message("seed %#llx\n", (unsigned long long)seed);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		meet(receiver_body);
		lend_to_child();
		pause_ns(seeded_random(&seed) % 200000);
		assert_int_equal(kill(child, SIGKILL), 0);
		mock_until(&us, NULL, !us.conn || us.wire->ops->check(us.conn));
		end_and_reuse();
		assert_true(!op.done || !op.status);
		mock_child_kill();
		is_canary();
		mock_close(&us);
	}
}

/* Stops the child, or waits until it has stopped itself; then the memory is used for something else. */
static void reuse_while_stopped(bool stop)
{
	int status;

	if (stop)
		assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	end_and_reuse();
	assert_int_equal(kill(child, SIGCONT), 0);
	mock_child_ended(0);
	assert_int_equal(atomic_load(&board->result), 2);
	is_canary();
	mock_close(&us);
}

static void receiver_that_is_stopped_reports_no_byte_that_came_later(void **state)
{
	uint64_t seed = 0x5eed3003;

	print_message("seed %#llx\n", (unsigned long long)seed);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		meet(receiver_body);
		lend_to_child();
		pause_ns(seeded_random(&seed) % 200000);
		reuse_while_stopped(true);
	}
}

static void stop_here(void)
{
	raise(SIGSTOP);
}

static int stopped_in_packet_body(struct mock *m)
{
	m->in_packet = stop_here;
	receiver_body(m);
	return m->big_done ? 3 : 0;
}

static void receiver_that_is_stopped_in_a_packet_drops_it(void **state)
{
	for (uint32_t round = 0; round < 4; round++) {
		meet(stopped_in_packet_body);
		lend_to_child();
		reuse_while_stopped(false);
		assert_int_equal(op.done, 0);
	}
}

/* Reads what is mapped, and stops after the first step. */
static int stopped_in_read_body(struct mock *m)
{
	struct iovec iov;
	int ret;

	receive_into_room(m);
	iov = (struct iovec){ m->room, LEN };
	mock_until(m, NULL, m->conn);
	while (atomic_load(&board->go) < 1)
		mock_poll(m, NULL);
	ret = mock_get(m->conn, 1, (const void *)(uintptr_t)board->from, &iov, 1, &op);
	raise(SIGSTOP);
	while (!ret && !op.done && !m->downs)
		mock_poll(m, NULL);
	/* a success has all bytes as they were */
	atomic_store(&board->result, !ret && (!op.done || op.status == -FI_ECONNRESET) ? 2 : 1);
	return 0;
}

static void reader_that_is_stopped_reports_no_byte_that_came_later(void **state)
{
	struct pshm_shown *shown;

	for (uint32_t round = 0; round < 4; round++) {
		meet(stopped_in_read_body);
		from = in_arena(LEN);
		mock_connected(&us, NULL, &board->child);
		shown = &pshm_conn_of(us.conn)->pair->shown[pshm_conn_of(us.conn)->side];
		mock_until(&us, NULL, atomic_load(&shown->arena_shown));
		mock_pattern(from, LEN, 1);
		board->from = (uintptr_t)from;
		atomic_store(&board->go, 1);
		reuse_while_stopped(false);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sender_that_is_killed_leaves_the_whole_payload_or_none),
		TEST(many_endpoints_map_a_peer_once),
		TEST(receiver_that_is_killed_harms_nobody),
		TEST(receiver_that_is_stopped_reports_no_byte_that_came_later),
		TEST(receiver_that_is_stopped_in_a_packet_drops_it),
		TEST(reader_that_is_stopped_reports_no_byte_that_came_later),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
