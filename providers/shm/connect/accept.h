/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connections that peers request. On the thread that holds the domain. */
#ifndef WEFT_SHM_ACCEPT_H
#define WEFT_SHM_ACCEPT_H

#include "conn.h"

/* pshm_accept - handle requests and answer them; from poll(). Returns how many were handled */
int pshm_accept(struct pshm_wire *wire);

/* pshm_accepted - report the accepted requests; from poll(). Returns how many there were */
int pshm_accepted(struct pshm_wire *wire);

/* accept and refuse of wire_ops */
void pshm_conn_accept(struct wire_conn *conn, const struct hello *hello);
void pshm_conn_refuse(struct wire_conn *conn, int err, const struct hello_data *data);

#endif
