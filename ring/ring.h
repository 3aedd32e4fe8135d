/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One direction of a pair in shared memory: a ring of cache lines with a single producer and a
 * single consumer, and a data area for payload that does not fit in a line. The providers that
 * share memory build on it; each end is used by one thread at a time.
 *
 * A line carries a header, a small payload, and the word that publishes them: one message moves one
 * line between the two caches. The ring does not interpret headers and payload. Larger payload is
 * in the data area, contiguous, at an offset that the line's word carries; the producer chooses it,
 * and remembers the extent of each line. Now and then the consumer reports how many lines it has
 * taken, on a line of its own; the producer reads that only when it is out of room.
 *
 * The other end is not trusted. Everything it writes is loaded once and checked against this end's
 * own values: no offset leads out of the data area, no credit exceeds what was published. A faulty
 * peer loses or spoils its own messages and nothing else.
 *
 * Memory of one direction: struct ring_credit, line_cnt struct ring_line, data_len bytes.
 */
#ifndef WEFT_RING_H
#define WEFT_RING_H

#include "platform.h"

#define RING_HEADER  32u
#define RING_INLINE  24u
#define RING_GRANULE 64u

/* A line as both ends see it. */
struct ring_line {
	unsigned char header[RING_HEADER];
	unsigned char payload[RING_INLINE];
	/* low half: position + 1 once published; high half: the note */
	_Atomic uint64_t word;
};

_Static_assert(sizeof(struct ring_line) == CACHE_LINE, "a message moves one cache line");
_Static_assert(offsetof(struct ring_line, payload) == 32, "layout");
_Static_assert(offsetof(struct ring_line, word) == 56, "layout");

/* The consumer's report. Written by the consumer alone. */
struct ring_credit {
	/* lines taken so far, modulo 2^32 */
	_Atomic uint32_t taken;
	unsigned char zero[60];
};

_Static_assert(sizeof(struct ring_credit) == CACHE_LINE, "the consumer's line is its own");

/*
 * The note of a line: the lower part is the offset of its payload in the data area, in granules;
 * the upper part is the caller's, for the kind of the line.
 */
#define RING_KIND_SHIFT 28u
#define RING_KIND_MAX	15u
#define RING_AT_MASK	((1u << RING_KIND_SHIFT) - 1)

/* Sizes that are allowed, powers of two. */
#define RING_LINES_MIN 16u
#define RING_LINES_MAX 65536u
#define RING_DATA_MIN  8192u
#define RING_DATA_MAX  (64u << 20)

/*
 * The data area begins with a few places for small payload, which are used again as soon as they
 * were read: two cores with one cache pass on 1 KiB a quarter faster in lines that both have. All
 * other payload uses the rest of the area in turn, where lines that the other side has not had for
 * long are faster.
 */
/* Bytes of a warm place, how many there are, bytes of all. */
#define RING_WARM     1024u
#define RING_WARM_CNT 4u
#define RING_WARM_ALL (RING_WARM_CNT * RING_WARM)
/* Lines after a search for a warm place that found none free, before the next search. */
#define RING_LOOK 16u

/* Bytes beyond whose end no processor prefetches, however large the pages of the machine are */
#define RING_PAGE 4096u

/* Where in the data area payload is better placed. */
enum ring_place {
	RING_ANYWHERE,
	/* in one of the warm places, for up to RING_WARM bytes */
	RING_WARM_PLACE,
	/* from the start of a page: the processor prefetches no further than the end of one */
	RING_PAGE_START,
};

/* Bound of the lines with data that the consumer has not reported as taken; a power of two. */
#define RING_EXTENTS 128u

/* The part of the data area that belongs to a line. */
struct ring_extent {
	/* position of the line */
	uint32_t line;
	/* offset behind the part */
	uint32_t end;
};

