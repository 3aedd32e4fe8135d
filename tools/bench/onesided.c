/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided patterns; onesided.h has the contract. Called by 'weft bench' on both sides.
 */
#define _GNU_SOURCE
#include "onesided.h"
#include "clock.h"
#include "traffic.h"

#include <endian.h>
#include <err.h>
#include <rdma/fi_errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ACK_LEN	  4
#define SLOT_ROOM 64 /* a slot has room for two words, and none shares a line */

static int init_message(struct channel *ch, struct channel_buf *buf)
{
	void *mem;

	if (posix_memalign(&mem, 64, ACK_LEN))
		return fabric_complain("a message", -FI_ENOMEM);
	memset(mem, 0, ACK_LEN);
	buf->addr = mem;
	return channel_buf_init(ch, buf, mem, ACK_LEN, 0);
}

static void fini_message(struct channel_buf *buf)
{
	channel_buf_fini(buf);
	free(buf->addr);
}

static int init_regions(struct onesided *os)
{
	int rc;

	os->ops = calloc(os->cnt, sizeof(*os->ops));
	if (!os->ops)
		return fabric_complain("operations", -FI_ENOMEM);
	rc = region_init(os->ch, &os->local, os->cnt * os->stride, FI_READ | FI_WRITE);
	if (!rc)
		rc = region_init(os->ch, &os->target, os->cnt * os->stride,
				 FI_REMOTE_READ | FI_REMOTE_WRITE);
	if (rc)
		return rc;
	rc = init_message(os->ch, &os->ack);
	if (!rc)
		rc = init_message(os->ch, &os->bye[0]);
	return rc ? rc : init_message(os->ch, &os->bye[1]);
}

int onesided_init(struct onesided *os, struct channel *ch, size_t size, bool verify)
{
	struct traffic_shape shape = traffic_shape(ch, size);
	int rc, swapped;

	memset(os, 0, sizeof(*os));
	os->ch = ch;
	os->size = size;
	os->verify = verify;
	os->window = shape.window;
	os->cnt = shape.bufs;
	os->stride = (size / 64 + 1) * 64 + SLOT_ROOM;
	rc = init_regions(os);
	swapped = region_exchange(ch, rc ? NULL : &os->target, &os->remote);
	if (!rc)
		rc = swapped;
	if (rc)
		onesided_fini(os);
	return rc;
}

void onesided_fini(struct onesided *os)
{
	if (os->ch)
		region_forget(os->ch, &os->remote);
	fini_message(&os->ack);
	fini_message(&os->bye[0]);
	fini_message(&os->bye[1]);
	region_fini(&os->target);
	region_fini(&os->local);
	free(os->ops);
	memset(os, 0, sizeof(*os));
}

static size_t slot_at(const struct onesided *os, uint64_t number)
{
	return number % os->cnt * os->stride;
}

/* Where in a slot the number of a write is, and how many of its bytes fit. */
static size_t mark_len(const struct onesided *os)
{
	return os->size < sizeof(uint64_t) ? os->size : sizeof(uint64_t);
}

static size_t mark_at(const struct onesided *os)
{
	return os->size - mark_len(os);
}

/* Numbers begin with 1: memory begins with zeros. */
static void put_mark(const struct onesided *os, char *slot, uint64_t number)
{
	uint64_t mark = htole64(number + 1);

	memcpy(slot + mark_at(os), &mark, mark_len(os));
}

static int wait_mark(const struct onesided *os, uint64_t number, bool endless)
{
	const char *at = os->target.mem + slot_at(os, number) + mark_at(os);
	struct channel_deadline deadline = { .endless = endless };
	uint64_t mark = htole64(number + 1);
	int rc;

	/* The peer, or this side's provider, changes the bytes behind the compiler's back. */
	while (atomic_signal_fence(memory_order_seq_cst), memcmp(at, &mark, mark_len(os))) {
		rc = channel_turn(os->ch, &deadline);
		if (rc < 0)
			return rc;
	}
	(void)atomic_load_explicit((const _Atomic char *)at, memory_order_acquire);
	return 0;
}

static int transfer(struct onesided *os, enum region_transfer_kind kind, uint64_t number)
{
	const struct region_access access = {
		.local = &os->local,
		.at = slot_at(os, number),
		.remote = &os->remote,
		.remote_at = slot_at(os, number),
		.len = os->size,
	};

	return region_transfer(os->ch, kind, &access, &os->ops[number % os->cnt]);
}

int onesided_free_slot(struct onesided *os, uint64_t number)
{
	return channel_wait_op(os->ch, &os->ops[number % os->cnt]);
}

