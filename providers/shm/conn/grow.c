/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rings that grow. A connection begins with two small rings, so that many connections need little
 * memory. When a ring first lacks room for its payload, or when it has carried much larger payload,
 * its producer makes a larger data area in memory of its own and offers it in a line. The consumer
 * maps it and reports that in the pair; then the producer announces in another line that the data
 * of all later lines are there.
 *
 * Populating an area costs more than half a millisecond, and a message that would fit in the small
 * ring gains some 30 ns per KiB from it. So for such messages an area is made only after GROW_BYTES
 * of them, and a few pages of it are populated with each.
 *
 *	producer			consumer
 *
 *	line PSHM_GROW		->	opens the area
 *			<-  pair.grown
 *	line PSHM_MOVE		->	reads later data from there
 *
 * Where processes do not reach each other through /proc, there is an area for each ring behind the
 * two from the beginning, which is not touched until it is needed: the offer then contains no
 * descriptor.
 *
 * The larger the area, the longer ago its lines were in the other core's cache: writing to lines
 * that are still there takes twice as long. The areas of an endpoint have a budget; an area that
 * the peer can't map is offered again later. On the thread that holds the domain.
 */
#include <rdma/fi_errno.h>
#include "polling.h"
#include "conn.h"
#include "grow.h"
#include "lines.h"
#include "memfd.h"

/* Polls before another try. */
#define RETRY_TICKS 65536u
/* Bytes of payload that fits, but would do better in an area, before one is made for it. */
#define GROW_BYTES (16u << 20)
/* Bytes of that area that are populated with each such payload from then on. */
#define GROW_PIECE 8192u

/* An area in the pair's memory is released with the pair. */
static void area_close(const struct pshm_conn *conn, struct pshm_region *area)
{
	if (conn->sizes.area_len)
		area->addr = NULL;
	else
		pshm_region_close(area);
}

static void area_release(struct pshm_conn *conn)
{
	if (!conn->tx_area.addr)
		return;
	conn->wire->area_len -= conn->tx_area.len;
	area_close(conn, &conn->tx_area);
}

static void grow_failed(struct pshm_conn *conn)
{
	area_release(conn);
	conn->growing = PSHM_SMALL;
	conn->grow_refused = true;
	conn->grow_tick = conn->wire->tick;
}

static bool grow_worthwhile(const struct pshm_conn *conn)
{
	const struct pshm_wire *w = conn->wire;

	return !conn->grow_refused || w->tick - conn->grow_tick >= RETRY_TICKS;
}

/* Returns true if the endpoint's budget leaves an area for our ring. */
static bool area_left(const struct pshm_conn *conn)
{
	const struct pshm_wire *w = conn->wire;
	size_t len = PSHM_AREA_HEAD +
		     (size_t)(conn->sizes.area_len ? conn->sizes.area_len : PSHM_AREA_LEN);

	/*
	 * the side that made the pair may have chosen larger rings than this side's rings grow to
	 */
	return len - PSHM_AREA_HEAD > conn->tx.data_len && w->area_max - w->area_len >= len &&
	       grow_worthwhile(conn);
}

/*
 * Publishes whether this side's ring stays small: the consumer may then read the payload another
 * way.
 */
static void publish_small(struct pshm_conn *conn, bool small)
{
	atomic_store_explicit(&conn->pair->small[conn->side].value, small, memory_order_relaxed);
}

/* Makes the area for our ring, unless there is one. Returns 0 or -FI_E*. */
static int area_make(struct pshm_conn *conn)
{
	int err = 0;

	if (conn->tx_area.addr)
		return 0;
	if (conn->sizes.area_len)
		conn->tx_area = pshm_pair_area(&conn->region, conn->side, &conn->sizes);
	else
		err = pshm_area_create(PSHM_AREA_LEN, &conn->tx_area);
	if (!err)
		conn->wire->area_len += conn->tx_area.len;
	return err;
}

static struct pshm_growth area_offer(const struct pshm_conn *conn)
{
	const struct pshm_area *area = conn->tx_area.addr;
	struct pshm_growth growth = { .fd = UINT32_MAX };

	if (!conn->sizes.area_len) {
		growth.fd = (uint32_t)conn->tx_area.fd;
		memcpy(growth.nonce, area->nonce, PSHM_NONCE);
	}
	return growth;
}

