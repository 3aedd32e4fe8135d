/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ping-pong of datagrams over a channel that loses some, delivers some twice and some late. The channel is a double:
 * a socket of datagrams between two threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "datagrams.h"
#include "memory.h"
#include "seeded.h"
#include "traffic.h"

#define ROOM 2000
#define CNT  40

/* One side: its channel, the socket under it, and what befalls what it sends. */
struct lossy {
	struct channel ch;
	struct side side;
	int fd;
	uint64_t seed;
	/* of 100 messages: those that are lost, that come twice, that wait until the next one */
	unsigned lost, twice, late;
	/* the first byte of each is another one when it arrives */
	bool bends;
	struct channel_buf *posted[DATAGRAMS_IN];
	uint8_t held[ROOM];
	size_t held_len;
	bool holds;
	/* What came of it */
	size_t size;
	uint32_t again;
	int ret;
};

static struct lossy *lossy_of(struct channel *ch)
{
	return (struct lossy *)ch;
}

/* ---- the double ---- */

void *memory_alloc(const struct channel *ch, size_t len, uint64_t access)
{
	return malloc(len);
}

void memory_free(const struct channel *ch, void *mem)
{
	free(mem);
}

int channel_buf_init(struct channel *ch, struct channel_buf *buf, void *addr, size_t len,
		     uint32_t slot)
{
	*buf = (struct channel_buf){ .addr = addr, .op.slot = slot };
	return 0;
}

void channel_buf_fini(struct channel_buf *buf)
{
}

int channel_cancel(struct channel *ch, struct channel_buf *buf)
{
	buf->op.busy = false;
	return 0;
}

int channel_wait_op(struct channel *ch, const struct channel_op *op)
{
	return 0;
}

int channel_wait(struct channel *ch, uint64_t tx, uint64_t rx)
{
	return 0;
}

static void put(struct lossy *l, const void *bytes, size_t len)
{
	send(l->fd, bytes, len, MSG_DONTWAIT);
}

int channel_send(struct channel *ch, struct channel_buf *buf, size_t len)
{
	struct lossy *l = lossy_of(ch);
	uint64_t fate = seeded_below(&l->seed, 100);
	uint8_t *bytes = buf->addr;

	if (fate < l->lost)
		return 0;
	if (fate < l->lost + l->late && !l->holds) {
		memcpy(l->held, bytes, len);
		l->held_len = len;
		l->holds = true;
		return 0;
	}
	if (l->bends)
		bytes[len - 1] ^= 1;
	put(l, bytes, len);
	if (fate < l->lost + l->late + l->twice)
		put(l, bytes, len);
	if (l->holds)
		put(l, l->held, l->held_len);
	l->holds = false;
	return 0;
}

int channel_recv(struct channel *ch, struct channel_buf *buf, size_t len)
{
	lossy_of(ch)->posted[buf->op.slot] = buf;
	assert_int_equal(len, ROOM);
	return 0;
}

int channel_turn(struct channel *ch, struct channel_deadline *deadline)
{
	struct lossy *l = lossy_of(ch);
	uint32_t slot = 0;
	ssize_t n;

	while (slot < DATAGRAMS_IN && !l->posted[slot])
		slot++;
	n = slot < DATAGRAMS_IN ? recv(l->fd, l->posted[slot]->addr, ROOM, MSG_DONTWAIT) : -1;
	if (n < 0) {
		sched_yield();
		return 0;
	}
	l->posted[slot] = NULL;
	ch->rx_log[ch->rx_done++ % CHANNEL_RX_LOG] = (struct channel_message){ .len = (size_t)n,
									       .slot = slot };
	return 1;
}

/* ---- both sides ---- */

static const size_t sizes[] = { 1, 2, 700, ROOM, 64 };

/* All sizes, until one fails. What is late of one arrives in the next. */
static void *bounce_all(void *arg)
{
	struct lossy *l = arg;
	struct datagrams d;
	uint32_t again;
	uint64_t ns;

	l->ret = datagrams_open(&d, &l->ch, ROOM, true);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && !l->ret; i++) {
		l->ret = datagrams_bounce(&d, l->size ? l->size : sizes[i], CNT, &ns, &again);
		l->again += again;
	}
	datagrams_close(&d);
	return NULL;
}

static void *bounce_empty(void *arg)
{
	struct lossy *l = arg;
	struct datagrams d;
	uint64_t ns;

	l->ret = datagrams_open(&d, &l->ch, ROOM, false);
	if (!l->ret)
		l->ret = datagrams_bounce(&d, 0, CNT, &ns, &l->again);
	datagrams_close(&d);
	return NULL;
}

/* Runs both sides; @fate: what befalls what either sends */
static void run(struct lossy both[2], const struct lossy *fate, void *(*side)(void *))
{
	uint64_t seed = (uint64_t)time(NULL);
	int fds[2], oob[2];
	pthread_t thread;

	printf("seed %llu\n", (unsigned long long)seed);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, oob), 0);
	for (int i = 0; i < 2; i++) {
		both[i] = *fate;
		both[i].fd = fds[i];
		both[i].seed = seed + (uint64_t)i;
		both[i].side = (struct side){ .rank = i };
		oob_adopt(&both[i].side.oob, oob[i]);
		both[i].ch.side = &both[i].side;
	}
	both[0].bends = false;
	assert_int_equal(pthread_create(&thread, NULL, side, &both[1]), 0);
	side(&both[0]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		oob_close(&both[i].side.oob);
	}
}

static struct lossy both[2];

static void all_are_answered_though_some_are_lost_late_or_there_twice(void **state)
{
	const struct lossy fate = { .lost = 10, .twice = 20, .late = 5 };

	run(both, &fate, bounce_all);
	assert_int_equal(both[0].ret, 0);
	assert_int_equal(both[1].ret, 0);
	assert_true(both[0].again > 0);
}

static void both_sides_end_when_bytes_are_wrong(void **state)
{
	const struct lossy fate = { .bends = true, .size = 700 };

	run(both, &fate, bounce_all);
	assert_int_equal(both[0].ret, -FI_EIO);
	assert_int_equal(both[1].ret, -FI_EIO);
}

static void empty_ones_are_counted_and_not_sent_again(void **state)
{
	const struct lossy none = { .ch.opt.timeout_s = 60 };
	const struct lossy some = { .ch.opt.timeout_s = 1, .lost = 30 };

	run(both, &none, bounce_empty);
	assert_int_equal(both[0].ret, 0);
	assert_int_equal(both[1].ret, 0);
	run(both, &some, bounce_empty);
	assert_int_equal(both[0].ret, -FI_EIO);
	assert_int_equal(both[1].ret, -FI_EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_answered_though_some_are_lost_late_or_there_twice),
		cmocka_unit_test(both_sides_end_when_bytes_are_wrong),
		cmocka_unit_test(empty_ones_are_counted_and_not_sent_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