/* The producer's end, in its own memory. */
struct ring_tx {
	struct ring_line *lines;
	unsigned char *data;
	/* line_cnt - 1 */
	uint32_t mask;
	/* position of the next line */
	uint32_t head;
	/* positions before this one are free to use */
	uint32_t limit;
	/* of the claimed line */
	uint32_t note;
	uint32_t data_len;
	/* behind the warm places: offset of data that may still be read, and behind it; it wraps around */
	uint32_t data_begin, data_end;
	/* lines that have data there */
	uint32_t data_cnt;
	/* bit i: warm place i is free */
	uint32_t warm;
	/* position from which on a free warm place is searched for */
	uint32_t look_at;
	/* extents given so far, and those of lines that were taken, modulo 2^32 */
	uint32_t extent_head, extent_tail;
	/* the consumer has reported lines that it can't have taken */
	bool broken;
	struct ring_credit *credit;
	struct ring_extent extents[RING_EXTENTS];
};

/* The consumer's end, in its own memory. */
struct ring_rx {
	struct ring_line *lines;
	const unsigned char *data;
	uint32_t mask;
	/* position of the next line */
	uint32_t tail;
	/* tail as of the last report */
	uint32_t reported;
	uint32_t data_len;
	/* bytes of data taken since then */
	uint32_t data_unreported;
	struct ring_credit *credit;
};

/*
 * ring_len - returns the bytes of memory that one direction takes
 * @line_cnt: lines; not trusted
 * @data_len: bytes of the data area; not trusted
 * Returns 0 unless both are powers of two within the limits above.
 */
size_t ring_len(uint32_t line_cnt, uint32_t data_len);

/*
 * ring_tx_init - make the producer's end over @mem
 * @mem: ring_len() bytes on a cache line boundary; zeroed before either end is made
 * The memory is borrowed and stays mapped while the end is used; sizes were checked by ring_len().
 */
void ring_tx_init(struct ring_tx *tx, void *mem, uint32_t line_cnt, uint32_t data_len);

/* ring_rx_init - make the consumer's end; otherwise the same */
void ring_rx_init(struct ring_rx *rx, void *mem, uint32_t line_cnt, uint32_t data_len);

/*
 * ring_tx_move, ring_rx_move - change to another, larger data area
 * @mem: @data_len bytes on a cache line boundary, a power of two above the present one
 *
 * The producer moves between two lines; the consumer when it has released the first of them, which
 * the caller has to mark. The old area is read until then, and not used after.
 */
void ring_tx_move(struct ring_tx *tx, void *mem, uint32_t data_len);
void ring_rx_move(struct ring_rx *rx, const void *mem, uint32_t data_len);

/* ring_tx_shut - make every later claim return NULL */
void ring_tx_shut(struct ring_tx *tx);

/*
 * ring_refresh - read the consumer's report; for the functions below
 * A report that can't be true sets tx->broken and changes nothing: the ring stays full.
 */
void ring_refresh(struct ring_tx *tx);

/* ring_data_max - returns the most bytes that one line can have in the data area */
static inline uint32_t ring_data_max(uint32_t data_len)
{
	return data_len / 2; /* the warm places have no more than the other half */
}

/*
 * ring_has_line - returns true if a line is free without a look at the consumer's report
 * ring_line - returns the next line, if ring_has_line(), to be filled and published by
 * ring_publish_line()
 */
static inline bool ring_has_line(const struct ring_tx *tx)
{
	return likely(tx->head != tx->limit);
}

static inline struct ring_line *ring_line(const struct ring_tx *tx)
{
	return &tx->lines[tx->head & tx->mask];
}

/*
 * ring_claim - claim the next line, to be filled
 * Claiming without publishing is undone by claiming again.
 * Returns NULL when the ring is full (nothing happened).
 */
static inline struct ring_line *ring_claim(struct ring_tx *tx)
{
	if (unlikely(tx->head == tx->limit)) {
		ring_refresh(tx);
		if (tx->head == tx->limit)
			return NULL;
	}
	tx->note = 0;
	return ring_line(tx);
}

/* ring_extents_full - returns true if no more lines with data can be remembered */
static inline bool ring_extents_full(const struct ring_tx *tx)
{
	return tx->extent_head - tx->extent_tail == RING_EXTENTS;
}

