/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes that we share memory with, each held by one descriptor however many connections lead
 * there: a number alone could come to mean another process. What is held is the memory of a process
 * (sys/image.h), since one that begins another program is as dead to us as one that was killed, and has
 * the same number. Slow paths only; a lock of its own, so that endpoints of different domains share them.
 */
#ifndef WEFT_SHM_PROCESS_H
#define WEFT_SHM_PROCESS_H

#include "list.h"

enum pshm_held_by {
	PSHM_BY_IMAGE,
	/* Where /proc does not have that. These two don't notice when it begins another program: */
	PSHM_BY_PIDFD,
	PSHM_BY_FOLDER, /* in /proc */
	/* To it, which ends with it, or its program: the number may mean nothing here. */
	PSHM_BY_SOCKET,
};

struct pshm_process {
	struct list link;
	uint32_t pid; /* 0: it has none in our pid namespace */
	uint32_t refs;
	int fd;
	enum pshm_held_by how;
	_Atomic bool over; /* found dead, by a socket */
	/* Of who made it; NULL: here. Gives a hold back. */
	void (*release)(struct pshm_process *process);
	/* Likewise. Wakes the endpoint there that has nonce @to; NULL: it is woken by its pipe. */
	void (*wake)(struct pshm_process *process, const uint8_t *to);
};

/* pshm_process_watch - have forks find the table whole; before the first get, and not in a thread's round */
void pshm_process_watch(void);

/*
 * pshm_process_get - hold the process that has this number now
 * @pid: from anywhere
 *
 * It has that number and runs the same program until it is found dead. Returns 0 and the process, to be
 * given back by pshm_process_put(); -FI_EHOSTUNREACH for no such process, -FI_ENOSYS, -FI_EMFILE,
 * -FI_ENOMEM.
 */
int pshm_process_get(uint32_t pid, struct pshm_process **process);

/* pshm_process_put - takes one hold */
void pshm_process_put(struct pshm_process *process);

/* pshm_process_dead - has it ended, or begun another program; false when that can't be told */
bool pshm_process_dead(const struct pshm_process *process);

/* pshm_process_gone - does no living process have this number; false when that can't be told */
bool pshm_process_gone(uint32_t pid);

#endif
