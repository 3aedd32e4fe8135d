/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the child of a fork has to find whole. Any thread. */
#ifndef WEFT_SHM_LISTS_H
#define WEFT_SHM_LISTS_H

#include <stdbool.h>

struct pshm_wire;

/* pshm_lists_lock, pshm_lists_unlock - around changes to what a fork has to find whole: wire->conns */
void pshm_lists_lock(void);
void pshm_lists_unlock(void);
/* pshm_fork_watch - from now on the child of a fork leaves alone what is in those lists */
void pshm_fork_watch(void);
/* pshm_fork_also - and then calls @forked, with the lists locked */
void pshm_fork_also(void (*forked)(void));
/* pshm_lists_join, pshm_lists_leave - an endpoint of the process, and not any more */
void pshm_lists_join(struct pshm_wire *wire);
void pshm_lists_leave(struct pshm_wire *wire);

#endif
