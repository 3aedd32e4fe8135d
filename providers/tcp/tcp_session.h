/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What outlives the sockets of a conn, and how a socket that breaks is replaced.
 *
 * Each lane carries a byte stream in each direction. Both sides count its bytes, whatever socket
 * they take, and the sender retains what the peer has not acknowledged: the output of the control
 * lane, and the caller's memory for the data lane, whose operations end with the acknowledgement.
 * When a socket ends without TCP_OP_BYE the side that has connected connects again, both tell what
 * has arrived, and both continue from there: every byte arrives once, so that nothing above the
 * wire notices. The other side waits, and asks at the peer's port whether the peer lives.
 *
 * It is given up when the peer does not know the session (it was restarted, or has given it up),
 * when the port refuses for TCP_REFUSED_NS (the process has ended), or when the peer's host gives
 * no sign for FI_TCP_DEAD_MS. A peer that computes is none of these: its kernel accepts, and its
 * answer is awaited.
 */
#ifndef WEFT_TCP_SESSION_H
#define WEFT_TCP_SESSION_H

#include "tcp_wire.h"

#define TCP_REFUSED_NS 80000000u /* a port that refuses for so long has no process */
/* Conns of a wire that wait for their peer to connect again: one more, and the oldest gives way */
#define TCP_LOST_MAX 1024u

/* ---- session.c: counts, and what is retained ---- */

/* tcp_session_begin - both hellos are there; @other: that of the other side than conn->hello */
void tcp_session_begin(struct tcp_conn *conn, const struct hello *other);

/*
 * tcp_session_known - the conns among which is that of a peer's @epoch, if it has been accepted: a
 * small part of all, unless peers choose their epochs to the contrary
 */
struct list *tcp_session_known(struct tcp_wire *wire, uint64_t epoch);

/* tcp_session_end - the conn is dead */
void tcp_session_end(struct tcp_conn *conn);

/* tcp_session_stream - returns what is known of the lane's stream */
static inline struct tcp_stream *tcp_session_stream(struct tcp_conn *conn,
						    const struct tcp_lane *lane)
{
	return lane == &conn->control ? &conn->session.control : &conn->session.data;
}

/* tcp_session_wrote - conn->head has grown: forget what need not be retained */
static inline void tcp_session_wrote(struct tcp_conn *conn)
{
	if (!conn->session.on)
		conn->kept = conn->head;
	if (conn->kept != conn->tail)
		return;
	conn->out_pos += conn->tail;
	conn->kept = conn->head = conn->tail = 0;
}

/*
 * tcp_session_turn - move what is retained to the front of the buffer, if that is cheap or urgent
 */
void tcp_session_turn(struct tcp_conn *conn);

/*
 * tcp_session_grow - make room for @len bytes at the tail of a buffer that has too little
 * Returns false when there is none: TCP_OUT_LEN bytes are retained, or memory is lacking.
 */
bool tcp_session_grow(struct tcp_conn *conn, size_t len);

/*
 * tcp_session_shrink - a conn that is not in use keeps no more memory than what it retains takes
 * Not between claim and publish.
 */
void tcp_session_shrink(struct tcp_conn *conn);

/* tcp_session_room - returns true if @len more bytes can be retained */
static inline bool tcp_session_room(struct tcp_conn *conn, size_t len)
{
	return likely(conn->tail + len <= conn->out_turn) || tcp_session_grow(conn, len);
}

/*
 * tcp_session_arrived - input of the control lane was handled: an acknowledgement may be due
 *
 * It leaves with the next packet, or some polls after the last input; once much is due, at the
 * end of this poll. Only from poll.
 */
void tcp_session_arrived(struct tcp_conn *conn);

/*
 * tcp_session_due - the payload of an operation has arrived on the data lane: its sender waits for
 * the acknowledgement
 *
 * It leaves at the end of this poll if nothing more is there to read, or once it tells of several;
 * else with the next packet, or a few polls later.
 */
void tcp_session_due(struct tcp_conn *conn);

/* tcp_session_drained - the data lane was read empty, behind a payload. Only from poll */
void tcp_session_drained(struct tcp_conn *conn);

/* tcp_session_ready - returns true if an acknowledgement in wire->telling waits for nothing more */
bool tcp_session_ready(const struct tcp_conn *conn);

/* tcp_session_tell - append an acknowledgement that is due, if there is room for it */
void tcp_session_tell(struct tcp_conn *conn);

