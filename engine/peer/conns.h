/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connections of a peer: over the first wire that leads there, or accepted. What wires tell of them
 * (engine_accept(), engine_conn_up(), engine_conn_down()) is in wire.h.
 *
 * The caller holds the domain.
 */
#ifndef WEFT_CONNS_H
#define WEFT_CONNS_H

#include "peers.h"

/* engine_peer_connect - begin to connect, when nothing is under way */
void engine_peer_connect(struct engine_peer *peer);

/* engine_conn_end - drop the conn over one wire */
void engine_conn_end(struct engine_peer *peer, uint32_t idx);

/*
 * engine_conn_broken - a conn of the peer can't go on, while the peer may be there
 * @err: -FI_E* that the operations complete with
 *
 * Nothing is sent again over another conn: all of them end, and what was under way fails. The next
 * operation connects anew.
 */
void engine_conn_broken(struct engine_peer *peer, int err);

#endif