static int write_next(struct onesided *os, bool fill)
{
	char *slot = os->local.mem + slot_at(os, os->written);
	int rc = onesided_free_slot(os, os->written);

	if (rc)
		return rc;
	if (fill)
		traffic_fill(slot, mark_at(os), os->written);
	put_mark(os, slot, os->written);
	return transfer(os, REGION_WRITE, os->written++);
}

/* The number has arrived; the bytes before it may arrive a little later. */
static int check_write(struct onesided *os, uint64_t number)
{
	const char *slot = os->target.mem + slot_at(os, number);
	struct channel_deadline deadline = { 0 };
	size_t bad;
	int rc;

	while ((bad = traffic_check(slot, mark_at(os), number)) != mark_at(os)) {
		rc = channel_turn(os->ch, &deadline);
		if (rc < 0) {
			warnx("write %llu of %zu bytes is wrong at byte %zu",
			      (unsigned long long)number, os->size, bad);
			return -FI_EIO;
		}
	}
	return 0;
}

static int await_write(struct onesided *os)
{
	uint64_t number = os->seen++;
	int rc = wait_mark(os, number, false);

	return rc || !os->verify ? rc : check_write(os, number);
}

/*
 * After writes, when this side has all that it waits for: a target sees bytes before the initiator's
 * provider is through with it, so that each side makes progress until the other one is done too.
 */
static int part(struct onesided *os)
{
	int rc;

	rc = channel_recv(os->ch, &os->bye[1], ACK_LEN);
	if (!rc)
		rc = channel_send(os->ch, &os->bye[0], ACK_LEN);
	if (!rc)
		rc = channel_wait_op(os->ch, &os->bye[0].op);
	return rc ? rc : channel_wait_op(os->ch, &os->bye[1].op);
}

int onesided_write_pingpong(struct onesided *os, uint32_t cnt, uint64_t *taken)
{
	bool serves = os->ch->side->rank == 0;
	uint64_t tx_base = os->ch->tx_done, start;
	uint32_t i;
	int rc;

	rc = oob_barrier(&os->ch->side->oob, 0);
	start = clock_ns();
	for (i = 0; i < cnt && !rc; i++) {
		if (!serves)
			rc = await_write(os);
		if (!rc)
			rc = write_next(os, os->verify);
		if (!rc && serves)
			rc = await_write(os);
	}
	*taken = clock_ns() - start;
	if (!rc)
		rc = channel_wait(os->ch, tx_base + cnt, 0);
	return rc ? rc : part(os);
}

int onesided_serve(struct onesided *os)
{
	struct channel_deadline deadline = { .endless = true };
	uint64_t rx_base = os->ch->rx_done;
	int rc;

	rc = channel_recv(os->ch, &os->ack, ACK_LEN);
	if (!rc)
		rc = oob_barrier(&os->ch->side->oob, 0);
	while (rc >= 0 && os->ch->rx_done == rx_base)
		rc = channel_turn(os->ch, &deadline);
	return rc < 0 ? rc : 0;
}

int onesided_end_serving(struct onesided *os)
{
	uint64_t tx_base = os->ch->tx_done;
	int rc;

	rc = channel_send(os->ch, &os->ack, ACK_LEN);
	return rc ? rc : channel_wait(os->ch, tx_base + 1, 0);
}

/*
 * Returns the offset of two words behind the bytes of slot 0, which no other test uses: a sum, and
 * the number of rests.
 */
size_t onesided_word_at(const struct onesided *os)
{
	return os->stride - SLOT_ROOM;
}

static size_t rests_at(const struct onesided *os)
{
	return onesided_word_at(os) + sizeof(uint64_t);
}

/* Written by the library's thread while this one makes no calls, so the read needs no lock. */
__attribute__((no_sanitize("thread"), noinline)) static uint64_t look(const char *at)
{
	return *(const volatile uint64_t *)at;
}

/*
 * As onesided_serve(), but without any call of the library between the barrier and the last word. A call before that
 * and one after it order what both threads do to the memory.
 */
static int rest(struct onesided *os)
{
	struct channel_deadline deadline = { .endless = true };
	int rc = channel_turn(os->ch, &deadline);

	if (rc >= 0)
		rc = oob_barrier(&os->ch->side->oob, 0);
	os->rests++;
	while (!rc && look(os->target.mem + rests_at(os)) != os->rests)
		rc = channel_idle_turn(os->ch, &deadline);
	if (!rc)
		rc = channel_turn(os->ch, &deadline);
	return rc < 0 ? rc : 0;
}

static int end_rest(struct onesided *os)
{
	const struct region_access access = {
		.local = &os->local,
		.at = rests_at(os),
		.remote = &os->remote,
		.remote_at = rests_at(os),
		.len = sizeof(os->rests),
	};
	uint64_t tx_base = os->ch->tx_done;
	int rc;

	os->rests++;
	memcpy(os->local.mem + rests_at(os), &os->rests, sizeof(os->rests));
	rc = region_transfer(os->ch, REGION_WRITE, &access, &os->ops[0]);
	return rc ? rc : channel_wait(os->ch, tx_base + 1, 0);
}

