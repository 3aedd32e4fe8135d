/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages with descriptors beside them, over Unix sockets of packets (SOCK_SEQPACKET), in both directions and whole.
 * Any thread; a direction of a socket belongs to one at a time. Source: unix(7), cmsg(3).
 */
#ifndef WEFT_DEVICES_PACKET_H
#define WEFT_DEVICES_PACKET_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define PACKET_FDS_MAX 64u

/* How long it is waited for who does not accept or take anything, or is about to listen in the same folder. */
#define PACKET_MS 2000u

/*
 * packet_listen - be who connects to @path
 * A socket that a process left there which is gone is replaced. @mode: its permissions.
 * Returns a descriptor, owned, or -errno: -EADDRINUSE: a process listens there.
 */
int packet_listen(const char *path, mode_t mode);

/* packet_connect - returns a connected descriptor, owned, or -errno: -ETIMEDOUT: who listens there accepts nothing */
int packet_connect(const char *path);

/* packet_limit - have packet_send() wait no longer than PACKET_MS on a descriptor that was accepted. Returns 0 or -errno */
int packet_limit(int fd);

/*
 * packet_send - send a message
 * @fds: stay the caller's
 * Waits while the other side takes nothing. Returns 0 or -errno: -EPIPE: it is gone; -ETIMEDOUT: nothing was sent.
 */
int packet_send(int fd, const struct iovec *iov, size_t iov_cnt, const int *fds,
		uint32_t fd_cnt);

/*
 * packet_recv - take a message
 * @fds:    out: PACKET_FDS_MAX; owned by the caller, close-on-exec
 * @fd_cnt: out: how many
 * @ms:     how long to wait; -1: no limit
 * Returns its bytes, 0 at the end and of a message without any, or -errno: -ETIMEDOUT; -EMSGSIZE: it was longer, and
 * is gone; -EMFILE: it had more descriptors than there is room for, or than this process may have; they are gone, and
 * its bytes are there.
 */
ssize_t packet_recv(int fd, const struct iovec *iov, size_t iov_cnt, int *fds, uint32_t *fd_cnt,
		    int ms);

/* packet_close_fds - close descriptors that came and are not wanted */
void packet_close_fds(const int *fds, uint32_t fd_cnt);

#endif
