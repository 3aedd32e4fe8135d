/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unit tests of direct access: what a domain publishes, how a peer uses it, and which accesses are
 * waited for. Both endpoints are in this process, which may read and write its own memory as any
 * other's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "fault.h"
#include "key_access.h"
#include "mock_keys.h"
#include "process_vm.h"
#include "peer_keys.h"
#include "share.h"
#include "seeded.h"

#define KEY    MOCK_KEY
#define LEN    MOCK_KEYS_LEN
#define ROUNDS 20000
#define LINES  300u /* of the table, in the hostile test */

static struct mock_keys k;

static int setup_bare(void **state)
{
	mock_keys_open(&k, 0);
	return 0;
}

static int setup(void **state)
{
	mock_keys_open(&k, 0);
	assert_int_equal(mock_keys_expose(&k, KEY, MOCK_RMA, 1, false, &k.region), 0);
	return 0;
}

static int setup_told(void **state)
{
	mock_keys_open(&k, FI_REMOTE_WRITE);
	assert_int_equal(mock_keys_expose(&k, KEY, MOCK_RMA, 1, false, &k.region), 0);
	return 0;
}

static int teardown(void **state)
{
	mock_keys_close(&k);
	return 0;
}

static void memory_of_a_peer_that_does_not_poll_is_written_and_read(void **state)
{
	static const size_t lens[] = { 1, 8193, 65536, 1 << 20, (1 << 20) + 1, LEN };

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t len = lens[i], at = LEN - len;

		memset(k.memory, 0, LEN);
		mock_pattern(k.buf, len, i);
		assert_int_equal(mock_access_all(&k, true, KEY, at, len), 0);
		assert_true(mock_is_pattern(k.memory + at, len, i));
		assert_true(!at || !k.memory[at - 1]);
		memset(k.buf, 0, len);
		assert_int_equal(mock_access_all(&k, false, KEY, at, len), 0);
		assert_true(mock_is_pattern(k.buf, len, i));
		assert_false(pshm_wire_ops.share_used(k.share, k.region));
	}
}

static void pieces_on_both_sides_are_one_sequence(void **state)
{
	struct packet_target targets[] = { { .addr = 100, .len = 5, .key = KEY },
					   { .addr = 5000, .len = 1500000, .key = KEY },
					   { .addr = 4, .len = 0, .key = KEY },
					   { .addr = 2000000, .len = 100000, .key = KEY } };
	struct iovec iov[] = { { k.buf, 3 },
			       { k.buf + 3, 700000 },
			       { k.buf + 700003, 0 },
			       { k.buf + 700003, 900002 } };
	struct wire_access access = {
		.write = true, .targets = targets, .target_cnt = 4, .iov = iov, .iov_cnt = 4
	};
	struct mock_op op;

	mock_pattern(k.buf, LEN, 5);
	mock_op_init(&op);
	assert_int_equal(
		mock_access_end(&k, pshm_wire_ops.direct(k.a.conn, &access, &op.op), &op), 0);
	assert_memory_equal(k.memory + 100, k.buf, 5);
	assert_memory_equal(k.memory + 5000, k.buf + 5, 1500000);
	assert_memory_equal(k.memory + 2000000, k.buf + 1500005, 100000);
}

static void one_round_of_progress_moves_a_bounded_part(void **state)
{
	struct mock_op op;
	int rounds = 0;

	assert_int_equal(mock_access_all(&k, true, KEY, 0, 1), 0); /* it is known not to poll */
	mock_poll(&k.a, NULL);
	assert_int_equal(mock_access_begin(&k, true, KEY, 0, LEN, &op), 0);
	for (; !op.done; rounds++)
		k.a.wire->ops->poll(k.a.wire);
	assert_int_equal(op.status, 0);
	assert_in_range(rounds, 3, 4);
}

