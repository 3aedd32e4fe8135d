/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which rings are polled, and how who uses the others is heard. On the thread that holds the domain.
 */
#ifndef WEFT_SHM_ATTENTION_H
#define WEFT_SHM_ATTENTION_H

#include "conn.h"
#include "lines.h"

/*
 * pshm_attend - a connection is up: poll its ring
 * pshm_ignore - it ends: take it off its doorbell
 * pshm_warm - poll its ring every time from now on
 * pshm_doorbells_take - make the rings hot whose doorbells have been rung; from poll()
 * pshm_sweep - let rings cool that nothing comes from, and look at some of the cold ones; from poll().
 *	Returns how many were found to have something
 * pshm_has_something - is there something for poll(): a line, or the end?
 * pshm_doorbell_ring - ring our doorbell at the peer, and wake it, unless it polls our ring
 * pshm_peer_notify - ring the peer's request doorbell, and wake it: we have answered a request of its own
 * pshm_peer_inbox - the peer's inbox, mapped; NULL when it can't be
 */
void pshm_attend(struct pshm_conn *conn);
void pshm_ignore(struct pshm_conn *conn);
void pshm_warm(struct pshm_conn *conn);
void pshm_doorbells_take(struct pshm_wire *wire);
int pshm_sweep(struct pshm_wire *wire);
bool pshm_has_something(const struct pshm_conn *conn);
void pshm_doorbell_ring(struct pshm_conn *conn);
void pshm_peer_notify(struct pshm_conn *conn);
struct pshm_inbox *pshm_peer_inbox(struct pshm_conn *conn);

/* pshm_attend_how - what the peer has to do once it has published something */
static inline void pshm_attend_how(struct pshm_conn *conn, enum pshm_how how)
{
	enum pshm_side other = pshm_other(conn);

	atomic_store_explicit(&conn->pair->attention[other].how, how, memory_order_relaxed);
}

/* pshm_hot_how - what the peer whose ring is hot has to do: nothing, if it can be so, and nobody sleeps */
static inline enum pshm_how pshm_hot_how(const struct pshm_conn *conn)
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
	if (unlikely(atomic_load_explicit(&conn->attention->how, memory_order_relaxed) !=
		     PSHM_POLLED))
		pshm_doorbell_ring(conn);
}

/* wire_ops.publish; inlined into the send slots. What is published is on its way: @more changes nothing */
static inline void pshm_publish(struct wire_conn *base, struct packet *packet, bool more)
{
	struct ring_line *line = (struct ring_line *)((char *)packet -
						      offsetof(struct ring_line, header));

	pshm_line_publish(pshm_conn_of(base), line, PSHM_PACKET);
}

#endif
