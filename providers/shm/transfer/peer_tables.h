/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Key tables of peers' domains, each mapped once in this process, whatever number of connections look keys up in
 * it. Not on the path of a message: a connection keeps the one that it uses. Any thread.
 */
#ifndef WEFT_SHM_PEER_TABLES_H
#define WEFT_SHM_PEER_TABLES_H

#include "conn.h"

struct pshm_peer_table {
	/* in the list of all; protected by the lock of lists.c, as refs is */
	struct list link;
	/* connections that use it */
	uint32_t refs;
	/* that shows it, which each of those connections holds; and which of its tables it is */
	const struct pshm_process *process;
	uint8_t nonce[PSHM_NONCE];
	struct pshm_region region;
};

/*
 * pshm_peer_table_get - map the table that a process shows, unless that was done
 * @process: held by the caller until pshm_peer_table_put()
 * @shown:   its location, in a private copy
 * Returns 0 and a reference at @table, or an error as pshm_table_open() does.
 */
int pshm_peer_table_get(const struct pshm_process *process, const struct pshm_shown *shown,
			struct pshm_peer_table **table);

/* pshm_peer_table_put - drop a reference: with the last one it is unmapped */
void pshm_peer_table_put(struct pshm_peer_table *table);

#endif
