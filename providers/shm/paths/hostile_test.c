/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the shm wire against a peer that writes anything into memory that both have: requests
 * that offer anything, and a connection whose indices, lengths and notes are overwritten. Nothing
 * crashes, hangs or reads beyond the region, and other peers are served as before.
 */
#define _GNU_SOURCE /* memfd_create */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "lines.h"
#include "mock_engine.h"
#include "seeded.h"
#include "mock_victim.h"

static struct mock a, b;

static int setup(void **state)
{
	mock_open(&a);
	mock_open(&b);
	return 0;
}

static int teardown(void **state)
{
	mock_close(&a);
	mock_close(&b);
	free(b.room);
	return 0;
}

/* The same pair in memory that is not sealed, cut to @len bytes. */
static struct pshm_region pair_unsealed(size_t len)
{
	struct pshm_region made = mock_pair_of(&mock_victim_sizes, &a), loose = { .len = len };

	loose.fd = memfd_create("loose", MFD_ALLOW_SEALING);
	assert_true(loose.fd >= 0);
	assert_int_equal(ftruncate(loose.fd, (off_t)len), 0);
	loose.addr = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, loose.fd, 0);
	assert_true(loose.addr != MAP_FAILED);
	memcpy(loose.addr, made.addr, len < made.len ? len : made.len);
	pshm_region_close(&made);
	return loose;
}

static void offer_that_is_right_is_accepted(void **state)
{
	struct pshm_region region = mock_pair_of(&mock_victim_sizes, &a);
	struct pshm_offer offer = mock_offer_of(&region);

	assert_int_equal(mock_offer_made(&b, &offer), 0);
	assert_int_equal(b.ups, 1);
	pshm_region_close(&region);
}

static void offer_of_nothing_is_unreachable(void **state)
{
	struct pshm_region region = mock_pair_of(&mock_victim_sizes, &a);
	struct pshm_offer offer = mock_offer_of(&region);
	int pipes[2];

	offer.nonce[0] ^= 1;
	assert_int_equal(mock_offer_made(&b, &offer), -FI_EHOSTUNREACH);
	offer = mock_offer_of(&region);
	offer.fd = 1u << 20;
	assert_int_equal(mock_offer_made(&b, &offer), -FI_EHOSTUNREACH);
	offer.fd = UINT32_MAX;
	assert_int_equal(mock_offer_made(&b, &offer), -FI_EHOSTUNREACH);
	offer.fd = b.addr.fd; /* its own inbox */
	assert_int_equal(mock_offer_made(&b, &offer), -FI_EHOSTUNREACH);
	assert_int_equal(pipe(pipes), 0);
	offer.fd = (uint32_t)pipes[0];
	assert_int_equal(mock_offer_made(&b, &offer), -FI_EHOSTUNREACH);
	close(pipes[0]);
	close(pipes[1]);
	offer.fd = (uint32_t)open("/dev/zero", O_RDWR);
	assert_int_equal(mock_offer_made(&b, &offer), -FI_EHOSTUNREACH);
	close((int)offer.fd);
	assert_int_equal(b.ups, 0);
	pshm_region_close(&region);
}

