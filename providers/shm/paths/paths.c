/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hot paths of the shm wire: poll(), the send functions of shm endpoints, and the ops of the
 * wire. Only this file instantiates the inline paths of the engine over pshm_wire_ops, which are
 * constant here: ring and engine become one function.
 *
 * Called on the thread that holds the domain.
 */
#include <rdma/fi_errno.h>
#include "accept.h"
#include "arrive.h"
#include "brief.h"
#include "polling.h"
#include "reach.h"
#include "conn.h"
#include "connect.h"
#include "copy.h"
#include "get.h"
#include "grow.h"
#include "coop_write.h"
#include "key_access.h"
#include "lines.h"
#include "now.h"
#include "moved.h"
#include "peer_arena.h"
#include "peer_keys.h"
#include "send.h"
#include "share.h"
#include "shm.h"
#include "shm_endpoint.h"
#include "socket.h"
#include "stores.h"
#include "transfer.h"

/* Most lines that one poll() takes from one connection */
#define LINES_MAX 32u
/* Bytes of payload in fragments after which one poll() takes no further line from a connection */
#define BYTES_MAX (128u << 10)
/* Most bytes of payload that are prefetched before they are copied */
#define EXPECT_MAX 1024u
_Static_assert(LINES_MAX <= PSHM_LINE_CNT / 4, "a poll() reports what it takes at its end");

/* A poll whose number has none of these bits set is a sweep: it examines what changes rarely */
#define SWEEP_MASK 31u
/* ... and such a sweep also maps what peers lend */
#define MAP_MASK 511u

/*
 * Copy a fragment to the destination that the engine has given for the packet. The line of the next
 * fragment is prefetched before the last quarter is copied, so that it is present afterwards if it
 * was published in time. Returns true if the payload is whole.
 */
static bool fragment_take(struct pshm_conn *conn, const void *data, uint32_t len)
{
	const struct wire_dest *dest = &conn->dest;
	uint32_t most = len - len / 4;

	if (dest->iov_cnt == 1 && dest->iov[0].iov_len >= (size_t)conn->got + len) {
		char *to = (char *)dest->iov[0].iov_base + conn->got;

		copy_bulk(to, data, most);
		ring_expect(&conn->rx);
		copy_bulk(to + most, (const char *)data + most, len - most);
	} else {
		ring_expect(&conn->rx);
		copy_to_iov(dest->iov, dest->iov_cnt, conn->got, data, len);
	}
	conn->got += len;
	return conn->got == conn->want;
}

/*
 * Receive the first fragment, of @len bytes, with its packet. Returns 0 or -FI_E*; the connection
 * may have ended in either case.
 */
static int fragment_first(struct pshm_conn *conn, const struct ring_line *line,
			  const void *data, uint32_t len)
{
	struct packet packet;
	int err;

	memcpy(&packet, line->header, sizeof(packet));
	if (conn->receiving || len > packet.len || (!len && packet.len))
		return -FI_EPROTO;
	conn->got = 0;
	conn->want = packet.len;
	err = engine_packet(conn->wire->base.ep, &conn->base, &packet, data, len, &conn->dest);
	if (err || conn->ended)
		return err;
	/* The engine has consumed a payload that is whole. */
	conn->receiving = len < packet.len;
	if (conn->receiving)
		fragment_take(conn, data, len);
	return 0;
}

/*
 * Receive a line of kind PSHM_FIRST or PSHM_NEXT. Returns the bytes of its fragment, or -FI_E*,
 * which ends the connection. The connection may have ended already in either case.
 */
static int fragment_receive(struct pshm_wire *w, struct pshm_conn *conn, struct ring_line *line,
			    uint32_t note)
{
	struct pshm_fragment fragment;
	bool whole = false;
	const void *data;
	int err;

	memcpy(&fragment, line->payload, sizeof(fragment));
	data = ring_data(&conn->rx, note, fragment.len);
	if (!data)
		return -FI_EPROTO;
	if (ring_kind(note) & PSHM_PROBE && fragment.len >= PSHM_PROBE_MIN)
		pshm_probe_read(conn, data);
	if ((ring_kind(note) & ~(uint32_t)PSHM_PROBE) == PSHM_FIRST) {
		err = fragment_first(conn, line, data, fragment.len);
		if (err || conn->ended)
			return err;
	} else {
		if (!conn->receiving || !fragment.len || fragment.len > conn->want - conn->got)
			return -FI_EPROTO;
		whole = fragment_take(conn, data, fragment.len);
	}
	if (fragment.len)
		ring_release_data(&conn->rx, fragment.len);
	else
		ring_release(&conn->rx);
	if (whole) {
		conn->receiving = false;
		if (conn->dest.cookie)
			engine_payload_done(w->base.ep, &conn->base, conn->dest.cookie);
	}
	conn->lending.arrived += fragment.len;
	return (int)fragment.len;
}

