/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that processes of one user on one host find by a name. Used by platform/user, for
 * address vectors with a name. Any thread; no state but the handles.
 *
 * Nothing in a file system carries the name. Its keeper, the process that published it, holds
 * a listening socket of that name (unix(7), abstract): the kernel lets one process have it, says
 * which one that is, and frees the name with the process. The memory is then opened through
 * /proc. When the keeper closes it or ends, the name is free for another; who has the memory
 * keeps it. Network namespaces have names of their own.
 */
#ifndef WEFT_SYS_SHARED_NAME_H
#define WEFT_SYS_SHARED_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define SYS_SHARED_NAME_MAX 64u /* bytes of a name with its NUL: letters, digits, - . _ : */

struct sys_shared;

/*
 * sys_shared_create - zeroed memory of our own that has no name yet
 * @name: that it shall have; borrowed during the call
 * @len:  bytes; pages are taken as they are touched
 * @out:  owned, for sys_shared_close()
 *
 * Returns 0, -FI_EINVAL for an impossible name or length, -FI_ENOMEM, or another -FI_E*.
 */
int sys_shared_create(const char *name, size_t len, struct sys_shared **out);

/*
 * sys_shared_publish - give the memory its name: from now on others find it as it stands
 * Returns 0, -FI_EADDRINUSE when some memory has that name, or another -FI_E*.
 */
int sys_shared_publish(struct sys_shared *shared);

/*
 * sys_shared_attach - find and map the memory of that name
 * @writable: map it for writing too
 *
 * Returns 0, -FI_ENOENT when nobody has that name, -FI_EACCES when it is another user's or the
 * keeper may not be looked into, -FI_EAGAIN when its keeper is just going or overloaded, or
 * another -FI_E*.
 */
int sys_shared_attach(const char *name, bool writable, struct sys_shared **out);

/* sys_shared_map - the memory; @len: out: its bytes */
void *sys_shared_map(const struct sys_shared *shared, size_t *len);

/*
 * sys_shared_lock - hold what processes that write exclude each other by
 * Between handles, of one process too; waits. Freed when its holder ends. Returns 0 or -FI_E*.
 */
int sys_shared_lock(struct sys_shared *shared);
/* sys_shared_unlock - give it back */
void sys_shared_unlock(struct sys_shared *shared);

/* sys_shared_close - takes a handle, or NULL: unmaps the memory, and frees the name if we keep it */
void sys_shared_close(struct sys_shared *shared);

#endif
