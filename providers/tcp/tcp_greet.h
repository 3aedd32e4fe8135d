/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connecting, accepting, preambles and answers: until a lane is up. tcp_connect(): see wire.h.
 */
#ifndef WEFT_TCP_GREET_H
#define WEFT_TCP_GREET_H

#include "tcp_wire.h"

int tcp_connect(struct wire *wire, struct engine_peer *peer, const struct weft_addr *addr,
		const struct hello *hello, struct wire_conn **conn);

/* accept and refuse of wire_ops */
void tcp_conn_accept(struct wire_conn *conn, const struct hello *hello);
void tcp_conn_refuse(struct wire_conn *conn, int err, const struct hello_data *data);

/* tcp_conn_accepted - bring up a conn that the engine has accepted, or end it; from poll */
void tcp_conn_accepted(struct tcp_conn *conn);

/* tcp_lane_connect - begin to connect a lane to conn->remote. Returns 0 or -FI_E* */
int tcp_lane_connect(struct tcp_conn *conn, struct tcp_lane *lane);

/*
 * tcp_greet_answer - read the answer, once this side has proved the secret, where there is one
 * It is with the stream of the lane. Returns as tcp_greet_fill().
 */
int tcp_greet_answer(struct tcp_conn *conn, struct tcp_lane *lane);

/*
 * tcp_say_answer - send an answer in one piece, for which a lane without output has room
 * Returns true if it is sent.
 */
bool tcp_say_answer(struct tcp_lane *lane, const struct tcp_answer *answer);

/* tcp_answer_error - returns what an answer says, or is: 0 or -FI_E* */
int tcp_answer_error(const struct tcp_answer *answer);

/* tcp_data_up - a data lane is admitted: it gets a larger buffer than the system's */
void tcp_data_up(struct tcp_conn *conn);

/* tcp_log_foreign - log once that a peer has another protocol or version, and the remedy */
void tcp_log_foreign(struct tcp_hub *hub, const char *what, int fd);

/*
 * tcp_greet_fill - read into @room until it is full
 * @len: in, out: bytes that have been read
 * Returns 1 when it is, 0 when more has to arrive, or -FI_E*.
 */
int tcp_greet_fill(struct tcp_lane *lane, void *room, size_t room_len, uint32_t *len);

/*
 * tcp_data_open - begin to open the data lane, or ask the peer to
 *
 * Poll finds the outcome: the lane is up, the conn fails, or for lack of descriptors it is tried
 * again later.
 */
void tcp_data_open(struct tcp_conn *conn);

/* tcp_accept - accept connections of the listener, a bounded number */
void tcp_accept(struct tcp_port *port);

/* tcp_guest_event - read the preamble; once complete the guest is in wire->arrived, or refused */
void tcp_guest_event(struct tcp_guest *guest);

/* tcp_guest_admit - make a guest of this wire a lane, or refuse it. Only from poll */
void tcp_guest_admit(struct tcp_guest *guest, struct tcp_wire *wire);
void tcp_guest_drop(struct tcp_guest *guest);
/* tcp_guest_refuse - answer with @err, -FI_E*, and drop the guest */
void tcp_guest_refuse(struct tcp_guest *guest, int err);

/* tcp_greet_event - handle events of a lane that this side connects. Returns things moved */
int tcp_greet_event(struct tcp_conn *conn, struct tcp_lane *lane);

#endif
