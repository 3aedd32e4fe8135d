/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A pipe without a name, behind one descriptor, that another process of the same user rings through
 * /proc and its owner sleeps on. Any thread. Source: pipe(7), proc(5).
 */
#ifndef WEFT_SYS_FIFO_H
#define WEFT_SYS_FIFO_H

#include <stdint.h>
#include <sys/types.h>

/* What tells a pipe from whatever else may have its number later. */
struct sys_fifo_id {
	uint64_t dev;
	uint64_t ino;
};

/*
 * sys_fifo_create - an empty one
 * @id: out; zero where there is no /proc, and only this process can ring it
 * Returns its descriptor, owned, or -FI_E*.
 */
int sys_fifo_create(struct sys_fifo_id *id);

/*
 * sys_fifo_open - that of another process, for ringing
 * @fd, @id: there, from anywhere
 * Returns a descriptor, owned; -FI_ENOENT when something else has that number, or another -FI_E*.
 */
int sys_fifo_open(pid_t pid, int fd, const struct sys_fifo_id *id);

/* sys_fifo_ring - make it readable; a full one is readable already */
void sys_fifo_ring(int fd);

/* sys_fifo_clear - take everything out */
void sys_fifo_clear(int fd);

/* sys_fifo_close - takes a descriptor of either kind */
void sys_fifo_close(int fd);

#endif