/*
 * Receive a line of kind PSHM_PLACE: copy the payload from where the peer has it. Returns its bytes, or
 * -FI_E*; the connection may have ended in either case.
 */
static int place_receive(struct pshm_wire *w, struct pshm_conn *conn,
			 const struct ring_line *line)
{
	struct pshm_place place;
	struct wire_dest dest;
	struct packet packet;
	const void *from;
	int err;

	memcpy(&packet, line->header, sizeof(packet));
	memcpy(&place, line->payload, sizeof(place));
	from = pshm_peer_place(conn, &place, packet.len);
	/* what a peer lent before it ended the connection may be gone */
	if (!from || !packet.len)
		return pshm_peer_copied(conn) ? -FI_EPROTO : -FI_ECONNRESET;
	err = engine_packet(w->base.ep, &conn->base, &packet, NULL, 0, &dest);
	if (err || conn->ended)
		return err;
	pshm_copy_to_iov(pshm_copy_choice(&conn->copying, PSHM_COPY_MESSAGE, packet.len),
			 dest.iov, dest.iov_cnt, 0, from, packet.len);
	/* a peer that has ended the connection may have changed what it lent */
	if (!pshm_peer_copied(conn))
		return -FI_ECONNRESET;
	ring_release(&conn->rx);
	ring_report(&conn->rx);
	if (dest.cookie)
		engine_payload_done(w->base.ep, &conn->base, dest.cookie);
	return packet.len < BYTES_MAX ? (int)packet.len : (int)BYTES_MAX;
}

/*
 * Receive a line of any kind but PSHM_PACKET. Returns the bytes of its fragment, 0 without one, or
 * -FI_E*, which ends the connection. The connection may have ended already.
 */
static int other_receive(struct pshm_wire *w, struct pshm_conn *conn, struct ring_line *line,
			 uint32_t note)
{
	int err;

	switch (ring_kind(note)) {
	case PSHM_FIRST:
	case PSHM_NEXT:
	case PSHM_FIRST | PSHM_PROBE:
	case PSHM_NEXT | PSHM_PROBE:
		return fragment_receive(w, conn, line, note);
	case PSHM_GROW:
		err = pshm_grow_take(conn, line);
		ring_release(&conn->rx);
		return err;
	case PSHM_MOVE:
		ring_release(&conn->rx);
		return pshm_grow_move(conn);
	case PSHM_PLACE:
		return place_receive(w, conn, line);
	case PSHM_COOP_COPY:
		err = pshm_coop_write_begin(conn, line);
		ring_release(&conn->rx);
		return err;
	default:
		return -FI_EPROTO;
	}
}

/*
 * Prefetch the first lines of a payload, which is copied once a receive is found: between cores
 * that share a cache that takes longer than it saves.
 */
static inline void payload_expect(const struct pshm_conn *conn, const void *payload,
				  uint32_t len)
{
	const char *at = payload, *end = at + (len < EXPECT_MAX ? len : EXPECT_MAX);

	if (conn->stores.kind == PSHM_PLAIN)
		return;
	for (; at < end; at += CACHE_LINE)
		__builtin_prefetch(at);
}

/* Returns the payload of a packet in the data area, or NULL if its place or length is invalid. */
static inline const void *payload_find(struct pshm_conn *conn, uint32_t note, uint32_t len)
{
	const void *payload = ring_data(&conn->rx, note, len);

	if (unlikely(!payload || len > PSHM_CLAIM_MAX))
		return NULL;
	if (unlikely(ring_kind(note) && len >= PSHM_PROBE_MIN))
		pshm_probe_read(conn, payload);
	else
		payload_expect(conn, payload, len);
	return payload;
}

/*
 * The engine was handed a packet, and returned @err: an error ends the connection. Returns false if
 * the connection has ended.
 */
static inline bool packet_taken(struct pshm_conn *conn, int err)
{
	if (unlikely(conn->ended))
		return false;
	if (unlikely(err))
		pshm_conn_fail(conn, err);
	return !err;
}