/* Without a yield: where other programs run, the peer would not poll meanwhile. */
static void a_peer_that_polls_is_better_asked(void **state)
{
	int watched = 0, known = 0;
	struct mock_op op;

	for (int i = 0; i < 100 && known != -FI_EBUSY; i++) {
		known = mock_access_begin(&k, true, KEY, 0, LEN, &op);
		if (known)
			continue;
		while (!op.done) {
			k.b.wire->ops->poll(k.b.wire);
			k.b.wire->ops->poll(k.b.wire);
			k.a.wire->ops->poll(k.a.wire);
		}
		watched = op.status;
	}
	assert_int_equal(watched, -FI_EBUSY);
	/* and once more at once, from what is known */
	assert_int_equal(known, -FI_EBUSY);
}

static void what_is_not_allowed_is_not_done(void **state)
{
	uint32_t index;

	assert_int_equal(mock_keys_expose(&k, KEY + 1, FI_REMOTE_READ, 1, false, &index), 0);
	assert_int_equal(mock_keys_expose(&k, KEY + 2, MOCK_RMA, 2, false, &index), 0);
	assert_int_equal(mock_keys_expose(&k, KEY + 3, MOCK_RMA, 1, true, &index), 0);
	memset(k.memory, 0, LEN);
	memset(k.buf, 1, LEN);
	assert_int_equal(mock_access_all(&k, true, KEY + 99, 0, 9000), -FI_EKEYREJECTED);
	assert_int_equal(mock_access_all(&k, true, KEY, 1, LEN), -FI_EACCES);
	assert_int_equal(mock_access_all(&k, true, KEY, UINT64_MAX, 9000), -FI_EACCES);
	assert_int_equal(mock_access_all(&k, true, KEY + 1, 0, 9000), -FI_EACCES);
	assert_int_equal(mock_access_all(&k, true, KEY + 2, 0, 9000), -FI_EOPNOTSUPP);
	assert_int_equal(mock_access_all(&k, true, KEY + 3, 0, 9000), -FI_EOPNOTSUPP);
	mr_set_notify(&k.table, k.region);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), -FI_EOPNOTSUPP);
	for (size_t i = 0; i < LEN; i++)
		assert_int_equal(k.memory[i], 0);
}

static void an_endpoint_that_counts_is_asked(void **state)
{
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), -FI_EOPNOTSUPP);
	assert_int_equal(mock_access_all(&k, false, KEY, 0, 9000), 0);
}

static void regions_are_shown_once_there_are_any(void **state)
{
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), -FI_EOPNOTSUPP);
	assert_int_equal(mock_keys_expose(&k, KEY, MOCK_RMA, 1, false, &k.region), 0);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), 0);
	/* more than the first slab has room for */
	for (uint32_t i = 0; i < 3000; i++) {
		assert_int_equal(
			mock_keys_expose(&k, KEY + 1 + i, MOCK_RMA, 1, false, &k.region), 0);
		assert_int_equal(mock_access_all(&k, true, KEY + 1 + i, 0, 1), 0);
	}
}

static void without_memory_for_the_table_packets_remain(void **state)
{
	sys_fault_set(SYS_CALL_MEMFD_CREATE, EMFILE, 0, 1);
	assert_int_equal(mock_keys_expose(&k, KEY, MOCK_RMA, 1, false, &k.region), 0);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), -FI_EOPNOTSUPP);
}

static void a_table_that_can_not_be_opened_is_looked_for_otherwise(void **state)
{
	struct mock_op op;

	sys_fault_set(SYS_CALL_OPEN_FD, EACCES, 0, 1);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), 0);
	pshm_direct_drop(pshm_conn_of(k.a.conn)); /* forgets the table */
	sys_fault_set(SYS_CALL_OPEN_FD, EACCES, 0, 1);
	sys_fault_set(SYS_CALL_PIDFD_GETFD, EPERM, 0, 1);
	assert_true(mock_access_begin(&k, true, KEY, 0, 9000, &op) < 0);
	assert_int_equal(sys_fault_armed, 0);
	assert_true(mock_access_begin(&k, true, KEY, 0, 9000, &op) <
		    0); /* it is not tried again */
}

