/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which of the process's sleepers looks at its sockets.
 *
 * Somebody has to look at the process's sockets soon after something has come by them, whoever it is for and
 * whatever other threads of the program do. So while endpoints sleep until they are woken, one endpoint
 *
 *	is the porter: the sockets are in the poll_set that its domain sleeps on;
 *	or naps: it wakes after 10 ms and looks.
 *
 * An endpoint that was busy naps first, unless it is the porter; after 10 ms of sleep it sleeps until it is
 * woken. So endpoints that are woken often hand nothing on. A porter that wakes while nobody naps hands the
 * sockets to one that sleeps until it is woken: two system calls, which wake nobody.
 *
 * An endpoint whose bell a program has in a descriptor of its own (fi_trywait) counts as asleep until the next call.
 *
 * Called by socket.c alone, with its lock.
 */
#ifndef WEFT_SHM_PORTER_H
#define WEFT_SHM_PORTER_H

#include "socket.h"

/* pshm_porter_join - an endpoint of ours, awake; pshm_porter_leave - not any more */
void pshm_porter_join(struct pshm_listed *listed);
void pshm_porter_leave(struct pshm_listed *listed);

/* pshm_porter_bell - an endpoint has a bell, and its domain a poll_set */
void pshm_porter_bell(struct pshm_listed *listed, int bell, int poll_set);

/* pshm_porter_rest - it is about to sleep, or sleeps. Returns for how many ns at most; UINT64_MAX: until it is woken */
uint64_t pshm_porter_rest(struct pshm_listed *listed);
/* pshm_porter_up - it is awake. Nothing for one that was */
void pshm_porter_up(struct pshm_listed *listed);

/* pshm_porter_settle - the sockets may have been paused: have somebody look who does not wait for them */
void pshm_porter_settle(void);

/*
 * pshm_porter_missed - who looked has found something while the porter slept: nobody may wait on its poll_set
 * (fi_trywait, and then something else), so that another one that sleeps is the porter from now on
 */
void pshm_porter_missed(void);

/* pshm_porter_wake - wake an endpoint, if it sleeps */
void pshm_porter_wake(struct pshm_listed *listed);

/* pshm_porter_forget - in the child of a fork: of those that are left nobody sleeps here; they leave next */
void pshm_porter_forget(void);

#endif