/* Receive a packet with its payload in the data area. Returns false if the connection has ended. */
static __attribute__((noinline)) bool packet_receive_data(struct pshm_wire *w,
							  struct pshm_conn *conn,
							  const struct packet *packet,
							  uint32_t note)
{
	const void *payload = payload_find(conn, note, packet->len);
	struct wire_dest dest; /* not written, since the payload is whole */

	if (unlikely(!payload)) {
		pshm_conn_fail(conn, -FI_EPROTO);
		return false;
	}
	if (!packet_taken(conn, engine_packet_on(w->base.ep, &conn->base, packet, payload,
						 packet->len, &dest, &pshm_wire_ops)))
		return false;
	ring_release_data(&conn->rx, packet->len);
	return true;
}

/* Receive a line of kind PSHM_PACKET. Returns false if the connection has ended. */
static inline __attribute__((always_inline)) bool packet_receive(struct pshm_wire *w,
								 struct pshm_conn *conn,
								 struct ring_line *line,
								 uint32_t note)
{
	struct wire_dest dest; /* not written, likewise */
	struct packet packet;
	uint32_t len;

	memcpy(&packet, line->header, sizeof(packet));
	len = packet.len;
	if (unlikely(len > RING_INLINE))
		return packet_receive_data(w, conn, &packet, note);
	if (!packet_taken(conn, engine_packet_on(w->base.ep, &conn->base, &packet,
						 line->payload, len, &dest, &pshm_wire_ops)))
		return false;
	ring_take(&conn->rx);
	return true;
}

/*
 * Receive the lines of one connection from @line on, up to LINES_MAX of them, and until their
 * fragments have BYTES_MAX bytes. Returns the number of lines.
 */
static inline __attribute__((always_inline)) int conn_receive(struct pshm_wire *w,
							      struct pshm_conn *conn,
							      struct ring_line *line,
							      uint32_t note)
{
	uint32_t bytes = 0;
	int n = 0, got;

	do {
		n++;
		if (likely(!(ring_kind(note) & ~(uint32_t)PSHM_PROBE))) {
			if (unlikely(!packet_receive(w, conn, line, note)))
				return n;
		} else {
			got = other_receive(w, conn, line, note);
			if (!conn->ended && got < 0)
				pshm_conn_fail(conn, got);
			if (conn->ended)
				return n;
			bytes += (uint32_t)got;
		}
		line = ring_next(&conn->rx, &note);
	} while (unlikely(line) && n < (int)LINES_MAX && bytes < BYTES_MAX);
	ring_report(&conn->rx);
	return n;
}

/*
 * Fail a connection whose peer has reported lines that it can't have taken, or that the peer has
 * ended, once all lines before that have been received. Returns 1 if the connection failed, else 0.
 */
static int conn_sweep(struct pshm_conn *conn)
{
	enum pshm_side other = pshm_other(conn);
	/* A:pshm_pair.ended  ended before the lines of the ring; pairs R:pshm_pair.ended */
	uint32_t how = atomic_load_explicit(&conn->pair->ended[other].value,
					    memory_order_acquire);
	uint32_t note;

	if (unlikely(conn->tx.broken)) {
		pshm_conn_fail(conn, -FI_EPROTO);
		return 1;
	}
	if (likely(how == PSHM_OPEN) || ring_next(&conn->rx, &note))
		return 0;
	pshm_conn_fail(conn, how == PSHM_CLOSED && !conn->receiving ? 0 : -FI_ECONNRESET);
	return 1;
}

/*
 * Poll in the child of a fork: all connections belong to the parent, and fail here, but for the
 * requests that the engine owns. Returns their number.
 */
static int poll_forked(struct pshm_wire *w)
{
	struct pshm_conn *conn;
	int moved = 0;

	for (; (conn = pshm_conn_copy(w)); moved++)
		pshm_conn_fail(conn, -FI_EOPBADSTATE);
	return moved;
}

/* wire_ops.access */
static bool pshm_access(struct engine_ctx *ctx, struct engine_peer *peer,
			const struct engine_access *access)
{
	return engine_access_on(ctx, peer, access, &pshm_wire_ops);
}

/* The same towards a peer whose regions are mapped. */
bool pshm_access_reached(struct engine_ctx *ctx, struct engine_peer *peer,
			 const struct engine_access *access)
{
	return engine_reach_small(ctx, peer, access, &pshm_wire_ops) ||
	       engine_access_on(ctx, peer, access, &pshm_wire_ops);
}