static void for_want_of_descriptors_it_is_tried_again(void **state)
{
	struct mock_op op;

	sys_fault_set(SYS_CALL_OPEN_FD, EMFILE, 0, 1);
	assert_int_equal(mock_access_begin(&k, true, KEY, 0, 9000, &op), -FI_EMFILE);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), 0);
}

static void a_refusal_is_remembered_in_its_direction(void **state)
{
	struct mock_op op;

	sys_fault_set(SYS_CALL_PROCESS_VM_WRITEV, EPERM, 0, 1);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), -FI_EPERM);
	assert_int_equal(mock_access_begin(&k, true, KEY, 0, 9000, &op), -FI_EPERM);
	assert_int_equal(mock_access_all(&k, false, KEY, 0, 9000), 0);
	assert_false(pshm_wire_ops.share_used(k.share, k.region));
}

static void writes_pass_the_write_guard_that_is_shown(void **state)
{
	const struct pshm_conn *conn = pshm_conn_of(k.a.conn);
	struct pshm_shown *shown = &conn->pair->shown[pshm_other(conn)];
	uint64_t write_guard = shown->write_guard;
	struct mock_op op;

	assert_true(write_guard);
	shown->write_guard = 0; /* without a published write guard there are no writes */
	assert_int_equal(mock_access_begin(&k, true, KEY, 0, 9000, &op), -FI_EOPNOTSUPP);
	assert_int_equal(mock_access_all(&k, false, KEY, 0, 9000), 0);
	pshm_direct_drop(pshm_conn_of(k.a.conn));
	shown->write_guard = 4096; /* where another program has nothing */
	memset(k.buf, 1, 9000);
	memset(k.memory, 2, 9000);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), -FI_EFAULT);
	for (int i = 0; i < 9000; i++)
		assert_int_equal(k.memory[i], 2);
	pshm_direct_drop(pshm_conn_of(k.a.conn));
	shown->write_guard = write_guard;
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), 0);
}

static void memory_that_is_gone_is_no_refusal(void **state)
{
	struct iovec hole = { mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			      65536 };
	struct mr_spec spec = { .iov = &hole,
				.iov_cnt = 1,
				.access = MOCK_RMA,
				.key = KEY + 1,
				.object = &k.b,
				.live = true };
	uint32_t index;

	assert_true(hole.iov_base != MAP_FAILED);
	assert_int_equal(mr_insert(&k.table, &spec, &index), 0);
	assert_int_equal(mock_access_all(&k, true, KEY + 1, 0, 65536),
			 -FI_EFAULT); /* read-only */
	munmap(hole.iov_base, hole.iov_len);
	assert_int_equal(mock_access_all(&k, false, KEY + 1, 0, 65536), -FI_EFAULT);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 65536), 0);
}

static void a_key_that_goes_ends_what_is_under_way(void **state)
{
	struct mock_op op;

	memset(k.memory, 0, LEN);
	memset(k.buf, 1, LEN);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 1), 0);
	mock_poll(&k.a, NULL);
	assert_int_equal(mock_access_begin(&k, true, KEY, 0, LEN, &op), 0);
	mr_invalidate(&k.table, k.region);
	assert_false(pshm_wire_ops.share_used(k.share, k.region));
	mock_until(&k.a, NULL, op.done);
	assert_int_equal(op.status, -FI_EKEYREJECTED);
	assert_int_equal(k.memory[LEN - 1], 0);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), -FI_EKEYREJECTED);
	mr_validate(&k.table, k.region);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), 0);
}

