/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Waking a peer that sleeps. On the thread that holds the domain. */
#ifndef WEFT_SHM_WAKE_H
#define WEFT_SHM_WAKE_H

#include "conn.h"

/* pshm_peer_wake - wake the owner of the peer's inbox if it sleeps; the inbox is mapped */
void pshm_peer_wake(struct pshm_conn *conn);
/*
 * pshm_peer_set_no_wake - inform the peer that this side can't wake it, so that it sleeps for 1 ms
 * at most; or that it can
 */
void pshm_peer_set_no_wake(struct pshm_conn *conn, bool no_wake);

#endif
