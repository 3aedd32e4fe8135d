/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A place of a process's own: namespaces in which no other process leaves anything, and the
 * operations that the kernel refuses there. Called by a test or by one of its children, while it
 * has one thread. Calls that need a missing right report which: the test is skipped then.
 */
#ifndef WEFT_PLACE_H
#define WEFT_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * place_enter - from here on this process and its children have a /dev/shm, a /tmp and System V objects of their own
 * Returns 0, or -1 and why not.
 */
int place_enter(char *why, size_t len);

/* place_empty - returns true if no file was left there. @what: out: else the first one */
bool place_empty(char *what, size_t len);

/* place_own_mounts - mounts are this process's own from here on. 0, or -1 and why not */
int place_own_mounts(char *why, size_t len);

/* place_lose_proc - no /proc any more; after place_own_mounts(). 0, or -1 and why not */
int place_lose_proc(char *why, size_t len);

/* place_leave_user - another user namespace, with the same user in it. 0, or -1 and why not */
int place_leave_user(char *why, size_t len);

/* place_drop - an ordinary user from here on. 0, or -1 and why not */
int place_drop(char *why, size_t len);

/*
 * place_forbid - let process_vm_*, pidfd_getfd and ptrace, and with @pidfd pidfd_open, fail with
 * @err in this process, by seccomp
 * Returns 0, or -1 and why not.
 */
int place_forbid(int err, bool pidfd, char *why, size_t len);

#endif
