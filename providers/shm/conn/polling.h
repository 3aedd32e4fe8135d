/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which rings are polled every time, and what the producers of the others do to be found. On the
 * thread that holds the domain.
 */
#ifndef WEFT_SHM_POLLING_H
#define WEFT_SHM_POLLING_H

#include "conn.h"
#include "lines.h"

/*
 * pshm_polling_begin - poll the ring of a connection that is up, and give the peer its doorbell
 * pshm_polling_end - poll the ring of a connection that ends no more, and take back the doorbell
 * pshm_polling_heat - poll the ring every time from now on
 * pshm_polling_take_doorbells - make the rings hot whose doorbells have been rung; from poll()
 * pshm_polling_sweep - let rings cool that nothing comes from, and look at some of the cold ones;
 * from poll().
 *	Returns how many of those have something
 * pshm_polling_pending - returns true if poll() has something to find here: a line, or the end
 * pshm_doorbell_ring - ring our doorbell at the peer and wake it, if its ring's mode asks for that
 * pshm_peer_notify - ring the peer's request doorbell and wake it: we have answered a request of
 * its own
 * pshm_peer_inbox - returns the peer's inbox, mapped; NULL when it can't be
 */
void pshm_polling_begin(struct pshm_conn *conn);
void pshm_polling_end(struct pshm_conn *conn);
void pshm_polling_heat(struct pshm_conn *conn);
void pshm_polling_take_doorbells(struct pshm_wire *wire);
int pshm_polling_sweep(struct pshm_wire *wire);
bool pshm_polling_pending(const struct pshm_conn *conn);
void pshm_doorbell_ring(struct pshm_conn *conn);
void pshm_peer_notify(struct pshm_conn *conn);
struct pshm_inbox *pshm_peer_inbox(struct pshm_conn *conn);

/* pshm_polling_set_mode - tell the peer what to do once it has published something */
static inline void pshm_polling_set_mode(struct pshm_conn *conn, enum pshm_polling_mode mode)
{
	enum pshm_side other = pshm_other(conn);

	atomic_store_explicit(&conn->pair->polling[other].mode, mode, memory_order_relaxed);
}

/*
 * pshm_polling_hot_mode - the mode of a ring that is hot
 * PSHM_POLLED as long as no thread sleeps, if both processes take part in barriers.
 */
static inline enum pshm_polling_mode pshm_polling_hot_mode(const struct pshm_conn *conn)
{
	enum pshm_side other = pshm_other(conn);

	if (conn->wire->armed)
		return PSHM_RING_DOORBELL;
	return conn->wire->barriers && atomic_load_explicit(&conn->pair->barriers[other].value,
							    memory_order_relaxed)
		       ? PSHM_POLLED
		       : PSHM_UNSURE;
}

/* pshm_line_publish - ring_publish(), and see to it that the peer looks */
static inline void pshm_line_publish(struct pshm_conn *conn, struct ring_line *line,
				     enum pshm_kind kind)
{
	ring_publish(&conn->tx, line, kind);
	/* The barrier between the two is the consumer's: arm.c. */
	if (unlikely(atomic_load_explicit(&conn->polling->mode, memory_order_relaxed) !=
		     PSHM_POLLED))
		pshm_doorbell_ring(conn);
}

/*
 * wire_ops.publish; inlined into the send slots. What is published is on its way: @more changes
 * nothing
 */
static inline void pshm_publish(struct wire_conn *base, struct packet *packet, bool more)
{
	struct ring_line *line = (struct ring_line *)((char *)packet -
						      offsetof(struct ring_line, header));

	pshm_line_publish(pshm_conn_of(base), line, PSHM_PACKET);
}

#endif
