/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writes payload to the ring's data area, with the stores that measure faster. On the thread that
 * holds the domain.
 */
#ifndef WEFT_SHM_STORES_H
#define WEFT_SHM_STORES_H

#include "conn.h"
#include "copy.h"

/* Payload of more than PSHM_WARM_MIN and up to RING_WARM bytes goes to a warm place. */
#define PSHM_WARM_MIN 128u

static inline bool pshm_fits_warm(size_t len)
{
	return len > PSHM_WARM_MIN && len <= RING_WARM;
}

/*
 * pshm_stores_far - returns true if the two cores share no cache: plain stores take twice as long
 */
static inline bool pshm_stores_far(const struct pshm_conn *conn)
{
	const struct pshm_stores *s = &conn->stores;

	return s->kind != PSHM_PLAIN && s->least[PSHM_PLAIN] > 2 * s->least[s->kind];
}

/*
 * pshm_claim_data - claim a line with @len bytes of payload in the data area. Returns it, or NULL:
 * no room
 * pshm_fill_from - fill a claimed line that is not published, beginning @skip bytes into the iov
 * pshm_probe_read - measure reading the data of a line with PSHM_PROBE, at @data: PSHM_PROBE_MIN
 * bytes or more
 */
struct ring_line *pshm_claim_data(struct pshm_conn *conn, uint32_t len, void **payload);
void pshm_fill_from(struct pshm_conn *conn, void *to, const struct iovec *iov, size_t cnt,
		    size_t skip, size_t len);
void pshm_probe_read(struct pshm_conn *conn, const void *data);

/* wire_ops.fill; the common case, one buffer and plain stores, is inlined */
static inline void pshm_fill(struct wire_conn *base, void *to, const struct iovec *iov,
			     size_t cnt, size_t len)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	struct pshm_stores *s = &conn->stores;

	if (unlikely(cnt != 1 || s->kind != PSHM_PLAIN || !s->until)) {
		pshm_fill_from(conn, to, iov, cnt, 0, len);
		return;
	}
	s->until -= len >= PSHM_PROBE_MIN;
	copy_bytes(to, iov->iov_base, len);
}

/* wire_ops.claim; inlined into the send slots */
static inline struct packet *pshm_claim(struct wire_conn *base, size_t len, void **payload)
{
	struct pshm_conn *conn = pshm_conn_of(base);
	struct ring_line *line;

	if (likely(len <= RING_INLINE)) {
		line = ring_claim(&conn->tx);
		if (unlikely(!line))
			return NULL;
		*payload = line->payload;
	} else {
		line = NULL;
		if (pshm_fits_warm(len) && likely(conn->stores.kind == PSHM_PLAIN))
			line = ring_claim_warm(&conn->tx, payload);
		if (unlikely(!line))
			line = pshm_claim_data(conn, (uint32_t)len, payload);
		if (unlikely(!line))
			return NULL;
	}
	return (struct packet *)line->header;
}

/* wire_ops.has_brief */
static inline bool pshm_has_brief(const struct wire_conn *base)
{
	const struct pshm_conn *conn = container_of(base, struct pshm_conn, base);

	return ring_has_line(&conn->tx);
}

/* wire_ops.claim_brief */
static inline struct packet *pshm_claim_brief(struct wire_conn *base, void **payload)
{
	struct ring_line *line = ring_line(&pshm_conn_of(base)->tx);

	*payload = line->payload;
	return (struct packet *)line->header;
}

#endif
