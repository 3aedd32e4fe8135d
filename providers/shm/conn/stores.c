/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where payload is placed in the ring, and which stores write it. Between cores that share a cache,
 * plain stores are best: the reader finds the lines there. Between cores that do not, reading lines
 * that another core has modified takes five times as long as reading memory. So stores which bypass
 * the caches are faster from some 512 bytes on, and on some processors those that do not fetch
 * lines which they write whole are faster still (platform/processor/copies.h). Where the two
 * processes run is not known, and changes while they run: all kinds are measured now and then,
 * filling by the producer and reading by the consumer, and the fastest one is used.
 *
 * A payload to be measured has PSHM_PROBE in its note; the consumer answers in the pair. A peer
 * that answers wrongly makes its own messages slower. On the thread that holds the domain.
 */
#include "conn.h"
#include "copies.h"
#include "copy.h"
#include "grow.h"
#include "lines.h"
#include "stores.h"

/* Lines of a probe that the consumer reads. */
#define PROBE_LINES 16u
/*
 * Payloads between two probes, after the first PROBE_FIRST: twice as many after each PROBE_STEADY
 * probes that confirm the choice, PROBE_DOUBLINGS times.
 */
#define PROBE_EVERY	32u
#define PROBE_STEADY	8u
#define PROBE_DOUBLINGS 4u
#define PROBE_FIRST	9u
/* Every so many probes one is of a kind that is not in use. */
#define PROBE_OTHER 8u
/* Bytes from which on payload goes to the start of a page. */
#define PAGE_MIN 2048u
/* Not measured yet. */
#define COST_NONE 0u
/* ns; a probe that took longer was interrupted. */
#define COST_MAX 100000

/*
 * Small payload is faster in the place of the last one. Finding out that the last one was read
 * costs a load of the consumer's line: too much for the smallest, and between cores that do not
 * share a cache. Such cores read large payload faster from the start of a page; other cores have it
 * in their caches, where it would conflict with the program's memory at the same place of another
 * page.
 */
static enum ring_place place_for(const struct pshm_conn *conn, uint32_t len)
{
	bool apart = conn->stores.kind != PSHM_PLAIN && len >= WIRE_FILL_MIN;

	if (pshm_fits_warm(len) && !apart)
		return RING_WARM_PLACE;
	return apart && len >= PAGE_MIN && conn->growing == PSHM_LARGE ? RING_PAGE_START
								       : RING_ANYWHERE;
}

struct ring_line *pshm_claim_data(struct pshm_conn *conn, uint32_t len, void **payload)
{
	struct ring_line *line;

	if (len >= PSHM_GROW_MIN && unlikely(conn->growing == PSHM_SMALL))
		pshm_grow_by_use(conn, len);
	line = ring_claim_data(&conn->tx, len, place_for(conn, len), payload);
	if (unlikely(!line))
		pshm_grow(conn);
	return line;
}

static void fill(enum pshm_store kind, char *to, const struct iovec *iov, size_t cnt,
		 size_t skip, size_t len)
{
	struct iovec parts[WIRE_DEST_MAX];

	if (kind == PSHM_PLAIN) {
		copy_from_iov(to, iov, cnt, skip, len);
		return;
	}
	cnt = iov_slice(iov, cnt, skip, len, parts);
	for (size_t i = 0; i < cnt; to += parts[i++].iov_len) {
		if (kind == PSHM_STREAMING)
			processor_copy_streaming(to, parts[i].iov_base, parts[i].iov_len);
		else
			processor_copy_whole(to, parts[i].iov_base, parts[i].iov_len);
	}
}

/* Returns the kind that took the least time, once all were measured; the one in use before. */
static enum pshm_store probe_choice(const struct pshm_stores *s)
{
	enum pshm_store best = PSHM_PLAIN;

	for (int i = PSHM_PLAIN; i < PSHM_STORES; i++) {
		if (s->least[i] == COST_NONE)
			return s->kind;
		if (s->least[i] < s->least[best])
			best = (enum pshm_store)i;
	}
	return best;
}

