/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bytes in and out of a lane. Every byte of a lane passes here once both sides have greeted, so that
 * there is one place where it is encrypted.
 */
#ifndef WEFT_TCP_LANE_H
#define WEFT_TCP_LANE_H

#include "net_socket.h"
#include "tcp_crypto.h"
#include "tcp_wire.h"

struct tcp_secret;

/* tcp_lane_secure - begin TLS over a lane; @accepts: as its server. Returns 0 or -FI_ENOMEM */
int tcp_lane_secure(struct tcp_lane *lane, const struct tcp_secret *secret, bool accepts);

/* tcp_lane_handshake - one step of the handshake: see struct tcp_crypto */
int tcp_lane_handshake(struct tcp_lane *lane, bool *out);

/* tcp_lane_insecure - free what encrypts the lane, if anything does; nothing is sent */
void tcp_lane_insecure(struct tcp_lane *lane);

/*
 * tcp_lane_shut - send the end of the stream
 * Returns false if there is no room for it yet: to be called again.
 */
bool tcp_lane_shut(struct tcp_lane *lane);

/* tcp_lane_decrypt, tcp_lane_encrypt - tcp_lane_recvmsg() and tcp_lane_sendmsg() of a lane that is encrypted */
ssize_t tcp_lane_decrypt(struct tcp_lane *lane, const struct iovec *iov, size_t cnt);
ssize_t tcp_lane_encrypt(struct tcp_lane *lane, const struct iovec *iov, size_t cnt);

/* tcp_lane_requeue - tcp_lane_rest() of a lane that is encrypted */
void tcp_lane_requeue(struct tcp_conn *conn, struct tcp_lane *lane);

/*
 * tcp_lane_recv, tcp_lane_recvv, tcp_lane_send, tcp_lane_sendv - as recv(2) and so on; of pieces
 *
 * Sends raise no SIGPIPE. A send that has failed for lack of room is repeated with the same
 * bytes first, though they may have moved and more may follow.
 * Returns bytes, 0 at the end of the stream, or -FI_E*.
 */
static inline ssize_t tcp_lane_recv(struct tcp_lane *lane, void *room, size_t len)
{
	if (unlikely(lane->secure))
		return tcp_lane_decrypt(lane, &(struct iovec){ room, len }, 1);
	return sys_socket_recv(lane->fd, room, len, 0);
}

static inline ssize_t tcp_lane_recvv(struct tcp_lane *lane, struct iovec *iov, size_t cnt)
{
	if (unlikely(lane->secure))
		return tcp_lane_decrypt(lane, iov, cnt);
	return sys_socket_recvv(lane->fd, iov, cnt);
}

static inline ssize_t tcp_lane_send(struct tcp_lane *lane, const void *bytes, size_t len,
				    int flags)
{
	if (unlikely(lane->secure))
		return tcp_lane_encrypt(lane, &(struct iovec){ (void *)(uintptr_t)bytes, len },
					1);
	return sys_socket_send(lane->fd, bytes, len, flags);
}

static inline ssize_t tcp_lane_sendv(struct tcp_lane *lane, struct iovec *iov, size_t cnt)
{
	if (unlikely(lane->secure))
		return tcp_lane_encrypt(lane, iov, cnt);
	return sys_socket_sendv(lane->fd, iov, cnt);
}

/*
 * tcp_lane_rest - after reading: what is decrypted and was not read has no event of the socket, so
 * that the next poll reads the lane again. Only from poll.
 */
static inline void tcp_lane_rest(struct tcp_conn *conn, struct tcp_lane *lane)
{
	if (unlikely(lane->secure))
		tcp_lane_requeue(conn, lane);
}

#endif
