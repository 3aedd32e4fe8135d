/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes that this one shares memory with. Each is held by one descriptor for all connections to
 * it, since the number of a process that has ended may be given to another. The descriptor is one
 * of the process's memory (sys/image.h), since a process that executes another program keeps its
 * number, and counts as dead. For slow paths. The table has a lock of its own, so that endpoints of
 * different domains share it.
 */
#ifndef WEFT_SHM_PROCESS_H
#define WEFT_SHM_PROCESS_H

#include "list.h"

enum pshm_held_by {
	PSHM_BY_IMAGE,
	/*
	 * Used where /proc has no such file. The next two do not detect that the process executes
	 * another program.
	 */
	PSHM_BY_PIDFD,
	/* its folder in /proc */
	PSHM_BY_FOLDER,
	/*
	 * A socket to it, which ends with the process or its program. Its number may mean nothing
	 * here.
	 */
	PSHM_BY_SOCKET,
};

struct pshm_process {
	struct list link;
	/* 0: it has no number in our pid namespace */
	uint32_t pid;
	uint32_t refs;
	int fd;
	enum pshm_held_by how;
	/* the socket has ended */
	_Atomic bool over;
	/* drops a reference, if another file made the object; else NULL */
	void (*release)(struct pshm_process *process);
	/* likewise; wakes the endpoint there that has nonce @to. NULL: it is woken by its pipe */
	void (*wake)(struct pshm_process *process, const uint8_t *to);
};

/*
 * pshm_process_watch - let forks wait for the table's lock; called before the first get, and not
 * within a thread's round
 */
void pshm_process_watch(void);

/*
 * pshm_process_get - hold the process that has this number now
 * @pid: from anywhere
 *
 * It has that number and runs the same program until it is found dead. Returns 0 and a reference,
 * for pshm_process_put(); -FI_EHOSTUNREACH for no such process, -FI_ENOSYS, -FI_EMFILE,
 * -FI_ENOMEM.
 */
int pshm_process_get(uint32_t pid, struct pshm_process **process);

/* pshm_process_put - drop a reference */
void pshm_process_put(struct pshm_process *process);

/*
 * pshm_process_dead - returns true if the process has ended or executes another program; false if
 * that can't be found out
 */
bool pshm_process_dead(const struct pshm_process *process);

/*
 * pshm_process_gone - returns true if no living process has this number; false if that can't be
 * found out
 */
bool pshm_process_gone(uint32_t pid);

#endif
