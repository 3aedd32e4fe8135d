/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rails of a peer that break or close while messages are under way over others: each message
 * arrives once and each receive ends once, whether the peer lives on or not. The peer is the test
 * itself, over the fake wires; each step is random, from a seed.
 */
#include "conns.h"
#include "peer.h"
#include "victim.h"

#define SEEDS	200u
#define STEPS	200u
#define RECVS	16u
#define BATCH	4u
#define LEN_MAX 200u /* no credit is needed */

enum recv_state {
	RECV_FREE,
	RECV_POSTED,
	/* The header of its message has arrived, or is about to */
	RECV_MATCHED,
};

struct recv {
	/* First: the context of the receive */
	struct fi_context2 context;
	enum recv_state state;
	/* RECV_POSTED: place among the posted ones */
	uint32_t place;
	/* RECV_MATCHED: number of the message, and the rail that carries it */
	uint32_t number, rail;
	/* Bytes of its payload that arrive with the header; the rest are zero */
	uint32_t avail;
	/* All of its payload has arrived */
	bool whole;
	char bytes[LEN_MAX];
};

struct rail {
	/* NULL: closed */
	struct fake_raw *raw;
	/* Order of opening: the route is the oldest one */
	uint32_t age;
	/* A packet of either side may be lost with it */
	bool carried;
};

static struct recv recvs[RECVS];
static struct rail rails[HELLO_RAILS];
static uint32_t places, matched, ages, numbers;
/* Broken rails that the peer has survived, and that it has not, over all seeds */
static uint32_t survived, lost;

static uint32_t message_len(uint32_t number)
{
	return 1 + number * 37 % LEN_MAX;
}

static void message_fill(char *bytes, uint32_t number, uint32_t avail)
{
	memset(bytes, 0, LEN_MAX);
	for (uint32_t i = 0; i < avail; i++)
		bytes[i] = (char)(number * 7 + i);
}

static void post_all(void)
{
	for (uint32_t i = 0; i < RECVS; i++) {
		struct recv *r = &recvs[i];

		if (r->state != RECV_FREE)
			continue;
		assert_int_equal(fi_trecv(victim.ep, r->bytes, LEN_MAX, NULL, to_liar, 5, 0,
					  &r->context),
				 0);
		r->state = RECV_POSTED;
		r->place = places++;
	}
}

/* Returns the receive that the next message matches, or NULL. */
static struct recv *match_next(void)
{
	for (uint32_t i = 0; i < RECVS; i++)
		if (recvs[i].state == RECV_POSTED && recvs[i].place == matched) {
			matched++;
			recvs[i].state = RECV_MATCHED;
			recvs[i].number = numbers++;
			recvs[i].whole = false;
			return &recvs[i];
		}
	return NULL;
}

/* Returns a rail that is open, or NULL; or one that is closed. */
static struct rail *rail_random(bool open)
{
	uint32_t first = fake_random(HELLO_RAILS);

	for (uint32_t i = 0; i < HELLO_RAILS; i++) {
		struct rail *rail = &rails[(first + i) % HELLO_RAILS];

		if ((rail->raw != NULL) == open)
			return rail;
	}
	return NULL;
}

/* Marks and returns the route: the oldest rail. */
static struct rail *route(void)
{
	struct rail *oldest = NULL;

	for (uint32_t i = 0; i < HELLO_RAILS; i++)
		if (rails[i].raw && (!oldest || rails[i].age < oldest->age))
			oldest = &rails[i];
	if (oldest)
		oldest->carried = true;
	return oldest;
}

/* The next end of a receive, as fi_cq_read returns it; with -FI_EAVAIL the error is read too */
static ssize_t next_end(void)
{
	ssize_t ret = fi_cq_read(victim.rx_cq, &entry, 1);

	if (ret == -FI_EAVAIL) {
		error = (struct fi_cq_err_entry){ 0 };
		assert_int_equal(fi_cq_readerr(victim.rx_cq, &error, 0), 1);
	}
	return ret;
}

/* Checks that the receives which have ended are those that should. @err: of those that fail */
static void reap(int err)
{
	struct recv *r;
	char bytes[LEN_MAX];
	ssize_t ret;

	while ((ret = next_end()) != -FI_EAGAIN) {
		r = ret == 1 ? entry.op_context : error.op_context;
		if (ret == 1) {
			assert_true(r->state == RECV_MATCHED && r->whole);
			assert_int_equal(entry.len, message_len(r->number));
			message_fill(bytes, r->number, r->avail);
			assert_memory_equal(bytes, r->bytes, entry.len);
		} else {
			assert_true(r->state == RECV_POSTED ||
				    (r->state == RECV_MATCHED && !r->whole));
			assert_int_equal(error.err, err);
		}
		r->state = RECV_FREE;
	}
	for (uint32_t i = 0; i < RECVS; i++) {
		assert_true(!err || recvs[i].state == RECV_FREE);
		assert_true(recvs[i].state != RECV_MATCHED || !recvs[i].whole);
	}
}

static void open_rail(void)
{
	struct rail *rail = rail_random(false);
	struct hello hello = lie;

	if (!rail)
		return;
	hello.seq = numbers;
	hello.rail = (uint8_t)(rail - rails);
	assert_int_equal(fake_raw_open(fake_end_engine(&victim), &hello, &rail->raw, &reply), 0);
	rail->age = ages++;
	rail->carried = false;
	route();
}

