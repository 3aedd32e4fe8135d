/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ring's slow paths: sizes, set-up, and reading the consumer's report. Called by the
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

static void data_clear(struct ring_tx *tx)
{
	tx->extent_tail = tx->extent_head;
	tx->data_cnt = 0;
	tx->data_end = RING_WARM_ALL;
	tx->warm = (1u << RING_WARM_CNT) - 1;
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
	data_clear(tx);
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

/* The new area is empty, and the old one is not written to any more. */
void ring_tx_move(struct ring_tx *tx, void *mem, uint32_t data_len)
{
	assert(power_of_two(data_len, tx->data_len, RING_DATA_MAX));
	tx->data_len = data_len;
	tx->data = mem;
	data_clear(tx);
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
}

/* Frees the data of the lines before tx->limit - line_cnt, which have been taken. */
static void extents_release(struct ring_tx *tx)
{
	uint32_t taken = tx->limit - (tx->mask + 1);

	while (tx->extent_tail != tx->extent_head) {
		const struct ring_extent *e = &tx->extents[tx->extent_tail % RING_EXTENTS];

		if ((int32_t)(e->line - taken) >= 0)
			return;
		tx->extent_tail++;
		if (e->end <= RING_WARM_ALL) {
			tx->warm |= 1u << (e->end - 1) / RING_WARM;
			continue;
		}
		tx->data_begin = e->end;
		tx->data_cnt--;
	}
}

void ring_refresh(struct ring_tx *tx)
{
	uint32_t line_cnt = tx->mask + 1, lines;

	if (tx->broken)
		return;
	/* A:ring_credit.taken  the report before we overwrite what it frees; pairs R:ring_credit.taken */
	lines = atomic_load_explicit(&tx->credit->taken, memory_order_acquire);
	/* Newly taken: at most what is published and not yet reported as taken. */
	lines -= tx->limit - line_cnt;
	if (unlikely(lines > tx->head - (tx->limit - line_cnt))) {
		tx->broken = true;
		return;
	}
	tx->limit += lines;
	extents_release(tx);
}
