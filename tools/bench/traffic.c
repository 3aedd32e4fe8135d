/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ping-pong and stream; traffic.h has the contract. Called by 'weft bench' and
 * 'weft pingpong' on both sides.
 */
#define _GNU_SOURCE
#include "traffic.h"
#include "memory.h"
#include "clock.h"

#include <err.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ACK_LEN		 4
#define LARGE_BUFS_MIN	 8
#define SMALL_BUFS	 8
#define STREAM_BYTES_MAX (8u << 20) /* of one window */
#define WINDOW_MIN	 4

static size_t cache_size(void)
{
	long size = sysconf(_SC_LEVEL2_CACHE_SIZE);

	return size > 0 ? (size_t)size : 2u << 20;
}

/* What both queues hold with room to spare, and not more bytes than is useful. */
static uint32_t window_of(const struct channel *ch, size_t size)
{
	size_t window = TRAFFIC_WINDOW_MAX, room;

	if (size > STREAM_BYTES_MAX / window)
		window = STREAM_BYTES_MAX / size;
	if (window < WINDOW_MIN)
		window = WINDOW_MIN;
	room = ch->limits.rx_size / 2;
	if (ch->limits.tx_size / 2 < room)
		room = ch->limits.tx_size / 2;
	if (room && window > room)
		window = room;
	return (uint32_t)window;
}

/* Two windows in flight need a buffer each; large ones must outgrow the cache. */
struct traffic_shape traffic_shape(const struct channel *ch, size_t size)
{
	struct traffic_shape shape = { .window = window_of(ch, size), .bufs = SMALL_BUFS };

	if (size >= TRAFFIC_LARGE) {
		shape.bufs = (uint32_t)(2 * cache_size() / size + 1);
		if (shape.bufs < LARGE_BUFS_MIN)
			shape.bufs = LARGE_BUFS_MIN;
	}
	if (shape.bufs < 2 * shape.window)
		shape.bufs = 2 * shape.window;
	return shape;
}

static struct channel_buf *create_bufs(struct traffic *tr)
{
	size_t len = tr->size > ACK_LEN ? tr->size : ACK_LEN;
	struct channel_buf *bufs;
	uint32_t i;
	void *mem;

	bufs = calloc(tr->cnt, sizeof(*bufs));
	if (!bufs)
		return NULL;
	for (i = 0; i < tr->cnt; i++) {
		mem = memory_alloc(tr->ch, len, 0);
		if (!mem || channel_buf_init(tr->ch, &bufs[i], mem, len, i)) {
			memory_free(tr->ch, mem);
			bufs[i].addr = NULL;
			break;
		}
		memset(mem, 0x5a, len);
	}
	if (i == tr->cnt)
		return bufs;
	while (i--) {
		channel_buf_fini(&bufs[i]);
		memory_free(tr->ch, bufs[i].addr);
	}
	free(bufs);
	return NULL;
}

static void destroy_bufs(struct traffic *tr, struct channel_buf *bufs)
{
	uint32_t i;

	for (i = 0; bufs && i < tr->cnt; i++) {
		channel_buf_fini(&bufs[i]);
		memory_free(tr->ch, bufs[i].addr);
	}
	free(bufs);
}

int traffic_init(struct traffic *tr, struct channel *ch, size_t size, bool verify)
{
	struct traffic_shape shape = traffic_shape(ch, size);

	memset(tr, 0, sizeof(*tr));
	tr->ch = ch;
	tr->size = size;
	tr->verify = verify;
	tr->window = shape.window;
	tr->cnt = tr->turns = shape.bufs;
	tr->out = create_bufs(tr);
	tr->in = create_bufs(tr);
	if (tr->out && tr->in)
		return 0;
	warnx("no memory for %u buffers of %zu bytes", 2 * tr->cnt, size);
	traffic_fini(tr);
	return -FI_ENOMEM;
}

void traffic_fini(struct traffic *tr)
{
	destroy_bufs(tr, tr->out);
	destroy_bufs(tr, tr->in);
	memset(tr, 0, sizeof(*tr));
}

static inline unsigned char pattern_at(size_t i, uint64_t seed)
{
	return (unsigned char)(seed + i * 7 + (i >> 8) * 13);
}

static uint64_t seed_of(size_t len, uint64_t number)
{
	return (number * 0x9e3779b97f4a7c15ull ^ len * 0xff51afd7ed558ccdull) >> 29;
}

void traffic_fill(void *buf, size_t len, uint64_t number)
{
	uint64_t seed = seed_of(len, number);
	unsigned char *at = buf;
	size_t i;

	for (i = 0; i < len; i++)
		at[i] = pattern_at(i, seed);
}

size_t traffic_check(const void *buf, size_t len, uint64_t number)
{
	uint64_t seed = seed_of(len, number);
	const unsigned char *at = buf;
	size_t i;

	for (i = 0; i < len; i++)
		if (at[i] != pattern_at(i, seed))
			break;
	return i;
}

static int send_next(struct traffic *tr)
{
	struct channel_buf *buf = &tr->out[tr->sent % tr->turns];
	int rc;

	/* The buffer's previous message must have left it. */
	rc = channel_wait_op(tr->ch, &buf->op);
	if (rc)
		return rc;
	if (tr->verify)
		traffic_fill(buf->addr, tr->size, tr->sent);
	tr->sent++;
	return channel_send(tr->ch, buf, tr->size);
}

/* Messages match receives in the order of both, so the number of each is known beforehand. */
static int post_next(struct traffic *tr, uint32_t slot)
{
	tr->in[slot].number = tr->posted++;
	return channel_recv(tr->ch, &tr->in[slot], tr->size);
}

