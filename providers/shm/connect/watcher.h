/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The watcher: which of the sleeping endpoints of a process the process's sockets wake.
 *
 * Input of the sockets has to be read soon, whichever endpoint it is for and whatever other threads
 * of the program do. So while endpoints sleep without a limit, one endpoint
 *
 *	is the watcher: the poll set that its domain sleeps on holds the sockets;
 *	or naps: it wakes after 10 ms and reads them.
 *
 * An endpoint that was busy naps first, unless it is the watcher; after 10 ms of sleep it sleeps
 * until it is woken. So endpoints that are woken often never pass the sockets on. A watcher that
 * wakes while no endpoint naps passes them on to one that sleeps until it is woken: two system
 * calls, which wake no thread.
 *
 * An endpoint whose bell a program holds in a descriptor of its own (fi_trywait) counts as asleep
 * until the program's next call.
 *
 * Called by socket.c alone, with its lock.
 */
#ifndef WEFT_SHM_WATCHER_H
#define WEFT_SHM_WATCHER_H

#include "socket.h"

/* pshm_watcher_join, pshm_watcher_leave - an endpoint of this process, awake, begins and ends */
void pshm_watcher_join(struct pshm_socket_state *s);
void pshm_watcher_leave(struct pshm_socket_state *s);

/* pshm_watcher_bell - an endpoint has a bell, held by the poll set that its domain sleeps on */
void pshm_watcher_bell(struct pshm_socket_state *s, int bell, int poll_set);

/*
 * pshm_watcher_sleep - an endpoint is about to sleep, or sleeps
 * Returns for how many ns at most; UINT64_MAX: until it is woken.
 */
uint64_t pshm_watcher_sleep(struct pshm_socket_state *s);
/* pshm_watcher_woken - an endpoint is awake; without effect if it already was */
void pshm_watcher_woken(struct pshm_socket_state *s);

/*
 * pshm_watcher_choose - if endpoints sleep and none of them reads the sockets, have one do so
 * To be called once the sockets may have been paused, and after every other change.
 */
void pshm_watcher_choose(void);

/*
 * pshm_watcher_replace - make another sleeping endpoint the watcher
 * The sockets had input while the watcher slept, and it did not wake: possibly no thread waits on
 * its poll set (fi_trywait, and then something else).
 */
void pshm_watcher_replace(void);

/* pshm_watcher_wake - wake an endpoint, if it sleeps */
void pshm_watcher_wake(struct pshm_socket_state *s);

/* pshm_watcher_forget - in the child of a fork: no endpoint of the parent sleeps here */
void pshm_watcher_forget(void);

#endif