static void who_is_inside_is_seen_by_the_owner(void **state)
{
	uint32_t other;

	assert_int_equal(mock_keys_expose(&k, KEY + 1, MOCK_RMA, 1, false, &other), 0);
	atomic_store(mock_keys_mark(&k), k.region);
	assert_true(pshm_wire_ops.share_used(k.share, k.region));
	assert_true(pshm_wire_ops.share_marked(k.share, k.region));
	assert_false(pshm_wire_ops.share_used(k.share, other));
	assert_false(pshm_wire_ops.share_marked(k.share, other));
	atomic_store(mock_keys_mark(&k), 0);
	assert_false(pshm_wire_ops.share_used(k.share, k.region));
	assert_false(pshm_wire_ops.share_marked(k.share, k.region));
}

/* Writes a byte to b as a peer does that was told of that write guard. Returns as the system call does. */
static ssize_t write_guarded(uint64_t write_guard, unsigned char byte)
{
	struct iovec local = { &byte, 1 }, remote = { k.memory, 1 };

	return sys_process_vm_write_guarded(getpid(), (void *)(uintptr_t)write_guard, &local, 1,
					    &remote, 1);
}

/* Between its look at the key and its call. Others go on to write, through another guard. */
static void a_peer_that_is_stopped_before_its_call_is_cut_off(void **state)
{
	const struct pshm_conn *conn = pshm_conn_of(k.a.conn);
	struct pshm_shown *shown = &conn->pair->shown[pshm_other(conn)];
	uint64_t write_guard;

	memset(k.buf, 1, 9000);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), 0);
	write_guard = shown->write_guard;
	assert_int_equal(write_guarded(write_guard, 2), 1);
	atomic_store(mock_keys_mark(&k), k.region);
	mr_invalidate(&k.table, k.region);
	assert_true(pshm_wire_ops.share_used(k.share, k.region));
	assert_true(pshm_wire_ops.share_cut(k.share, k.region, k.memory, LEN));
	assert_false(pshm_wire_ops.share_used(k.share, k.region));
	assert_int_equal(write_guarded(write_guard, 3), -FI_EFAULT);
	assert_int_equal(k.memory[0], 2);
	atomic_store(mock_keys_mark(&k), 0);
	mr_validate(&k.table, k.region);
	assert_true(shown->write_guard && shown->write_guard != write_guard);
	/* by packet once, since it knows the former one */
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), -FI_EFAULT);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), 0);
	assert_int_equal(k.memory[0], 1);
}

static void who_is_inside_when_its_connection_ends_is_still_seen(void **state)
{
	_Atomic uint32_t *mark = mock_keys_mark(&k);

	atomic_store(mark, k.region);
	k.b.wire->ops->disconnect(k.b.conn);
	assert_true(pshm_wire_ops.share_used(k.share, k.region));
	mock_close(&k.b);
	assert_true(pshm_wire_ops.share_used(k.share, k.region));
	atomic_store(mark, 0);
	assert_false(pshm_wire_ops.share_used(k.share, k.region));
}

/* Returns how often this process has memory of that name mapped. */
static int mapped(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int cnt = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		cnt += strstr(line, name) != NULL;
	fclose(maps);
	return cnt;
}

static void who_says_again_and_again_to_be_inside_gets_no_more_memory(void **state)
{
	for (int i = 0; i < 100; i++) {
		struct wire_conn *conn;

		atomic_store(mock_keys_mark(&k), k.region + 1);
		k.b.wire->ops->disconnect(k.b.conn);
		k.b.conn = NULL;
		mock_until(&k.a, &k.b, !k.a.conn);
		assert_int_equal(mock_connect(&k.a, &k.b.addr, &conn), 0);
		mock_until(&k.a, &k.b, k.a.conn && k.b.conn);
	}
	assert_in_range(mapped("weft-pair"), 2, 20);
	assert_true(pshm_wire_ops.share_used(k.share, k.region + 1));
	assert_false(pshm_wire_ops.share_used(k.share, k.region));
}

