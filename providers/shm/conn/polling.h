/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which rings are polled in each call of poll(), and how the producers of the others announce a
 * line. On the thread that holds the domain.
 */
#ifndef WEFT_SHM_POLLING_H
#define WEFT_SHM_POLLING_H

#include "conn.h"
#include "lines.h"

/*
 * pshm_polling_begin - begin to poll the ring of a connection that is up, and give the peer its
 * doorbell
 * pshm_polling_end - stop polling the ring of a connection that ends, and take back the doorbell
 * pshm_polling_heat - make a ring hot: it is polled in each poll() from now on
 * pshm_polling_take_doorbells - make the rings hot whose doorbells were rung; from poll()
 * pshm_polling_sweep - make idle hot rings cold, and poll some of the cold ones; from poll().
 * Returns how many of the cold ones had a line
 * pshm_polling_pending - returns true if the connection has a line, or its end, for poll()
 * pshm_doorbell_ring - ring this side's doorbell at the peer and wake it, if the mode of its ring
 * requires that
 * pshm_peer_notify - ring the peer's request doorbell and wake it: a request of the peer was
 * answered
 * pshm_peer_inbox - returns the peer's inbox, mapped; NULL if it can't be
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

/* pshm_polling_set_mode - set what the peer has to do after it has published a line */
static inline void pshm_polling_set_mode(struct pshm_conn *conn, enum pshm_polling_mode mode)
{
	enum pshm_side other = pshm_other(conn);

	atomic_store_explicit(&conn->pair->polling[other].mode, mode, memory_order_relaxed);
}

/*
 * pshm_polling_hot_mode - returns the mode of a hot ring
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

/*
 * pshm_polling_unseen - returns true if the peer may not find what was published without a doorbell
 * Called after publishing; the barrier between the two is the consumer's: arm.c.
 */
static inline bool pshm_polling_unseen(const struct pshm_conn *conn)
{
	return unlikely(atomic_load_explicit(&conn->polling->mode, memory_order_relaxed) !=
			PSHM_POLLED);
}

/* pshm_line_publish - ring_publish(), then ring the doorbell if the peer requires it */
static inline void pshm_line_publish(struct pshm_conn *conn, struct ring_line *line,
				     enum pshm_kind kind)
{
	ring_publish(&conn->tx, line, kind);
	if (pshm_polling_unseen(conn))
		pshm_doorbell_ring(conn);
}

static inline struct ring_line *pshm_line_of(struct packet *packet)
{
	return (struct ring_line *)((char *)packet - offsetof(struct ring_line, header));
}

/*
 * wire_ops.publish; inlined into the send slots. What is published is on its way: @more changes
 * nothing
 */
static inline void pshm_publish(struct wire_conn *base, struct packet *packet, bool more)
{
	pshm_line_publish(pshm_conn_of(base), pshm_line_of(packet), PSHM_PACKET);
}

/* wire_ops.publish_brief */
static inline bool pshm_publish_brief(struct wire_conn *base, struct packet *packet)
{
	struct pshm_conn *conn = pshm_conn_of(base);

	ring_publish_line(&conn->tx, pshm_line_of(packet), PSHM_PACKET);
	return pshm_polling_unseen(conn);
}

#endif
