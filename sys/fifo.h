/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A pipe without a name, behind one descriptor: its owner sleeps on it, and another process of the same user
 * opens it through /proc and writes to it. Any thread. Source: pipe(7), proc(5).
 */
#ifndef WEFT_SYS_FIFO_H
#define WEFT_SYS_FIFO_H

#include <stdint.h>
#include <sys/types.h>

/* Identifies a pipe, whose descriptor number may come to mean something else. */
struct sys_fifo_id {
	uint64_t dev;
	uint64_t ino;
};

/*
 * sys_fifo_create - make an empty pipe
 * @id: out; zero without /proc: only this process can ring it
 * Returns its descriptor, owned, or -FI_E*.
 */
int sys_fifo_create(struct sys_fifo_id *id);

/*
 * sys_fifo_open - open the pipe of another process, for ringing
 * @fd, @id: of that process; not trusted
 * Returns a descriptor, owned; -FI_ENOENT when something else has that number, or another -FI_E*.
 */
int sys_fifo_open(pid_t pid, int fd, const struct sys_fifo_id *id);

/* sys_fifo_ring - make it readable; does nothing for a full one, which is */
void sys_fifo_ring(int fd);

/* sys_fifo_clear - read everything */
void sys_fifo_clear(int fd);

/* sys_fifo_close - takes a descriptor of either kind */
void sys_fifo_close(int fd);

#endif
