/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections that peers request. On the thread that holds the domain. */
#ifndef WEFT_SHM_ACCEPT_H
#define WEFT_SHM_ACCEPT_H

#include "conn.h"

/* pshm_accept - handle requests and answer them; from poll(). Returns how many were handled */
int pshm_accept(struct pshm_wire *wire);

#endif