/* What the peer reads: side 1's target, in a pattern; that of its zeroth number. */
static int prepare_reads(struct onesided *os, bool passive)
{
	uint32_t i;

	if (!os->ch->side->rank)
		return oob_barrier(&os->ch->side->oob, 0);
	for (i = 0; os->verify && i < os->cnt; i++)
		traffic_fill(os->target.mem + slot_at(os, i), os->size, i);
	return passive ? rest(os) : onesided_serve(os);
}

static int check_read(const struct onesided *os, uint64_t number)
{
	size_t bad;

	if (!os->verify)
		return 0;
	bad = traffic_check(os->local.mem + slot_at(os, number), os->size, number % os->cnt);
	if (bad == os->size)
		return 0;
	warnx("read %llu of %zu bytes is wrong at byte %zu", (unsigned long long)number,
	      os->size, bad);
	return -FI_EIO;
}

int onesided_read(struct onesided *os, bool passive, uint32_t cnt, uint64_t *taken)
{
	uint64_t tx_base = os->ch->tx_done, start;
	uint32_t i;
	int rc;

	*taken = 0;
	rc = prepare_reads(os, passive);
	if (rc || os->ch->side->rank)
		return rc;
	start = clock_ns();
	for (i = 0; i < cnt && !rc; i++) {
		rc = transfer(os, REGION_READ, i);
		if (!rc)
			rc = channel_wait(os->ch, tx_base + i + 1, 0);
		if (!rc)
			rc = check_read(os, i);
	}
	*taken = clock_ns() - start;
	if (rc)
		return rc;
	return passive ? end_rest(os) : onesided_end_serving(os);
}

/* Side 1 of a stream of writes: when the last that each slot got are there, so are all. */
static int see_stream(struct onesided *os, uint32_t cnt)
{
	uint64_t last = os->seen + cnt, number;
	int rc;

	rc = oob_barrier(&os->ch->side->oob, 0);
	for (number = cnt > os->cnt ? last - os->cnt : os->seen; number < last && !rc; number++)
		rc = wait_mark(os, number, true);
	os->seen = last;
	if (!rc)
		rc = onesided_end_serving(os);
	return rc ? rc : part(os);
}

static int keep_window(struct onesided *os, uint64_t tx_base, uint32_t posted)
{
	/* So many may be under way, and no more than there are slots. */
	uint32_t room = os->window * 2 < os->cnt ? os->window * 2 : os->cnt;

	return posted < room ? 0 : channel_wait(os->ch, tx_base + posted - room + 1, 0);
}

static int stream_writes(struct onesided *os, uint32_t cnt, uint64_t *taken)
{
	uint64_t tx_base = os->ch->tx_done, rx_base = os->ch->rx_done, start;
	uint32_t i;
	int rc;

	rc = channel_recv(os->ch, &os->ack, ACK_LEN);
	if (!rc)
		rc = oob_barrier(&os->ch->side->oob, 0);
	start = clock_ns();
	for (i = 0; i < cnt && !rc; i++) {
		rc = keep_window(os, tx_base, i);
		if (!rc)
			rc = write_next(os, false);
	}
	if (!rc)
		rc = channel_wait(os->ch, tx_base + cnt, rx_base + 1);
	*taken = clock_ns() - start;
	return rc ? rc : part(os);
}

static int stream_reads(struct onesided *os, uint32_t cnt, uint64_t *taken)
{
	uint64_t tx_base = os->ch->tx_done, start;
	uint32_t i;
	int rc;

	rc = prepare_reads(os, false);
	start = clock_ns();
	for (i = 0; i < cnt && !rc; i++) {
		rc = keep_window(os, tx_base, i);
		if (!rc)
			rc = onesided_free_slot(os, i);
		if (!rc)
			rc = transfer(os, REGION_READ, i);
	}
	if (!rc)
		rc = channel_wait(os->ch, tx_base + cnt, 0);
	*taken = clock_ns() - start;
	for (i = 0; i < cnt && i < os->cnt && !rc; i++)
		rc = check_read(os, i);
	return rc ? rc : onesided_end_serving(os);
}

int onesided_stream(struct onesided *os, bool reads, uint32_t cnt, uint64_t *taken)
{
	*taken = 0;
	if (os->ch->side->rank)
		return reads ? prepare_reads(os, false) : see_stream(os, cnt);
	return reads ? stream_reads(os, cnt, taken) : stream_writes(os, cnt, taken);
}