/*
 * wire_conn.access of a single operation, which looks whether the region is mapped: if so the next ones
 * are carried out by pshm_access_reached(). Else small operations to memory elsewhere cost nothing more.
 */
static bool access_try(struct engine_ctx *ctx, struct engine_peer *peer,
		       const struct engine_access *access)
{
	peer->conn->access = pshm_access;
	return pshm_access_reached(ctx, peer, access);
}

/* Unmaps chunks that are no more, of one connection that is cold: their pages stay as long as a peer has them. */
static void cold_tidy(struct pshm_wire *w)
{
	struct pshm_conn *conn;

	if (w->cold_tidied < w->hot_cnt || w->cold_tidied >= w->up_cnt)
		w->cold_tidied = w->hot_cnt;
	if (w->cold_tidied == w->up_cnt)
		return;
	conn = w->up[w->cold_tidied++];
	if (conn)
		pshm_peer_tidy(conn);
}

/* Show this process's arena to peers, and map what they lend or let us reach; and tell tools what was. */
static __attribute__((noinline)) void arenas_sweep(struct pshm_wire *w)
{
	pshm_arena_show_all(w);
	pshm_moved_tell(w);
	for (uint32_t i = 0; i < w->hot_cnt; i++) {
		struct pshm_conn *conn = w->up[i];

		if (!conn)
			continue;
		pshm_peer_map(conn);
		if (conn->base.access == pshm_access && pshm_peer_shows_arena(conn))
			conn->base.access = access_try;
	}
	cold_tidy(w);
}

/*
 * Do the work of a poll besides rings: transfers, requests, and sweeps. Returns the number of
 * steps.
 */
static __attribute__((noinline)) int poll_rest(struct pshm_wire *w)
{
	bool sweep = !(w->tick & SWEEP_MASK);
	int moved = 0;

	if (!list_empty(&w->work))
		moved += pshm_transfers_move(w);
	/* A peer rings for an answer too, so the count is read before answers are searched for. */
	if (pshm_inbox_requests(atomic_load_explicit(&w->inbox->rung, memory_order_relaxed)) !=
	    w->requests_seen)
		moved += pshm_accept(w);
	if (!list_empty(&w->accepted))
		moved += pshm_accepted(w);
	if (!list_empty(&w->connecting))
		moved += pshm_connecting(w, sweep);
	if (!sweep)
		return moved;
	for (uint32_t i = 0; i < w->hot_cnt; i++)
		if (w->up[i])
			moved += conn_sweep(w->up[i]);
	if (!(w->tick & MAP_MASK))
		arenas_sweep(w);
	pshm_sockets_sweep();
	return moved + pshm_polling_sweep(w);
}

/* The part of a poll behind the rings, while w->busy is set. Returns the number of steps. */
static __attribute__((noinline)) int poll_busy(struct pshm_wire *w)
{
	int moved;

	w->in_poll = true;
	moved = w->forked ? poll_forked(w) : poll_rest(w);
	w->in_poll = false;
	if (!list_empty(&w->ended))
		pshm_conn_reap(w);
	w->busy = w->forked || !list_empty(&w->work) || !list_empty(&w->connecting) ||
		  !list_empty(&w->accepted);
	return moved;
}

/*
 * Returns the next line of the hot rings from up[*at] on, or NULL.
 * @at:   in, out: index in up[] of the connection that has the line
 * @note: out: the note of the line
 */
static inline struct ring_line *hot_next(const struct pshm_wire *w, uint32_t *at, uint32_t *note)
{
	for (; *at < w->hot_cnt; ++*at) {
		const struct pshm_conn *conn = w->up[*at];
		struct ring_line *line = likely(conn != NULL) ? ring_next(&conn->rx, note)
							      : NULL;

		if (line)
			return line;
	}
	return NULL;
}

/*
 * Receive the line that hot_next() has found in up[at], and the lines of the hot rings behind it;
 * then do the other work if w->busy is set. Returns the number of lines and steps.
 */
static __attribute__((noinline)) int poll_rings(struct pshm_wire *w, uint32_t at,
						struct ring_line *line, uint32_t note)
{
	int moved = 0;

	w->in_poll = true;
	do {
		moved += conn_receive(w, w->up[at], line, note);
		at++;
		line = hot_next(w, &at, &note);
	} while (unlikely(line));
	w->in_poll = false;
	return likely(!w->busy) ? moved : moved + poll_busy(w);
}

