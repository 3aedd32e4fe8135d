/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lists that are consistent in the child of a fork. Any thread. */
#ifndef WEFT_SHM_LISTS_H
#define WEFT_SHM_LISTS_H

#include <stdbool.h>

struct pshm_wire;

/*
 * pshm_lists_lock, pshm_lists_unlock - around changes of wire->conns, of wire_share.all and of the list of
 * peers' tables
 */
void pshm_lists_lock(void);
void pshm_lists_unlock(void);
/* pshm_fork_watch - make the child of a fork leave the objects in those lists alone, from now on */
void pshm_fork_watch(void);
/* pshm_fork_also - in the child call @forked after that, with the lists locked */
void pshm_fork_also(void (*forked)(void));
/* pshm_lists_join, pshm_lists_leave - add an endpoint of the process, and remove it */
void pshm_lists_join(struct pshm_wire *wire);
void pshm_lists_leave(struct pshm_wire *wire);

#endif
