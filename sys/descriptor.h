/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors that a program does not know of.
 *
 * malloc(), free() and fork() of a program may come here with locks held, and are no cancellation points. open(),
 * read(), pread(), write(), poll() and close() of the C library are: a thread that is to be cancelled would end in them, and
 * nobody would ever get the locks. What mem/ does with descriptors it does by these, which make the
 * system calls themselves, and so does who holds a lock of the process that fork() takes. They return what those do, and set errno. Any thread; no state.
 */
#ifndef WEFT_SYS_DESCRIPTOR_H
#define WEFT_SYS_DESCRIPTOR_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The least number that a descriptor of ours gets, where the process may have so many. */
#define SYS_DESCRIPTOR_FIRST 32

/*
 * sys_descriptor_keep - give a descriptor that stays open a number that the program does not use without opening it
 * @fd: owned; negative: nothing is done
 *
 * A program that was started without standard output has 1 as the first descriptor of whoever opens one, and prints
 * into it. Shells and their scripts choose numbers up to 9, and some above it. The kernel has a table for 64 at first,
 * which need not grow for this.
 * Returns it under its number, which is above 2; -1: it is closed, there is none (EMFILE).
 */
int sys_descriptor_keep(int fd);

/* sys_descriptor_room - returns true if the process can have three more; @fd: one that it has */
bool sys_descriptor_room(int fd);

/* sys_descriptor_open - open a file, close-on-exec, for a short time: it gets any number */
int sys_descriptor_open(const char *path, int flags);

/* sys_descriptor_read - as read(2); sys_descriptor_read_at - as pread(2) */
ssize_t sys_descriptor_read(int fd, void *buf, size_t len);
ssize_t sys_descriptor_read_at(int fd, void *buf, size_t len, off_t at);

/* sys_descriptor_write - as write(2) */
ssize_t sys_descriptor_write(int fd, const void *buf, size_t len);

/* sys_descriptor_poll - as poll(2); ends early in a signal handler, as that does */
int sys_descriptor_poll(struct pollfd *fds, nfds_t cnt, int ms);

/* sys_descriptor_close - as close(2); errno is as it was */
void sys_descriptor_close(int fd);

#endif