/* Check the received message whose completion was the channel's @nth. */
static int check_nth(struct traffic *tr, uint64_t nth)
{
	const struct channel_message *msg = &tr->ch->rx_log[nth % CHANNEL_RX_LOG];
	const struct channel_buf *buf = &tr->in[msg->slot];
	size_t bad;

	if (msg->len != tr->size) {
		warnx("message %llu has %zu bytes, not %zu", (unsigned long long)buf->number,
		      msg->len, tr->size);
		return -FI_EIO;
	}
	if (!tr->verify)
		return 0;
	bad = traffic_check(buf->addr, tr->size, buf->number);
	if (bad == tr->size)
		return 0;
	warnx("message %llu of %zu bytes is wrong at byte %zu", (unsigned long long)buf->number,
	      tr->size, bad);
	return -FI_EIO;
}

/* One turn of ping-pong: wait for message @i of this run, with the next receive posted. */
static int take_turn(struct traffic *tr, uint64_t rx_base, uint32_t i, uint32_t cnt)
{
	int rc;

	rc = channel_wait(tr->ch, 0, rx_base + i + 1);
	if (!rc)
		rc = check_nth(tr, rx_base + i);
	if (!rc && i + 1 < cnt)
		rc = post_next(tr, (i + 1) % tr->turns);
	return rc;
}

/* As a program does that has something else to do. */
static void compute(uint64_t away)
{
	uint64_t end = away ? clock_ns() + away : 0;

	while (end && clock_ns() < end)
		;
}

int traffic_pingpong(struct traffic *tr, uint32_t cnt, uint64_t away, uint64_t *taken)
{
	uint64_t rx_base = tr->ch->rx_done, tx_base = tr->ch->tx_done, start;
	bool serves = tr->ch->side->rank == 0;
	uint32_t i;
	int rc;

	tr->turns = tr->warm ? 1 : tr->cnt;
	rc = post_next(tr, 0);
	if (!rc)
		rc = oob_barrier(&tr->ch->side->oob, 0);
	start = clock_ns();
	for (i = 0; i < cnt && !rc; i++) {
		if (!serves)
			rc = take_turn(tr, rx_base, i, cnt);
		if (!rc)
			rc = send_next(tr);
		if (!rc)
			compute(away);
		if (!rc && serves)
			rc = take_turn(tr, rx_base, i, cnt);
	}
	*taken = clock_ns() - start;
	return rc ? rc : channel_wait(tr->ch, tx_base + cnt, rx_base + cnt);
}

static int post_ack(struct traffic *tr, uint32_t w)
{
	struct channel_buf *buf = &tr->in[w % 2];
	int rc = channel_wait_op(tr->ch, &buf->op);

	return rc ? rc : channel_recv(tr->ch, buf, ACK_LEN);
}

static int send_ack(struct traffic *tr, uint32_t w)
{
	struct channel_buf *buf = &tr->out[w % 2];
	int rc = channel_wait_op(tr->ch, &buf->op);

	return rc ? rc : channel_send(tr->ch, buf, ACK_LEN);
}

/* Side 0: send windows, at most two beyond the last acknowledged one. */
static int stream_out(struct traffic *tr, uint32_t windows, uint64_t *taken)
{
	uint64_t rx_base = tr->ch->rx_done, tx_base = tr->ch->tx_done, sent = 0, start;
	uint32_t w, i;
	int rc = 0;

	for (i = 0; i < 2 && i < windows && !rc; i++)
		rc = post_ack(tr, i);
	if (!rc)
		rc = oob_barrier(&tr->ch->side->oob, 0);
	start = clock_ns();
	for (w = 0; w < windows && !rc; w++) {
		if (w >= 2) {
			rc = channel_wait(tr->ch, 0, rx_base + w - 1);
			if (!rc)
				rc = post_ack(tr, w);
		}
		for (i = 0; i < tr->window && !rc; i++, sent++)
			rc = send_next(tr);
	}
	if (!rc)
		rc = channel_wait(tr->ch, tx_base + sent, rx_base + windows);
	*taken = clock_ns() - start;
	return rc;
}

/* Side 1: keep two windows of receives posted, acknowledge each full one. */
static int stream_in(struct traffic *tr, uint32_t windows)
{
	uint64_t rx_base = tr->ch->rx_done, tx_base = tr->ch->tx_done;
	uint64_t total = (uint64_t)windows * tr->window, posted, n;
	uint32_t acks = 0;
	int rc = 0;

	for (posted = 0; posted < 2 * tr->window && posted < total && !rc; posted++)
		rc = post_next(tr, (uint32_t)(posted % tr->cnt));
	if (!rc)
		rc = oob_barrier(&tr->ch->side->oob, 0);
	for (n = 0; n < total && !rc; n++) {
		rc = channel_wait(tr->ch, 0, rx_base + n + 1);
		if (!rc)
			rc = check_nth(tr, rx_base + n);
		if (!rc && posted++ < total)
			rc = post_next(tr, tr->ch->rx_log[(rx_base + n) % CHANNEL_RX_LOG].slot);
		if (!rc && (n + 1) % tr->window == 0)
			rc = send_ack(tr, acks++);
	}
	return rc ? rc : channel_wait(tr->ch, tx_base + acks, 0);
}

int traffic_stream(struct traffic *tr, uint32_t windows, uint64_t *taken)
{
	tr->turns = tr->cnt;
	if (tr->ch->side->rank == 0)
		return stream_out(tr, windows, taken);
	*taken = 0;
	return stream_in(tr, windows);
}