/* ring_warm - returns the offset of a free warm place, or UINT32_MAX */
static inline uint32_t ring_warm(struct ring_tx *tx)
{
	if (unlikely(ring_extents_full(tx)))
		return UINT32_MAX;
	if (unlikely(!tx->warm && (int32_t)(tx->head - tx->look_at) >= 0)) {
		ring_refresh(tx);
		if (!tx->warm)
			tx->look_at = tx->head + RING_LOOK;
	}
	return likely(tx->warm) ? (uint32_t)__builtin_ctz(tx->warm) * RING_WARM : UINT32_MAX;
}

/* ring_data_at - returns the offset of @need contiguous free bytes behind the warm places, or UINT32_MAX */
static inline uint32_t ring_data_at(const struct ring_tx *tx, uint32_t need,
				    enum ring_place place)
{
	uint32_t at = tx->data_end;

	if (place == RING_PAGE_START)
		at = (at + RING_PAGE - 1) & ~(RING_PAGE - 1);
	if (unlikely(ring_extents_full(tx)))
		return UINT32_MAX;
	if (unlikely(tx->data_cnt && tx->data_end <= tx->data_begin))
		return at + need <= tx->data_begin ? at : UINT32_MAX;
	if (likely(at + need <= tx->data_len))
		return at;
	return !tx->data_cnt || tx->data_begin - RING_WARM_ALL >= need ? RING_WARM_ALL
								       : UINT32_MAX;
}

/* ring_data_give - give the claimed line @need bytes at that offset */
static inline void ring_data_give(struct ring_tx *tx, uint32_t at, uint32_t need)
{
	tx->extents[tx->extent_head++ % RING_EXTENTS] = (struct ring_extent){ .line = tx->head,
									      .end = at + need };
	if (at < RING_WARM_ALL) {
		tx->warm &= tx->warm - 1;
		return;
	}
	if (!tx->data_cnt++)
		tx->data_begin = at;
	tx->data_end = at + need;
}

/*
 * ring_claim_data - ring_claim() with room in the data area
 * @len:   bytes, 1 to ring_data_max(); up to RING_WARM for RING_WARM_PLACE
 * @place: where it is better placed; elsewhere if that is not free
 * @data:  out: where they go
 * A line claimed so must be published. Returns NULL when either is full (nothing happened).
 */
static inline struct ring_line *ring_claim_data(struct ring_tx *tx, uint32_t len,
						enum ring_place place, void **data)
{
	uint32_t need = (len + RING_GRANULE - 1) & ~(RING_GRANULE - 1), at = UINT32_MAX;
	struct ring_line *line = ring_claim(tx);

	if (unlikely(!line))
		return NULL;
	if (place == RING_WARM_PLACE)
		at = ring_warm(tx);
	if (at == UINT32_MAX)
		at = ring_data_at(tx, need, place);
	if (unlikely(at == UINT32_MAX)) {
		ring_refresh(tx);
		at = ring_data_at(tx, need, place);
		if (at == UINT32_MAX)
			return NULL;
	}
	ring_data_give(tx, at, need);
	tx->note = at / RING_GRANULE;
	*data = tx->data + at;
	return line;
}

/*
 * ring_claim_warm - ring_claim_data() of a warm place, without a look at the consumer's report
 * Returns NULL if none is known to be free (nothing happened): ring_claim_data() looks further.
 */
static inline struct ring_line *ring_claim_warm(struct ring_tx *tx, void **data)
{
	uint32_t at;

	if (unlikely(!ring_has_line(tx) || !tx->warm || ring_extents_full(tx)))
		return NULL;
	at = (uint32_t)__builtin_ctz(tx->warm) * RING_WARM;
	ring_data_give(tx, at, RING_WARM);
	tx->note = at / RING_GRANULE;
	*data = tx->data + at;
	return ring_line(tx);
}

/*
 * ring_publish - publish the claimed line
 * @kind: 0 to RING_KIND_MAX
 */
static inline void ring_publish(struct ring_tx *tx, struct ring_line *line, uint32_t kind)
{
	uint64_t note = tx->note | kind << RING_KIND_SHIFT;

	tx->head++;
	/* R:ring_line.word  header, payload and data before the word; pairs A:ring_line.word */
	atomic_store_explicit(&line->word, note << 32 | tx->head, memory_order_release);
}

