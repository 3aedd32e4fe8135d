/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets by which processes of one user on one host hand each other descriptors, where /proc does not
 * lead from one to the other. Used by providers. Any thread; no state.
 *
 * A listener has a random number for a name: an abstract one (unix(7)), which exists within a network
 * namespace and leaves nothing behind, or a socket file in a folder, for processes that share no more than
 * that. Nobody is kept from either by its name: that both are the same user is what the kernel says
 * of them, so that neither the folder's owner nor its mode matters. Messages are whole or not
 * there (SOCK_SEQPACKET), and nothing here waits.
 */
#ifndef WEFT_SYS_LOCAL_SOCKET_H
#define WEFT_SYS_LOCAL_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SYS_LOCAL_FDS 2u /* descriptors that a message has at most */

/*
 * sys_local_listen - be found by a number
 * @folder: where a socket file is made, of mode 0600; NULL: an abstract name
 *
 * A file appears when connecting works already. Returns the descriptor, owned; -FI_EINVAL for a folder
 * whose path is too long or that is none; -FI_EADDRINUSE; or another -FI_E*.
 */
int sys_local_listen(uint64_t number, const char *folder);

/* sys_local_remove - the socket file of a listener that is closed */
void sys_local_remove(uint64_t number, const char *folder);

/*
 * sys_local_tidy - remove what listeners of ours that ended without a word left in the folder
 * Nobody listens there any more. A folder on a file system that other hosts may share is left alone: there
 * may be listeners of which this kernel does not know.
 */
void sys_local_tidy(const char *folder);

/*
 * sys_local_connect - a socket to the listener of that number
 * @folder: where its socket file is; NULL: an abstract name
 * Returns the descriptor, owned; -FI_ECONNREFUSED when there is none, or only what it left;
 * -FI_EAGAIN when too many wait to be accepted; or another -FI_E*.
 */
int sys_local_connect(uint64_t number, const char *folder);

/* sys_local_accept - the next that connected; its descriptor, owned, -FI_EAGAIN, or another -FI_E* */
int sys_local_accept(int listener);

/*
 * sys_local_same_user - is the other end, when it connected or began to listen, of our user? 1 or 0
 * @pid: out, if it is: its process; 0 when it has no number in our pid namespace
 */
int sys_local_same_user(int sock, pid_t *pid);

/*
 * sys_local_send - one message
 * @fds: @fd_cnt descriptors that go with it, borrowed; at most SYS_LOCAL_FDS
 * Returns 0; -FI_EAGAIN when the other end takes no more now; or another -FI_E*.
 */
int sys_local_send(int sock, const void *msg, size_t len, const int *fds, unsigned int fd_cnt);

/* What comes with a message. */
struct sys_local_given {
	int fds[SYS_LOCAL_FDS]; /* owned */
	unsigned int cnt;
	int err; /* -FI_EMFILE: there were more than are here: for want of room for descriptors, or beyond the limit */
};

/*
 * sys_local_recv - the next message
 * @given: out, also when it has another length
 * Returns its length, which is more than @len when it was longer; 0 when the other end is closed;
 * -FI_EAGAIN; or another -FI_E*. With an error there are no descriptors.
 */
ssize_t sys_local_recv(int sock, void *msg, size_t len, struct sys_local_given *given);

/* sys_local_over - is the other end closed, or its process dead? 1, 0 or -FI_E* */
int sys_local_over(int sock);

/* sys_local_end - nothing passes any more: the other end finds it over */
void sys_local_end(int sock);

/* sys_local_close - takes a socket of any kind */
void sys_local_close(int sock);

#endif
