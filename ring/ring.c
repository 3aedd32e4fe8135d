/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ring's cold side: sizes, set-up, and the look at the consumer's report. Called by the
 * providers that share memory, on the thread of the end in question.
 */
#include "ring.h"

static bool power_of_two(uint32_t n, uint32_t min, uint32_t max)
{
	return n >= min && n <= max && !(n & (n - 1));
}

size_t ring_len(uint32_t line_cnt, uint32_t data_len)
{
	if (!power_of_two(line_cnt, RING_LINES_MIN, RING_LINES_MAX) ||
	    !power_of_two(data_len, RING_DATA_MIN, RING_DATA_MAX))
		return 0;
	return sizeof(struct ring_credit) + (size_t)line_cnt * sizeof(struct ring_line) +
	       data_len;
}

void ring_tx_init(struct ring_tx *tx, void *mem, uint32_t line_cnt, uint32_t data_len)
{
	assert(ring_len(line_cnt, data_len));
	memset(tx, 0, sizeof(*tx));
	tx->credit = mem;
	tx->lines = (struct ring_line *)(tx->credit + 1);
	tx->data = (unsigned char *)(tx->lines + line_cnt);
	tx->mask = line_cnt - 1;
	tx->limit = line_cnt;
	tx->data_len = data_len;
	tx->data_limit = data_len;
}

void ring_rx_init(struct ring_rx *rx, void *mem, uint32_t line_cnt, uint32_t data_len)
{
	assert(ring_len(line_cnt, data_len));
	memset(rx, 0, sizeof(*rx));
	rx->credit = mem;
	rx->lines = (struct ring_line *)(rx->credit + 1);
	rx->data = (const unsigned char *)(rx->lines + line_cnt);
	rx->mask = line_cnt - 1;
	rx->data_len = data_len;
}

/*
 * Positions go on counting, so that reports that are under way stay true. What is still in the old
 * area counts as used in the new one, which is larger.
 */
void ring_tx_move(struct ring_tx *tx, void *mem, uint32_t data_len)
{
	assert(power_of_two(data_len, tx->data_len, RING_DATA_MAX));
	tx->data_limit += data_len - tx->data_len;
	tx->data_len = data_len;
	tx->data = mem;
}

void ring_rx_move(struct ring_rx *rx, const void *mem, uint32_t data_len)
{
	assert(power_of_two(data_len, rx->data_len, RING_DATA_MAX));
	rx->data_len = data_len;
	rx->data = mem;
}

void ring_tx_shut(struct ring_tx *tx)
{
	tx->broken = true;
	tx->limit = tx->head;
	tx->data_limit = tx->data_head;
}

void ring_refresh(struct ring_tx *tx)
{
	uint32_t line_cnt = tx->mask + 1, lines, bytes;
	uint64_t word;

	if (tx->broken)
		return;
	/* A:ring_credit.word  the report before we overwrite what it frees; pairs R:ring_credit.word */
	word = atomic_load_explicit(&tx->credit->word, memory_order_acquire);
	/* Newly taken: at most what is published and not yet reported as taken. */
	lines = (uint32_t)word - (tx->limit - line_cnt);
	bytes = (uint32_t)(word >> 32) - (tx->data_limit - tx->data_len);
	if (unlikely(lines > tx->head - (tx->limit - line_cnt) ||
		     bytes > tx->data_head - (tx->data_limit - tx->data_len))) {
		tx->broken = true;
		return;
	}
	tx->limit += lines;
	tx->data_limit += bytes;
}