/* A message arrives over its rail, perhaps without the end of its payload. */
static void arrive(struct recv *r)
{
	struct packet p = { .op = PACKET_EAGER,
			    .flags = PACKET_TAGGED,
			    .epoch = PACKET_EPOCH(lie.epoch),
			    .len = message_len(r->number),
			    .seq = r->number,
			    .tag = 5 };
	char bytes[LEN_MAX];

	r->avail = fake_random(3) ? p.len : fake_random(p.len);
	r->whole = r->avail == p.len;
	message_fill(bytes, r->number, r->avail);
	assert_int_equal(fake_raw_send(rails[r->rail].raw, &p, bytes, r->avail, NULL), 0);
	rails[r->rail].carried = true;
}

/* Messages that the peer sends over its rails: those of different rails overtake each other. */
static void send_batch(void)
{
	struct recv *batch[BATCH];
	uint32_t cnt = 1 + fake_random(BATCH), at;

	for (uint32_t i = 0; i < cnt; i++) {
		batch[i] = match_next();
		if (!batch[i])
			cnt = i;
		else
			batch[i]->rail = (uint32_t)(rail_random(true) - rails);
	}
	while (cnt) {
		at = fake_random(cnt);
		for (uint32_t i = 0; i < at; i++)
			if (batch[i]->rail == batch[at]->rail)
				at = i;
		arrive(batch[at]);
		memmove(&batch[at], &batch[at + 1], (--cnt - at) * sizeof(batch[0]));
	}
	reap(0);
}

/* The payload that is under way over a rail arrives. */
static void finish(const struct rail *rail)
{
	fake_raw_finish(rail->raw);
	for (uint32_t i = 0; i < RECVS; i++)
		if (recvs[i].state == RECV_MATCHED && &rails[recvs[i].rail] == rail)
			recvs[i].whole = true;
	reap(0);
}

static void finish_all(void)
{
	for (uint32_t i = 0; i < HELLO_RAILS; i++)
		if (rails[i].raw)
			finish(&rails[i]);
	for (uint32_t i = 0; i < RECVS; i++)
		assert_int_not_equal(recvs[i].state, RECV_MATCHED);
}

static bool under_way(const struct rail *rail)
{
	for (uint32_t i = 0; i < RECVS; i++)
		if (recvs[i].state == RECV_MATCHED && &rails[recvs[i].rail] == rail)
			return true;
	return false;
}

static void rail_closed(struct rail *rail, int err)
{
	fake_raw_close(rail->raw, err);
	rail->raw = NULL;
}

/* A rail breaks that may have carried something: the peer is lost with all of them, and returns. */
static void lose_peer(void)
{
	for (uint32_t i = 0; i < HELLO_RAILS; i++) {
		if (!rails[i].raw)
			continue;
		assert_false(fake_raw_alive(rails[i].raw));
		rail_closed(&rails[i], 0);
	}
	lost++;
	reap(FI_ETIMEDOUT);
	matched = places;
	lie.incarnation++;
	open_rail();
}

/* A rail breaks, or closes in order if nothing is under way over it. */
static void close_rail(void)
{
	struct rail *rail = rail_random(true);
	struct fake_raw *raw = rail->raw;
	bool in_order = !under_way(rail) && fake_random(2), others;

	rail->raw = NULL;
	others = rail_random(true);
	rail->raw = raw;
	if (in_order && !others)
		return;
	rail_closed(rail, in_order ? 0 : -FI_ETIMEDOUT);
	if (!others || (!in_order && rail->carried)) {
		lose_peer();
		return;
	}
	survived += !in_order;
	route();
	reap(0);
}

/* The victim sends a message: it leaves once, over the route. */
static void victim_sends(void)
{
	const struct rail *over = route();
	uint32_t word = fake_random(UINT32_MAX), got, cnt = 0;
	struct packet p;

	assert_int_equal(fi_tinject(victim.ep, &word, sizeof(word), to_liar, 1), 0);
	go(1);
	for (uint32_t i = 0; i < HELLO_RAILS; i++)
		while (rails[i].raw && fake_raw_read(rails[i].raw, &p, &got, sizeof(got))) {
			if (p.op != PACKET_EAGER)
				continue;
			assert_ptr_equal(&rails[i], over);
			assert_int_equal(got, word);
			cnt++;
		}
	assert_int_equal(cnt, 1);
}

static void step(void)
{
	post_all();
	switch (fake_random(8)) {
	case 0:
		close_rail();
		break;
	case 1:
	case 2:
		open_rail();
		break;
	case 3:
		victim_sends();
		break;
	case 4:
		finish(rail_random(true));
		break;
	default:
		send_batch();
	}
}

static void messages_arrive_once_whichever_rail_breaks(void **state)
{
	struct fake_knobs knobs;

	fake_knobs_default(&knobs);
	knobs.move = 0; /* payload arrives when the test says so */
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		memset(recvs, 0, sizeof(recvs));
		memset(rails, 0, sizeof(rails));
		places = matched = ages = 0;
		victim_open();
		fake_knobs_set(FAKE_B, &knobs);
		fake_seed(seed);
		rails[0].raw = liar;
		numbers = lie.seq;
		route();
		for (uint32_t i = 0; i < STEPS; i++)
			step();
		finish_all();
		for (uint32_t i = 0; i < HELLO_RAILS; i++)
			if (rails[i].raw)
				rail_closed(&rails[i], -FI_ECONNRESET);
		fake_end_close(&victim);
	}
	print_message("%u rails broke without a loss, %u with the peer\n", survived, lost);
	assert_true(survived > SEEDS && lost > SEEDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_arrive_once_whichever_rail_breaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
