/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connections of a peer, which this endpoint opens or accepts. The functions by which wires
 * report them (engine_conn_request(), engine_conn_up(), engine_conn_down() and others) are declared
 * in wire/wire.h.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_CONNS_H
#define WEFT_CONNS_H

#include "peers.h"

/*
 * engine_peer_connect - start to connect over the first wire that reaches the peer, or retry
 * Does nothing while a conn is up or under way, or before the time of the next attempt.
 */
void engine_peer_connect(struct engine_peer *peer);

/*
 * engine_peer_dial - connect once to the peer of a MSG endpoint, over its first wire
 * @data: private data for the program of the other side; copied; NULL: none
 *
 * ep->cm_ops reports what becomes of it. Returns 0, or -FI_E* and nothing happened.
 */
int engine_peer_dial(struct engine_peer *peer, const struct hello_data *data);

/*
 * engine_inject_early - returns true if an injected operation can't be taken yet
 *
 * A program need make no progress after an operation that was injected, so with manual progress one
 * is not taken before the peer is connected. This begins to connect, and makes a round of progress:
 * the program may call again without making any. A domain with a thread takes the operation, and so
 * does a peer that was tried in vain, where the operation ends with the reason.
 */
bool engine_inject_early(struct engine_peer *peer);

/* engine_conn_at - returns the peer's conn over the wire with index @idx and that rail, or NULL */
struct wire_conn *engine_conn_at(const struct engine_peer *peer, uint32_t idx, uint32_t rail);

/* engine_conn_link - add a conn to its peer, behind those of its wire */
void engine_conn_link(struct engine_peer *peer, struct wire_conn *conn, uint32_t rail);

/* engine_conns_leave - the conns of a peer are no longer its own: their wire is about to close */
void engine_conns_leave(struct engine_peer *peer);

/* engine_conn_end - disconnect a conn of a peer */
void engine_conn_end(struct wire_conn *conn);

/*
 * engine_conn_failed - a conn of a peer that is up has failed, while the peer may be alive
 * @err: -FI_E* with which operations under way complete
 *
 * The peer lives on if another conn is up and this one has carried nothing; else
 * engine_conn_broken().
 */
void engine_conn_failed(struct wire_conn *conn, int err);

/*
 * engine_conn_broken - packets to or from the peer are lost, while the peer may be alive
 * @err: -FI_E* with which operations under way complete
 *
 * Nothing is sent again over another conn: all conns of the peer end, and operations under way
 * fail. The next operation connects again.
 */
void engine_conn_broken(struct engine_peer *peer, int err);

/*
 * engine_conn_accept - accept a connection request, or refuse it if the peer's state rules it out
 * @hello: of the request
 * @data:  private data for the requester's program, at most HELLO_DATA_MAX bytes; copied; NULL:
 *         none
 *
 * Returns the request to its wire, and 0: engine_conn_up() or engine_conn_down() follows. Or
 * -FI_E*: it is refused.
 */
int engine_conn_accept(struct wire_conn *conn, const struct hello *hello,
		       const struct hello_data *data);

/* engine_conn_refuse - refuse a connection request with -FI_E* @err; returns it to its wire */
void engine_conn_refuse(struct wire_conn *conn, int err, const struct hello_data *data);

/*
 * engine_incarnation_end - the hello of the other side begins a new incarnation: it restarted, or
 * gave up the conns of the last one
 */
void engine_incarnation_end(struct engine_peer *peer, const struct hello *hello);

#endif
