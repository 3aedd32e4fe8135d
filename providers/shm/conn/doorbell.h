/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Waking a peer that sleeps. On the thread that holds the domain. */
#ifndef WEFT_SHM_DOORBELL_H
#define WEFT_SHM_DOORBELL_H

#include "conn.h"

/* pshm_ring - the owner of that conn's inbox may sleep: wake it */
void pshm_ring(struct pshm_conn *conn);
/* pshm_mute - tell the peer whether we can't wake it: then it does not sleep for long */
void pshm_mute(struct pshm_conn *conn, bool mute);

#endif
