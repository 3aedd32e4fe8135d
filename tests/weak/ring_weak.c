/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The ring (ring/ring.h, ring.c) in all executions that C11 allows: no byte is read before it is there, or written anew before it was read. */
#include "ring.h"
#include "weak.h"

#define LINES RING_LINES_MIN
#define DATA  RING_DATA_MIN

static _Alignas(64) unsigned char memory[sizeof(struct ring_credit) +
					 LINES * sizeof(struct ring_line) + DATA];
static struct ring_tx tx;
static struct ring_rx rx;

/* No thread waits in a loop. */
void weak_relax(void)
{
}

static bool send(unsigned char byte)
{
	struct ring_line *line = ring_claim(&tx);

	if (!line)
		return false;
	line->header[0] = byte;
	line->payload[0] = (unsigned char)~byte;
	ring_publish(&tx, line, 0);
	return true;
}

static bool send_data(unsigned char byte)
{
	void *data;
	struct ring_line *line = ring_claim_data(&tx, RING_WARM, RING_WARM_PLACE, &data);

	if (!line)
		return false;
	line->header[0] = byte;
	((unsigned char *)data)[RING_WARM - 1] = byte;
	ring_publish(&tx, line, 1);
	return true;
}

/* Returns the byte, or 0 where nothing is there yet. */
static unsigned char receive(void)
{
	uint32_t note;
	struct ring_line *line = ring_next(&rx, &note);
	const unsigned char *data;
	unsigned char byte;

	if (!line)
		return 0;
	byte = line->header[0];
	if (ring_kind(note)) {
		data = ring_data(&rx, note, RING_WARM);
		weak_require(data && data[RING_WARM - 1] == byte);
		ring_release_data(&rx, RING_WARM);
	} else {
		weak_require(line->payload[0] == (unsigned char)~byte);
		ring_release(&rx);
	}
	return byte;
}

static void set_up(void)
{
	struct ring_credit *credit = (struct ring_credit *)(void *)memory;
	struct ring_line *lines = (struct ring_line *)(credit + 1);

	memset(memory, 0, sizeof(memory));
	ring_tx_init(&tx, memory, LINES, DATA);
	ring_rx_init(&rx, memory, LINES, DATA);
	weak_name("ring_credit.taken", &credit->taken, sizeof(credit->taken));
	weak_name("ring_line.word", lines, LINES * sizeof(*lines));
}

/* Two lines pass. */
static void two_sent(void)
{
	weak_require(send(1) && send(2));
}

static void two_received(void)
{
	weak_assume(receive() == 1);
	weak_assume(receive() == 2);
}

static const struct weak_test lines_pass = {
	"lines pass", set_up, { two_sent, two_received }, NULL
};

/* The ring is full; what is taken is reported, and written anew. */
static void set_up_full(void)
{
	set_up();
	for (unsigned i = 0; i < LINES; i++)
		weak_require(send((unsigned char)(i + 1)));
}

static void one_more_sent(void)
{
	weak_assume(send(100));
	weak_require(!tx.broken);
}

static void quarter_received(void)
{
	for (unsigned i = 0; i < LINES / 4; i++)
		weak_require(receive() == i + 1);
}

static const struct weak_test lines_are_used_again = {
	"lines are used again", set_up_full, { one_more_sent, quarter_received }, NULL
};

/* All warm places are taken, and one is used again. */
static void set_up_warm(void)
{
	set_up();
	for (unsigned i = 0; i < RING_WARM_CNT; i++)
		weak_require(send_data((unsigned char)(i + 1)));
}

static void warm_sent(void)
{
	void *data = NULL;

	weak_assume(ring_claim_data(&tx, RING_WARM, RING_WARM_PLACE, &data));
	weak_assume(tx.note == 0);
	((unsigned char *)data)[RING_WARM - 1] = 3;
}

static void warm_received(void)
{
	weak_require(receive() == 1);
	ring_report(&rx);
}

static const struct weak_test places_are_used_again = {
	"places are used again", set_up_warm, { warm_sent, warm_received }, NULL
};

int main(void)
{
	static const struct weak_test *const tests[] = { &lines_pass, &lines_are_used_again,
							 &places_are_used_again, NULL };
	static const struct weak_ordering orderings[] = {
		{ "R:ring_line.word", &lines_pass },
		{ "A:ring_line.word", &lines_pass },
		{ "R:ring_credit.taken", &lines_are_used_again },
		{ "A:ring_credit.taken", &lines_are_used_again },
		{ "R:ring_credit.taken", &places_are_used_again },
		{ "A:ring_credit.taken", &places_are_used_again },
		{ NULL, NULL },
	};

	return weak_main(tests, orderings);
}