/* None of them unmaps what another one uses. */
static void connections_to_a_domain_map_its_table_once(void **state)
{
	struct mock others[3];
	struct wire_conn *conn;

	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), 0);
	for (int i = 0; i < 3; i++) {
		mock_open(&others[i]);
		assert_int_equal(mock_connect(&others[i], &k.b.addr, &conn), 0);
		mock_until(&others[i], &k.b, others[i].conn != NULL);
		assert_int_equal(pshm_reading_make(pshm_conn_of(others[i].conn)), 0);
	}
	/* as the owner has it, and as those have it that read it */
	assert_int_equal(mapped("weft-table"), 2);
	for (int i = 0; i < 3; i++)
		mock_close(&others[i]);
	assert_int_equal(mock_access_all(&k, false, KEY, 0, 9000), 0);
	pshm_direct_drop(pshm_conn_of(k.a.conn));
	assert_int_equal(mapped("weft-table"), 1);
}

static void nobody_goes_in_once_the_connection_has_ended(void **state)
{
	struct mock_op op;

	memset(k.memory, 0, LEN);
	memset(k.buf, 1, LEN);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 1), 0);
	k.b.wire->ops->disconnect(k.b.conn);
	assert_int_equal(
		mock_access_end(&k, mock_access_begin(&k, true, KEY, 0, 9000, &op), &op),
		-FI_EKEYREJECTED);
	assert_int_equal(k.memory[1], 0);
}

static void packets_are_taken_when_the_peer_has_polled(void **state)
{
	assert_true(pshm_wire_ops.taken(k.a.conn));
	assert_true(mock_put(k.a.conn, 0, 8));
	assert_false(pshm_wire_ops.taken(k.a.conn));
	mock_until(&k.b, NULL, k.b.next_tag == 1);
	mock_until(&k.b, NULL, pshm_wire_ops.taken(k.a.conn));
}

/*
 * The second one has not ended: there is no room, and then there is, but no call was made that uses
 * it.
 */
static void payload_whose_header_has_not_left_is_not_taken(void **state)
{
	struct mock_op ops[2];

	((struct pshm_wire *)k.a.wire)->area_max = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(mock_sendv(k.a.conn, MOCK_BIG, k.buf, 60000, 1, &ops[i]), 0);
	for (int i = 0; i < 100; i++)
		mock_poll(&k.b, NULL);
	assert_int_equal(k.b.packets, 1);
	assert_false(pshm_wire_ops.taken(k.a.conn));
	mock_until(&k.a, &k.b, ops[0].done && ops[1].done && k.b.packets == 2);
	mock_until(&k.b, NULL, pshm_wire_ops.taken(k.a.conn));
}

static void the_child_of_a_fork_shows_nothing(void **state)
{
	uint32_t index;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		struct mock_op op;

		mr_remove(&k.table, k.region);
		mock_keys_expose(&k, KEY + 1, MOCK_RMA, 1, false, &index);
		_exit(mock_access_begin(&k, true, KEY, 0, 9000, &op) != -FI_EOPBADSTATE ||
		      pshm_wire_ops.share_used(k.share, k.region));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), 0);
	assert_int_equal(mock_access_all(&k, true, KEY + 1, 0, 9000), -FI_EKEYREJECTED);
}

static void a_table_that_is_only_just_begun_is_looked_at_again(void **state)
{
	struct pshm_conn *conn = pshm_conn_of(k.b.conn);
	struct mr_header *header;

	header = (struct mr_header *)((char *)pshm_share_table(conn->wire->share)->addr +
				      PSHM_TABLE_HEAD);
	/* as when it has been shown, and nothing is in it yet */
	atomic_store(&header->magic, 0);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), -FI_EAGAIN);
	atomic_store(&header->magic, MR_MAGIC);
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), 0);
}

