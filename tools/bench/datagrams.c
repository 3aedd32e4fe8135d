/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ping-pong of datagrams; datagrams.h has the contract. Called by 'weft pingpong' on both sides. */
#include "datagrams.h"
#include "clock.h"
#include "memory.h"
#include "traffic.h"

#include <err.h>
#include <rdma/fi_errno.h>
#include <string.h>

#define AGAIN_NS 100000000u /* without an answer, after which a message is sent again */
#define NS_PER_S 1000000000ull
#define LOOK_AT	 256u /* turns from one look at the clock to the next */

static int buf_open(struct datagrams *d, struct channel_buf *buf, uint32_t slot)
{
	void *mem = memory_alloc(d->ch, d->room, 0);
	int ret = -FI_ENOMEM;

	if (!mem)
		warnx("no memory for messages of %zu bytes", d->room);
	else
		ret = channel_buf_init(d->ch, buf, mem, d->room, slot);
	if (!ret) {
		memset(mem, 0x5a, d->room);
		return 0;
	}
	memory_free(d->ch, mem);
	buf->addr = NULL;
	return ret;
}

static void buf_close(struct datagrams *d, struct channel_buf *buf)
{
	channel_cancel(d->ch, buf);
	channel_buf_fini(buf);
	memory_free(d->ch, buf->addr);
	buf->addr = NULL;
}

int datagrams_open(struct datagrams *d, struct channel *ch, size_t room, bool verify)
{
	int ret;

	*d = (struct datagrams){ .ch = ch, .room = room ? room : 1, .verify = verify };
	ret = buf_open(d, &d->out, DATAGRAMS_IN);
	for (uint32_t i = 0; i < DATAGRAMS_IN && !ret; i++) {
		ret = buf_open(d, &d->in[i], i);
		if (!ret)
			ret = channel_recv(ch, &d->in[i], d->room);
	}
	if (ret)
		datagrams_close(d);
	return ret;
}

void datagrams_close(struct datagrams *d)
{
	for (uint32_t i = 0; i < DATAGRAMS_IN; i++)
		buf_close(d, &d->in[i]);
	channel_wait_op(d->ch, &d->out.op);
	buf_close(d, &d->out);
}

/* Sends message @number, which is in the buffer if it is sent @again. */
static int send_out(struct datagrams *d, size_t size, uint32_t number, bool again)
{
	uint8_t *bytes = d->out.addr;
	int ret = channel_wait_op(d->ch, &d->out.op);

	if (ret)
		return ret;
	if (size && !again) {
		bytes[0] = (uint8_t)number;
		if (d->verify)
			traffic_fill(bytes + 1, size - 1, number);
	}
	return channel_send(d->ch, &d->out, size);
}

static int check(const struct datagrams *d, const uint8_t *bytes, size_t size, uint32_t number)
{
	size_t good = d->verify && size ? traffic_check(bytes + 1, size - 1, number) + 1 : size;

	if (good == size)
		return 0;
	warnx("message %u of %zu bytes is wrong at byte %zu", number, size, good);
	return -FI_EIO;
}

enum heard {
	HEARD_NOTHING, /* also of what is late */
	HEARD_NEXT,
	HEARD_LAST, /* the one before that */
};

static enum heard which(size_t size, const uint8_t *bytes, uint32_t number)
{
	if (!size || bytes[0] == (uint8_t)number)
		return HEARD_NEXT;
	return bytes[0] == (uint8_t)(number - 1) ? HEARD_LAST : HEARD_NOTHING;
}

/*
 * Looks at a message that has come, if there is one, and posts its receive again. @number: that of the next one. Returns
 * what it was, or an error.
 */
static int hear(struct datagrams *d, size_t size, uint32_t number)
{
	const struct channel_message *msg;
	int heard = HEARD_NOTHING, err = 0;
	struct channel_buf *buf;

	if (d->seen == d->ch->rx_done)
		return HEARD_NOTHING;
	msg = &d->ch->rx_log[d->seen++ % CHANNEL_RX_LOG];
	buf = &d->in[msg->slot];
	if (msg->len == size)
		heard = which(size, buf->addr, number);
	if (heard == HEARD_NEXT)
		err = check(d, buf->addr, size, number);
	if (!err)
		err = channel_recv(d->ch, buf, d->room);
	return err ? err : heard;
}

/* Side 0, while there is no answer: sends message @number again when it is time. Returns 0 or an error. */
static int press(struct datagrams *d, size_t size, uint32_t number, uint64_t *sent_ns,
		 uint32_t *again)
{
	/* The other side has failed. */
	if (oob_heard(&d->ch->side->oob))
		return -FI_ECONNABORTED;
	if (clock_ns() - *sent_ns < (size ? AGAIN_NS : d->ch->opt.timeout_s * NS_PER_S))
		return 0;
	if (!size) {
		warnx("an empty message was lost, or its answer");
		return -FI_EIO;
	}
	(*again)++;
	*sent_ns = clock_ns();
	return send_out(d, size, number, true);
}

/* Side 0: sends message @number until its answer is there. */
static int ask(struct datagrams *d, size_t size, uint32_t number, uint32_t *again)
{
	struct channel_deadline deadline = { 0 };
	uint64_t sent_ns = clock_ns();
	int ret = send_out(d, size, number, false);

	for (uint32_t turns = 1; ret >= 0; turns++) {
		ret = hear(d, size, number);
		if (ret == HEARD_NEXT)
			return 0;
		if (ret >= 0)
			ret = channel_turn(d->ch, &deadline);
		if (ret >= 0 && turns % LOOK_AT == 0)
			ret = press(d, size, number, &sent_ns, again);
	}
	return ret;
}

/* Side 1: answers messages until side 0 has all answers, or has failed. */
static int answer(struct datagrams *d, size_t size, uint32_t cnt)
{
	struct channel_deadline deadline = { 0 };
	uint32_t number = 0;
	int ret = 0;

	for (uint32_t turns = 1; ret >= 0; turns++) {
		if ((number == cnt || turns % LOOK_AT == 0) && oob_heard(&d->ch->side->oob))
			return 0;
		ret = hear(d, size, number);
		if (ret > 0)
			deadline = (struct channel_deadline){ 0 };
		if (ret == HEARD_NEXT && number < cnt)
			ret = send_out(d, size, number++, false);
		else if (ret == HEARD_LAST && number)
			ret = send_out(d, size, number - 1, true);
		else if (ret == HEARD_NOTHING)
			ret = channel_turn(d->ch, &deadline);
	}
	return ret;
}

int datagrams_bounce(struct datagrams *d, size_t size, uint32_t cnt, uint64_t *taken,
		     uint32_t *again)
{
	uint64_t start = clock_ns();
	int ret = 0, theirs;

	*again = 0;
	if (d->ch->side->rank)
		ret = answer(d, size, cnt);
	for (uint32_t i = 0; !d->ch->side->rank && i < cnt && !ret; i++)
		ret = ask(d, size, i, again);
	*taken = clock_ns() - start;
	theirs = oob_barrier(&d->ch->side->oob, ret);
	return ret ? ret : theirs;
}
