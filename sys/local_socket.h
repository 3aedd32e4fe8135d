/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets by which processes of one user on one host hand each other descriptors, where /proc does not
 * lead from one to the other. Used by providers. Any thread; no state.
 *
 * A listener's name is a random number: an abstract name (unix(7)), which exists within a network namespace
 * and leaves nothing behind, or a socket file in a folder, for processes that share no more than that. The
 * name protects neither; the kernel says whether both ends are of one user (SO_PEERCRED), so that the
 * folder's owner and mode do not matter. Messages are whole or not there (SOCK_SEQPACKET). Nothing here
 * waits.
 */
#ifndef WEFT_SYS_LOCAL_SOCKET_H
#define WEFT_SYS_LOCAL_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Descriptors of a message, at most. */
#define SYS_LOCAL_FDS 2u

/*
 * sys_local_listen - listen at a number
 * @folder: where a socket file is made, of mode 0600; NULL: an abstract name
 *
 * A file appears when connecting works already. Returns the descriptor, owned; -FI_EINVAL for a folder
 * whose path is too long or that is none; -FI_EADDRINUSE; or another -FI_E*.
 */
int sys_local_listen(uint64_t number, const char *folder);

/* sys_local_remove - remove the socket file of a listener of ours */
void sys_local_remove(uint64_t number, const char *folder);

/*
 * sys_local_remove_stale - remove socket files of our user in the folder at which no process listens
 * Does nothing on a file system that other hosts may share: this kernel does not know their listeners.
 */
void sys_local_remove_stale(const char *folder);

/*
 * sys_local_connect - connect to the listener of that number
 * @folder: where its socket file is; NULL: an abstract name
 * Returns the descriptor, owned; -FI_ECONNREFUSED when there is none, or only its file;
 * -FI_EAGAIN when too many wait to be accepted; or another -FI_E*.
 */
int sys_local_connect(uint64_t number, const char *folder);

/* sys_local_accept - accept the next connection. Returns its descriptor, owned, -FI_EAGAIN, or another -FI_E* */
int sys_local_accept(int listener);

/*
 * sys_local_same_user - returns 1 if the other end was of our user when it connected or began to listen, else 0
 * @pid: out, for 1: its process; 0 when that has no number in our pid namespace
 */
int sys_local_same_user(int sock, pid_t *pid);

/*
 * sys_local_send - send one message
 * @fds: @fd_cnt descriptors that go with it, borrowed; at most SYS_LOCAL_FDS
 * Returns 0; -FI_EAGAIN when the other end takes no more now; or another -FI_E*.
 */
int sys_local_send(int sock, const void *msg, size_t len, const int *fds, unsigned int fd_cnt);

/* The descriptors of a message that was received. */
struct sys_local_received {
	/* owned */
	int fds[SYS_LOCAL_FDS];
	unsigned int cnt;
	/* -FI_EMFILE: more were sent: this process has no room for them, or they are above the limit */
	int err;
};

/*
 * sys_local_recv - receive the next message
 * @received: out, also when it has another length
 * Returns its length, which is more than @len when it was longer; 0 when the other end is closed, or has sent
 * an empty message, with which descriptors may come; -FI_EAGAIN; or another -FI_E*. With an error there are no
 * descriptors.
 */
ssize_t sys_local_recv(int sock, void *msg, size_t len, struct sys_local_received *received);

/* sys_local_closed - returns 1 if the other end is closed, or its process dead; 0 if not; or -FI_E* */
int sys_local_closed(int sock);

/* sys_local_shutdown - end both directions; the other end finds it closed */
void sys_local_shutdown(int sock);

/* sys_local_close - takes a socket of any kind */
void sys_local_close(int sock);

#endif