/* ring_publish_line - ring_publish() of a line without data, from ring_line() */
static inline void ring_publish_line(struct ring_tx *tx, struct ring_line *line, uint32_t kind)
{
	uint64_t note = kind << RING_KIND_SHIFT;

	tx->head++;
	/* R:ring_line.word  header and payload before the word; pairs A:ring_line.word */
	atomic_store_explicit(&line->word, note << 32 | tx->head, memory_order_release);
}

/* ring_data_free - returns the free bytes behind the warm places, in one or two pieces */
static inline uint32_t ring_data_free(const struct ring_tx *tx)
{
	if (!tx->data_cnt)
		return tx->data_len - RING_WARM_ALL;
	if (tx->data_end <= tx->data_begin)
		return tx->data_begin - tx->data_end;
	return tx->data_len - RING_WARM_ALL - (tx->data_end - tx->data_begin);
}

/*
 * ring_has_room - returns true if @line_cnt lines and @len bytes of data are free
 * Wrapping may use up to as much again, which the caller has to add.
 */
static inline bool ring_has_room(struct ring_tx *tx, uint32_t line_cnt, uint32_t len)
{
	if (tx->limit - tx->head >= line_cnt && ring_data_free(tx) >= len)
		return true;
	ring_refresh(tx);
	return tx->limit - tx->head >= line_cnt && ring_data_free(tx) >= len;
}

/*
 * ring_next - returns the next published line
 * @note: out: its note, loaded once with the word that published it
 *
 * It stays the next one until ring_release(). The other side may change its bytes at any time: copy
 * what is read more than once.
 * Returns NULL if none is published.
 */
static inline struct ring_line *ring_next(const struct ring_rx *rx, uint32_t *note)
{
	uint32_t tail = rx->tail;
	struct ring_line *line = &rx->lines[tail & rx->mask];
	/* A:ring_line.word  the word before header, payload and data; pairs R:ring_line.word */
	uint64_t word = atomic_load_explicit(&line->word, memory_order_acquire);

	if ((uint32_t)word != tail + 1)
		return NULL;
	*note = (uint32_t)(word >> 32);
	return line;
}

/* ring_expect - prefetch the line after the next one, which is likely to be published */
static inline void ring_expect(const struct ring_rx *rx)
{
	__builtin_prefetch(&rx->lines[(rx->tail + 1) & rx->mask]);
}

/* ring_kind - returns the user's part of a note */
static inline uint32_t ring_kind(uint32_t note)
{
	return note >> RING_KIND_SHIFT;
}

/*
 * ring_data - returns the data of a line
 * @len: bytes; not trusted
 * Returns NULL if they would not be in the data area.
 */
static inline const void *ring_data(const struct ring_rx *rx, uint32_t note, uint32_t len)
{
	uint64_t at = (uint64_t)(note & RING_AT_MASK) * RING_GRANULE;

	if (unlikely(at + len > rx->data_len))
		return NULL;
	return rx->data + at;
}

/* ring_report - report all lines taken so far */
static inline void ring_report(struct ring_rx *rx)
{
	rx->reported = rx->tail;
	rx->data_unreported = 0;
	/*
	 * R:ring_credit.taken  this side's reads before the line is the producer's again; pairs
	 * A:ring_credit.taken
	 */
	atomic_store_explicit(&rx->credit->taken, rx->tail, memory_order_release);
}

/*
 * ring_take - the next line has been read
 * The caller reports it with ring_report(), before more than a quarter of the ring is unreported.
 */
static inline void ring_take(struct ring_rx *rx)
{
	rx->tail++;
}

/* ring_release - the next line has been read; reports when a quarter of the ring is unreported */
static inline void ring_release(struct ring_rx *rx)
{
	rx->tail++;
	if (unlikely(rx->tail - rx->reported > rx->mask / 4))
		ring_report(rx);
}

/*
 * ring_release_data - the same for a line with @len bytes of data
 * Reports also when an eighth of the area is unreported.
 */
static inline void ring_release_data(struct ring_rx *rx, uint32_t len)
{
	rx->data_unreported += len;
	rx->tail++;
	if (rx->tail - rx->reported > rx->mask / 4 || rx->data_unreported >= rx->data_len / 8)
		ring_report(rx);
}

#endif