void pshm_grow(struct pshm_conn *conn)
{
	struct pshm_growth growth;
	struct ring_line *line;
	bool left;

	if (conn->growing != PSHM_SMALL || conn->tx.broken || conn->wire->forked)
		return;
	left = conn->tx_area.addr || area_left(conn);
	publish_small(conn, !left);
	if (!left)
		return;
	line = ring_claim(&conn->tx);
	if (!line)
		return; /* the ring is full: an area would not help */
	if (area_make(conn)) {
		grow_failed(conn);
		return;
	}
	growth = area_offer(conn);
	atomic_store_explicit(&conn->pair->grown[conn->side].value, PSHM_NOT_GROWN,
			      memory_order_relaxed);
	memcpy(line->header, &growth, sizeof(growth));
	/* R:ring_line.word  grown is reset before the peer sets it; pairs A:ring_line.word */
	pshm_line_publish(conn, line, PSHM_GROW);
	conn->growing = PSHM_OFFERED;
	pshm_mark_work(conn);
}

/* Populates the next part of the area, since all of it will be used, and a page fault takes 5 us. */
static void area_prepare(struct pshm_conn *conn)
{
	size_t done = conn->grow_done, left = conn->tx_area.len - done;

	if (!left) {
		pshm_grow(conn);
		return;
	}
	left = left < GROW_PIECE ? left : GROW_PIECE;
	sys_memfd_populate((char *)conn->tx_area.addr + done, left);
	conn->grow_done += left;
}

void pshm_grow_by_use(struct pshm_conn *conn, uint32_t len)
{
	if (likely(conn->grow_bytes < GROW_BYTES)) {
		conn->grow_bytes += len;
		return;
	}
	if (!conn->tx_area.addr) {
		if (conn->tx.broken || conn->wire->forked)
			return;
		if (!area_left(conn)) {
			publish_small(conn, true);
			return;
		}
		conn->grow_done = 0;
		if (area_make(conn)) {
			grow_failed(conn);
			return;
		}
	}
	area_prepare(conn);
}

void pshm_grow_step(struct pshm_conn *conn)
{
	/*
	 * A:pshm_pair.grown  the answer before anything is written to the area; pairs
	 * R:pshm_pair.grown
	 */
	uint32_t answer = atomic_load_explicit(&conn->pair->grown[conn->side].value,
					       memory_order_acquire);
	struct ring_line *line;

	if (answer == PSHM_NOT_GROWN)
		return;
	if (answer != PSHM_GROWN) {
		grow_failed(conn);
		return;
	}
	line = ring_claim(&conn->tx);
	if (!line)
		return;
	pshm_region_close_fd(&conn->tx_area);
	memset(line->header, 0, sizeof(line->header));
	pshm_line_publish(conn, line, PSHM_MOVE);
	ring_tx_move(&conn->tx, (char *)conn->tx_area.addr + PSHM_AREA_HEAD,
		     (uint32_t)(conn->tx_area.len - PSHM_AREA_HEAD));
	conn->growing = PSHM_LARGE;
}

/* Maps the area that is offered. @data_len: out. Returns 0 or -FI_E*. */
static int area_take(struct pshm_conn *conn, const struct pshm_growth *growth,
		     uint32_t *data_len)
{
	struct pshm_offer offer = { .pid = conn->process->pid, .fd = growth->fd };

	if (conn->sizes.area_len) {
		if (growth->fd != UINT32_MAX)
			return -FI_EPROTO;
		conn->rx_area = pshm_pair_area(&conn->region, pshm_other(conn), &conn->sizes);
		*data_len = conn->sizes.area_len;
		return 0;
	}
	memcpy(offer.nonce, growth->nonce, PSHM_NONCE);
	return pshm_area_open(&offer, &conn->rx_area, data_len);
}

int pshm_grow_take(struct pshm_conn *conn, const struct ring_line *line)
{
	enum pshm_side other = pshm_other(conn);
	struct pshm_growth growth;
	uint32_t data_len;
	int err;

	memcpy(&growth, line->header, sizeof(growth));
	if (growth.zero || conn->rx_area.addr)
		return -FI_EPROTO;
	err = area_take(conn, &growth, &data_len);
	if (!err && data_len <= conn->rx.data_len) {
		area_close(conn, &conn->rx_area);
		err = -FI_EPROTO;
	}
	if (err == -FI_EPROTO)
		return err;
	/* R:pshm_pair.grown  mapped before the producer moves; pairs A:pshm_pair.grown */
	atomic_store_explicit(&conn->pair->grown[other].value,
			      err ? PSHM_NOT_MAPPED : PSHM_GROWN, memory_order_release);
	return 0;
}

int pshm_grow_move(struct pshm_conn *conn)
{
	if (!conn->rx_area.addr || conn->rx_moved)
		return -FI_EPROTO;
	conn->rx_moved = true;
	ring_rx_move(&conn->rx, (char *)conn->rx_area.addr + PSHM_AREA_HEAD,
		     (uint32_t)(conn->rx_area.len - PSHM_AREA_HEAD));
	return 0;
}

void pshm_grow_drop(struct pshm_conn *conn)
{
	area_release(conn);
	area_close(conn, &conn->rx_area);
}