/* A poll with all of its parts: doorbells, rings, and the work besides. */
static __attribute__((noinline)) int poll_all(struct pshm_wire *w)
{
	struct ring_line *line;
	uint32_t at = 0, note;

	if (atomic_load_explicit(&w->inbox->rung, memory_order_relaxed) & PSHM_DOORBELL_WORDS &&
	    !w->forked)
		pshm_polling_take_doorbells(w);
	w->busy = true;
	line = hot_next(w, &at, &note);
	return line ? poll_rings(w, at, line, note) : poll_busy(w);
}

/* wire_ops.poll. Most polls find nothing: they stay in this function, and use no stack. */
static int pshm_poll(struct wire *base)
{
	struct pshm_wire *w = (struct pshm_wire *)base;
	struct pshm_inbox *inbox = w->inbox;
	uint32_t tick = ++w->tick, at = 0, note;
	struct ring_line *line;

	/* A hint for peers that choose whether to access this memory themselves; not ordered. */
	atomic_store_explicit(&inbox->polls, tick, memory_order_relaxed);
	if (unlikely(pshm_inbox_rung(inbox, w->requests_seen) || !(tick & SWEEP_MASK) ||
		     w->busy))
		return poll_all(w);
	line = hot_next(w, &at, &note);
	return line ? poll_rings(w, at, line, note) : 0;
}

/* wire_ops.send, for endpoints with several wires */
static ssize_t pshm_send_on(struct engine_ep *ep, struct engine_peer *peer,
			    const struct engine_msg *msg)
{
	return engine_send_on(ep, peer, msg, &pshm_wire_ops);
}

/* Messages that are not brief, or find the ring full, or a peer that is not ready. */
static __attribute__((noinline)) ssize_t tagged_long(struct engine_ctx *ctx,
						     struct engine_peer *peer, const void *buf,
						     size_t len, uint64_t tag, void *context,
						     uint64_t data, uint32_t flags)
{
	return engine_tagged_on(ctx, peer, buf, len, tag, context, data, flags, &pshm_wire_ops);
}

static engine_path ssize_t tagged(struct engine_ctx *ctx, struct engine_peer *peer,
				  const void *buf, size_t len, uint64_t tag, void *context,
				  uint64_t data, uint32_t flags)
{
	struct engine_msg msg = { .buf = buf,
				  .len = len,
				  .tag = tag,
				  .data = data,
				  .context = context,
				  .flags = flags };

	if (unlikely(!engine_is_brief(peer, &msg, &pshm_wire_ops)))
		return tagged_long(ctx, peer, buf, len, tag, context, data, flags);
	return engine_brief_send(ctx, peer, &msg, &pshm_wire_ops);
}

/* wire_ops.tsend */
static engine_path ssize_t pshm_tsend_on(struct engine_ctx *ctx, struct engine_peer *peer,
					 const void *buf, size_t len, uint64_t tag,
					 void *context)
{
	return tagged(ctx, peer, buf, len, tag, context, 0, engine_tsend_flags(ctx));
}

/* wire_ops.tinject */
static engine_path ssize_t pshm_tinject_on(struct engine_ctx *ctx, struct engine_peer *peer,
					   const void *buf, size_t len, uint64_t tag)
{
	return tagged(ctx, peer, buf, len, tag, NULL, 0, engine_tinject_flags(ctx));
}

/* wire_ops.tsenddata */
static engine_path ssize_t pshm_tsenddata_on(struct engine_ctx *ctx, struct engine_peer *peer,
					     const void *buf, size_t len, uint64_t tag,
					     void *context, uint64_t data)
{
	return tagged(ctx, peer, buf, len, tag, context, data,
		      engine_tsend_flags(ctx) | PACKET_CQ_DATA);
}

/* wire_ops.tinjectdata */
static engine_path ssize_t pshm_tinjectdata_on(struct engine_ctx *ctx, struct engine_peer *peer,
					       const void *buf, size_t len, uint64_t tag,
					       uint64_t data)
{
	return tagged(ctx, peer, buf, len, tag, NULL, data,
		      engine_tinject_flags(ctx) | PACKET_CQ_DATA);
}

/* wire_ops.wake */
static void pshm_wake_conn(struct wire_conn *conn)
{
	pshm_doorbell_ring(pshm_conn_of(conn));
}

