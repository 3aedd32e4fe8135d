/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that processes of one user on one host find by a name. Used by platform/user, for
 * address vectors with a name. Any thread; no state but the handles.
 *
 * No file has the name. Its keeper, the process that published it, holds a listening socket of that name
 * (unix(7), abstract): the kernel lets one process have it, says which one, and frees the name with the
 * process. Others then open the memory through /proc. When the keeper closes the memory or ends, the name is
 * free; processes that have mapped the memory keep it. Each network namespace has its own names.
 */
#ifndef WEFT_SYS_SHARED_NAME_H
#define WEFT_SYS_SHARED_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a name with its NUL: letters, digits, - . _ : */
#define SYS_SHARED_NAME_MAX 64u

struct sys_shared;

/*
 * sys_shared_create - make zeroed memory, which has no name yet
 * @name: that sys_shared_publish() gives it; borrowed during the call
 * @len:  bytes; pages are taken as they are touched
 * @out:  owned, for sys_shared_close()
 *
 * Returns 0, -FI_EINVAL for an impossible name or length, -FI_ENOMEM, or another -FI_E*.
 */
int sys_shared_create(const char *name, size_t len, struct sys_shared **out);

/*
 * sys_shared_publish - give the memory its name: from now on other processes find it
 * Returns 0, -FI_EADDRINUSE when some memory has that name, or another -FI_E*.
 */
int sys_shared_publish(struct sys_shared *shared);

/*
 * sys_shared_attach - find and map the memory of that name
 * @writable: map it for writing too
 * Returns 0, -FI_ENOENT if no process has that name, -FI_EACCES if it is another user's or the
 * keeper's /proc files can't be opened, -FI_EAGAIN while its keeper ends or is overloaded, or
 * another -FI_E*.
 */
int sys_shared_attach(const char *name, bool writable, struct sys_shared **out);

/* sys_shared_map - returns the memory; @len: out: its bytes */
void *sys_shared_map(const struct sys_shared *shared, size_t *len);

/*
 * sys_shared_lock - exclude other writers, through any other handle, of this process too
 * Waits. The lock of a process that ends is released. Returns 0; -FI_EOPBADSTATE after sys_shared_forked(); or
 * another -FI_E*.
 */
int sys_shared_lock(struct sys_shared *shared);
/* sys_shared_unlock - release that lock */
void sys_shared_unlock(struct sys_shared *shared);

/*
 * sys_shared_forked - in the child of a fork: name and lock are the parent's alone, and end with it
 * The memory stays mapped, and can't be locked here. No other thread uses the handle meanwhile.
 */
void sys_shared_forked(struct sys_shared *shared);

/* sys_shared_close - takes a handle, or NULL: unmaps the memory, and frees the name if we keep it */
void sys_shared_close(struct sys_shared *shared);

#endif