/* tcp_session_idle - append a TCP_OP_IDLE. Returns false without memory */
bool tcp_session_idle(struct tcp_conn *conn);

/*
 * tcp_session_last - append an acknowledgement that is due, in front of the orderly end: the last one,
 * for which there is room
 */
void tcp_session_last(struct tcp_conn *conn);

/*
 * tcp_session_acked - the peer acknowledges the first @control and @data bytes of the lanes
 * Fewer than were acknowledged before change nothing: such an acknowledgement was sent before a break, and is sent
 * again on the new socket, whose greeting has told of all. Returns 0, or -FI_EINVAL for bytes that were not sent.
 */
int tcp_session_acked(struct tcp_conn *conn, uint64_t control, uint64_t data);

/*
 * tcp_session_rewind - the peer has received the first @count bytes of the lane: the next socket
 * begins behind them
 * Returns 0, or -FI_EINVAL for bytes that were not sent, or are retained no more.
 */
int tcp_session_rewind(struct tcp_conn *conn, const struct tcp_lane *lane, uint64_t count);

/* tcp_session_unsettled - returns true if a lane is broken that still has something to deliver */
bool tcp_session_unsettled(const struct tcp_conn *conn);

/* ---- resume.c: lanes that break ---- */

/*
 * tcp_session_silence - returns true for an error, -FI_E*, by which the kernel says that the peer's
 * host gave no sign for long
 */
static inline bool tcp_session_silence(int err)
{
	return err == -FI_ETIMEDOUT || err == -FI_EHOSTUNREACH || err == -FI_ENETUNREACH;
}

/*
 * tcp_session_broken - nothing more arrives on a lane that was up
 * @err: 0 for an end of file, else -FI_E*
 * Returns true if it will be made again; false: it has ended for good. Only from poll.
 */
bool tcp_session_broken(struct tcp_conn *conn, struct tcp_lane *lane, int err);

/*
 * tcp_session_lost - a lane of a conn that is up has no socket: have the timer make it again
 * @err: how it broke; 0: it was closed in order
 */
void tcp_session_lost(struct tcp_conn *conn, struct tcp_lane *lane, uint64_t now, int err);

/*
 * tcp_session_unplug - close the socket of a lane, which gathers what is sent from then on, as it does
 * when the kernel takes no more
 * @state: TCP_LANE_BROKEN, TCP_LANE_IDLE; or TCP_LANE_NONE for a data lane that is opened when it is needed
 */
void tcp_session_unplug(struct tcp_conn *conn, struct tcp_lane *lane, enum tcp_lane_state state);

/* tcp_session_failed - an attempt to make a lane has failed. Returns false if there is no other */
bool tcp_session_failed(struct tcp_conn *conn, struct tcp_lane *lane, int err);

/*
 * tcp_session_dial - begin to make a lane of a conn that is up
 * Returns 0, also if it is tried again later; -FI_EAGAIN: no descriptor, nothing happened; or
 * -FI_E* that ends the conn.
 */
int tcp_session_dial(struct tcp_conn *conn, struct tcp_lane *lane);

/*
 * tcp_session_ask - have the side that connected open the data lane, or make it again: at once, or when there
 * is memory to tell it
 */
void tcp_session_ask(struct tcp_conn *conn);

/* tcp_session_wanted - the peer wants another data lane than the one of @turn. Only from poll */
void tcp_session_wanted(struct tcp_conn *conn, uint64_t turn);

/* tcp_session_timer - attempts that are due. Only from poll */
void tcp_session_timer(struct tcp_conn *conn, uint64_t now);

/* tcp_session_say - fill in what a preamble says of the lane */
void tcp_session_say(const struct tcp_conn *conn, const struct tcp_lane *lane,
		     struct tcp_preamble *preamble);

/* tcp_session_greeted - read the answer to that. Only from poll. Returns things moved */
int tcp_session_greeted(struct tcp_conn *conn, struct tcp_lane *lane);

/* tcp_session_misnamed - returns true for what no preamble says of a session */
bool tcp_session_misnamed(const struct tcp_preamble *preamble);

/*
 * tcp_session_admit - make a guest a lane of the session that it names, or refuse it
 * Returns false, and has done nothing, if it is the first one of a session. Only from poll.
 */
bool tcp_session_admit(struct tcp_wire *wire, struct tcp_guest *guest);

#endif