/* A word of the table becomes anything; what it names stays in memory that may be spoiled. */
static void spoil(struct mr_line *lines, uint64_t *seed)
{
	struct mr_line *line = &lines[seeded_random(seed) % LINES];
	_Atomic uint32_t *words = (_Atomic uint32_t *)line;
	uint64_t value = seeded_random(seed);

	if (value & 1)
		value %= LINES;
	atomic_store(&words[seeded_random(seed) % 16], (uint32_t)value);
	if (line == lines)
		return;
	atomic_store(&line->base, (uintptr_t)k.memory + seeded_random(seed) % 65536);
	if (seeded_random(seed) % 4)
		atomic_store(&line->len, seeded_random(seed) % (LEN - 65536));
	else
		atomic_store(&line->base, UINT64_MAX - seeded_random(seed) % 65536);
}

static void a_hostile_table_does_no_harm(void **state)
{
	struct pshm_conn *conn = pshm_conn_of(k.b.conn);
	uint64_t seed = (uint64_t)time(NULL);
	static unsigned char honest[LINES * sizeof(struct mr_line)];
	struct mr_line *lines;
	struct mock_op op;
	uint32_t index;
	int done = 0;

	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t i = 1; i < 250; i++)
		assert_int_equal(mock_keys_expose(&k, KEY + i, MOCK_RMA, 1, false, &index), 0);
	/* as the owner has it mapped: for writing */
	lines = (struct mr_line *)((char *)pshm_share_table(conn->wire->share)->addr +
				   PSHM_TABLE_HEAD);
	memcpy(honest, lines, sizeof(honest));
	/* A table that is no table when it is first looked at is not looked at again. */
	assert_int_equal(mock_access_all(&k, true, KEY, 0, 9000), 0);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t key = KEY + seeded_random(&seed) % LINES;
		size_t len = 1 + seeded_random(&seed) % 9000;
		int ret;

		if (i % 100 == 0)
			memcpy(lines, honest, sizeof(honest));
		spoil(lines, &seed);
		ret = mock_access_end(&k,
				      mock_access_begin(&k, i % 2, key,
							seeded_random(&seed) % 65536, len, &op),
				      &op);
		assert_true(ret <= 0);
		done += !ret;
	}
	print_message("%d of %d were done\n", done, ROUNDS);
	assert_true(done > 0);
}

#define TEST(name, start) cmocka_unit_test_setup_teardown(name, start, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(memory_of_a_peer_that_does_not_poll_is_written_and_read, setup),
		TEST(pieces_on_both_sides_are_one_sequence, setup),
		TEST(one_round_of_progress_moves_a_bounded_part, setup),
		TEST(a_peer_that_polls_is_better_asked, setup),
		TEST(what_is_not_allowed_is_not_done, setup),
		TEST(an_endpoint_that_counts_is_asked, setup_told),
		TEST(regions_are_shown_once_there_are_any, setup_bare),
		TEST(without_memory_for_the_table_packets_remain, setup_bare),
		TEST(a_table_that_can_not_be_opened_is_looked_for_otherwise, setup),
		TEST(for_want_of_descriptors_it_is_tried_again, setup),
		TEST(a_refusal_is_remembered_in_its_direction, setup),
		TEST(writes_pass_the_write_guard_that_is_shown, setup),
		TEST(memory_that_is_gone_is_no_refusal, setup),
		TEST(a_key_that_goes_ends_what_is_under_way, setup),
		TEST(who_is_inside_is_seen_by_the_owner, setup),
		TEST(a_peer_that_is_stopped_before_its_call_is_cut_off, setup),
		TEST(who_is_inside_when_its_connection_ends_is_still_seen, setup),
		TEST(who_says_again_and_again_to_be_inside_gets_no_more_memory, setup),
		TEST(connections_to_a_domain_map_its_table_once, setup),
		TEST(nobody_goes_in_once_the_connection_has_ended, setup),
		TEST(packets_are_taken_when_the_peer_has_polled, setup),
		TEST(payload_whose_header_has_not_left_is_not_taken, setup),
		TEST(the_child_of_a_fork_shows_nothing, setup),
		TEST(a_table_that_is_only_just_begun_is_looked_at_again, setup),
		TEST(a_hostile_table_does_no_harm, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