/* Records what the last probe has found: @least, ns. */
static void probe_note(struct pshm_stores *s, uint32_t least)
{
	uint32_t before = s->least[s->probe_kind];
	enum pshm_store kind;

	s->least[s->probe_kind] = least;
	kind = probe_choice(s);
	if (kind != s->kind || least > 2 * before || before > 2 * least)
		s->steady = 0;
	else
		s->steady++;
	s->kind = kind;
}

/* Returns how many payloads are not measured before the next one that is. */
static uint32_t probe_pause(const struct pshm_stores *s)
{
	uint32_t doublings = s->steady / PROBE_STEADY;

	if (s->probe_cnt < PROBE_FIRST)
		return 1;
	return PROBE_EVERY << (doublings < PROBE_DOUBLINGS ? doublings : PROBE_DOUBLINGS);
}

/* Reads the consumer's answer to the last probe, and adds the time that filling took. */
static void probe_answer(struct pshm_conn *conn)
{
	struct pshm_stores *s = &conn->stores;
	uint32_t read_ns = atomic_load_explicit(&conn->pair->probed[conn->side].value,
						memory_order_relaxed);
	uint32_t *last = s->cost[s->probe_kind], cost = s->fill_ns + read_ns;

	if (!s->probing || !read_ns)
		return;
	s->probing = false;
	if (cost > COST_MAX || read_ns > COST_MAX)
		return;
	/* the lesser of two: an interruption only ever adds */
	last[1] = last[0] ? last[0] : cost;
	last[0] = cost;
	probe_note(s, last[0] < last[1] ? last[0] : last[1]);
}

/* Returns the kind of the next probe: mostly the one in use, each of the others in turn. */
static enum pshm_store probe_next(const struct pshm_stores *s)
{
	uint32_t turn = s->probe_cnt / PROBE_OTHER;

	if (s->probe_cnt < PROBE_FIRST)
		return (enum pshm_store)(s->probe_cnt % PSHM_STORES);
	if (s->probe_cnt % PROBE_OTHER)
		return s->kind;
	return (enum pshm_store)((s->kind + 1 + turn % (PSHM_STORES - 1)) % PSHM_STORES);
}

/* Fills and measures it; PSHM_PROBE makes the consumer measure reading. */
static void probe_fill(struct pshm_conn *conn, char *to, const struct iovec *iov, size_t cnt,
		       size_t skip, size_t len)
{
	struct pshm_stores *s = &conn->stores;
	uint64_t began;

	probe_answer(conn);
	s->probe_cnt++;
	s->until = probe_pause(s);
	s->probe_kind = probe_next(s);
	began = platform_now_ns();
	fill(s->probe_kind, to, iov, cnt, skip, len);
	/* wait for plain stores too */
	platform_fence();
	s->fill_ns = (uint32_t)((platform_now_ns() - began) * PROBE_LINES * CACHE_LINE / len);
	s->probing = true;
	atomic_store_explicit(&conn->pair->probed[conn->side].value, 0, memory_order_relaxed);
	conn->tx.note |= (uint32_t)PSHM_PROBE << RING_KIND_SHIFT;
}

void pshm_fill_from(struct pshm_conn *conn, void *to, const struct iovec *iov, size_t cnt,
		    size_t skip, size_t len)
{
	if (unlikely(len >= PSHM_PROBE_MIN && !conn->stores.until--))
		probe_fill(conn, to, iov, cnt, skip, len);
	else
		fill(len >= WIRE_FILL_MIN ? conn->stores.kind : PSHM_PLAIN, to, iov, cnt, skip,
		     len);
}

void pshm_probe_read(struct pshm_conn *conn, const void *data)
{
	enum pshm_side other = pshm_other(conn);
	const volatile unsigned char *bytes = data;
	uint64_t began = platform_now_ns(), ns;

	for (uint32_t i = 0; i < PROBE_LINES; i++)
		(void)bytes[i * CACHE_LINE];
	/* wait for the loads before the clock is read */
	platform_fence();
	ns = platform_now_ns() - began;
	atomic_store_explicit(&conn->pair->probed[other].value,
			      ns < COST_MAX ? (uint32_t)ns | 1 : COST_MAX, memory_order_relaxed);
}