static void memory_that_can_shrink_is_refused(void **state)
{
	size_t whole = PSHM_PAIR_HEAD + 2 * ring_len(PSHM_LINE_CNT, PSHM_DATA_LEN);
	struct pshm_region region = pair_unsealed(whole);
	struct pshm_offer offer = mock_offer_of(&region);

	assert_int_equal(mock_offer_made(&b, &offer), -FI_EHOSTUNREACH);
	assert_int_equal(fcntl(region.fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	assert_int_equal(mock_offer_made(&b, &offer), -FI_EHOSTUNREACH);
	assert_int_equal(fcntl(region.fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(mock_offer_made(&b, &offer), 0);
	pshm_region_close(&region);
}

static void memory_of_another_size_than_it_says_is_refused(void **state)
{
	size_t whole = PSHM_PAIR_HEAD + 2 * ring_len(PSHM_LINE_CNT, PSHM_DATA_LEN);
	const size_t lens[] = { PSHM_PAIR_HEAD, whole - 4096, whole + 4096 };
	struct pshm_region region;
	struct pshm_offer offer;

	for (size_t i = 0; i < 3; i++) {
		region = pair_unsealed(lens[i]);
		offer = mock_offer_of(&region);
		assert_int_equal(fcntl(region.fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
		assert_int_equal(mock_offer_made(&b, &offer), -FI_EPROTO);
		pshm_region_close(&region);
	}
	assert_int_equal(b.ups, 0);
}

static void sizes_that_cannot_be_are_refused(void **state)
{
	const struct pshm_sizes smallest = { RING_LINES_MIN, RING_DATA_MIN, 0 };
	struct pshm_region region = mock_pair_of(&mock_victim_sizes, &a);
	struct pshm_offer offer = mock_offer_of(&region);
	struct pshm_pair *pair = region.addr;

	pair->line_cnt = 0;
	assert_int_equal(mock_offer_made(&b, &offer), -FI_EPROTO);
	pair->line_cnt = 100;
	assert_int_equal(mock_offer_made(&b, &offer), -FI_EPROTO);
	pair->line_cnt = 1u << 31;
	assert_int_equal(mock_offer_made(&b, &offer), -FI_EPROTO);
	pair->line_cnt = PSHM_LINE_CNT;
	pair->data_len = 2 * PSHM_DATA_LEN;
	assert_int_equal(mock_offer_made(&b, &offer), -FI_EPROTO);
	pair->data_len = PSHM_DATA_LEN;
	pair->len += 64;
	assert_int_equal(mock_offer_made(&b, &offer), -FI_EPROTO);
	pshm_region_close(&region);

	/* consistent, but too small for the packets that we send */
	assert_int_equal(pshm_pair_create(&smallest, &region), 0);
	offer = mock_offer_of(&region);
	assert_int_equal(mock_offer_made(&b, &offer), -FI_EPROTO);
	assert_int_equal(b.ups, 0);
	pshm_region_close(&region);
}

static void another_version_is_told(void **state)
{
	struct pshm_region region = mock_pair_of(&mock_victim_sizes, &a);
	struct pshm_offer offer = mock_offer_of(&region);
	struct pshm_pair *pair = region.addr;
	struct hello hello = a.hello;

	pair->version++;
	assert_int_equal(mock_offer_made(&b, &offer), -FI_ENOPROTOOPT);
	pair->version--;
	hello.version++;
	pshm_hello_put(pair, PSHM_REQUESTER, &hello);
	assert_int_equal(mock_offer_made(&b, &offer), 0);
	assert_int_equal(atomic_load(&pair->answer), PSHM_REFUSED | FI_ENOPROTOOPT << 8);
	assert_int_equal(b.ups, 0);
	pshm_region_close(&region);
}

static void hello_in_another_name_is_refused(void **state)
{
	struct pshm_region region = mock_pair_of(&mock_victim_sizes, &a);
	struct pshm_offer offer = mock_offer_of(&region);
	struct pshm_pair *pair = region.addr;
	struct hello hello = a.hello;

	hello.addr.pid++;
	pshm_hello_put(pair, PSHM_REQUESTER, &hello);
	assert_int_equal(mock_offer_made(&b, &offer), 0);
	assert_int_equal(atomic_load(&pair->answer), PSHM_REFUSED | FI_EPROTO << 8);
	memset(pair->hello[PSHM_REQUESTER], 0xff, PSHM_HELLO_LEN);
	atomic_store(&pair->answer, 0);
	assert_int_equal(mock_offer_made(&b, &offer), 0);
	assert_int_equal(atomic_load(&pair->answer) & 0xff, PSHM_REFUSED);
	assert_int_equal(b.ups, 0);
	pshm_region_close(&region);
}

static void more_data_than_there_may_be_is_refused(void **state)
{
	static const uint32_t lens[] = { HELLO_DATA_MAX + 1, UINT32_MAX };

	for (int i = 0; i < 2; i++) {
		struct pshm_region region = mock_pair_of(&mock_victim_sizes, &a);
		struct pshm_offer offer = mock_offer_of(&region);
		struct pshm_pair *pair = region.addr;

		pair->hello_data_len[PSHM_REQUESTER] = lens[i];
		assert_int_equal(mock_offer_made(&b, &offer), 0);
		assert_int_equal(atomic_load(&pair->answer), PSHM_REFUSED | FI_EINVAL << 8);
		pshm_region_close(&region);
	}
	assert_int_equal(b.ups, 0);
}

static void scribbled_mailbox_does_no_harm(void **state)
{
	struct wire_conn *conn;
	struct pshm_region inbox;
	uint64_t seed = 0x5eed1001;

	print_message("seed %#llx\n", (unsigned long long)seed);
	assert_int_equal(pshm_inbox_open(b.addr.pid, b.addr.fd, b.addr.nonce, &inbox), 0);
	for (int round = 0; round < 200; round++) {
		struct pshm_inbox *d = inbox.addr;
		unsigned char *bytes = (unsigned char *)d->slots;

		for (int i = 0; i < 512; i++)
			bytes[seeded_random(&seed) % sizeof(d->slots)] =
				(unsigned char)seeded_random(&seed);
		/* now and then a valid phase, of a living process */
		for (int i = 0; i < 8; i++)
			atomic_store(&d->slots[seeded_random(&seed) % PSHM_SLOTS].word,
				     (uint64_t)getpid() << 32 | seeded_random(&seed) % 8);
		atomic_fetch_add(&d->rung, PSHM_REQUEST_DOORBELL);
		mock_poll(&b, NULL);
	}
	assert_int_equal(b.ups, 0);
	memset(((struct pshm_inbox *)inbox.addr)->slots, 0,
	       sizeof(((struct pshm_inbox *)inbox.addr)->slots));
	pshm_region_close(&inbox);
	assert_int_equal(mock_connect(&a, &b.addr, &conn), 0);
	mock_until(&a, &b, a.conn && b.conn);
}

static void forged_line(struct pshm_region *region, uint32_t len, uint32_t note,
			uint32_t fragment)
{
	mock_forged_line(&b, region, len, note, &fragment, sizeof(fragment));
}

static void forged_lines_end_the_connection(void **state)
{
	static const struct {
		uint32_t len, kind, at, fragment;
	} lines[] = {
		{ 25, PSHM_PACKET, PSHM_DATA_LEN / 64, 0 },
		{ 100, PSHM_PACKET, PSHM_DATA_LEN / 64 - 1, 0 },
		{ UINT32_MAX, PSHM_PACKET, 0, 0 },
		{ PSHM_CLAIM_MAX + 1, PSHM_PACKET, 0, 0 },
		{ 100, PSHM_FIRST, 0, 101 },
		{ 100, PSHM_FIRST, 0, 0 },
		{ 1u << 31, PSHM_FIRST, 0, PSHM_DATA_LEN + 1 },
		{ 1u << 31, PSHM_FIRST, RING_AT_MASK, 64 },
		{ 100, PSHM_NEXT, 0, 50 },
		{ 8, PSHM_PLACE + 1, 0, 0 },
		{ 8, PSHM_GROW | PSHM_PROBE, 0, 0 },
		{ 8, RING_KIND_MAX, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct pshm_region region;

		mock_victim_made(&b, &a, &region);
		b.downs = 0;
		forged_line(&region, lines[i].len,
			    lines[i].kind << RING_KIND_SHIFT | lines[i].at, lines[i].fragment);
		assert_int_equal(b.downs, 1);
		assert_int_equal(b.down_err, -FI_EPROTO);
		pshm_region_close(&region);
	}
	assert_int_equal(b.packets, 0);
}

static void fragments_beyond_their_packet_end_the_connection(void **state)
{
	struct pshm_region region;

	b.room = calloc(1, 1000);
	b.room_len = 1000;
	b.room_iovs = 1;
	mock_victim_made(&b, &a, &region);
	forged_line(&region, 1000, PSHM_FIRST << RING_KIND_SHIFT, 600);
	assert_int_equal(b.packets, 1);
	forged_line(&region, 0, PSHM_NEXT << RING_KIND_SHIFT, 401);
	assert_int_equal(b.downs, 1);
	assert_int_equal(b.down_err, -FI_EPROTO);
	pshm_region_close(&region);

	/* a packet in fragments within another */
	mock_victim_made(&b, &a, &region);
	forged_line(&region, 1000, PSHM_FIRST << RING_KIND_SHIFT, 600);
	forged_line(&region, 1000, PSHM_FIRST << RING_KIND_SHIFT, 600);
	assert_int_equal(b.downs, 2);
	assert_int_equal(b.down_err, -FI_EPROTO);
	assert_int_equal(b.big_done, 0);
	pshm_region_close(&region);
}

static void credit_that_cannot_be_ends_the_connection(void **state)
{
	struct pshm_region region;
	struct ring_rx rx;
	uint64_t sent = 0;

	mock_victim_made(&b, &a, &region);
	ring_rx_init(&rx, pshm_pair_ring(&region, PSHM_ACCEPTOR, &mock_victim_sizes),
		     PSHM_LINE_CNT, PSHM_DATA_LEN);
	atomic_store(&rx.credit->taken, UINT32_MAX);
	while (mock_put(b.conn, sent, 8))
		sent++;
	assert_int_equal(sent, PSHM_LINE_CNT);
	mock_until(&b, NULL, b.downs);
	assert_int_equal(b.down_err, -FI_EPROTO);
	pshm_region_close(&region);
}

/* A peer may make a pair of any size: a large ring is not replaced by a smaller area. */
static void ring_that_is_larger_than_an_area_does_not_grow(void **state)
{
	const struct pshm_sizes large = { PSHM_LINE_CNT, 4 * PSHM_AREA_LEN, 0 };
	struct pshm_region region = mock_pair_of(&large, &a);
	struct pshm_offer offer = mock_offer_of(&region);
	struct pshm_pair *pair = region.addr;
	struct ring_rx rx;
	uint64_t sent = 0;

	assert_int_equal(mock_offer_made(&b, &offer), 0);
	assert_non_null(b.conn);
	ring_rx_init(&rx, pshm_pair_ring(&region, PSHM_ACCEPTOR, &large), PSHM_LINE_CNT,
		     4 * PSHM_AREA_LEN);
	for (int round = 0; round < 10; round++) {
		while (mock_put(b.conn, sent, PSHM_CLAIM_MAX))
			sent++;
		for (uint32_t note; ring_next(&rx, &note);) {
			assert_int_not_equal(ring_kind(note), PSHM_GROW);
			ring_release(&rx);
		}
		ring_report(&rx);
		atomic_store(&pair->grown[PSHM_ACCEPTOR].value, PSHM_GROWN);
		mock_poll(&b, NULL);
	}
	assert_int_equal(b.downs, 0);
	assert_int_equal(sent, 10 * PSHM_LINE_CNT);
	pshm_region_close(&region);
}

/* Random bytes in all of the pair while b polls and sends; its other connection is not disturbed. */
static void scribbled_pair_does_no_harm(void **state)
{
	uint64_t seed = 0x5eed1002, sent = 0;
	struct wire_conn *good, *at_b;
	int victims = 0;

	print_message("seed %#llx\n", (unsigned long long)seed);
	b.room = malloc(1 << 20);
	b.room_len = 1 << 20;
	b.room_iovs = 2;
	assert_int_equal(mock_connect(&a, &b.addr, &good), 0);
	mock_until(&a, &b, a.conn && b.conn);
	at_b = b.conn;
	while (victims < 300) {
		struct pshm_region region;
		struct pshm_pair *pair = mock_victim_made(&b, &a, &region);
		struct wire_conn *victim = b.conn;
		uint32_t spread = 1u << seeded_random(&seed) % 10;

		victims++;
		for (int round = 0; round < 40 && b.conn == victim; round++) {
			struct ring_rx *rx = &((struct pshm_conn *)victim)->rx;
			unsigned char *bytes = (unsigned char *)pair;

			for (uint32_t i = 0; i < spread; i++)
				bytes[seeded_random(&seed) % region.len] =
					(unsigned char)seeded_random(&seed);
			/* publish lines of garbage: the end of it is what they say */
			for (uint32_t i = 0; i < 4; i++) {
				struct ring_line *line = &rx->lines[(rx->tail + i) & rx->mask];
				uint64_t note = seeded_random(&seed) >>
						seeded_random(&seed) % 32;
				uint32_t len = seeded_random(&seed) >> seeded_random(&seed) % 31;

				memcpy(line->header + offsetof(struct packet, len), &len,
				       sizeof(len));
				len = seeded_random(&seed) >> seeded_random(&seed) % 31;
				memcpy(line->payload, &len, sizeof(len));
				line->header[offsetof(struct packet, tag) + 4] =
					1; /* not in a row */
				atomic_store(&line->word, note << 32 | (rx->tail + i + 1));
			}
			mock_put(victim, 0, 100);
			mock_poll(&b, NULL);
		}
		if (b.conn == victim) {
			pshm_wire_ops.disconnect(victim);
			b.conn = NULL;
		}
		pshm_region_close(&region);
		/* the good one */
		b.next_tag = sent;
		b.garbled = false;
		b.packets = 0;
		while (sent % 8 || !b.packets) {
			mock_put(good, sent++, 40);
			mock_until(&b, NULL, b.next_tag == sent);
		}
		assert_false(b.garbled);
	}
	assert_true(at_b->up);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(offer_that_is_right_is_accepted),
		TEST(offer_of_nothing_is_unreachable),
		TEST(memory_that_can_shrink_is_refused),
		TEST(memory_of_another_size_than_it_says_is_refused),
		TEST(sizes_that_cannot_be_are_refused),
		TEST(another_version_is_told),
		TEST(hello_in_another_name_is_refused),
		TEST(more_data_than_there_may_be_is_refused),
		TEST(scribbled_mailbox_does_no_harm),
		TEST(forged_lines_end_the_connection),
		TEST(fragments_beyond_their_packet_end_the_connection),
		TEST(credit_that_cannot_be_ends_the_connection),
		TEST(ring_that_is_larger_than_an_area_does_not_grow),
		TEST(scribbled_pair_does_no_harm),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