const struct wire_ops pshm_wire_ops = {
	.size = sizeof(struct wire_ops),
	.name = "shm",
	.claim_max = PSHM_CLAIM_MAX,
	.eager_max = PSHM_EAGER_MAX,
	.in_order = true,
	.arrives = true,
	.open = pshm_open,
	.close = pshm_close,
	.connect = pshm_connect,
	.disconnect = pshm_disconnect,
	.claim = pshm_claim,
	.publish = pshm_publish,
	.sendv = pshm_sendv,
	.get = pshm_get,
	.poll = pshm_poll,
	.check = pshm_check,
	.local = pshm_local,
	.send = pshm_send_on,
	.tsend = pshm_tsend_on,
	.tinject = pshm_tinject_on,
	.tsenddata = pshm_tsenddata_on,
	.tinjectdata = pshm_tinjectdata_on,
	.brief_max = RING_INLINE,
	.has_brief = pshm_has_brief,
	.claim_brief = pshm_claim_brief,
	.publish_brief = pshm_publish_brief,
	.wake = pshm_wake_conn,
	.shares_memory = true,
	.fill = pshm_fill,
	.bell = pshm_bell,
	.arm = pshm_arm,
	.disarm = pshm_disarm,
	.share_open = pshm_share_open,
	.share_close = pshm_share_close,
	.share_used = pshm_share_used,
	.share_marked = pshm_share_marked,
	.share_cut = pshm_share_cut,
	.taken = pshm_taken,
	.direct_min = PSHM_DIRECT_MIN,
	.direct = pshm_direct,
	.lends = pshm_lends,
	.lends_min = PSHM_LENDS_MIN,
	.lent = pshm_lent,
	.reach = pshm_reach,
	.reached = pshm_reached,
	.stored = pshm_stored,
	.access = pshm_access,
	.accept = pshm_conn_accept,
	.refuse = pshm_conn_refuse,
};

/*
 * The send functions of an endpoint over this wire alone. Each contains the whole path of a small
 * message, the ring included: without WHOLE_PATH the compiler moves their common part into one
 * function. Source: fi_msg(3), fi_tagged(3).
 */
#define WHOLE_PATH __attribute__((flatten))

static ssize_t pshm_tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			  fi_addr_t dest, uint64_t tag, void *context)
{
	return engine_tsend(ep, buf, len, dest, tag, context, &pshm_wire_ops);
}

static ssize_t pshm_tinject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest,
			    uint64_t tag)
{
	return engine_tinject(ep, buf, len, dest, tag, &pshm_wire_ops);
}

static ssize_t pshm_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			      uint64_t data, fi_addr_t dest, uint64_t tag, void *context)
{
	return engine_tsenddata(ep, buf, len, data, dest, tag, context, &pshm_wire_ops);
}

static ssize_t pshm_tinjectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				fi_addr_t dest, uint64_t tag)
{
	return engine_tinjectdata(ep, buf, len, data, dest, tag, &pshm_wire_ops);
}

WHOLE_PATH static ssize_t pshm_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
				    fi_addr_t dest, void *context)
{
	return engine_msend(ep, buf, len, dest, context, &pshm_wire_ops);
}

WHOLE_PATH static ssize_t pshm_inject(struct fid_ep *ep, const void *buf, size_t len,
				      fi_addr_t dest)
{
	return engine_minject(ep, buf, len, dest, &pshm_wire_ops);
}

WHOLE_PATH static ssize_t pshm_senddata(struct fid_ep *ep, const void *buf, size_t len,
					void *desc, uint64_t data, fi_addr_t dest, void *context)
{
	return engine_msenddata(ep, buf, len, data, dest, context, &pshm_wire_ops);
}

WHOLE_PATH static ssize_t pshm_injectdata(struct fid_ep *ep, const void *buf, size_t len,
					  uint64_t data, fi_addr_t dest)
{
	return engine_minjectdata(ep, buf, len, data, dest, &pshm_wire_ops);
}

struct fi_ops_msg pshm_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = engine_recv,
	.recvv = engine_recvv,
	.recvmsg = engine_recvmsg,
	.send = pshm_send,
	.sendv = engine_sendv,
	.sendmsg = engine_sendmsg,
	.inject = pshm_inject,
	.senddata = pshm_senddata,
	.injectdata = pshm_injectdata,
};

struct fi_ops_tagged pshm_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = engine_trecv,
	.recvv = engine_trecvv,
	.recvmsg = engine_trecvmsg,
	.send = pshm_tsend,
	.sendv = engine_tsendv,
	.sendmsg = engine_tsendmsg,
	.inject = pshm_tinject,
	.senddata = pshm_tsenddata,
	.injectdata = pshm_tinjectdata,
};
